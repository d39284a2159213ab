# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wanted of an instance against what the host has: numbers, cgroups, devices, missing lines for tc(8)."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import (
    devices,
    instance,
    tables,
    tree,
    values,
)
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.instance import Place, State
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.values import (
    BandwidthError,
    Class,
    Device,
    Pool,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import bpf, bpf_layout, cgroup


@dataclass(frozen=True)
class Wanted:
    """The whole instance as it shall be: pools and classes by name, devices by name and hook."""

    pools: Mapping[str, Pool]
    classes: Mapping[str, Class]
    devices: Mapping[str, Device]


@dataclass(frozen=True)
class Host:
    """How the host is reached: running programs, and where control groups are."""

    run: devices.Run = commands.run
    proc_root: str = "/proc"
    sys_root: str = "/sys"
    indexes: Callable[[], Mapping[str, int]] = devices.indexes


def _tuples(raw: Mapping[str, Any], kind: type) -> Any:
    # JSON has no tuples.
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in raw.items()}
    return kind(**{key: value for key, value in fields.items() if key in kind.__dataclass_fields__})  # type: ignore[attr-defined]


def wanted_of(state: State) -> Wanted:
    """Return what the state file says was asked for so far."""
    return Wanted(
        {name: _tuples(raw, Pool) for name, raw in state.pools.items()},
        {name: _tuples(raw, Class) for name, raw in state.classes.items()},
        {key: _tuples(raw, Device) for key, raw in state.devices.items()},
    )


def policy_of(wanted: Wanted, state: State) -> values.Policy:
    """Return pools and classes with their numbers, checked against each other. Raises BandwidthError."""
    pools = values.assign(
        wanted.pools, {name: raw["number"] for name, raw in state.pools.items()}, 0, values.MAX_POOLS, "pool"
    )
    numbers = {name: raw["number"] for name, raw in state.classes.items()}
    # The numbers of pools stand for what no class of theirs claims.
    classes = values.assign(wanted.classes, numbers, values.MAX_POOLS, values.MAX_CLASSES, "class")
    found = values.Policy(wanted.pools, wanted.classes, pools, classes)
    values.check(found)
    for item in wanted.devices.values():
        if item.pool not in wanted.pools:
            raise BandwidthError(f"device {item.name}: pool {item.pool!r} does not exist; make it first")
    return found


def resolve_cgroup(path: str, proc_root: str) -> tuple[int, int] | None:
    """Return id and depth of a cgroup v2 directory, None when it is gone. Raises BandwidthError without cgroup2."""
    try:
        found = [item.mount for item in cgroup.detect(proc_root).hierarchies if item.version == 2]
        if not found:
            raise BandwidthError(f"cgroup {path}: no cgroup2 is mounted; mount one, or use classids")
        below = path[len(found[0]) :] if path.startswith(found[0] + "/") else path
        place = cgroup.join_path(found[0], below.strip("/"))
    except cgroup.CgroupError as exc:
        raise BandwidthError(str(exc)) from exc
    try:
        return os.stat(place).st_ino, len([part for part in below.split("/") if part])
    except OSError:
        return None


def find(wanted: Wanted, named: frozenset[str], host: Host) -> tuple[Wanted, tables.Found, list[str]]:
    """Look up cgroups and devices of classes; what is gone is an error where it was named now, else left out."""
    indexes = host.indexes()
    groups: dict[str, tuple[int, int]] = {}
    warnings, classes = [], {}
    for name, item in wanted.classes.items():
        gone = []
        for path in item.cgroups:
            identity = groups.get(path) or resolve_cgroup(path, host.proc_root)
            if identity is None:
                gone.append(f"cgroup {path}")
            else:
                groups[path] = identity
        gone += [f"device {device}" for device in item.devices if device not in indexes]
        if gone and name in named:
            raise BandwidthError(f"class {name}: {gone[0]} does not exist; correct it, or make it first")
        if gone:
            warnings.append(f"class {name}: {', '.join(gone)} is gone; it is left out until it is back")
        classes[name] = replace(
            item,
            cgroups=tuple(path for path in item.cgroups if path in groups),
            devices=tuple(device for device in item.devices if device in indexes),
        )
    found = tables.Found(groups, {name: indexes[name] for item in classes.values() for name in item.devices})
    return replace(wanted, classes=classes), found, warnings


def _check_speed(name: str, index: int, pool: Pool, sys_root: str) -> None:
    """Refuse a pool that asks for more than the link has. Raises BandwidthError."""
    place = os.path.join(sys_root, "class", "net", name)
    try:
        # /sys shows the devices of the network namespace in which it was mounted, which may be another one.
        same = int(files.read_text(os.path.join(place, "ifindex"))) == index
        speed = int(files.read_text(os.path.join(place, "speed"))) if same else -1
    except (files.FilesError, ValueError):
        return
    wanted = 8 * max(pool.total, pool.high, pool.waterline)
    if speed > 0 and wanted > speed * 10**6:
        raise BandwidthError(
            f"pool {pool.name}: asks for {wanted} bit/s, but device {name} has a link of {speed} Mbit/s; lower them"
        )


@dataclass(frozen=True)
class DevicePlan:
    """What becomes of a device at one hook: lines for tc(8), what is kept in the state, its entry in the map."""

    name: str
    lines: tuple[str, ...]
    record: Mapping[str, Any]
    key: bytes = b""
    entry: bytes = b""


