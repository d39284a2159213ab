# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of a policy: Koordinator's slo-controller-config, as a table of keys with type, range and default.

Names, ranges and defaults are those of Koordinator v1.8.0. ``engines`` tells which engine acts on a key; a key that
exists upstream and that no engine implements yet is known here, so that it can be told from a misspelled one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union

STATIC = ("static",)
NONE: tuple[str, ...] = ()


@dataclass(frozen=True)
class Leaf:
    """A key with a value. ``choices`` are all that Koordinator knows; ``static_choices`` those of engine static."""

    kind: str
    default: bool | int | str | None = None
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()
    static_choices: tuple[str, ...] = ()
    engines: tuple[str, ...] = NONE


Node = Union[Leaf, Mapping[str, "Node"]]


def _flag(default: bool = False, engines: tuple[str, ...] = NONE) -> Leaf:
    return Leaf("bool", default, engines=engines)


def _percent(default: int | None, engines: tuple[str, ...] = NONE, high: int = 100) -> Leaf:
    return Leaf("int", default, 0, high, engines=engines)


def _number(default: int | None, low: int, high: int = 2**31 - 1) -> Leaf:
    return Leaf("int", default, low, high)


def _upstream(*names: str) -> dict[str, Node]:
    """Return keys that Koordinator has and no engine implements yet."""
    return {name: Leaf("upstream") for name in names}


_THRESHOLD: dict[str, Node] = {
    "enable": _flag(engines=STATIC),
    "cpuSuppressThresholdPercent": _percent(65, STATIC),
    "cpuSuppressMinPercent": _percent(None, STATIC),
    "cpuSuppressPolicy": Leaf(
        "choice", "cpuset", choices=("cpuset", "cfsQuota"), static_choices=("cfsQuota",), engines=STATIC
    ),
    **_upstream(
        "memoryEvictThresholdPercent",
        "memoryEvictLowerPercent",
        "cpuEvictPolicy",
        "cpuEvictBESatisfactionLowerPercent",
        "cpuEvictBESatisfactionUpperPercent",
        "cpuEvictBEUsageThresholdPercent",
        "cpuEvictTimeWindowSeconds",
        "cpuEvictThresholdPercent",
        "cpuEvictLowerPercent",
        "cpuAllocatableEvictThresholdPercent",
        "cpuAllocatableEvictLowerPercent",
        "memoryAllocatableEvictThresholdPercent",
        "memoryAllocatableEvictLowerPercent",
        "evictEnabledPriorityThreshold",
        "allocatableEvictPriorityThreshold",
    ),
}


def _qos_class() -> dict[str, Node]:
    return {
        "cpuQOS": {
            "enable": _flag(engines=STATIC),
            "schedIdle": Leaf("int", 0, 0, 1, engines=STATIC),
            "groupIdentity": Leaf("int", 0, -1, 2),
            "coreExpeller": _flag(),
        },
        "memoryQOS": _upstream(
            "enable",
            "minLimitPercent",
            "lowLimitPercent",
            "throttlingPercent",
            "wmarkRatio",
            "wmarkScalePermill",
            "wmarkMinAdj",
            "priorityEnable",
            "priority",
            "oomKillGroup",
        ),
        "resctrlQOS": _upstream("enable", "catRangeStartPercent", "catRangeEndPercent", "mbaPercent"),
        "blkioQOS": _upstream("enable", "blocks"),
        "networkQOS": _upstream("enable", "ingressRequest", "egressRequest", "ingressLimit", "egressLimit"),
    }


_COLOCATION: dict[str, Node] = {
    "enable": _flag(engines=STATIC),
    "memoryReclaimThresholdPercent": _percent(65, STATIC),
    "memoryCalculatePolicy": Leaf(
        "choice",
        "usage",
        choices=("usage", "request", "maxUsageRequest"),
        static_choices=("request",),
        engines=STATIC,
    ),
    **_upstream(
        "nodeConfigs",
        "metricAggregateDurationSeconds",
        "metricReportIntervalSeconds",
        "metricAggregatePolicy",
        "metricMemoryCollectPolicy",
        "cpuReclaimThresholdPercent",
        "cpuCalculatePolicy",
        "degradeTimeMinutes",
        "updateTimeThresholdSeconds",
        "resourceDiffThreshold",
        "midCPUThresholdPercent",
        "midMemoryThresholdPercent",
        "midUnallocatedPercent",
        "midReclaimMode",
        "midStaticCPUReservedPercent",
        "midStaticMemoryReservedPercent",
        "batchCPUThresholdPercent",
        "batchMemoryThresholdPercent",
    ),
}

VOCABULARY: Mapping[str, Node] = {
    "colocation-config": _COLOCATION,
    "resource-threshold-config": {"clusterStrategy": _THRESHOLD, **_upstream("nodeStrategies")},
    "resource-qos-config": {
        "clusterStrategy": {
            "lsClass": _qos_class(),
            "beClass": _qos_class(),
            **_upstream("policies", "lsrClass", "systemClass", "cgroupRoot"),
        },
        **_upstream("nodeStrategies"),
    },
    **_upstream(
        "cpu-burst-config",
        "system-config",
        "host-application-config",
        "cpu-normalization-config",
        "resource-amplification-config",
    ),
}


def implemented(node: Node, engine: str) -> bool:
    """Tell whether an engine acts on a key, or on any key below it."""
    if isinstance(node, Leaf):
        return engine in node.engines
    return any(implemented(child, engine) for child in node.values())


def names(node: Mapping[str, Node], engine: str) -> list[str]:
    """Return the keys of a section that an engine implements, sorted."""
    return sorted(name for name, child in node.items() if implemented(child, engine))
