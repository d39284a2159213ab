# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does Koordinator work? Rung by rung, from what was read; each says what is so and which command to look with.

Pure: readings in, steps out. Configured is not applied, so every rung looks at what came out of the one before.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import koordinator_names as names
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import pod_reasons
from ansible_collections.colocation.testbed.plugins.module_utils.policy import koordinator, overlay
from ansible_collections.colocation.testbed.plugins.module_utils.policy.koordinator_batch import (
    BATCH_CPU,
    BATCH_MEMORY,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary import SECTIONS

NOT_INJECTED = "pods not injected"


@dataclass(frozen=True)
class Root:
    """The root of best effort on the node: its quota in µs (-1: none), its CPUs and those that it could have."""

    group: str
    quota_us: int | None
    cpus: str | None
    all_cpus: str | None
    writable: bool = True
    problem: str = ""


@dataclass(frozen=True)
class Readings:
    """What was read of the cluster and the node; None: there is none. ``root`` None: not read."""

    node: Mapping[str, Any] | None
    node_slo: Mapping[str, Any] | None
    node_metric: Mapping[str, Any] | None
    config_map: Mapping[str, Any] | None
    workloads: Sequence[Mapping[str, Any]] = ()
    pods: Sequence[Mapping[str, Any]] = ()
    logs: Mapping[str, str] = field(default_factory=dict)
    priority_classes: Sequence[str] = ()
    webhooks: Sequence[Mapping[str, Any]] = ()
    probe: Mapping[str, Any] | None = None
    refusal: str = ""
    events: Sequence[Mapping[str, Any]] = ()
    root: Root | None = None
    now_s: float = 0.0


@dataclass(frozen=True)
class Wanted:
    """What must be so: the node, the policy, workloads (kind/name) that must be ready, what the batch pod asks for."""

    node_name: str
    policy: Mapping[str, Any]
    components: Sequence[str]
    batch_cpu_milli: int = 1
    batch_memory_bytes: int = 1
    namespace: str = names.NAMESPACE


@dataclass(frozen=True)
class Step:
    """A rung: whether it holds, one sentence, and the command to look with ("" where it holds)."""

    step: str
    ok: bool
    text: str
    command: str = ""


def climb(read: Readings, wanted: Wanted) -> list[Step]:
    """Return all rungs in order."""
    return [
        _ready(read, wanted),
        _priorities(read),
        _webhooks(read),
        _injection(read, wanted),
        _config(read, wanted),
        _slo(read, wanted),
        _metric(read, wanted),
        _batch(read, wanted),
        *([] if read.root is None else [_root(read.root, read, wanted)]),
    ]


def _ready(read: Readings, wanted: Wanted) -> Step:
    why = pod_reasons.node_problem(read.node or {})
    if why:
        text = f"node {wanted.node_name} is not ready ({why}), so its agent can't work"
        return Step("ready", False, text, f"kubectl describe node {wanted.node_name}")
    look = f"kubectl -n {wanted.namespace} get pods -o wide"
    there = {f"{item['kind']}/{item['metadata']['name']}": item for item in read.workloads}
    missing = [name for name in wanted.components if name not in there]
    if missing:
        return Step("ready", False, f"{', '.join(missing)} is not there; install Koordinator", look)
    for pod in read.pods:
        why = pod_reasons.problem(pod)
        name = pod["metadata"]["name"]
        if not why or not _counts(pod, wanted):
            continue
        log = pod_reasons.why_agent(read.logs.get(name, "")) if pod_reasons.crashes(pod) else ""
        look = f"kubectl -n {wanted.namespace} " + (f"logs {name} --previous" if log else f"describe pod {name}")
        return Step("ready", False, f"pod {name}: {why}{'; ' + log if log else ''}", look)
    for name in wanted.components:
        has, needs = _replicas(there[name])
        if has < needs or not needs:
            return Step("ready", False, f"{name} has {has} of {needs} pods ready", look)
    return Step("ready", True, f"{', '.join(wanted.components)} are ready")


def _counts(pod: Mapping[str, Any], wanted: Wanted) -> bool:
    """Tell whether a pod belongs to what must be ready; the agent's pods on other nodes do not."""
    app = (pod["metadata"].get("labels") or {}).get("koord-app", "")
    if app == names.AGENT and pod["spec"].get("nodeName") not in (None, wanted.node_name):
        return False
    return any(item.endswith(f"/{app}") for item in wanted.components)


def _replicas(workload: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many pods of the newest kind are ready, and how many there must be."""
    status, spec = workload.get("status") or {}, workload.get("spec") or {}
    if status.get("observedGeneration", 0) < workload["metadata"].get("generation", 0):
        return 0, 1
    if workload["kind"] == "DaemonSet":
        updated = min(status.get("numberReady", 0), status.get("updatedNumberScheduled", 0))
        return updated, status.get("desiredNumberScheduled", 0)
    updated = min(status.get("readyReplicas", 0), status.get("updatedReplicas", 0))
    return updated, spec.get("replicas", 1)


def _priorities(read: Readings) -> Step:
    missing = [name for name in names.PRIORITY_CLASSES if name not in read.priority_classes]
    if missing:
        text = f"priority class {', '.join(missing)} is missing, so no pod can be injected"
        return Step("priority_classes", False, text, "kubectl get priorityclasses")
    return Step("priority_classes", True, f"{', '.join(names.PRIORITY_CLASSES)} are there")


def _webhooks(read: Readings) -> Step:
    found = {item["metadata"]["name"]: item for item in read.webhooks}
    for name in (names.MUTATING, names.VALIDATING):
        kind = "mutating" if name == names.MUTATING else "validating"
        look = f"kubectl get {kind}webhookconfigurations {name} -o yaml"
        hooks = (found.get(name) or {}).get("webhooks") or ()
        if not hooks:
            return Step("webhooks", False, f"{name} is not there or has no webhook", look)
        bare = [hook["name"] for hook in hooks if _ca(hook) in ("", names.DUMMY_CA)]
        if bare:
            text = f"{', '.join(bare)} has no certificate of the manager yet, so calls are skipped"
            return Step("webhooks", False, text, look)
    return Step("webhooks", True, "the manager's certificate is in every webhook")


def _ca(hook: Mapping[str, Any]) -> str:
    return str((hook.get("clientConfig") or {}).get("caBundle") or "")


def _injection(read: Readings, wanted: Wanted) -> Step:
    look = f"kubectl -n {wanted.namespace} logs deployment/{names.MANAGER}"
    if read.probe is None:
        refused = read.refusal or "no pod was tried"
        return Step("injection", False, f"a batch pod is refused: {refused}", look)
    lacking = list(not_injected(read.probe))
    if lacking:
        return Step("injection", False, f"{NOT_INJECTED}: a batch pod comes out without {', '.join(lacking)}", look)
    return Step("injection", True, "a batch pod comes out with label, priority, batch resources and their annotation")


def not_injected(pod: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a batch pod lacks that Koordinator's webhook gives it."""
    metadata, spec = pod["metadata"], pod["spec"]
    if (metadata.get("labels") or {}).get(names.QOS_LABEL) != "BE":
        yield f"label {names.QOS_LABEL}=BE"
    if spec.get("priorityClassName") != "koord-batch":
        yield "priority class koord-batch"
    for container in spec.get("containers") or ():
        asked = (container.get("resources") or {}).get("requests") or {}
        plain = [name for name in ("cpu", "memory") if name in asked]
        if plain:
            yield f"translation of {' and '.join(plain)} of container {container['name']}"
        elif BATCH_CPU not in asked:
            yield f"{BATCH_CPU} in container {container['name']}"
    if names.EXTENDED_SPEC not in (metadata.get("annotations") or {}):
        yield f"annotation {names.EXTENDED_SPEC}"


def _config(read: Readings, wanted: Wanted) -> Step:
    look = f"kubectl -n {wanted.namespace} describe configmap {names.CONFIG_MAP}"
    if read.config_map is None:
        return Step("config", False, f"ConfigMap {names.CONFIG_MAP} is not there, so defaults count", look)
    failing = [item for item in read.events if item.get("reason") in names.CONFIG_FAILURES and _is_new(item, read)]
    if failing:
        return Step("config", False, f"the manager can't read it: {failing[-1].get('message', '')}", look)
    wanted_data = koordinator.render(wanted.policy) if wanted.policy else {}
    data = read.config_map.get("data") or {}
    other = sorted(name for name in SECTIONS if data.get(name) != wanted_data.get(name))
    if other:
        return Step("config", False, f"{', '.join(other)} is not as the policy has it; somebody else wrote it", look)
    return Step("config", True, "the ConfigMap is the policy, and the manager reads it")


def _is_new(event: Mapping[str, Any], read: Readings) -> bool:
    """Tell whether an event came after the ConfigMap was last written; with no times at hand it counts."""
    managed = (read.config_map or {}).get("metadata", {}).get("managedFields") or ()
    written = max((seconds(item.get("time")) or 0.0 for item in managed), default=0.0)
    seen = seconds(event.get("lastTimestamp") or event.get("eventTime"))
    return seen is None or seen >= written


def _labels(read: Readings) -> Mapping[str, str]:
    return ((read.node or {}).get("metadata") or {}).get("labels") or {}


def _slo(read: Readings, wanted: Wanted) -> Step:
    look = f"kubectl get nodeslo {wanted.node_name} -o yaml"
    if read.node is None:
        text = f"the cluster has no node {wanted.node_name}; correct its name"
        return Step("node_slo", False, text, "kubectl get nodes -o wide")
    if read.node_slo is None:
        return Step("node_slo", False, f"the manager has made no NodeSLO for {wanted.node_name}", look)
    found = koordinator.slo_differences(read.node_slo.get("spec") or {}, wanted.policy, _labels(read))
    if found:
        return Step("node_slo", False, f"NodeSLO {wanted.node_name}: {koordinator.names_of(found)}", look)
    return Step("node_slo", True, f"NodeSLO {wanted.node_name} has every value of the policy")


def _metric(read: Readings, wanted: Wanted) -> Step:
    look = f"kubectl get nodemetric {wanted.node_name} -o yaml"
    if read.node_metric is None:
        return Step("node_metric", False, f"the manager has made no NodeMetric for {wanted.node_name}", look)
    if not _colocates(read, wanted):
        return Step("node_metric", True, "colocation is off for the node, so no fresh readings are needed")
    other = koordinator.collect_differences(read.node_metric.get("spec") or {}, wanted.policy, _labels(read))
    if other:
        return Step("node_metric", False, f"NodeMetric {wanted.node_name}: {koordinator.names_of(other)}", look)
    updated = seconds((read.node_metric.get("status") or {}).get("updateTime"))
    if updated is None:
        return Step("node_metric", False, f"the agent has not reported on {wanted.node_name} yet", look)
    age_s, limit_s = read.now_s - updated, koordinator.report_age_limit_s(wanted.policy, _labels(read))
    if age_s > limit_s:
        text = f"the agent's last report on {wanted.node_name} is {age_s:.0f} s old, more than {limit_s} s"
        return Step("node_metric", False, text, look)
    return Step("node_metric", True, f"the agent reported on {wanted.node_name} {max(age_s, 0):.0f} s ago")


def _colocates(read: Readings, wanted: Wanted) -> bool:
    return overlay.strategy(wanted.policy, "colocation-config", _labels(read)).get("enable") is True


def _batch(read: Readings, wanted: Wanted) -> Step:
    look = f"kubectl get node {wanted.node_name} -o jsonpath='{{.status.allocatable}}'"
    offered = (((read.node or {}).get("status") or {}).get("allocatable")) or {}
    if not _colocates(read, wanted):
        left = [name for name in (BATCH_CPU, BATCH_MEMORY) if name in offered]
        if left:
            text = f"{', '.join(left)} is still offered although colocation is off for the node"
            return Step("batch_resources", False, text, look)
        return Step("batch_resources", True, "nothing is offered to batch work, as colocation is off for the node")
    if BATCH_CPU not in offered:
        return Step("batch_resources", False, _why_nothing(read, wanted), look)
    cpu = quantity.parse_batch_cpu_milli(offered.get(BATCH_CPU, "0"))
    memory = quantity.parse_bytes(offered.get(BATCH_MEMORY, "0"))
    if cpu < max(wanted.batch_cpu_milli, 1) or memory < max(wanted.batch_memory_bytes, 1):
        text = (
            f"{BATCH_CPU} {cpu} and {BATCH_MEMORY} {memory} are offered, fewer than the {wanted.batch_cpu_milli} and "
            f"{wanted.batch_memory_bytes} that batch work asks for"
        )
        return Step("batch_resources", False, text, look)
    return Step("batch_resources", True, f"{BATCH_CPU} {cpu} and {BATCH_MEMORY} {memory} are offered")


def _why_nothing(read: Readings, wanted: Wanted) -> str:
    """Return why a node offers nothing to batch work: its agent is silent for too long, or nobody has reckoned yet."""
    limit_s = 60 * overlay.strategy(wanted.policy, "colocation-config", _labels(read)).get("degradeTimeMinutes")
    updated = seconds(((read.node_metric or {}).get("status") or {}).get("updateTime"))
    if updated is not None and read.now_s - updated > limit_s:
        return (
            f"{BATCH_CPU} was taken back by the manager, as the agent has not reported for "
            f"{read.now_s - updated:.0f} s, more than degradeTimeMinutes ({limit_s} s); look at the agent first"
        )
    return (
        f"{BATCH_CPU} is not offered: the manager has not reckoned it yet, or takes the node for one without batch work"
    )


def _root(root: Root, read: Readings, wanted: Wanted) -> Step:
    look = f"cat /sys/fs/cgroup/cpu/{root.group}/cpu.cfs_quota_us /sys/fs/cgroup/{root.group}/cpu.max"
    if root.problem:
        return Step("best_effort_root", False, root.problem, look)
    if not root.writable:
        return Step("best_effort_root", False, f"the values of {root.group} can't be written", look)
    threshold = overlay.strategy(wanted.policy, "resource-threshold-config", _labels(read))
    on, policy = threshold.get("enable") is True, threshold.get("cpuSuppressPolicy")
    if root.quota_us not in (None, -1) and not (on and policy == "cfsQuota"):
        text = f"{root.group} is limited to {root.quota_us} µs although suppress by quota is off: it is left over"
        return Step("best_effort_root", False, text, look)
    if root.cpus != root.all_cpus and not (on and policy == "cpuset"):
        text = f"{root.group} has CPUs {root.cpus} of {root.all_cpus} although suppress by cpuset is off: left over"
        return Step("best_effort_root", False, text, look)
    quota = "no quota" if root.quota_us in (None, -1) else f"a quota of {root.quota_us} µs"
    return Step("best_effort_root", True, f"{root.group} has {quota} and CPUs {root.cpus}")


def seconds(time: Any) -> float | None:
    """Return seconds since 1970 of a time as the API writes it; None for none."""
    if not time:
        return None
    text = str(time).replace("Z", "+00:00")
    head, dot, rest = text.partition(".")
    # Python before 3.11 takes three or six digits of a second only.
    text = f"{head}{'.' + rest[:6].split('+')[0].ljust(6, '0') + '+00:00' if dot else ''}"
    return datetime.datetime.fromisoformat(text).timestamp()


def components(read: Readings, wanted: Wanted) -> dict[str, bool]:
    """Return for each component whether all of its pods are ready."""
    there = {f"{item['kind']}/{item['metadata']['name']}": item for item in read.workloads}
    figures = {name: _replicas(there[name]) if name in there else (0, 1) for name in wanted.components}
    return {name: has >= needs > 0 for name, (has, needs) in figures.items()}


def failing(steps: Sequence[Step]) -> Step | None:
    """Return the first rung that doesn't hold."""
    return next((item for item in steps if not item.ok), None)
