# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what only several values of a policy together can get wrong: ranges, pairs, selectors, shares of a whole.

Koordinator's validation compares both ends of a range as they are written, before defaults: one end alone is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.policy import vocabulary_qos
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation_values import shown
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary import SECTIONS

# (lower key, upper key, whether the two may be equal)
_THRESHOLD_PAIRS = (
    ("memoryEvictLowerPercent", "memoryEvictThresholdPercent", False),
    ("cpuEvictLowerPercent", "cpuEvictThresholdPercent", False),
    ("cpuAllocatableEvictLowerPercent", "cpuAllocatableEvictThresholdPercent", False),
    ("memoryAllocatableEvictLowerPercent", "memoryAllocatableEvictThresholdPercent", False),
    ("cpuEvictBESatisfactionLowerPercent", "cpuEvictBESatisfactionUpperPercent", True),
)
_CACHE_PAIR = ("catRangeStartPercent", "catRangeEndPercent", False)
_REQUESTS = ("ingressRequest", "egressRequest")


def strategies(policy: Mapping[str, Any], where: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield (section, path, strategy) of the cluster and of each node entry; what is no mapping is left out."""
    for name, section in SECTIONS.items():
        value = policy.get(name)
        if not isinstance(value, Mapping):
            continue
        cluster = value.get(section.cluster) if section.cluster else value
        if isinstance(cluster, Mapping):
            yield name, f"{where}.{name}{'.' if section.cluster else ''}{section.cluster}", cluster
        entries = value.get(section.entries)
        for number, entry in enumerate(entries if isinstance(entries, (list, tuple)) else ()):
            if isinstance(entry, Mapping):
                yield name, f"{where}.{name}.{section.entries}[{number}]", entry


def problems(policy: Mapping[str, Any], where: str) -> list[str]:
    """Return one sentence for each combination of values that Koordinator refuses or acts on otherwise than meant."""
    found: list[str] = []
    for section, path, strategy in strategies(policy, where):
        if section == "resource-threshold-config":
            for pair in _THRESHOLD_PAIRS:
                found += _pair(strategy, pair, path)
        if section == "resource-qos-config":
            found += _classes(strategy, path)
        if "nodeSelector" in strategy:
            found += _selector(strategy["nodeSelector"], f"{path}.nodeSelector")
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _pair(values: Mapping[str, Any], pair: tuple[str, str, bool], path: str) -> Iterator[str]:
    low, high, may_be_equal = pair
    if (low in values) != (high in values):
        given, missing = (low, high) if low in values else (high, low)
        yield f"{path}.{missing}: is missing beside {given}, and Koordinator refuses one without the other; add it"
    elif low in values and _is_number(values[low]) and _is_number(values[high]):
        fits = values[low] <= values[high] if may_be_equal else values[low] < values[high]
        if not fits:
            word = "above" if may_be_equal else "not below"
            yield (
                f"{path}.{low}: {shown(values[low])} is {word} {high}, which is {shown(values[high])}; "
                "lower the first or raise the second"
            )


def _classes(strategy: Mapping[str, Any], path: str) -> Iterator[str]:
    for name in vocabulary_qos.CLASSES:
        cache = _block(strategy, name, "resctrlQOS")
        yield from _pair(cache, _CACHE_PAIR, f"{path}.{name}.resctrlQOS")
        if cache.get("mbaPercent") == 0 and _is_number(cache.get("mbaPercent")):
            yield (
                f"{path}.{name}.resctrlQOS.mbaPercent: 0 is accepted by Koordinator and never applied; "
                "write a number from 1 to 100"
            )
    for key in _REQUESTS:
        yield from _network_requests(strategy, key, path)


def _block(strategy: Mapping[str, Any], name: str, block: str) -> Mapping[str, Any]:
    group = strategy.get(name)
    found = group.get(block) if isinstance(group, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _network_requests(strategy: Mapping[str, Any], key: str, path: str) -> Iterator[str]:
    given = {
        name: block[key] for name in vocabulary_qos.CLASSES if key in (block := _block(strategy, name, "networkQOS"))
    }
    percents = [value for value in given.values() if _is_number(value) and 0 <= value <= 100]
    texts = [value for value in given.values() if isinstance(value, str)]
    shown_at = f"{path}.{'/'.join(given)}.networkQOS.{key}"
    if percents and texts:
        yield f"{shown_at}: some are percentages and some are quantities; write all in the same way"
    elif sum(percents) > 100:
        yield f"{shown_at}: are {sum(percents)} % together, which is more than there is; lower them to 100 % at most"


def _selector(selector: Any, path: str) -> Iterator[str]:
    if not isinstance(selector, Mapping):
        return
    if not any(selector.values()):
        yield f"{path}: is empty, so it would match every node; write matchLabels, or put the values into the cluster's"
    expressions = selector.get("matchExpressions")
    for number, item in enumerate(expressions if isinstance(expressions, (list, tuple)) else ()):
        if isinstance(item, Mapping) and isinstance(item.get("operator"), str):
            needs = item["operator"] in ("In", "NotIn")
            if needs != bool(item.get("values")) and item["operator"] in ("In", "NotIn", "Exists", "DoesNotExist"):
                must = "needs at least one value; add values" if needs else "takes no values; remove them"
                yield f"{path}.matchExpressions[{number}].values: operator {item['operator']} {must}"
