# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a policy, what workloads request and what the node has to the options of the groups ``service`` and ``batch``.

The options are those of module ``cgroup`` and do not depend on the version of cgroups. Every option that any policy may
set is always given, the kernel's default where the policy says nothing: so changing modes leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Union

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation import PolicyError, check, lookup

Option = Union[int, bool]

PERIOD_US = 100_000
NO_LIMIT = -1
SHARES_LOW, SHARES_HIGH = 2, 262144
# Koordinator never writes a smaller quota to the root of best-effort groups (CPU suppress, policy cfsQuota).
_MIN_QUOTA_US = 2000
NEUTRAL: Mapping[str, Option] = {
    "cpu_idle": False,
    "cpu_quota_us": NO_LIMIT,
    "cpu_period_us": PERIOD_US,
    "cpu_burst_us": 0,
    "memory_max_bytes": NO_LIMIT,
}


@dataclass(frozen=True)
class Facts:
    """What a node has for its workloads: measured CPUs, bytes of memory."""

    cpus: int
    memory_bytes: int


def shares(milli: int) -> int:
    """Return cpu.shares for a request in milli-cores, as kubelet and Koordinator do: m·1024/1000 within 2..262144."""
    return min(max(milli * 1024 // 1000, SHARES_LOW), SHARES_HIGH)


def suppress_quota_us(cpus: int, threshold_percent: int, min_percent: int | None) -> int:
    """Return the quota of the best-effort root for a period of 100 ms while nothing else runs.

    Koordinator's CPU suppress grants capacity·threshold% less what other groups use, at least capacity·min%; a static
    engine takes no readings, so this is the ceiling: the others' use counts as zero.
    """
    percent = max(threshold_percent, min_percent or 0)
    return max(_MIN_QUOTA_US, cpus * percent * PERIOD_US // 100)


def _request(requests: Mapping[str, Any], workload: str, resource: str, default: str) -> int:
    """Return a request in milli-cores or bytes. An empty text or nothing is the default."""
    value = lookup(requests, workload, resource)
    written = default if value in (None, "") else value
    try:
        return quantity.parse_cpu_milli(written) if resource == "cpu" else quantity.parse_bytes(written)
    except quantity.QuantityError as exc:
        raise PolicyError([f"requests.{workload}.{resource}: {exc}"]) from exc


def _as_kubernetes(requests: Mapping[str, Any], workload: str) -> dict[str, Option]:
    return {**NEUTRAL, "cpu_shares": shares(_request(requests, workload, "cpu", "0"))}


def _memory_max_bytes(policy: Mapping[str, Any], requests: Mapping[str, Any], facts: Facts, where: str) -> int:
    """Return the batch workload's limit: what it requests as batch-memory, which must fit into what the node offers.

    Koordinator, memoryCalculatePolicy request: capacity·reclaim% less the requests of everything above batch.
    """
    section = policy.get("colocation-config", {})
    if section.get("enable") is not True:
        return NO_LIMIT
    percent = section.get("memoryReclaimThresholdPercent", 65)
    service_bytes = _request(requests, "service", "memory", "0")
    offered_bytes = max(facts.memory_bytes * percent // 100 - service_bytes, 0)
    wanted_bytes = _request(requests, "batch", "memory", "0") or offered_bytes
    if wanted_bytes > offered_bytes or not offered_bytes:
        raise PolicyError(
            [
                f"requests.batch.memory: {wanted_bytes} bytes are more than the {offered_bytes} that {where} offers "
                f"({percent} % of {facts.memory_bytes} less the service's {service_bytes}); "
                f"lower the request or raise {where}.colocation-config.memoryReclaimThresholdPercent"
            ]
        )
    return wanted_bytes


def _idle(policy: Mapping[str, Any], name: str) -> bool:
    strategy = lookup(policy, "resource-qos-config", "clusterStrategy", name, "cpuQOS") or {}
    return strategy.get("enable") is True and strategy.get("schedIdle", 0) == 1


def translate(
    policy: Mapping[str, Any] | None, requests: Mapping[str, Any], facts: Facts, where: str = "policy"
) -> dict[str, dict[str, Option]]:
    """Return {"service": options, "batch": options} for module ``cgroup``.

    ``requests`` are Kubernetes quantities: {"service": {"cpu": "500m", "memory": "64Mi"}, "batch": {...}}. Without a
    policy both groups are siblings with shares by their CPU requests, as Kubernetes makes them by default. With one,
    ``batch`` is what Koordinator's best-effort root is: least shares, suppressed by quota, limited to its batch-memory.
    Raises PolicyError for a policy that engine static cannot honour and for requests that are not quantities.
    """
    service = _as_kubernetes(requests, "service")
    batch = _as_kubernetes(requests, "batch")
    if policy is None:
        return {"service": service, "batch": batch}
    check(policy, where)
    service["cpu_idle"] = _idle(policy, "lsClass")
    batch["cpu_idle"] = _idle(policy, "beClass")
    batch["cpu_shares"] = SHARES_LOW
    threshold = lookup(policy, "resource-threshold-config", "clusterStrategy") or {}
    if threshold.get("enable") is True:
        percent = threshold.get("cpuSuppressThresholdPercent", 65)
        batch["cpu_quota_us"] = suppress_quota_us(facts.cpus, percent, threshold.get("cpuSuppressMinPercent"))
    batch["memory_max_bytes"] = _memory_max_bytes(policy, requests, facts, where)
    return {"service": service, "batch": batch}
