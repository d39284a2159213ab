# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator asks for: pools, classes and devices as written, checked and turned into numbers. Pure."""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import pod_cgroup

NS = 10**9
DIRECTIONS = ("egress", "ingress")
ROLES = ("online", "offline", "exempt")
ACCOUNTING = ("wire", "l1", "skb", "payload")
PLANES = ("edt", "htb", "police")
SOURCES = ("stamp", "cgroup", "classid", "device", "prefix")
PRIORITIES = 3
MAX_POOLS = 16
MAX_CLASSES = 1024
WINDOW_NS = (10**6, 10**9)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}\Z")
_DEVICE = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.:@-]{0,14}\Z")
_RATES = ("total", "waterline", "low", "high")
_TIMES = ("burst", "horizon", "ecn")
# The highest rate whose arithmetic stays exact, in bytes a second: 10 Tbit/s.
_MAX_RATE = 10**13 // 8


class BandwidthError(Exception):
    """A wanted value is not allowed, or the host cannot do it; the text says what, why, and what to do."""


@dataclass(frozen=True)
class Pool:
    """What classes share, rates in bytes a second (0 = not set), times in ns."""

    name: str
    direction: str
    total: int = 0
    waterline: int = 0
    low: int = 0
    high: int = 0
    continuous: bool = False
    shares: str = "none"
    weights: tuple[int, ...] = (10, 20, 70)
    window_ns: int = 10 * 10**6
    hold: int = 3
    hysteresis_pct: int = 5
    accounting: str = "wire"
    overhead: int = 0
    burst_ns: int = 10**6
    horizon_ns: int = 50 * 10**6
    ecn_ns: int = 5 * 10**6


@dataclass(frozen=True)
class Class:
    """A class of packets: how it is recognised, and what it may have; None takes the pool's value."""

    name: str
    pool: str
    role: str = "online"
    priority: int = 0
    request: int = 0
    limit: int = 0
    burst_ns: int | None = None
    horizon_ns: int | None = None
    ecn_ns: int | None = None
    cgroups: tuple[str, ...] = ()
    classids: tuple[int, ...] = ()
    devices: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()


@dataclass(frozen=True)
class Device:
    """A device whose packets are shaped: for which pool, at which hook, by which plane."""

    name: str
    pool: str
    hook: str = "egress"
    plane: str = "auto"
    replace_qdisc: bool = True


def _refuse(where: str, why: str) -> BandwidthError:
    return BandwidthError(f"{where}: {why}")


def check_name(name: str, what: str) -> str:
    """Return a name that is safe as a file and in messages. Raises BandwidthError."""
    if not _NAME.match(name):
        raise _refuse(f"{what} {name[:70]!r}", "is not a name; use up to 63 letters, digits and _ . : -")
    return name


def check_device(name: str) -> str:
    """Return a device's name that the kernel allows and that cannot be taken for an option. Raises BandwidthError."""
    if not _DEVICE.match(name):
        raise _refuse(f"device {name[:40]!r}", "is not a name; devices have up to 15 letters, digits and _ . : @ -")
    return name


def rate(value: Any, where: str) -> int:
    """Return bytes a second of a rate with unit, 0 for None. Raises BandwidthError."""
    if value is None:
        return 0
    try:
        found = quantity.parse_byte_rate(value)
    except quantity.QuantityError as exc:
        raise _refuse(where, str(exc)) from exc
    if not 0 < found <= _MAX_RATE:
        raise _refuse(where, f"{value} is not between 1B/s and 10Tbit/s; leave it out for no limit")
    return found


def duration(value: Any, where: str, low: int = 0, high: int = 10 * NS) -> int | None:
    """Return ns of a duration, None for None. Raises BandwidthError."""
    if value is None:
        return None
    try:
        found = quantity.parse_duration_ns(value)
    except quantity.QuantityError as exc:
        raise _refuse(where, str(exc)) from exc
    if not low <= found <= high:
        raise _refuse(where, f"{value} is not between {low / 10**6:g}ms and {high / 10**6:g}ms; write one that is")
    return found


def _given(raw: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: raw[name] for name in names if raw.get(name) is not None}


def pool(raw: Mapping[str, Any]) -> Pool:
    """Return a pool as a module's options describe it. Raises BandwidthError."""
    name = check_name(raw["name"], "pool")
    where = f"pool {name}"
    fields: dict[str, Any] = {key: rate(raw.get(key), f"{where}: {key}") for key in _RATES}
    times = {
        "window_ns": duration(raw.get("window"), f"{where}: window", *WINDOW_NS),
        **{f"{key}_ns": duration(raw.get(key), f"{where}: {key}") for key in _TIMES},
    }
    fields.update({key: value for key, value in times.items() if value is not None})
    fields.update(_given(raw, ("hold", "hysteresis_pct", "accounting", "overhead", "shares", "continuous")))
    if raw.get("weights"):
        fields["weights"] = tuple(raw["weights"])
    found = Pool(name, raw.get("direction") or "egress", **fields)
    _check_pool(found, where)
    return found


def _check_pool(item: Pool, where: str) -> None:
    if item.waterline and not (item.low and item.high):
        raise _refuse(where, "has a waterline but not both low and high; say what offline classes may have")
    if (item.low or item.high) and not (item.low and item.high):
        raise _refuse(where, "has only one of low and high; give both, equal for a fixed rate")
    if item.low > item.high:
        raise _refuse(where, "low is above high; offline classes get low while online ones are over the waterline")
    for key, value in (("waterline", item.waterline), ("high", item.high)):
        if item.total and value > item.total:
            raise _refuse(where, f"{key} is above total; lower it or raise total")
    if item.continuous and not (item.waterline and item.total):
        raise _refuse(where, "continuous needs total and waterline, as it gives offline classes what is left of total")
    if item.shares != "none" and not item.total:
        raise _refuse(where, "shares need total, as they divide what is left of it")
    if len(item.weights) != PRIORITIES or not all(0 < weight <= 1000 for weight in item.weights):
        raise _refuse(where, "weights are not three numbers from 1 to 1000, for priorities 0, 1 and 2")
    for key, value, low, high in (
        ("hold", item.hold, 1, 1000),
        ("hysteresis_pct", item.hysteresis_pct, 0, 50),
        ("overhead", item.overhead, 0, 1000),
    ):
        if not low <= value <= high:
            raise _refuse(where, f"{key} {value} is not between {low} and {high}")


