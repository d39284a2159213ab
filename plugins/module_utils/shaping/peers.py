# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shapers that are compared with ours, as a careful operator sets them up: lines for tc(8), and what it says then.

What decides fairness is the same for all: bursts of 2 ms and at least what one piece of the stack (64 KiB and the
headers of its frames) needs, since a smaller one makes HTB late and lets TBF cut pieces up; queues of 20 ms; a hash
table by port, so that two hundred classes cost a packet what one does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import tree
from ansible_collections.colocation.testbed.plugins.module_utils.shaping.wanted import Class, Wanted

HTB_MAJOR, TBF_MAJOR = "b101", "b102"
HANDLES = {"htb": f"{HTB_MAJOR}:", "tbf": f"{TBF_MAJOR}:"}
BURST_S = 0.002
MIN_BURST_BYTES = 65_536
TBF_MIN_BURST_BYTES = 131_072
QUEUE_S = 0.02
MIN_QUEUE_BYTES = 262_144
QUANTUM_BYTES = 60_000
ROOT, DEFAULT, FIRST = 0x1, 0x2, 0x10
_SMALL_BIT = 64_000
#: What the kernel calls each family, and where the ports of TCP and UDP are in a packet of it.
MATCHED = {"ipv4": ("ip", 20), "ipv6": ("ipv6", 40)}
_TABLE = "2:"
_FILTER_PREFERENCE = 1


@dataclass(frozen=True)
class HtbClass:
    """A class of HTB: minor numbers, bits a second, priority (0 first), quantum in bytes, whether it has a queue."""

    minor: int
    parent: int
    rate_bit: int
    ceil_bit: int
    priority: int = 0
    quantum: int = QUANTUM_BYTES
    leaf: bool = True

    def lines(self, device: str) -> list[str]:
        """Return the lines that make the class and its queue."""
        burst = max(MIN_BURST_BYTES, int(self.ceil_bit / 8 * BURST_S))
        parent = f"{HTB_MAJOR}:{self.parent:x}" if self.parent else f"{HTB_MAJOR}:"
        made = [
            f"class add dev {device} parent {parent} classid {HTB_MAJOR}:{self.minor:x} htb rate {self.rate_bit}bit "
            f"ceil {self.ceil_bit}bit burst {burst} cburst {burst} prio {self.priority} quantum {self.quantum}"
        ]
        if self.leaf:
            limit = max(MIN_QUEUE_BYTES, int(self.ceil_bit / 8 * QUEUE_S))
            made.append(f"qdisc add dev {device} parent {HTB_MAJOR}:{self.minor:x} bfifo limit {limit}")
        return made

    def shown(self) -> tuple[str, str]:
        """Return key and text of the class as ``read_htb`` finds it."""
        parent = f"{self.parent:x}" if self.parent else "root"
        queue = (self.priority, self.quantum) if self.leaf else (0, 0)
        return _shown(self.minor, parent, tree.rate_text(self.rate_bit), tree.rate_text(self.ceil_bit), *queue)


def _shown(minor: int, parent: str, rate: str, ceiling: str, priority: int, quantum: int) -> tuple[str, str]:
    return f"class {minor:x}", f"parent {parent} rate {rate} ceil {ceiling} prio {priority} quantum {quantum}"


def htb_classes(wanted: Wanted, classes: Sequence[Class]) -> dict[str, HtbClass]:
    """Return the tree for the classes of one direction, parents first, by class; '' and 'default' are its own.

    Requests become rates and limits ceilings. HTB knows no waterline: offline classes have ``low`` for sure and
    may borrow up to ``high``, after everybody else.
    """
    total = 8 * wanted.rate("total") or tree.UNLIMITED_BIT
    made = {
        "": HtbClass(ROOT, 0, total, total, leaf=False),
        "default": HtbClass(DEFAULT, ROOT, max(total - 8 * wanted.rate("low"), _SMALL_BIT), total),
    }
    for number, item in enumerate(classes, start=FIRST):
        ceiling = min(8 * item.limit or total, total)
        rate = 8 * item.request or (ceiling if item.limit else _SMALL_BIT)
        priority = 2 - item.priority if wanted.shares == "strict" else 0
        if item.role == "offline" and wanted.rate("high"):
            ceiling, rate, priority = min(ceiling, 8 * wanted.rate("high")), 8 * wanted.rate("low"), 1
        elif not item.limit and not item.request:
            rate = made["default"].rate_bit
        made[item.name] = HtbClass(number, ROOT, min(rate, ceiling), ceiling, priority)
    return made


