# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the user's own settings demand of a host beyond what every host must have: packages, and room for requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation import PolicyError
from ansible_collections.colocation.testbed.plugins.plugin_utils import definitions, ranges
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import preparation, substrates
from ansible_collections.colocation.testbed.plugins.plugin_utils.host_executor import HostExecutorError
from ansible_collections.colocation.testbed.plugins.plugin_utils.preflight import access
from ansible_collections.colocation.testbed.plugins.plugin_utils.preflight.rows import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Host

SLOW_PAGES = "latency_service_slow_pages_pct"
#: What requests are called in policies, and the roles whose variables hold them.
_TASKS = ("latency_service_worker_processes", "batch_workload_threads")
_ROLES = {"service": "latency_service", "batch": "batch_workload"}
_SERVICE_PACKAGES = ["nginx"]
PROCESS = "process"
#: The aggressor for which role batch_workload has an image by itself.
_HAS_IMAGE = "ffmpeg"


def packages(host: Host, role: str) -> Iterator[Row]:
    """Yield a row for packages that the user named and that the host's sources don't have.

    Those of the collection's own aggressors are Debian's; where a host's lists are old they are fetched later.
    """
    names = host.variable("batch_workload_aggressors", host.variable("matrix_aggressors", ["ffmpeg"]))
    try:
        own = definitions.load_definitions(preparation.COLLECTION_ROOT)
        needs = _definitions(host, names).needs(names)
    except definitions.DefinitionsError as exc:
        yield from (Row("aggressors", host.name, "valid", "wrong", "missing", text) for text in exc.problems)
        return
    built_in = own.needs(list(own.aggressors))
    if role == "load":
        yield from _installable(host, "batch_workload_install", set(needs.peer_packages) - set(built_in.peer_packages))
        return
    yield from _installable(host, "batch_workload_install", set(needs.packages) - set(built_in.packages))
    service = host.variable("latency_service_packages", _SERVICE_PACKAGES)
    yield from _installable(host, "latency_service_install", set(service) - set(_SERVICE_PACKAGES))


def _definitions(host: Host, names: Sequence[str]) -> definitions.Definitions:
    """Return the definitions as role batch_workload takes them: its own, by default the matrix's."""
    given = host.variable("batch_workload_aggressor_definitions", host.variable("matrix_aggressor_definitions", {}))
    return definitions.load_definitions(
        preparation.COLLECTION_ROOT, aggressor_definitions=given, aggressors=names, where="batch_workload_"
    )


def _installable(host: Host, variable: str, names: Iterable[str]) -> Iterator[Row]:
    asked = sorted(map(str, names))
    if not asked or not host.variable(variable, True):
        return
    try:
        advice = f"install them yourself and set {variable} to false"
        host.run("packages", {"names": asked, "advice": advice}, check_mode=True)
    except HostExecutorError as exc:
        yield Row("packages", host.name, "in the host's sources", ", ".join(asked), "missing", str(exc))
    else:
        yield Row("packages", host.name, "in the host's sources", ", ".join(asked))


def substrate(host: Host, wanted: str, modes: Sequence[str], found: definitions.Definitions) -> Iterator[Row]:
    """Yield a row for each thing that the wanted substrate of the workloads needs and does not get."""
    agent = substrates.OWN if host.variable("koordinator_state", "") == "present" else ""
    chosen = {name: found.modes[name] for name in modes}
    for text in substrates.problems(chosen, found.policies, wanted, agent):
        yield Row("engines", host.name, f"fit substrate {wanted}", "don't fit", "missing", text)
    if wanted == PROCESS:
        if access.is_wanted(host):
            text = (
                "matrix_substrate is process, and this host is reached through a pod, whose programs these would be; "
                "set matrix_substrate to pod"
            )
            yield Row("substrate", host.name, "pod", PROCESS, "missing", text)
        return
    if not host.variable("kubernetes_provider", ""):
        text = "matrix_substrate is pod, and no cluster is named; set kubernetes_provider to existing or processes"
        yield Row("cluster", host.name, "kubernetes_provider", "not set", "missing", text)
    names = host.variable("batch_workload_aggressors", host.variable("matrix_aggressors", [_HAS_IMAGE]))
    lacking = sorted(set(names) - {*host.variable("batch_workload_images", {}), _HAS_IMAGE})
    if lacking:
        text = f"aggressor {', '.join(lacking)}: runs as a pod and has no image; add one to batch_workload_images"
        yield Row("images", host.name, "for each aggressor", "missing", "missing", text)


