# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our own programs as one of the shapers: from what is wanted to an instance of them, and what that has counted."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import (
    instance,
    plan,
    readings,
    reconcile,
    values,
)
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.instance import Place
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import bpf
from ansible_collections.colocation.testbed.plugins.module_utils.shaping.wanted import POOLS, Class, Wanted

Edit = Callable[[plan.Wanted], plan.Wanted]


def _pool(wanted: Wanted, direction: str) -> values.Pool:
    raw: dict[str, Any] = {"name": POOLS[direction], "direction": direction, "accounting": wanted.accounting}
    if direction in wanted.directions:
        raw.update({name: f"{rate}B/s" for name, rate in (wanted.rates or {}).items() if rate})
        raw["shares"] = wanted.shares
    return values.pool(raw)


def _class(item: Class) -> values.Class:
    known = {"cgroups": [item.group]} if item.group else {"prefixes": [str(ipaddress.ip_network(item.address))]}
    rates = {name: f"{rate}B/s" for name, rate in (("request", item.request), ("limit", item.limit)) if rate}
    raw = {"name": item.name, "pool": POOLS[item.direction], "role": item.role, "priority": item.priority}
    return values.traffic_class({**raw, **rates, **known})


def edit(wanted: Wanted) -> Edit:
    """Return what makes an instance shape as wanted; with another kind its programs stay loaded and shape nothing."""
    active = wanted.kind == "ebpf"
    pools = {POOLS[direction]: _pool(wanted, direction) for direction in values.DIRECTIONS}
    classes = {item.name: _class(item) for item in wanted.classes} if active else {}
    directions = wanted.directions if active else ()
    shaped = {f"{wanted.device}/{direction}": _device(wanted, direction) for direction in directions}
    return lambda _before: plan.Wanted(pools, classes, shaped)


def _device(wanted: Wanted, direction: str) -> values.Device:
    plane = wanted.plane if direction == "egress" else "auto"
    return values.Device(wanted.device, POOLS[direction], direction, plane)


def named(wanted: Wanted) -> frozenset[str]:
    """Return the classes and devices whose absence is an error."""
    classes = {item.name for item in wanted.classes}
    return frozenset(classes | {f"{wanted.device}/{direction}" for direction in wanted.directions})


def planes(place: Place) -> dict[str, str]:
    """Return the plane of each direction that is shaped. Raises BandwidthError."""
    state = instance.read_state(place)
    shaped = state.devices.values() if state else ()
    return {raw["hook"]: raw["chosen"] for raw in shaped if raw["hook"] in values.DIRECTIONS}


def texts(wanted: Wanted) -> dict[str, str]:
    """Return the settings as ``applied`` reads them when they are in effect."""
    found = {"ebpf": "in effect"}
    for item in wanted.classes:
        found[f"{item.direction}/class {item.name}"] = f"limit {item.limit} request {item.request} B/s"
    for direction in wanted.directions:
        rates = " ".join(f"{name} {wanted.rate(name)}" for name in sorted(wanted.rates or {}))
        found[f"{direction}/pool"] = f"{rates} B/s"
    return found


def applied(wanted: Wanted, place: Place, in_effect: bool) -> dict[str, str]:
    """Return what the instance says; ``in_effect`` is what comparing the maps in the kernel has found."""
    state = instance.read_state(place)
    found = {"ebpf": "in effect" if in_effect else "changed since it was applied"}
    for name, raw in state.classes.items() if state else ():
        direction = next((key for key, pool in POOLS.items() if pool == raw["pool"]), "?")
        found[f"{direction}/class {name}"] = f"limit {raw['limit']} request {raw['request']} B/s"
    for direction in wanted.directions:
        pool = (state.pools if state else {}).get(POOLS[direction], {})
        rates = " ".join(f"{name} {pool.get(name)}" for name in sorted(wanted.rates or {}))
        found[f"{direction}/pool"] = f"{rates} B/s"
    return found


def counted(place: Place) -> dict[str, Any]:
    """Return figures of pools and classes, and time and runs of each program. Raises BpfError, BandwidthError."""
    state = instance.read_state(place)
    opened = reconcile.open_at(place) if state else None
    if state is None or opened is None:
        return {"pools": {}, "classes": {}, "programs": {}}
    try:
        found = readings.figures(opened, state)
    finally:
        opened.close()
    return {**found, "programs": {name: _program(place, name) for name in instance.PROGRAMS}}


def _program(place: Place, name: str) -> dict[str, int]:
    fd = bpf.get(os.path.join(place.pins, "programs", name))
    try:
        info = bpf.program_info(fd)
    finally:
        os.close(fd)
    return {"run_ns": info.run_time_ns, "runs": info.run_count}
