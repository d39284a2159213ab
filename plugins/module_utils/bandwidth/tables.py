# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools and classes as the maps of the BPF programs hold them. Pure: what must be looked up on the host comes in."""

from __future__ import annotations

import functools
import ipaddress
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.values import (
    DIRECTIONS,
    NS,
    SOURCES,
    Class,
    Policy,
    Pool,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.bpf_layout import Layout, Value

HTB_MAJOR = 1
HTB_DEFAULT, HTB_HIGH, HTB_LOW = 0x10, 0x20, 0x21
_HTB_FIRST = 0x100
MEMBER_MAPS = ("by_cgroup", "by_classid", "by_device", "by_prefix4", "by_prefix6")
_EGRESS = "egress"


@dataclass(frozen=True)
class Found:
    """What the host says of the names in a policy: cgroup path -> (id, depth below the root), device -> index."""

    cgroups: Mapping[str, tuple[int, int]]
    devices: Mapping[str, int]


@dataclass(frozen=True)
class Tables:
    """The wanted content of the maps; pools and classes by number, members by map and key."""

    pools: Mapping[int, bytes]
    classes: Mapping[int, bytes]
    members: Mapping[str, Mapping[bytes, bytes]]
    order: tuple[int, ...]
    levels_mask: int
    carrier: int
    sockets: bool = False


def handle(minor: int) -> int:
    """Return what skb->priority must be for a packet to get into a class of the HTB tree."""
    return HTB_MAJOR << 16 | minor


def own_minors(number: int) -> tuple[int, int]:
    """Return the minors of a class with a place of its own in the tree: normally, and below the waterline's low."""
    return _HTB_FIRST + 2 * number, _HTB_FIRST + 2 * number + 1


def htb_minors(item: Class, number: int, pool: Pool) -> tuple[int, int]:
    """Return where a class belongs in the HTB tree, normally and while offline classes are throttled; 0 = default."""
    own = bool(item.limit) or pool.shares != "none"
    high, low = own_minors(number)
    if item.role == "exempt" or (item.role == "online" and not own):
        return 0, 0
    if item.role == "offline" and pool.high:
        return (high, low) if own else (HTB_HIGH, HTB_LOW)
    return (high, high) if own else (0, 0)


def pool_values(item: Pool, layout: Layout) -> dict[str, Value]:
    """Return the fields of a pool's configuration."""
    budget = item.waterline * item.window_ns // NS
    flags = 0
    for wanted, name in (
        (item.waterline, "POOL_WATERLINE"),
        (item.continuous, "POOL_CONTINUOUS"),
        (item.shares != "none", "POOL_LEVELS"),
        (item.shares == "strict", "POOL_STRICT"),
    ):
        flags |= layout.constant(name) if wanted else 0
    return {
        "total": item.total,
        "waterline": item.waterline,
        "clear": item.waterline * (100 - item.hysteresis_pct) // 100,
        "low": item.low,
        "high": item.high,
        "window_ns": item.window_ns,
        "budget": budget,
        # A hundredth of the total for each level, so that none is ever shut out.
        "floor": max(item.total // 100, 1),
        "hold": item.hold,
        "step_shift": max((budget // 16).bit_length() - 1, 0),
        "flags": flags,
        "accounting": layout.constant(f"ACCOUNT_{item.accounting.upper()}"),
        "overhead": item.overhead,
        "weights": item.weights,
        "burst_ns": item.burst_ns,
        "horizon_ns": item.horizon_ns,
        "ecn_ns": item.ecn_ns,
    }


def class_values(item: Class, number: int, pool: Pool, pool_number: int, layout: Layout) -> dict[str, Value]:
    """Return the fields of a class's configuration; what it leaves open is the pool's."""
    high, low = htb_minors(item, number, pool)
    return {
        "limit": item.limit,
        "request": item.request,
        "burst_ns": pool.burst_ns if item.burst_ns is None else item.burst_ns,
        "horizon_ns": pool.horizon_ns if item.horizon_ns is None else item.horizon_ns,
        "ecn_ns": pool.ecn_ns if item.ecn_ns is None else item.ecn_ns,
        "htb_high": handle(high) if high else 0,
        "htb_low": handle(low) if low else 0,
        "pool": pool_number,
        "role": layout.constant(f"ROLE_{item.role.upper()}"),
        "level": item.priority,
    }


@functools.lru_cache(maxsize=4096)
def prefix_key(text: str) -> tuple[str, bytes]:
    """Return the map and the key of a network."""
    network = ipaddress.ip_network(text)
    return f"by_prefix{network.version}", struct.pack("<I", network.prefixlen) + network.network_address.packed


def _keys(item: Class, found: Found) -> list[tuple[str, bytes]]:
    return [
        *(("by_cgroup", struct.pack("<Q", found.cgroups[path][0])) for path in item.cgroups),
        *(("by_classid", struct.pack("<I", number)) for number in item.classids),
        *(("by_device", struct.pack("<I", found.devices[name])) for name in item.devices),
        *(prefix_key(text) for text in item.prefixes),
    ]


def _within(key: bytes, length: int) -> bytes:
    """Return the key of the network of a length that holds another one."""
    address = int.from_bytes(key[4:], "big")
    unused = 8 * len(key[4:]) - length
    return struct.pack("<I", length) + (address >> unused << unused).to_bytes(len(key[4:]), "big")


def inherited(members: Mapping[bytes, Mapping[str, int]]) -> dict[bytes, dict[str, int]]:
    """Return the members of a map of networks, each with the class that the one around it has in the other direction.

    A look-up finds the longest network only. One that belongs to a class of one direction would hide from the other
    direction that a larger one belongs to a class there.
    """
    found = {key: dict(value) for key, value in members.items()}
    for direction in DIRECTIONS:
        theirs = {key: value[direction] for key, value in members.items() if direction in value}
        lengths = sorted({struct.unpack_from("<I", key)[0] for key in theirs}, reverse=True)
        for key, value in found.items() if theirs else ():
            own = struct.unpack_from("<I", key)[0]
            around = (theirs.get(_within(key, length)) for length in lengths if length < own)
            number = next((item for item in around if item), None) if direction not in value else None
            if number:
                value[direction] = number
    return found


def by_socket(policy: Policy) -> bool:
    """Tell whether sockets decide about the class of what arrives."""
    return any(
        (item.cgroups or item.classids) and policy.pools[item.pool].direction == "ingress"
        for item in policy.classes.values()
    )


def tables(policy: Policy, found: Found, layout: Layout, marks: bool = False, diverts: bool = False) -> Tables:
    """Return what the maps must hold for a policy. Raises BpfError for values that do not fit.

    ``marks`` says that packets are marked at pods' links, ``diverts`` that packets that arrive pass a device of ours.
    """
    sockets = diverts and by_socket(policy)
    stamps = marks or sockets
    members: dict[str, dict[bytes, dict[str, int]]] = {name: {} for name in MEMBER_MAPS}
    pools, classes = {}, {}
    for name, item in policy.pools.items():
        pools[policy.pool_numbers[name]] = layout["pool_config"].pack(pool_values(item, layout))
    for name, group in policy.classes.items():
        number, pool = policy.class_numbers[name], policy.pools[group.pool]
        values = class_values(group, number, pool, policy.pool_numbers[group.pool], layout)
        classes[number] = layout["class_config"].pack(values)
        for table, key in _keys(group, found):
            members[table].setdefault(key, {})[pool.direction] = number
    for table in MEMBER_MAPS:
        if table.startswith("by_prefix"):
            members[table] = inherited(members[table])
    used = {name.split("_")[1].rstrip("46") for name, content in members.items() if content}
    order = [
        layout.constant(f"SOURCE_{name.upper()}") for name in SOURCES if name in used or (name == "stamp" and stamps)
    ]
    mask = 0
    for _number, depth in found.cgroups.values():
        mask |= 1 << depth
    return Tables(
        pools=pools,
        classes=classes,
        members={
            name: {key: layout["member"].pack(value) for key, value in content.items()}
            for name, content in members.items()
        },
        order=tuple([*order, *[0] * (layout.constant("SOURCES") - len(order))]),
        levels_mask=mask,
        carrier=layout.constant("CARRIER_QUEUE" if stamps else "CARRIER_NONE"),
        sockets=sockets,
    )