def fit(
    host: Host,
    facts: Mapping[str, Any],
    options: Mapping[str, Mapping[str, Any]],
    modes: Sequence[str],
    found: definitions.Definitions,
    in_pods: bool = False,
) -> Iterator[Row]:
    """Yield a row for each mode that the tested node cannot bring about with what the workloads request.

    :param in_pods: the workloads are pods, whose groups kubelet makes.
    """

    def value(name: str) -> Any:
        return host.variable(name, options.get(name, {}).get("default"))

    requests = {
        workload: {kind: value(f"{role}_{kind}_request") for kind in ("cpu", "memory")}
        for workload, role in _ROLES.items()
    }
    pages = [str(pct) for pct in value(SLOW_PAGES) or ()]
    told: dict[str, None] = {}
    for mode in modes:
        slowdown = f"{found.modes[mode]['service_slowdown_pct']:g}"
        if slowdown != "0" and slowdown not in pages:
            text = f"mode {mode} wants service_slowdown_pct {slowdown}: add it to {SLOW_PAGES} ({', '.join(pages)})"
            told[text] = None
        if not in_pods:
            told.update(dict.fromkeys(_unfit(mode, requests, str(value("node_cpus") or ""), facts, found)))
    yield from (Row("modes", host.name, "fit this host", "don't fit", "missing", text) for text in told)


def crowding(host: Host, facts: Mapping[str, Any], options: Mapping[str, Mapping[str, Any]]) -> Row:
    """Return the row that says whether the workloads have to share CPUs, as colocation is about what that costs."""

    def value(name: str) -> Any:
        return host.variable(name, options.get(name, {}).get("default"))

    tasks = {name: ranges.whole(value(name)) or 1 for name in _TASKS}
    count = len(_measured(str(value("node_cpus") or ""), facts))
    found = f"{' + '.join(map(str, tasks.values()))} on {count}"
    if sum(tasks.values()) > count:
        return Row("tasks on CPUs", host.name, "more than CPUs", found)
    text = (
        f"service and batch work have {sum(tasks.values())} tasks for {count} measured CPUs: they need not share one, "
        "and foreign work is hard to see among so many; set node_cpus to fewer, or raise "
        f"{' and '.join(tasks)}"
    )
    return Row("tasks on CPUs", host.name, "more than CPUs", found, "degraded", text)


def _measured(cpus: str, facts: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the measured CPUs; all that are online where the list is not one, which another row says."""
    try:
        return quantity.parse_cpu_list(cpus or facts["online_cpus"])
    except quantity.QuantityError:
        return quantity.parse_cpu_list(facts["online_cpus"])


def _unfit(
    mode: str, requests: Mapping[str, Any], cpus: str, facts: Mapping[str, Any], found: definitions.Definitions
) -> list[str]:
    """Return why a mode's groups cannot be had with these requests, in the words of the variables."""
    try:
        count = len(quantity.parse_cpu_list(cpus or facts["online_cpus"]))
        found.groups(mode, requests, count, int(facts["memory_bytes"]))
    except quantity.QuantityError:
        return []  # The row of node_cpus says it.
    except PolicyError as exc:
        return [_renamed(text) for text in exc.problems]
    return []


def _renamed(text: str) -> str:
    for workload, role in _ROLES.items():
        for kind in ("cpu", "memory"):
            text = text.replace(f"requests.{workload}.{kind}", f"{role}_{kind}_request")
    return text
