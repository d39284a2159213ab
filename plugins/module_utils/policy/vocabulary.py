# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of a policy: Koordinator's slo-controller-config, as a table of keys with type, range and default.

Names, ranges and defaults are those of Koordinator v1.8.0, except for the sections in ``OWN_SECTIONS``. Every key is
known; a leaf's ``engines`` tells which engine acts on it, so that what an engine would ignore is told from what is
misspelled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.policy import vocabulary_bandwidth, vocabulary_qos
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary_types import (
    LATER,
    Leaf,
    ListOf,
    MapOf,
    Node,
    choice,
    flag,
    implemented,
    number,
    percent,
    ratio,
    reading,
)

_PRIORITY_CLASSES = ("koord-prod", "koord-mid", "koord-batch", "koord-free")
QOS_CLASSES = ("LSE", "LSR", "LS", "BE", "SYSTEM")
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")

SELECTOR: Mapping[str, Node] = {
    "matchLabels": MapOf(Leaf("label"), keys="label_key"),
    "matchExpressions": ListOf(
        {"key": Leaf("label_key"), "operator": choice(None, *_OPERATORS), "values": ListOf(Leaf("label"))},
        ("key", "operator"),
    ),
}

_COLOCATION: Mapping[str, Node] = {
    "enable": flag(static=True),
    "metricAggregateDurationSeconds": number(300, 1),
    "metricReportIntervalSeconds": number(60, 1),
    "metricAggregatePolicy": {"durations": ListOf(Leaf("duration"))},
    "metricMemoryCollectPolicy": choice(
        "usageWithoutPageCache", "usageWithoutPageCache", "usageWithHotPageCache", "usageWithPageCache"
    ),
    "cpuReclaimThresholdPercent": percent(60, None),
    "cpuCalculatePolicy": choice("usage", "usage", "maxUsageRequest"),
    "memoryReclaimThresholdPercent": percent(65, None, static=True),
    "memoryCalculatePolicy": choice("usage", "usage", "request", "maxUsageRequest", static=("request",)),
    "degradeTimeMinutes": number(15, 1),
    "updateTimeThresholdSeconds": number(300, 1),
    "resourceDiffThreshold": ratio(0.1, 1),
    "midCPUThresholdPercent": percent(100),
    "midMemoryThresholdPercent": percent(100),
    "midUnallocatedPercent": percent(0),
    "midReclaimMode": choice(None, "static"),
    "midStaticCPUReservedPercent": percent(0),
    "midStaticMemoryReservedPercent": percent(0),
    "batchCPUThresholdPercent": percent(None, None),
    "batchMemoryThresholdPercent": percent(None, None),
}

_THRESHOLD: Mapping[str, Node] = {
    "enable": flag(static=True),
    "cpuSuppressThresholdPercent": percent(65, static=True),
    "cpuSuppressMinPercent": percent(None, static=True),
    "cpuSuppressPolicy": choice("cpuset", "cpuset", "cfsQuota", static=("cfsQuota",)),
    "memoryEvictThresholdPercent": reading(70, 0, 100),
    "memoryEvictLowerPercent": reading(None, 0, 100),
    "cpuEvictPolicy": Leaf(
        "choice", "evictByRealLimit", choices=("evictByRealLimit", "evictByAllocatable"), readings=True
    ),
    "cpuEvictBESatisfactionLowerPercent": reading(None, 1, 60),
    "cpuEvictBESatisfactionUpperPercent": reading(None, 1, 99),
    "cpuEvictBEUsageThresholdPercent": reading(90, 0, 100),
    "cpuEvictTimeWindowSeconds": reading(None, 1),
    "cpuEvictThresholdPercent": reading(None, 0, 100),
    "cpuEvictLowerPercent": reading(None, 0, 100),
    "cpuAllocatableEvictThresholdPercent": reading(None, 0),
    "cpuAllocatableEvictLowerPercent": reading(None, 0),
    "memoryAllocatableEvictThresholdPercent": reading(None, 0),
    "memoryAllocatableEvictLowerPercent": reading(None, 0),
    "evictEnabledPriorityThreshold": reading(None, -(2**31), 2**31 - 1),
    "allocatableEvictPriorityThreshold": reading(None, 0, 7999),
}

