# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A policy's CPU part: weights and limits of batch work, its ceiling, and who goes first.

CPU figures are in milli-cores, quotas in microseconds for a period of 100 ms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansible_collections.colocation.testbed.plugins.module_utils.policy import effects, suppress
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import (
    APPLICATION,
    BE,
    CONTAINER,
    DEGRADED,
    HOST,
    NO_LIMIT,
    POD,
    SUPPORTED,
    TIER,
    UNSUPPORTED,
    NodeFacts,
    Note,
    Option,
    Part,
    Requests,
    Workload,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy.overlay import Strategy

SHARES_LOW, SHARES_HIGH = 2, 262144
_MIN_QUOTA_US = 1000
QOS, THRESHOLD = "resource-qos-config", "resource-threshold-config"
CORE_SCHED = "coreSched"
SUPPRESS_POLICY = "cpuSuppressPolicy"


def shares(milli: int) -> int:
    """Return cpu.shares for a request in milli-cores, as kubelet and Koordinator do: m·1024/1000 within 2..262144."""
    return min(max(milli * 1024 // 1000, SHARES_LOW), SHARES_HIGH)


def limit_quota_us(limit_milli: int | None) -> int:
    """Return the quota for a CPU limit: its share of 100 ms, at least 1 ms; -1 for no limit, and for one of 0."""
    if not limit_milli:
        return NO_LIMIT
    return max(_MIN_QUOTA_US, limit_milli * suppress.PERIOD_US // 1000)


def ceiling_us(threshold: Strategy, cpus: int) -> int | None:
    """Return the quota of best effort while nothing else runs; None unless suppress by quota is on."""
    if threshold.get("enable") is not True or threshold.get("cpuSuppressPolicy") != "cfsQuota":
        return None
    target = suppress.target_milli(
        cpus * 1000,
        threshold.get("cpuSuppressThresholdPercent"),
        min_percent=threshold.get("cpuSuppressMinPercent"),
    )
    return suppress.quota_us(target)


def options(strategies: Mapping[str, Strategy], node: NodeFacts, workload: Workload) -> Part:
    """Return the CPU options of one group, and notes on keys that are carried out otherwise than Koordinator does."""
    found = _requests(workload)
    if workload.qos == BE and workload.level != APPLICATION:
        ceiling = ceiling_us(strategies[THRESHOLD], node.cpus)
        if ceiling is not None and workload.level in (HOST, TIER):
            found["cpu_quota_us"] = ceiling
        elif ceiling is not None and "cpu_quota_us" in found:
            # The root's quota limits them all; Koordinator then lifts those of pods and containers.
            found["cpu_quota_us"] = NO_LIMIT
    identity = _identity(strategies[QOS], workload)
    return Part({**found, **identity.options}, identity.notes)


def _requests(workload: Workload) -> dict[str, Option]:
    """Return weight and limit; of a group of which nothing is said they are left as they are."""
    asked = workload.requests
    if workload.level == HOST:
        found: dict[str, Option] = (
            {} if asked.cpu_limit_milli is None else {"cpu_quota_us": limit_quota_us(asked.cpu_limit_milli)}
        )
        if workload.qos == BE:
            found["cpu_shares"] = SHARES_LOW
        elif asked.cpu_request_milli is not None:
            found["cpu_shares"] = shares(asked.cpu_request_milli)
        return found
    if workload.qos == BE and workload.level in (POD, CONTAINER) and asked != Requests():
        return {
            "cpu_shares": shares(asked.cpu_request_milli or 0),
            "cpu_quota_us": limit_quota_us(asked.cpu_limit_milli),
        }
    return {}


def _identity(qos: Strategy, workload: Workload) -> Part:
    """Who goes first: group identity, or SCHED_IDLE for the group, which is honoured whatever cpuPolicy says."""
    name = workload.qos_class
    if qos.get(name, "cpuQOS", "enable") is not True:
        return Part()
    found: dict[str, Option] = {}
    notes: list[Note] = []
    if qos.get("policies", "cpuPolicy") != CORE_SCHED:
        found["cpu_bvt_warp_ns"] = qos.get(name, "cpuQOS", "groupIdentity")
    else:
        notes.append(Note((name, "cpuQOS", "groupIdentity"), UNSUPPORTED, "cpuPolicy is coreSched"))
    idle = qos.get(name, "cpuQOS", "schedIdle") == 1
    if workload.level in (HOST, POD, APPLICATION):
        found["cpu_idle"] = idle
    elif idle and workload.level == TIER:
        reason = "set on pods, not on the root of the class, whose weight kubelet could not write any more"
        notes.append(Note((name, "cpuQOS", "schedIdle"), DEGRADED, reason))
    return Part(found, tuple(notes))


def notes(strategies: Mapping[str, Strategy], workloads: Sequence[Workload]) -> tuple[Note, ...]:
    """Return notes on the ceiling of best effort: without readings an idle node's, and in place of other quotas."""
    threshold = strategies[THRESHOLD]
    keys = ("cpuSuppressThresholdPercent", "cpuSuppressMinPercent", "cpuSuppressPolicy")
    if threshold.get("enable") is not True:
        return ()
    if threshold.get("cpuSuppressPolicy") != "cfsQuota":
        why = f"cpuSuppressPolicy cpuset {effects.READINGS}"
        return tuple(Note((key,), UNSUPPORTED, why) for key in keys if threshold.get(key) is not None)
    why = "a fixed ceiling for an idle node: without readings, what others use is not subtracted"
    found = tuple(Note((key,), DEGRADED, why) for key in keys[:2] if threshold.get(key) is not None)
    return found + _lifted(workloads)


def _lifted(workloads: Sequence[Workload]) -> tuple[Note, ...]:
    """Return a note where limits of batch-cpu come to no quota, since the ceiling stands for them, if it is there."""
    effort = [item for item in workloads if item.qos == BE]
    if not any(item.level in (POD, CONTAINER) and item.requests != Requests() for item in effort):
        return ()
    why = "quotas of pods and containers are lifted (-1), as in Koordinator: the ceiling limits the class as a whole"
    if any(item.level in (TIER, HOST) for item in effort):
        return (Note((SUPPRESS_POLICY,), SUPPORTED, why),)
    none = "no group of class BE with level tier or host is among the groups, so nothing limits them"
    return (Note((SUPPRESS_POLICY,), DEGRADED, f"{why}, but {none}"),)
