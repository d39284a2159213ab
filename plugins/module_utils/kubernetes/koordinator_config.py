# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Koordinator's ConfigMap: write a policy into it, and wait until the manager has made each node's NodeSLO of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import koordinator_names as names
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import (
    OWNER,
    OWNER_LABEL,
    RUN_LABEL,
    Kubectl,
    wait,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy import (
    koordinator,
    koordinator_overrides,
    validation,
    validation_pairs,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy import koordinator_gates as gates
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary import SECTIONS

VALIDATED_LABEL, VALIDATED = "koordinator.sh/configmap-type", "slo-controller-config"
_WHERE = "policy"


class ConfigError(Exception):
    """A policy cannot take effect; the text says what stands in the way and which command to look with."""


@dataclass(frozen=True)
class Order:
    """What is asked for: a policy, where it goes, the nodes that must have it, and what it is judged by."""

    policy: Mapping[str, Any]
    namespace: str
    nodes: Sequence[str]
    features: str
    host: gates.Host
    validated: bool = False
    run_id: str = ""


@dataclass(frozen=True)
class Task:
    """What is done: the patch of the ConfigMap (None: it is made), its sections before and after, and remarks."""

    namespace: str
    data: Mapping[str, str]
    labels: Mapping[str, str]
    patch: list[dict[str, Any]] | None
    before: str
    after: str
    findings: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Tell whether anything is written."""
        return self.patch is None or bool(self.patch)


def prepare(cluster: Kubectl, order: Order) -> Task:
    """Return what must be written. Changes nothing.

    Raises PolicyError for a policy that isn't good, ConfigError for one that would have no effect here, GatesError for
    wrong feature gates, and KubectlError.
    """
    data = _data(order) if order.policy else {}
    found = _judge(cluster, order)
    live = cluster.get("configmap", names.CONFIG_MAP, order.namespace)
    ours = {OWNER_LABEL: OWNER, **({RUN_LABEL: order.run_id} if order.run_id else {})}
    labels = {**ours, **({VALIDATED_LABEL: VALIDATED} if order.validated else {})}
    had = {} if live is None else {key: text for key, text in (live.get("data") or {}).items() if key in SECTIONS}
    patch = None if live is None else _patch(live, data, labels)
    return Task(order.namespace, data, labels, patch, _shown(had), _shown(data), found)


def _data(order: Order) -> dict[str, str]:
    """Return the ConfigMap's sections; for Koordinator's own validation, what it looks for beside them."""
    data = koordinator.render(order.policy, _WHERE)
    if not order.validated:
        return data
    alone = validation_pairs.alone(order.policy, _WHERE)
    if alone:
        raise validation.PolicyError(alone)
    # It compares shares of the network with the system's section, and refuses the first where that is missing.
    return {**data, "system-config": data.get("system-config", "{}")} if "resource-qos-config" in data else data


def _judge(cluster: Kubectl, order: Order) -> tuple[str, ...]:
    """Return remarks on the policy. Raises ConfigError where a part of it would do nothing on one of the nodes."""
    switched = gates.parse(order.features)
    told: dict[str, str] = {}
    for name in order.nodes or [""]:
        node = cluster.get("node", name) if name else {"metadata": {}}
        if node is None:
            raise ConfigError(f"node {name}: is not in the cluster; look with: kubectl get nodes")
        labels = node["metadata"].get("labels") or {}
        effects = gates.findings(order.policy, labels, switched, completed(order.host, node))
        for item in (*effects, *koordinator_overrides.findings(order.policy, node)):
            told[item.text] = item.kind
    refused = [f"{_WHERE}.{text}" for text, kind in told.items() if kind == gates.FAIL]
    if refused:
        raise validation.PolicyError(refused)
    return tuple(f"{_WHERE}.{text}" for text in told)


def completed(host: gates.Host, node: Mapping[str, Any]) -> gates.Host:
    """Return what is known of a host, with what its node object says of it where nobody has looked on the host."""
    cpus = ((node.get("status") or {}).get("capacity") or {}).get("cpu")
    if host.cpus is not None or cpus is None:
        return host
    return replace(host, cpus=quantity.parse_cpu_milli(cpus) // 1000)


def _patch(live: Mapping[str, Any], data: Mapping[str, str], labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the JSON patch (RFC 6902) that makes the sections those of the policy, and leaves all other keys."""
    had, found = live.get("data"), []
    if had is None and data:
        found.append({"op": "add", "path": "/data", "value": {}})
    for key in [key for key in had or {} if key in SECTIONS and key not in data]:
        found.append({"op": "remove", "path": f"/data/{_pointer(key)}"})
    for key, text in data.items():
        if (had or {}).get(key) != text:
            found.append({"op": "add", "path": f"/data/{_pointer(key)}", "value": text})
    kept = live["metadata"].get("labels")
    if kept is None:
        found.append({"op": "add", "path": "/metadata/labels", "value": {}})
    for key, text in labels.items():
        if (kept or {}).get(key) != text and not (key == OWNER_LABEL and OWNER_LABEL in (kept or {})):
            found.append({"op": "add", "path": f"/metadata/labels/{_pointer(key)}", "value": text})
    if VALIDATED_LABEL in (kept or {}) and VALIDATED_LABEL not in labels:
        found.append({"op": "remove", "path": f"/metadata/labels/{_pointer(VALIDATED_LABEL)}"})
    return found


def _pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _shown(data: Mapping[str, str]) -> str:
    return "".join(f"{key}: {data[key]}\n" for key in sorted(data))


def carry_out(cluster: Kubectl, task: Task) -> None:
    """Write the ConfigMap and read it back. Raises KubectlError, and ConfigError when it holds something else."""
    if not task.changed:
        return
    metadata = {"name": names.CONFIG_MAP, "namespace": task.namespace}
    if task.patch is None:
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, "labels": dict(task.labels)}}
        cluster.call("create", "-f", "-", input_text=json.dumps({**made, "data": dict(task.data)}))
    else:
        words = ("patch", "configmap", names.CONFIG_MAP, "--namespace", task.namespace, "--type=json")
        cluster.call(*words, "-p", json.dumps(task.patch))
    live = cluster.get("configmap", names.CONFIG_MAP, task.namespace) or {}
    left = {key: text for key, text in (live.get("data") or {}).items() if key in SECTIONS}
    if left != dict(task.data):
        other = sorted(key for key in {*left, *task.data} if left.get(key) != task.data.get(key))
        raise ConfigError(
            f"ConfigMap {names.CONFIG_MAP}: {', '.join(other)} was written and is something else now; look who "
            f"else writes it: kubectl -n {task.namespace} get cm {names.CONFIG_MAP} -o yaml --show-managed-fields"
        )


def late(cluster: Kubectl, order: Order, deadline_s: float) -> str:
    """Wait until every node's NodeSLO has the policy's values; return what is missing by then. Raises KubectlError."""
    missing: list[str] = []

    def has_arrived() -> bool:
        missing[:] = [text for name in order.nodes for text in [_missing(cluster, order, name)] if text]
        return not missing

    if wait(has_arrived, deadline_s):
        return ""
    return (
        f"{'; '.join(missing)}: after {deadline_s:g} s the policy has not arrived; look with: kubectl -n "
        f"{order.namespace} logs deployment/{names.MANAGER}"
    )


def _missing(cluster: Kubectl, order: Order, name: str) -> str:
    node = cluster.get("node", name) or {"metadata": {}}
    slo = cluster.get("nodeslo.slo.koordinator.sh", name)
    if slo is None:
        return f"NodeSLO {name} is not there"
    labels = node["metadata"].get("labels") or {}
    found = koordinator.slo_differences(slo.get("spec") or {}, order.policy, labels)
    return f"NodeSLO {name}: {koordinator.names_of(found)}" if found else ""