_BURST: Mapping[str, Node] = {
    "policy": choice("none", "none", "cpuBurstOnly", "cfsQuotaBurstOnly", "auto"),
    "cpuBurstPercent": number(1000, 1, 10000),
    "cfsQuotaBurstPercent": reading(300, 100),
    "cfsQuotaBurstPeriodSeconds": reading(-1, -1),
    "sharePoolThresholdPercent": reading(50, 0, 100),
}

_SYSTEM: Mapping[str, Node] = {
    "minFreeKbytesFactor": number(None, 1),
    "watermarkScaleFactor": number(None, 1, 400),
    "memcgReapBackGround": number(None, 0, 1),
    "schedGroupIdentityEnabled": number(None, 0, 1),
    "schedIdleSaverWmark": number(None, 0),
    "schedFeatures": MapOf(Leaf("bool")),
    "totalNetworkBandwidth": Leaf("quantity", "0"),
}

_APPLICATION: Mapping[str, Node] = {
    "name": Leaf("text"),
    "priority": choice(None, *_PRIORITY_CLASSES),
    "qos": choice(None, *QOS_CLASSES),
    "cgroupPath": {
        "base": choice("CgroupRoot", "CgroupRoot", "Kubepods", "KubepodsBurstable", "KubepodsBesteffort"),
        "parentDir": Leaf("text", ""),
        "relativePath": Leaf("text", ""),
    },
    "strategy": {},
}
_RATIOS = ("baseRatio", "hyperThreadEnabledRatio", "turboEnabledRatio", "hyperThreadTurboEnabledRatio")


@dataclass(frozen=True)
class Section:
    """A section: the key of the cluster's strategy ("" = its keys stand in the section itself), and the list's name."""

    strategy: Mapping[str, Node]
    cluster: str
    entries: str


SECTIONS: Mapping[str, Section] = {
    "colocation-config": Section(_COLOCATION, "", "nodeConfigs"),
    "resource-threshold-config": Section(_THRESHOLD, "clusterStrategy", "nodeStrategies"),
    "resource-qos-config": Section(vocabulary_qos.STRATEGY, "clusterStrategy", "nodeStrategies"),
    "cpu-burst-config": Section(_BURST, "clusterStrategy", "nodeStrategies"),
    "system-config": Section(_SYSTEM, "clusterStrategy", "nodeStrategies"),
    "host-application-config": Section({"applications": ListOf(_APPLICATION, ("name", "qos"))}, "", "nodeConfigs"),
    "cpu-normalization-config": Section(
        {
            "enable": flag(),
            "defaultRatio": ratio(),
            "ratioModel": MapOf({name: ratio() for name in _RATIOS}),
        },
        "",
        "nodeConfigs",
    ),
    "resource-amplification-config": Section(
        {"enable": flag(), "resourceAmplificationRatio": MapOf(ratio())}, "", "nodeConfigs"
    ),
    vocabulary_bandwidth.SECTION: Section(vocabulary_bandwidth.STRATEGY, "", "nodeConfigs"),
}
OWN_SECTIONS = (vocabulary_bandwidth.SECTION,)
"""Sections that Koordinator does not have."""
ENTRY_LISTS = ("nodeConfigs", "nodeStrategies")


def _words(section: Section) -> Mapping[str, Node]:
    entry: dict[str, Node] = {"name": Leaf("text"), "nodeSelector": SELECTOR, **section.strategy}
    engines = tuple(engine for engine in LATER if implemented(section.strategy, engine))
    entries = ListOf(entry, ("nodeSelector",), engines)
    inline = {section.cluster: section.strategy} if section.cluster else section.strategy
    return {**inline, section.entries: entries}


VOCABULARY: Mapping[str, Node] = {name: _words(section) for name, section in SECTIONS.items()}