def classid(value: Any, where: str) -> int:
    """Return the number of a net_cls classid: 1048577, '0x100001' or '10:1' (hexadecimal). Raises BandwidthError."""
    text = str(value)
    found = re.match(r"([0-9a-fA-F]{1,4}):([0-9a-fA-F]{1,4})\Z", text)
    try:
        number = int(found[1], 16) << 16 | int(found[2], 16) if found else int(text, 0)
    except ValueError:
        number = 0
    if not 0 < number < 2**32:
        raise _refuse(where, f"{text!r} is not a classid; write a number from 1 to 4294967295 or MAJOR:MINOR")
    return number


@functools.lru_cache(maxsize=4096)
def _network(text: str) -> Any:
    return ipaddress.ip_network(text)


def prefix(value: Any, where: str) -> str:
    """Return a network as text with its length. Raises BandwidthError."""
    try:
        return str(_network(str(value)))
    except ValueError as exc:
        raise _refuse(where, f"{value!r} is not a network ({exc}); write one such as '10.0.0.0/24'") from exc


def _pod(value: Any, where: str) -> str:
    found = pod_cgroup.normal(str(value))
    if found is None:
        raise _refuse(where, f"{value!r} is not the uid of a pod; write metadata.uid, 32 hexadecimal digits")
    return found


def traffic_class(raw: Mapping[str, Any]) -> Class:
    """Return a class as a module's options describe it. Raises BandwidthError."""
    name = check_name(raw["name"], "class")
    where = f"class {name}"
    fields: dict[str, Any] = {key: rate(raw.get(key), f"{where}: {key}") for key in ("request", "limit")}
    fields.update({f"{key}_ns": duration(raw.get(key), f"{where}: {key}") for key in _TIMES})
    fields.update(_given(raw, ("role", "priority")))
    item = Class(
        name,
        raw["pool"],
        cgroups=tuple(raw.get("cgroups") or ()),
        classids=tuple(classid(item, f"{where}: classids") for item in raw.get("classids") or ()),
        devices=tuple(check_device(item) for item in raw.get("devices") or ()),
        prefixes=tuple(prefix(item, f"{where}: prefixes") for item in raw.get("prefixes") or ()),
        pods=tuple(_pod(item, f"{where}: pods") for item in raw.get("pods") or ()),
        **fields,
    )
    if not 0 <= item.priority < PRIORITIES:
        raise _refuse(where, f"priority {item.priority} is not 0, 1 or 2 (2 comes first)")
    if item.limit and item.request > item.limit:
        raise _refuse(where, "request is above limit; lower it or raise limit")
    if not (item.cgroups or item.classids or item.devices or item.prefixes or item.pods):
        raise _refuse(where, "has nothing that it is recognised by; give cgroups, classids, devices, prefixes or pods")
    return item


@dataclass(frozen=True)
class Policy:
    """All pools and classes of an instance by name, with the numbers that they have in the maps."""

    pools: Mapping[str, Pool] = field(default_factory=dict)
    classes: Mapping[str, Class] = field(default_factory=dict)
    pool_numbers: Mapping[str, int] = field(default_factory=dict)
    class_numbers: Mapping[str, int] = field(default_factory=dict)


def check(policy: Policy) -> None:
    """Check what concerns several pools and classes. Raises BandwidthError."""
    owners: dict[tuple[str, str, Any], str] = {}
    requests: dict[str, int] = {}
    for item in policy.classes.values():
        if item.pool not in policy.pools:
            known = ", ".join(sorted(policy.pools)) or "none"
            raise _refuse(
                f"class {item.name}", f"pool {item.pool!r} does not exist (there are: {known}); make it first"
            )
        direction = policy.pools[item.pool].direction
        requests[item.pool] = requests.get(item.pool, 0) + item.request
        networks = [_network(text) for text in item.prefixes]
        for kind, values in (
            ("cgroup", item.cgroups), ("classid", item.classids), ("device", item.devices), ("prefix", networks),
            ("pod", item.pods),
        ):  # fmt: skip
            for value in values:
                owner = owners.setdefault((direction, kind, value), item.name)
                if owner != item.name:
                    raise _refuse(f"class {item.name}", f"{kind} {value} belongs to class {owner}; give it to one only")
    for name, total in requests.items():
        have = policy.pools[name].total
        if have and total > have:
            raise _refuse(
                f"pool {name}", f"requests of its classes sum to {8 * total} bit/s, above total {8 * have}; lower some"
            )


def assign(names: Iterable[str], numbers: Mapping[str, int], first: int, end: int, what: str) -> dict[str, int]:
    """Return a number for each name: the one that it has, else the lowest free one. Raises BandwidthError when full."""
    wanted = list(names)
    kept = {name: numbers[name] for name in wanted if name in numbers}
    free = iter(sorted(set(range(first, end)) - set(kept.values())))
    for name in wanted:
        if name not in kept:
            number = next(free, None)
            if number is None:
                raise BandwidthError(f"{what} {name}: there is room for {end - first} only; remove some first")
            kept[name] = number
    return kept
