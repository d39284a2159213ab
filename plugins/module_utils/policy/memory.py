# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A policy's memory part: limits of batch work, protection, throttling, and the order of reclaim and of the OOM killer.

All figures in bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import (
    APPLICATION,
    BE,
    CONTAINER,
    HOST,
    NO_LIMIT,
    POD,
    TIER,
    NodeFacts,
    Option,
    Part,
    Requests,
    Workload,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy.overlay import Strategy

QOS = "resource-qos-config"
_COPIED = {
    "wmarkRatio": "memory_wmark_ratio",
    "wmarkScalePermill": "memory_wmark_scale_factor",
    "wmarkMinAdj": "memory_wmark_min_adj",
}
_ALSO_ON_TIERS = {"priorityEnable": "memory_use_priority_oom", "priority": "memory_priority"}


def protected_bytes(request: int, percent: int) -> int:
    """Return memory.min or memory.low for a request."""
    return request * percent // 100


def high_bytes(request: int, limit: int | None, percent: int, node: int, page: int) -> int:
    """Return memory.high: request + (limit - request)·percent/100, down to pages; -1 (no limit) for 0 percent.

    Without a limit the node's memory takes its place.
    """
    if percent == 0:
        return NO_LIMIT
    top = node if limit is None else limit
    return (request * 100 + (top - request) * percent) // 100 // page * page


def options(strategies: Mapping[str, Strategy], node: NodeFacts, workload: Workload) -> Part:
    """Return the memory options of one group."""
    found: dict[str, Option] = {}
    limit = workload.requests.memory_limit_bytes
    batch = workload.qos == BE and workload.level in (POD, CONTAINER) and workload.requests != Requests()
    if batch or (workload.level == HOST and limit is not None):
        found["memory_max_bytes"] = limit or NO_LIMIT
    qos = strategies[QOS]
    if workload.level != APPLICATION and qos.get(workload.qos_class, "memoryQOS", "enable") is True:
        found.update(_qos(qos.get(workload.qos_class, "memoryQOS"), node, workload))
    return Part(found)


def _qos(block: Mapping[str, int], node: NodeFacts, workload: Workload) -> dict[str, Option]:
    request = workload.requests.memory_request_bytes or 0
    lowest, low = (protected_bytes(request, block[key]) for key in ("minLimitPercent", "lowLimitPercent"))
    found: dict[str, Option] = {option: block[key] for key, option in _ALSO_ON_TIERS.items()}
    found["memory_oom_group"] = block["oomKillGroup"] == 1
    if workload.level == TIER:
        return found
    found.update({option: block[key] for key, option in _COPIED.items()})
    found["memory_min_bytes"] = lowest
    found["memory_low_bytes"] = max(low, lowest) if low else 0
    if workload.level in (CONTAINER, HOST):
        limit = workload.requests.memory_limit_bytes
        high = high_bytes(request, limit, block["throttlingPercent"], node.memory_bytes, node.page_bytes)
        found["memory_high_bytes"] = high if high == NO_LIMIT else max(high, lowest)
    return found
