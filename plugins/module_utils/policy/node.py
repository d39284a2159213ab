# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a policy is applied to: what a node has, what its workloads ask for; and what comes out of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Union

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.policy import vocabulary_qos

LSE, LSR, LS, BE, SYSTEM = "LSE", "LSR", "LS", "BE", "SYSTEM"
CLASS_OF_QOS: Mapping[str, str] = {
    LSE: vocabulary_qos.LSR,
    LSR: vocabulary_qos.LSR,
    LS: vocabulary_qos.LS,
    BE: vocabulary_qos.BE,
    SYSTEM: vocabulary_qos.SYSTEM,
}
# A group of host processes; the root of a class of pods; a pod; a container; a host application of the policy.
HOST, TIER, POD, CONTAINER, APPLICATION = "host", "tier", "pod", "container", "application"
LEVELS = (HOST, TIER, POD, CONTAINER)
SUPPORTED, UNSUPPORTED, DEGRADED = "supported", "unsupported", "degraded"
_BATCH_CPU, _BATCH_MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"

NO_LIMIT = -1
Option = Union[int, bool, list[dict[str, Any]]]


class RequestsError(Exception):
    """What a workload asks for cannot be understood; the text says where, what is wrong, and what to write."""


@dataclass(frozen=True)
class Requests:
    """What a workload asks for: milli-cores and bytes; None = nothing is said (a limit: there is none)."""

    cpu_request_milli: int | None = None
    cpu_limit_milli: int | None = None
    memory_request_bytes: int | None = None
    memory_limit_bytes: int | None = None


@dataclass(frozen=True)
class Workload:
    """A control group with a class of service, what it is (LEVELS), and what is asked for in it."""

    group: str
    qos: str
    level: str = HOST
    requests: Requests = Requests()

    @property
    def qos_class(self) -> str:
        """Return the name of its class in ``resource-qos-config``."""
        return CLASS_OF_QOS[self.qos]


@dataclass(frozen=True)
class Cache:
    """What resctrl of a node has: the root group's mask of ways, the fewest bits, bandwidth's unit and ends."""

    root_mask: int | None = None
    min_cbm_bits: int = 1
    vendor: str = ""
    mba_default: int | None = None
    mba_granularity: int = 10
    mba_minimum: int = 10


@dataclass(frozen=True)
class NodeFacts:
    """What a node has.

    ``lacking`` tells for options of module ``cgroup`` and for settings of module ``host_tuning`` why this node can't be
    given them. ``burst_above_quota``: the kernel takes a burst above the quota, which mainline doesn't. ``kubepods`` is
    the group of Kubernetes' pods below the hierarchy.
    """

    cpus: int
    memory_bytes: int
    labels: Mapping[str, str] = field(default_factory=dict)
    page_bytes: int = 4096
    lacking: Mapping[str, str] = field(default_factory=dict)
    burst_above_quota: bool = False
    cache: Cache | None = None
    kubepods: str = "kubepods"


@dataclass(frozen=True)
class Note:
    """The state of a policy's key on a node, with the reason where it isn't simply supported."""

    names: tuple[str, ...]
    state: str
    reason: str


@dataclass(frozen=True)
class Part:
    """What one resource's part of a policy comes to for one workload: options of module ``cgroup``, and notes."""

    options: Mapping[str, Option] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """What a policy wants of a node, in the words of modules cgroup, resctrl_group, host_tuning and bandwidth_*.

    ``cgroups``: {"group", "options"}; ``states``: (path of the policy's key, state, reason); ``bandwidth``: {"pools",
    "classes"}, whose groups are paths below the hierarchies.
    """

    cgroups: tuple[Mapping[str, Any], ...]
    resctrl: tuple[Mapping[str, Any], ...]
    host: tuple[Mapping[str, Any], ...]
    states: tuple[tuple[str, str, str], ...]
    bandwidth: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)


def requests_of(resources: Mapping[str, Any], qos: str, where: str) -> Requests:
    """Return what a container asks for, from ``{"requests": {…}, "limits": {…}}`` in Kubernetes' words.

    A BE container is asked for its batch-cpu (whose unit is the milli-core) and batch-memory, others for cpu and
    memory. A limit without a request is the request too, as Kubernetes has it. Raises RequestsError.
    """
    cpu, memory = (_BATCH_CPU, _BATCH_MEMORY) if qos == BE else ("cpu", "memory")
    for part, values in resources.items():
        if part not in ("requests", "limits") or not isinstance(values, Mapping):
            raise RequestsError(f"{where}.{part}: is not known; allowed: mappings requests and limits")
        unknown = [name for name in values if name not in (cpu, memory)]
        if unknown:
            raise RequestsError(f"{where}.{part}.{unknown[0]}: is not read for class {qos}; write {cpu} or {memory}")
    found: dict[str, int | None] = {}
    for name, resource in (("cpu", cpu), ("memory", memory)):
        limit, request = (_figure(resources, part, resource, where) for part in ("limits", "requests"))
        unit = "milli" if name == "cpu" else "bytes"
        found[f"{name}_limit_{unit}"] = limit
        found[f"{name}_request_{unit}"] = limit if request is None else request
    return Requests(**found)


def _figure(resources: Mapping[str, Any], part: str, resource: str, where: str) -> int | None:
    value = (resources.get(part) or {}).get(resource)
    if value is None:
        return None
    parse = {"cpu": quantity.parse_cpu_milli, _BATCH_CPU: quantity.parse_batch_cpu_milli}.get(
        resource, quantity.parse_bytes
    )
    try:
        return parse(value)
    except quantity.QuantityError as exc:
        raise RequestsError(f"{where}.{part}.{resource}: {exc}") from exc


def summed(containers: Iterable[Requests]) -> Requests:
    """Return what a pod asks for: the sums; no limit where any container has none."""
    every = tuple(containers)

    def total(values: Iterable[int | None]) -> int | None:
        given = [value for value in values if value is not None]
        return sum(given) if given else None

    def limit(values: Iterable[int | None]) -> int | None:
        known = tuple(values)
        return None if None in known else total(known)

    return Requests(
        total(item.cpu_request_milli for item in every),
        limit(item.cpu_limit_milli for item in every),
        total(item.memory_request_bytes for item in every),
        limit(item.memory_limit_bytes for item in every),
    )
