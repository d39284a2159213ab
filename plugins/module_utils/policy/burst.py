# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A policy's CPU burst: saved quota that a latency-sensitive group may spend, and quotas that follow throttling.

Quotas and bursts are in microseconds for a period of 100 ms, limits in milli-cores.
"""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.colocation.testbed.plugins.module_utils.policy import cpu
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import (
    APPLICATION,
    DEGRADED,
    LS,
    SYSTEM,
    TIER,
    NodeFacts,
    Note,
    Part,
    Workload,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy.overlay import Strategy

BURST = "cpu-burst-config"
_KERNEL_POLICIES = ("cpuBurstOnly", "auto")
UP, DOWN, KEEP, RESET = "up", "down", "keep", "reset"
IDLE, COOLING, OVERLOAD = "idle", "cooling", "overload"


def burst_us(limit_milli: int, percent: int) -> int:
    """Return the burst that Koordinator writes: limit in CPUs · percent/100 of the period, without regard to quotas."""
    return limit_milli * percent


def options(strategies: Mapping[str, Strategy], node: NodeFacts, workload: Workload) -> Part:
    """Return the burst of a group that is neither LSR, LSE nor best effort and has a CPU limit.

    Mainline kernels refuse a burst above the quota; there it is clamped to it, and a note says so.
    """
    burst = strategies[BURST]
    limit = workload.requests.cpu_limit_milli
    eligible = workload.qos in (LS, SYSTEM) and workload.level not in (TIER, APPLICATION)
    if burst.get("policy") not in _KERNEL_POLICIES or not eligible or not limit:
        return Part()
    wanted = burst_us(limit, burst.get("cpuBurstPercent"))
    most = cpu.limit_quota_us(limit)
    if wanted <= most or node.burst_above_quota:
        return Part({"cpu_burst_us": wanted})
    reason = f"clamped to the quota, 100 % instead of {burst.get('cpuBurstPercent')} %: mainline kernels refuse more"
    return Part({"cpu_burst_us": most}, (Note(("cpuBurstPercent",), DEGRADED, reason),))


def share_pool_state(used_percent: int | None, threshold_percent: int) -> str:
    """Return how loaded the CPUs are that no group owns: overloaded from the threshold on, cooling from 90 % of it on.

    Without a reading they are cooling, so that nothing grows.
    """
    if used_percent is None:
        return COOLING
    if used_percent >= threshold_percent:
        return OVERLOAD
    return COOLING if used_percent * 10 >= threshold_percent * 9 else IDLE


def operation(throttled: bool, allowed: bool, pool: str) -> str:
    """Return what becomes of a quota: up where throttled, down where the allowance is used up; the pool's load rules.

    An overloaded pool turns up and keep into down; a cooling one turns up into keep.
    """
    wanted = DOWN if not allowed else UP if throttled else KEEP
    if pool == OVERLOAD and wanted in (UP, KEEP):
        return DOWN
    return KEEP if pool == COOLING and wanted == UP else wanted


def next_quota_us(base_us: int, percent: int, current_us: int, action: str) -> int:
    """Return the quota after an action: ·1.2 up, ·0.8 down, the base on reset; within base and base·percent/100."""
    factors = {UP: 12, DOWN: 8, KEEP: 10}
    wanted = base_us if action == RESET else current_us * factors[action] // 10
    return min(max(wanted, base_us), base_us * percent // 100)
