# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a shaper is to do: kind, device, pool and classes as written, checked and turned into numbers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import values
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.values import BandwidthError

KINDS = ("ebpf", "htb", "tbf", "none")
#: Of the pools that a class may belong to, by direction.
POOLS = {direction: f"experiment-{direction}" for direction in values.DIRECTIONS}
_RATES = ("total", "waterline", "low", "high")


@dataclass(frozen=True)
class Class:
    """A class of packets, rates in bytes a second (0 = not set).

    It is known by the control group of its socket or, where it is received, by the local address instead, and to tc(8)
    by the ports of the other end (of this end, where it is received).
    """

    name: str
    direction: str = "egress"
    role: str = "online"
    priority: int = 0
    request: int = 0
    limit: int = 0
    group: str = ""
    address: str = ""
    ports: tuple[int, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """The whole: kind of shaper, device, rates of the pool in bytes a second, how requests share, classes."""

    kind: str
    device: str
    classes: tuple[Class, ...] = ()
    rates: Mapping[str, int] | None = None
    shares: str = "none"
    accounting: str = "wire"
    plane: str = "auto"
    family: str = "ipv4"

    def of(self, direction: str) -> tuple[Class, ...]:
        """Return the classes of a direction."""
        return tuple(item for item in self.classes if item.direction == direction)

    @property
    def directions(self) -> tuple[str, ...]:
        """Return the directions in which something is shaped."""
        return tuple(direction for direction in values.DIRECTIONS if self.of(direction))

    def rate(self, name: str) -> int:
        """Return a rate of the pool in bytes a second, 0 where it is not set."""
        return (self.rates or {}).get(name, 0)


def parse(params: Mapping[str, Any], device: str) -> Wanted:
    """Return what module bandwidth_shaper is asked for. Raises BandwidthError with one sentence."""
    pool = params["pool"] or {}
    found = Wanted(
        kind=params["kind"],
        device=values.check_device(device),
        classes=tuple(_class(item) for item in params["classes"]),
        rates={name: values.rate(pool.get(name), f"pool: {name}") for name in _RATES},
        shares=pool.get("shares") or "none",
        accounting=pool.get("accounting") or "wire",
        plane=params["plane"],
        family=family_of(params["to"]),
    )
    _check(found)
    return found


def family_of(address: str | None) -> str:
    """Return the family of the packets that are shaped, by the address of the other host."""
    return "ipv6" if address and ":" in address else "ipv4"


def _class(raw: Mapping[str, Any]) -> Class:
    name = values.check_name(raw["name"], "class")
    rates = {key: values.rate(raw[key], f"class {name}: {key}") for key in ("request", "limit")}
    return Class(
        name, raw["direction"], raw["role"], raw["priority"], **rates,
        group=raw["group"] or "", address=raw["address"] or "", ports=tuple(raw["ports"]),
    )  # fmt: skip


def _check(found: Wanted) -> None:
    names = [item.name for item in found.classes]
    for name in names:
        if names.count(name) > 1:
            raise BandwidthError(f"class {name}: is named twice; name each once")
    for item in found.classes:
        if not item.ports:
            raise BandwidthError(f"class {item.name}: has no ports, by which tc knows its packets; give at least one")
        if item.direction == "ingress" and not (item.address or item.group):
            raise BandwidthError(
                f"class {item.name}: is received, but nothing says by what; give address, or group if there are several"
            )
    if found.kind == "tbf":
        for direction in found.directions:
            limited = [item.name for item in found.of(direction) if item.limit]
            if len(limited) != 1:
                raise BandwidthError(
                    f"tbf: has one rate for all of a device, but {len(limited)} classes are limited for {direction}; "
                    "use htb, or limit one class"
                )
