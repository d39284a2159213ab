# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTB tree into which the programs steer where the kernel has no sch_fq. Pure.

Programs set skb->priority to a class, so no filter is needed. What a class may have is its ceiling; its rate is a small
part of it, since HTB lets a class have its rate whatever its parents have left.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.tables import (
    HTB_DEFAULT,
    HTB_HIGH,
    HTB_LOW,
    HTB_MAJOR,
    htb_minors,
)
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.values import Policy, Pool
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import htb_classes

ROOT, OFFLINE_HIGH, OFFLINE_LOW = 0x1, 0x2, 0x3
# Where nothing limits the device: more than any device has.
UNLIMITED_BIT = 100 * 10**9
_SMALL_BIT = 64_000
_BURST_S = 0.002
_MIN_BURST = 65_536
_QUANTUM = 60_000
_QUEUE_S = 0.02
_MIN_QUEUE = 262_144


Shown = tuple[int, str, str, str, int, int]
"""Minor number, parent, rate, ceiling, priority, quantum, as iproute2 prints them."""


@dataclass(frozen=True)
class HtbClass:
    """A class: minor numbers, bits a second, priority (0 first), quantum in bytes, and whether it has a queue."""

    minor: int
    parent: int
    rate_bit: int
    ceil_bit: int
    priority: int = 0
    quantum: int = _QUANTUM
    leaf: bool = True

    def lines(self, device: str) -> list[str]:
        """Return the lines for ``tc -batch`` that make the class and its queue."""
        burst = max(_MIN_BURST, int(self.ceil_bit / 8 * _BURST_S))
        parent = f"{HTB_MAJOR}:{self.parent:x}" if self.parent else f"{HTB_MAJOR}:"
        rates = f"rate {self.rate_bit}bit ceil {self.ceil_bit}bit burst {burst} cburst {burst}"
        place = f"dev {device} parent {parent} classid {HTB_MAJOR}:{self.minor:x}"
        made = [f"class replace {place} htb {rates} prio {self.priority} quantum {self.quantum}"]
        if self.leaf:
            # Short, so that what waits in the old place when the waterline changes is soon gone.
            limit = max(_MIN_QUEUE, int(self.ceil_bit / 8 * _QUEUE_S))
            made.append(f"qdisc replace dev {device} parent {HTB_MAJOR}:{self.minor:x} bfifo limit {limit}")
        return made

    def shown(self) -> Shown:
        """Return what ``tc -d class show`` lets one compare; inner classes have neither priority nor quantum there."""
        parent = f"{HTB_MAJOR}:{self.parent:x}" if self.parent else "root"
        queue = (self.priority, self.quantum) if self.leaf else (0, 0)
        return (self.minor, parent, rate_text(self.rate_bit), rate_text(self.ceil_bit), *queue)


def rate_text(bits: int) -> str:
    """Return a rate as iproute2 prints it: six or more digits are cut to the next unit."""
    unit = 0
    units = ["bit", "Kbit", "Mbit", "Gbit", "Tbit"]
    while unit < 4 and bits >= 1000 and not (bits % 1000 and bits < 1_000_000):
        bits //= 1000
        unit += 1
    return f"{bits}{units[unit]}"


def _own(minor: int, parent: int, ceiling: int, request: int, priority: int, quantum: int) -> HtbClass:
    rate = min(max(request, _SMALL_BIT), ceiling)
    return HtbClass(minor, parent, rate, ceiling, priority, quantum)


def tree(policy: Policy, pool: Pool) -> list[HtbClass]:
    """Return the classes of a device of a pool, parents first."""
    total = 8 * pool.total or UNLIMITED_BIT
    high, low = 8 * pool.high or total, 8 * pool.low or total
    strict, shared = pool.shares == "strict", pool.shares != "none"
    made = [
        HtbClass(ROOT, 0, total, total, leaf=False),
        HtbClass(HTB_DEFAULT, ROOT, max(total - low, _SMALL_BIT) if pool.high else total, total),
    ]
    if pool.high:
        made += [
            HtbClass(OFFLINE_HIGH, ROOT, high, high, 1, leaf=False),
            HtbClass(OFFLINE_LOW, ROOT, low, low, 1, leaf=False),
            HtbClass(HTB_HIGH, OFFLINE_HIGH, min(_SMALL_BIT, high), high, 1),
            HtbClass(HTB_LOW, OFFLINE_LOW, min(_SMALL_BIT, low), low, 1),
        ]
    for name, item in policy.classes.items():
        if item.pool != pool.name:
            continue
        first, second = htb_minors(item, policy.class_numbers[name], pool)
        if first <= HTB_LOW:
            continue
        priority = (2 - item.priority if strict else 0) + (1 if item.role == "offline" else 0)
        quantum = max(1514, _QUANTUM * pool.weights[item.priority] // max(pool.weights)) if shared else _QUANTUM
        limit = 8 * item.limit or total
        if item.role == "offline" and pool.high:
            made.append(_own(first, OFFLINE_HIGH, min(limit, high), 8 * item.request, priority, quantum))
            made.append(_own(second, OFFLINE_LOW, min(limit, low), 0, priority, quantum))
        else:
            made.append(_own(first, ROOT, min(limit, total), 8 * item.request, priority, quantum))
    return made


def shown_of(item: htb_classes.HtbClass) -> Shown:
    """Return a class as the kernel tells of it in the form that is compared."""
    parent = "root" if item.parent is None else f"{item.parent >> 16:x}:{item.parent & 0xFFFF:x}"
    queue = (item.priority, item.quantum) if item.leaf else (0, 0)
    return (item.handle & 0xFFFF, parent, rate_text(8 * item.rate), rate_text(8 * item.ceiling), *queue)


_SHOWN = re.compile(
    r"class htb [0-9a-f]+:(?P<minor>[0-9a-f]+) (?:parent (?P<parent>[0-9a-f]+:[0-9a-f]+)|root)\b"
    r"(?:.* prio (?P<prio>\d+))?(?:.* quantum (?P<quantum>\d+))?.* rate (?P<rate>\S+) ceil (?P<ceil>\S+) "
)


def parse_classes(text: str) -> set[Shown]:
    """Return what ``tc -d class show`` says of HTB classes, as HtbClass.shown gives it."""
    found = set()
    for line in text.splitlines():
        match = _SHOWN.match(line)
        if match:
            inner = match["prio"] is None
            queue = (0, 0) if inner else (int(match["prio"]), int(match["quantum"] or 0))
            found.add((int(match["minor"], 16), match["parent"] or "root", match["rate"], match["ceil"], *queue))
    return found


def missing(wanted: Sequence[HtbClass], present: set[Shown], device: str) -> list[str]:
    """Return the lines that bring the classes of a device about: first what is made or changed, then what goes."""
    minors = {item.minor for item in wanted}
    lines = [line for item in wanted if item.shown() not in present for line in item.lines(device)]
    # Children before their parents, which have lower numbers.
    gone = sorted((item for item in present if item[0] not in minors), reverse=True)
    return lines + [f"class delete dev {device} classid {HTB_MAJOR}:{item[0]:x}" for item in gone]
