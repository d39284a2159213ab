# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what only several values of a policy together can get wrong: ranges, pairs, selectors, shares of a whole.

Pairs are compared as they count in the end, with defaults and the cluster's values below those of a node entry. The
webhook that Koordinator may check a ConfigMap with compares them as they are written: that is ``alone``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.policy import overlay, vocabulary_qos
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
# Lower keys that Koordinator's agent makes of the upper ones where they are missing: two less.
_DERIVED = ("memoryEvictLowerPercent", "cpuEvictLowerPercent")
_BANDWIDTH = "totalNetworkBandwidth"
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
    below: dict[str, Any] = {}
    for section, path, strategy in strategies(policy, where):
        is_entry = path.endswith("]")
        under = below.get(section) if is_entry else None
        counts = overlay.merge(overlay.defaults(SECTIONS[section].strategy) if under is None else under, strategy)
        if not is_entry:
            below[section] = counts
        if section == "resource-threshold-config":
            for pair in _THRESHOLD_PAIRS:
                found += _pair(strategy, counts, pair, path)
        if section == "resource-qos-config":
            found += _classes(strategy, counts, path)
        if section == "resource-qos-config" and is_entry:
            found += _blocks(strategy, under or {}, path)
        if section == "system-config" and is_entry:
            found += _bandwidth(strategy, under or {}, path)
        if "nodeSelector" in strategy:
            found += _selector(strategy["nodeSelector"], f"{path}.nodeSelector")
    return found


def alone(policy: Mapping[str, Any], where: str) -> list[str]:
    """Return one sentence for each end of a range without the other, which Koordinator's webhook refuses."""
    found: list[str] = []
    for section, path, strategy in strategies(policy, where):
        if section == "resource-threshold-config":
            for pair in _THRESHOLD_PAIRS:
                found += _alone(strategy, pair, path)
        if section == "resource-qos-config":
            for name in vocabulary_qos.CLASSES:
                found += _alone(_block(strategy, name, "resctrlQOS"), _CACHE_PAIR, f"{path}.{name}.resctrlQOS")
    return found


def _alone(values: Mapping[str, Any], pair: tuple[str, str, bool], path: str) -> Iterator[str]:
    low, high, _may_be_equal = pair
    if (low in values) != (high in values):
        given, missing = (low, high) if low in values else (high, low)
        yield (
            f"{path}.{missing}: is missing beside {given}, and Koordinator's own validation refuses one without the "
            "other; add it"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _pair(given: Mapping[str, Any], counts: Mapping[str, Any], pair: tuple[str, str, bool], path: str) -> Iterator[str]:
    """Compare two ends as they count, where one of them is given here."""
    low, high, may_be_equal = pair
    if low not in given and high not in given:
        return
    lower, upper = counts.get(low), counts.get(high)
    if lower is None and low in _DERIVED:
        return
    if lower is None or upper is None:
        missing, other = (low, high) if lower is None else (high, low)
        yield f"{path}.{missing}: is missing beside {other}, and Koordinator's agent acts on both only; add it"
    elif _is_number(lower) and _is_number(upper):
        fits = lower <= upper if may_be_equal else lower < upper
        if not fits:
            word = "above" if may_be_equal else "not below"
            yield (
                f"{path}.{low}: {shown(lower)} is {word} {high}, which is {shown(upper)}; "
                "lower the first or raise the second"
            )


def _blocks(entry: Mapping[str, Any], cluster: Mapping[str, Any], path: str) -> Iterator[str]:
    """Koordinator reads an entry's disks into the cluster's, by their number in the list and not by their names."""
    for name in vocabulary_qos.CLASSES:
        if _block(entry, name, "blkioQOS").get("blocks") and _block(cluster, name, "blkioQOS").get("blocks"):
            yield (
                f"{path}.{name}.blkioQOS.blocks: are there beside those of the cluster, and Koordinator mixes the two "
                "by their places in the list; write blocks in node entries only"
            )


def _bandwidth(entry: Mapping[str, Any], cluster: Mapping[str, Any], path: str) -> Iterator[str]:
    """Koordinator's type for it has no way to be missing: an entry without it says 0."""
    total = cluster.get(_BANDWIDTH)
    if _BANDWIDTH not in entry and total not in (None, "0", 0):
        yield (
            f"{path}.{_BANDWIDTH}: is missing, and Koordinator takes 0 for these nodes then, not {shown(total)} of the "
            "cluster; add it"
        )


def _classes(strategy: Mapping[str, Any], counts: Mapping[str, Any], path: str) -> Iterator[str]:
    for name in vocabulary_qos.CLASSES:
        cache = _block(strategy, name, "resctrlQOS")
        yield from _pair(cache, _block(counts, name, "resctrlQOS"), _CACHE_PAIR, f"{path}.{name}.resctrlQOS")
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
