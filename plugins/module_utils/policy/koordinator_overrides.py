# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels and annotations of a node that count more than a policy: Koordinator's manager takes their values instead.

What it cannot read it passes over, and so does this.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.policy import overlay
from ansible_collections.colocation.testbed.plugins.module_utils.policy.koordinator_gates import FAIL, Finding
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation_values import shown

_DOMAIN = "node.koordinator.sh"
_RATIOS: Mapping[str, str] = {
    f"{_DOMAIN}/cpu-reclaim-ratio": "cpuReclaimThresholdPercent",
    f"{_DOMAIN}/memory-reclaim-ratio": "memoryReclaimThresholdPercent",
    f"{_DOMAIN}/mid-static-cpu-reserved-ratio": "midStaticCPUReservedPercent",
    f"{_DOMAIN}/mid-static-memory-reserved-ratio": "midStaticMemoryReservedPercent",
}
_STRATEGY = f"{_DOMAIN}/colocation-strategy"
_BANDWIDTH = f"{_DOMAIN}/network-bandwidth"


def findings(policy: Mapping[str, Any], node: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Return what of a checked policy does not count on a node, by the node's object."""
    about = node.get("metadata") or {}
    labels, annotations = about.get("labels") or {}, about.get("annotations") or {}
    colocation = overlay.strategy(policy, "colocation-config", labels)
    system = overlay.strategy(policy, "system-config", labels)
    name = str(about.get("name", ""))
    found: list[Finding] = []
    if colocation.get("enable") is True:
        for label, percent in _percents(labels):
            found += _told(colocation, _RATIOS[label], percent, name, f"label {label}={labels[label]}")
        for key, value in _object(annotations.get(_STRATEGY)).items():
            if key in colocation.values:
                found += _told(colocation, key, value, name, f"annotation {_STRATEGY}")
    total = annotations.get(_BANDWIDTH)
    if system.given and total is not None and not _same_quantity(total, system.get("totalNetworkBandwidth")):
        found += _told(system, "totalNetworkBandwidth", total, name, f"annotation {_BANDWIDTH}")
    return tuple(found)


def _told(strategy: overlay.Strategy, key: str, value: Any, node: str, whose: str) -> Iterator[Finding]:
    wanted = strategy.get(key)
    if wanted != value:
        yield Finding(
            FAIL,
            f"{strategy.path(key)}: {shown(wanted)} does not count on node {node}, whose {whose} stands for it; remove "
            f"that from the node, or write {shown(value)}",
        )


def _percents(labels: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    for label in _RATIOS:
        try:
            ratio = float(labels.get(label, ""))
        except ValueError:
            continue
        if math.isfinite(ratio) and ratio >= 0:
            yield label, int(ratio * 100)


def _object(text: str | None) -> Mapping[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _same_quantity(one: str, other: Any) -> bool:
    try:
        return quantity.parse(one) == quantity.parse(other)
    except quantity.QuantityError:
        # The manager makes no NodeSLO of it at all, which the ladder tells.
        return False
