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
from ansible_collections.colocation.testbed.plugins.module_utils.policy import (
    bandwidth,
    kernel_values,
    overlay,
    suppress,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy import batch as batch_offer
from ansible_collections.colocation.testbed.plugins.module_utils.policy.cpu import shares
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import (
    BE,
    LS,
    NO_LIMIT,
    NodeFacts,
    Requests,
    Workload,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation import PolicyError, check, lookup

Option = Union[int, bool]

PERIOD_US = suppress.PERIOD_US
NEUTRAL: Mapping[str, Option] = {
    "cpu_idle": False,
    "cpu_quota_us": NO_LIMIT,
    "cpu_period_us": PERIOD_US,
    "cpu_burst_us": 0,
    "memory_max_bytes": NO_LIMIT,
}
# A default that comes with cpuQOS, of kernels that engine static does not ask for.
_NOT_SET = {"cpu_bvt_warp_ns": "engine static does not set group identities"}


@dataclass(frozen=True)
class Facts:
    """What a node has for its workloads: measured CPUs, bytes of memory."""

    cpus: int
    memory_bytes: int


def _request(requests: Mapping[str, Any], workload: str, resource: str, default: str) -> int:
    """Return a request in milli-cores or bytes. An empty text or nothing is the default."""
    value = lookup(requests, workload, resource)
    written = default if value in (None, "") else value
    try:
        return quantity.parse_cpu_milli(written) if resource == "cpu" else quantity.parse_bytes(written)
    except quantity.QuantityError as exc:
        raise PolicyError([f"requests.{workload}.{resource}: {exc}"]) from exc


def _memory_max_bytes(policy: Mapping[str, Any], requests: Mapping[str, Any], facts: Facts, where: str) -> int | None:
    """Return the batch workload's limit: what it requests as batch-memory, which must fit into what the node offers."""
    section = policy.get("colocation-config", {})
    if section.get("enable") is not True:
        return None
    percent = section.get("memoryReclaimThresholdPercent", 65)
    service_bytes = _request(requests, "service", "memory", "0")
    above = batch_offer.Above(requested=service_bytes)
    offered_bytes = batch_offer.offered(batch_offer.Node(facts.memory_bytes), above, batch_offer.REQUEST, percent)
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


def translate(
    policy: Mapping[str, Any] | None, requests: Mapping[str, Any], facts: Facts, where: str = "policy"
) -> dict[str, dict[str, Option]]:
    """Return {"service": options, "batch": options} for module ``cgroup``.

    ``requests`` are Kubernetes quantities: {"service": {"cpu": "500m", "memory": "64Mi"}, "batch": {...}}. Without a
    policy both groups are siblings with shares by their CPU requests, as Kubernetes makes them by default. With one,
    ``batch`` is what Koordinator's best-effort root is: least shares, suppressed by quota, limited to its batch-memory.
    Raises PolicyError for a policy that engine static cannot honour and for requests that are not quantities.
    """
    asked = {name: _request(requests, name, "cpu", "0") for name in ("service", "batch")}
    if policy is None:
        return {name: {**NEUTRAL, "cpu_shares": shares(milli)} for name, milli in asked.items()}
    check(policy, where)
    limit_bytes = _memory_max_bytes(policy, requests, facts, where)
    workloads = (
        Workload("service", LS, requests=Requests(cpu_request_milli=asked["service"])),
        Workload("batch", BE, requests=Requests(cpu_request_milli=asked["batch"], memory_limit_bytes=limit_bytes)),
    )
    found = kernel_values.wanted(policy, NodeFacts(facts.cpus, facts.memory_bytes, lacking=_NOT_SET), workloads)
    return {item["group"]: {**NEUTRAL, **item["options"]} for item in found.cgroups}


def link(policy: Mapping[str, Any] | None, root: str) -> dict[str, list[dict[str, Any]]] | None:
    """Return {"pools", "classes"} for modules bandwidth_pool and bandwidth_class; None where packets have no limits.

    ``root`` is the path of the groups ``service`` and ``batch`` below the hierarchies. Expects a good policy.
    """
    if policy is None:
        return None
    strategy = overlay.strategy(policy, bandwidth.SECTION, {})
    found = bandwidth.wanted(strategy, (Workload(f"{root}/service", LS), Workload(f"{root}/batch", BE)))
    return found if found["pools"] else None
