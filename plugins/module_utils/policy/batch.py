# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of a node Koordinator offers to batch work: capacity less a margin, the system and what ranks above batch.

All figures of one call are in one unit: milli-cores or bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

USAGE, REQUEST, MAX_USAGE_REQUEST = "usage", "request", "maxUsageRequest"


class BatchError(Exception):
    """A calculation policy is not known; the text says which are."""


@dataclass(frozen=True)
class Above:
    """What workloads that rank above batch have: used, requested, and the larger of both, each summed over them."""

    used: int = 0
    requested: int = 0
    larger: int = 0


def above(pods: tuple[tuple[int | None, int], ...]) -> Above:
    """Return the sums over (used, requested) of each workload; one without a reading counts as using its request."""
    counted = [(requested if used is None else used, requested) for used, requested in pods]
    return Above(
        sum(used for used, _requested in counted),
        sum(requested for _used, requested in counted),
        sum(max(pair) for pair in counted),
    )


@dataclass(frozen=True)
class Node:
    """A node's capacity, what is reserved for the system, what the system uses, and what others took of batch."""

    capacity: int
    reserved: int = 0
    system_used: int = 0
    third_party: int = 0


def offered(
    node: Node, ranks_above: Above, policy: str, reclaim_percent: int, threshold_percent: int | None = None
) -> int:
    """Return what the node offers to batch work, at least 0, in the unit of the arguments.

    Koordinator: capacity - capacity·(100 - reclaim%)/100 - max(system used, reserved) - what ranks above batch uses
    (``usage``) or the larger of its use and its request (``maxUsageRequest``); ``request`` takes requests and the
    reservation alone. At most capacity·threshold% when given; less what third parties have. More than 100 % oversells.
    Raises BatchError for an unknown policy.
    """
    taken = {
        USAGE: max(node.system_used, node.reserved) + ranks_above.used,
        REQUEST: node.reserved + ranks_above.requested,
        MAX_USAGE_REQUEST: max(node.system_used, node.reserved) + ranks_above.larger,
    }
    if policy not in taken:
        raise BatchError(f"calculation policy {policy!r}: is not known; allowed: {', '.join(taken)}")
    left = node.capacity * reclaim_percent // 100 - taken[policy]
    if threshold_percent is not None:
        left = min(left, node.capacity * threshold_percent // 100)
    return max(left - node.third_party, 0)
