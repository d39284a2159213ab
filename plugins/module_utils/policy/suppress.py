# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU suppress: how much CPU best-effort work may have beside the rest, as a quota or as a set of CPUs.

CPU figures are in milli-cores, quotas in microseconds for a period of 100 ms. Pure: readings come in as arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import NO_LIMIT

PERIOD_US = 100_000
# Koordinator never gives the root of best-effort groups less: 0.02 of a CPU, or two CPUs.
MIN_QUOTA_US = 2000
MIN_CPUS = 2


@dataclass(frozen=True)
class Cpu:
    """A logical CPU and where it is; siblings have one ``core`` number within their socket and memory node."""

    cpu: int
    core: int
    socket: int = 0
    node: int = 0


def system_used_milli(node_used: int, workloads_used: int, reserved: int = 0) -> int:
    """Return what neither pods nor host applications use, at least what is reserved for the system."""
    return max(node_used - workloads_used, reserved, 0)


def target_milli(
    capacity: int, threshold_percent: int, others_used: int = 0, system_used: int = 0, min_percent: int | None = None
) -> int:
    """Return what best-effort work may use; negative where the others alone are above the threshold.

    Koordinator: capacity·threshold% - what is not best effort uses - what the system uses, at least capacity·min%.
    """
    target = capacity * threshold_percent // 100 - others_used - system_used
    return target if min_percent is None else max(target, capacity * min_percent // 100)


def quota_us(target: int) -> int:
    """Return the quota for a target: its share of the period, at least 2000."""
    return max(MIN_QUOTA_US, target * PERIOD_US // 1000)


def next_quota_us(target: int, current_us: int, cpus: int) -> int | None:
    """Return the quota to write next, None to leave it.

    Changes below 1 % of the node are left, except down to the minimum; a quota grows by 10 % of the node at most, but
    jumps when there was none (-1); it falls at once.
    """
    wanted = quota_us(target)
    node_us = cpus * PERIOD_US
    if current_us == NO_LIMIT:
        return wanted
    if wanted != MIN_QUOTA_US and abs(wanted - current_us) * 100 < node_us:
        return None
    wanted = min(wanted, current_us + node_us // 10)
    return None if wanted == current_us else wanted


def next_cpu_count(target: int, previous: int, cpus: int) -> int:
    """Return how many CPUs best-effort work gets next: the target rounded up, two at least.

    It grows by a tenth of all CPUs (rounded up) at most, and falls at once.
    """
    wanted = max(MIN_CPUS, -(-target // 1000))
    return min(wanted, previous + -(-cpus // 10))


def split_count(count: int, exclusive: int, shared: int) -> tuple[int, int]:
    """Return how many of the CPUs come from those that LSR workloads own, and how many from the shared ones."""
    pool = exclusive + shared
    own = count * exclusive // pool if pool else 0
    return own, count - own


def pick(cpus: Sequence[Cpu], count: int) -> tuple[int, ...]:
    """Return CPUs for best-effort work in the order of their choice; none when there are fewer than wanted.

    Koordinator: sockets and memory nodes take turns, larger ones first, each giving a core with all its two threads
    until at most one CPU is missing or no pair is left; then they give single CPUs in the same turn.
    """
    if count > len(cpus):
        return ()
    found: dict[tuple[int, int], list[Cpu]] = {}
    for item in cpus:
        found.setdefault((item.socket, item.node), []).append(item)
    ordered = sorted(found.values(), key=lambda items: (-len(items), min(item.cpu for item in items)))
    buckets = [sorted(items, key=lambda item: (item.core, item.cpu)) for items in ordered]
    chosen: list[int] = []
    turn = 0
    while count - len(chosen) > 1 and any(_pair(items) is not None for items in buckets):
        items = buckets[turn % len(buckets)]
        first = _pair(items)
        if first is not None:
            chosen += [items.pop(first).cpu, items.pop(first).cpu]
        turn += 1
    while len(chosen) < count:
        items = buckets[turn % len(buckets)]
        if items:
            chosen.append(items.pop(0).cpu)
        turn += 1
    return tuple(chosen)


def _pair(items: Sequence[Cpu]) -> int | None:
    """Return where the first two threads of one core stand, None when there are no two."""
    return next((at for at in range(len(items) - 1) if items[at].core == items[at + 1].core), None)