def htb_lines(device: str, wanted: Wanted, classes: Sequence[Class]) -> list[str]:
    """Return the lines that shape a device by HTB, classes told apart by the destination's port."""
    made = htb_classes(wanted, classes)
    protocol, ports_at = MATCHED[wanted.family]
    head = f"filter add dev {device} parent {HTB_MAJOR}: protocol {protocol} pref {_FILTER_PREFERENCE}"
    lines = [f"qdisc add dev {device} root handle {HTB_MAJOR}: htb default {DEFAULT:x}"]
    lines += [line for item in made.values() for line in item.lines(device)]
    lines += [
        f"{head} handle {_TABLE} u32 divisor 256",
        # The last byte of the destination's port, which follows a header of IP without options or extensions.
        f"{head} u32 ht 800:: match u32 0 0 hashkey mask 0x000000ff at {ports_at} link {_TABLE}",
    ]
    for item in classes:
        place = f"flowid {HTB_MAJOR}:{made[item.name].minor:x}"
        lines += [
            f"{head} u32 ht {_TABLE}{port & 0xFF:x}: match u32 {port:#x} 0xffff at {ports_at} {place}"
            for port in item.ports
        ]
    return lines


def htb_wanted(wanted: Wanted, classes: Sequence[Class]) -> dict[str, str]:
    """Return what ``read_htb`` finds when everything is in place."""
    made = htb_classes(wanted, classes)
    ports = {f"port {port}": f"class {made[item.name].minor:x}" for item in classes for port in item.ports}
    return dict(item.shown() for item in made.values()) | ports


_PORT = re.compile(r"match 0000([0-9a-f]{4})/0000ffff at (?:20|40)$")
_FLOW = re.compile(r"[ *]flowid [0-9a-f]+:([0-9a-f]+)\b")


def read_htb(classes: str, filters: str) -> dict[str, str]:
    """Return classes and ports from what ``tc -d class show`` and ``tc filter show`` print."""
    found = {}
    for minor, parent, rate, ceiling, priority, quantum in tree.parse_classes(classes):
        key, text = _shown(minor, parent.rpartition(":")[2] or parent, rate, ceiling, priority, quantum)
        found[key] = text
    place = ""
    for line in filters.splitlines():
        flow = _FLOW.search(line)
        place = flow[1] if flow else place
        port = _PORT.search(line.strip())
        if port and place:
            found[f"port {int(port[1], 16)}"] = f"class {place}"
    return found


def tbf_lines(device: str, limit: int) -> list[str]:
    """Return the line that shapes all that leaves a device by TBF; ``limit`` in bytes a second."""
    burst, queue = tbf_sizes(limit)
    return [f"qdisc add dev {device} root handle {TBF_MAJOR}: tbf rate {8 * limit}bit burst {burst} limit {queue}"]


def tbf_sizes(limit: int) -> tuple[int, int]:
    """Return bucket and queue in bytes."""
    return max(TBF_MIN_BURST_BYTES, int(limit * BURST_S)), max(MIN_QUEUE_BYTES, int(limit * QUEUE_S))


def tbf_wanted(limit: int) -> dict[str, str]:
    """Return what ``read_tbf`` finds when everything is in place."""
    return {"tbf": f"rate {limit} B/s"}


def read_tbf(qdiscs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the rate from what ``tc -j qdisc show`` tells: bytes a second."""
    rates = [item["options"]["rate"] for item in qdiscs if item.get("kind") == "tbf" and item.get("root")]
    return {"tbf": f"rate {rates[0]} B/s"} if rates else {}


def limit_of(classes: Sequence[Class]) -> int:
    """Return the rate of the one limited class in bytes a second."""
    return next(item.limit for item in classes if item.limit)