@dataclass(frozen=True)
class _Surroundings:
    policy: values.Policy
    place: Place
    layout: bpf_layout.Layout
    programs: Mapping[str, int]
    host: Host


def _plan_device(
    item: Device, seen: devices.Attached, old: Mapping[str, Any], made: Mapping[str, bool], around: _Surroundings
) -> DevicePlan:
    pool = around.policy.pools[item.pool]
    _check_speed(item.name, seen.index, pool, around.host.sys_root)
    plane = devices.choose_plane(item.name, item.plane, item.hook, seen, around.host.run)
    lines = devices.root_lines(item.name, plane, seen, item.replace_qdisc)
    if plane == "htb":
        lines += tree.missing(tree.tree(around.policy, pool), set() if lines else set(seen.classes), item.name)
    program = around.programs.get(devices.HOOKS[item.hook].program, 0)
    present = devices.our_filter(seen, item.hook)
    attached = devices.program_id(present)
    if present is not None and attached not in around.programs.values() and not old:
        raise BandwidthError(
            f"device {item.name}: another program is attached at {devices.HOOKS[item.hook].key}; "
            "remove it, or move it to another preference"
        )
    if not program or attached != program:
        lines += devices.filter_lines(item.name, item.hook, around.place.pins, seen)
    record = {
        **vars(item),
        "index": seen.index,
        "chosen": plane,
        "made_root": made["made_root"] or any(" root handle " in line for line in lines),
        "made_clsact": made["made_clsact"] or any(line.endswith(" clsact") for line in lines),
    }
    if item.hook == "pod":
        return DevicePlan(item.name, tuple(lines), record)
    key = struct.pack("<I", seen.index << 1 | int(item.hook == "ingress"))
    return DevicePlan(item.name, tuple(lines), record, key, _entry(plane, pool, around))


def _entry(plane: str, pool: Pool, around: _Surroundings) -> bytes:
    """Return what the programs must know of a device."""
    layout = around.layout
    return layout["device"].pack(
        {
            "pool": around.policy.pool_numbers[pool.name],
            "plane": layout.constant(f"PLANE_{plane.upper()}"),
            "direction": layout.constant(f"DIRECTION_{pool.direction.upper()}"),
            "htb_default": tables.handle(tables.HTB_DEFAULT) if plane == "htb" else 0,
        }
    )


def plan_devices(
    wanted: Wanted, state: State, policy: values.Policy, place: Place, layout: bpf_layout.Layout,
    named: frozenset[str], host: Host,
) -> tuple[list[tuple[str, DevicePlan]], list[str], list[str]]:  # fmt: skip
    """Return plans by key, the lines that undo devices which aren't wanted any more, and warnings."""
    around = _Surroundings(policy, place, layout, program_ids(place), host)
    names = {item.name for item in wanted.devices.values()} | {raw["name"] for raw in state.devices.values()}
    seen = devices.look(names, host.indexes(), host.run)
    plans, warnings = [], []
    for key, item in wanted.devices.items():
        if item.name not in seen:
            if key in named:
                raise BandwidthError(f"device {item.name}: does not exist here; correct the name, or make it first")
            warnings.append(f"device {item.name}: is gone; it is shaped again when a task names it after its return")
            continue
        before = _made(item.name, seen[item.name].index, state)
        made = _plan_device(item, seen[item.name], state.devices.get(key, {}), before, around)
        accounting = policy.pools[item.pool].accounting
        if made.record["chosen"] == "htb" and accounting != "wire":
            warnings.append(
                f"device {item.name}: plane htb counts frames as sent, not {accounting} as pool {item.pool}"
            )
        plans.append((key, made))
    return plans, _undo_lines(wanted, state, seen, frozenset(around.programs.values())), warnings


def _undo_lines(wanted: Wanted, state: State, seen: Mapping[str, devices.Attached], ids: frozenset[int]) -> list[str]:
    """Return the lines that take off what is listed in the state and not wanted any more."""
    gone: dict[str, dict[str, Mapping[str, Any]]] = {}
    for key, raw in state.devices.items():
        if key not in wanted.devices and raw["name"] in seen:
            gone.setdefault(raw["name"], {})[raw["hook"]] = raw
    lines = []
    for name, hooks in gone.items():
        lines += devices.detach_lines(name, hooks, ids, seen[name], f"{name}/egress" in wanted.devices)
    return lines


def _made(name: str, index: int, state: State) -> dict[str, bool]:
    """Return what was made for any hook of a device: who comes later inherits it, whoever goes last removes it."""
    records = [raw for raw in state.devices.values() if raw["name"] == name and raw.get("index") == index]
    return {key: any(raw.get(key) for raw in records) for key in ("made_root", "made_clsact")}


def program_ids(place: Place) -> dict[str, int]:
    """Return the ids of the pinned programs; none when there is no instance."""
    found = {}
    for name in instance.PROGRAMS:
        path = os.path.join(place.pins, "programs", name)
        if os.path.exists(path):
            fd = bpf.get(path)
            found[name] = bpf.program_info(fd).id
            os.close(fd)
    return found


def picture(state: State) -> dict[str, Any]:
    """Return a state as a person compares it."""
    hidden = ("number", "index", "name")
    return {
        kind: {name: {key: value for key, value in raw.items() if key not in hidden} for name, raw in found.items()}
        for kind, found in (("pools", state.pools), ("classes", state.classes), ("devices", state.devices))
    }
