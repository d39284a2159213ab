# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices that are wanted shaped against what they have: planes, missing lines for tc(8) and ip(8), map entries."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import (
    devices,
    instance,
    intermediate,
    tables,
    tree,
    values,
)
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.devices import Attached
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.instance import Place, State
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.plan import Host, Wanted
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.values import BandwidthError, Device, Pool
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import bpf, bpf_layout, shaping_abilities

_MADE = ("made_root", "made_clsact")
_SCHEDULERS = {"edt": "fq", "htb": "htb"}


@dataclass(frozen=True)
class DevicePlan:
    """What becomes of a device at one hook: lines, what is kept in the state, its entry in the map.

    The key is empty where there is no entry, or where the device that it is about has yet to be made.
    """

    name: str
    lines: tuple[str, ...]
    record: Mapping[str, Any]
    key: bytes = b""
    entry: bytes = b""


@dataclass(frozen=True)
class Shaping:
    """Plans by key; lines that come before and after theirs; what should be known."""

    plans: tuple[tuple[str, DevicePlan], ...]
    first: tuple[str, ...]
    last: tuple[str, ...]
    warnings: tuple[str, ...]
    # Whether the devices were looked at; else they are as the state says, and stay so.
    seen: bool = True
    recorded_diverts: bool = False

    @property
    def lines(self) -> tuple[str, ...]:
        """Return all lines in their order, each once: two hooks of a device ask for the same clsact."""
        own = [line for _key, item in self.plans for line in item.lines]
        return tuple(dict.fromkeys([*self.first, *own, *self.last]))

    @property
    def makes_links(self) -> bool:
        """Tell whether a device has to be made, whose index is known only then."""
        return any(line.startswith("link add ") for line in self.lines)

    @property
    def diverts(self) -> bool:
        """Tell whether packets that arrive anywhere are passed through a device of ours."""
        return self.recorded_diverts or any(item.record.get("intermediate") for _key, item in self.plans)


@dataclass(frozen=True)
class _Around:
    policy: values.Policy
    place: Place
    layout: bpf_layout.Layout
    programs: Mapping[str, int]
    host: Host
    abilities: shaping_abilities.Abilities
    links: Mapping[str, intermediate.Link]
    seen: Mapping[str, Attached]


@dataclass(frozen=True)
class _Old:
    """What the state says of a device: its record, what was made for any of its hooks, whether a task names it now."""

    record: Mapping[str, Any]
    made: Mapping[str, bool]
    named: bool


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


def _check_hooks(wanted: Wanted) -> None:
    """Refuse a device whose packets would get two marks of different meaning. Raises BandwidthError."""
    for item in wanted.devices.values():
        pool = wanted.pools.get(item.pool)
        if item.hook == "ingress" and pool and pool.direction == "ingress" and f"{item.name}/pod" in wanted.devices:
            raise BandwidthError(
                f"device {item.name}: has hook pod, so what arrives there is a pod's egress; "
                f"give hook ingress a pool of direction egress instead of {pool.name}, or leave one of them out"
            )


def _queues(item: Device, seen: Attached, around: _Around) -> str:
    """Return the plane of the device that packets queue at: the wanted one, or the first that works, or none."""
    has = around.abilities.has
    if item.plane != "auto":
        kind = _SCHEDULERS[item.plane]
        if not (item.plane == "edt" and seen.paces()) and not has(kind):
            raise BandwidthError(
                f"device {item.name}: plane {item.plane} needs sch_{kind}, which this kernel lacks; use auto"
            )
        return item.plane
    if seen.paces() or has("fq"):
        return "edt"
    return "htb" if has("htb") else "police"


def choose_plane(item: Device, seen: Attached, old: _Old, around: _Around) -> str:
    """Return the plane of a device, of which ``seen`` is where packets queue. Raises BandwidthError."""
    if item.hook == "pod":
        if item.plane != "auto":
            raise BandwidthError(
                f"device {item.name}: has hook pod, where packets are only marked; leave its plane out"
            )
        return "stamp"
    if item.plane == "police":
        return "police"
    chosen = old.record.get("chosen", "")
    # A choice that is in force stays: the kernel needs not be asked, and a queue full of packets not be replaced.
    in_force = {"htb": (seen.root_kind, seen.root_handle) == ("htb", devices.HTB_HANDLE), "edt": seen.paces(),
                "police": not old.named}  # fmt: skip
    if item.plane == old.record.get("plane") and in_force.get(chosen):
        return str(chosen)
    if item.hook == "ingress" and not around.abilities.diverts:
        if item.plane == "auto":
            return "police"
        raise BandwidthError(
            f"device {item.name}: plane {item.plane} at hook ingress needs an intermediate device (ifb, act_mirred), "
            "which this kernel lacks; use auto"
        )
    return _queues(item, seen, around)


def _attach(
    name: str, hook: str, program: str, seen: Attached, old: Mapping[str, Any], around: _Around, target: str = ""
) -> list[str]:
    """Return the lines that attach a program where it isn't. Raises BandwidthError."""
    present = devices.our_filter(seen, hook)
    attached = devices.program_id(present)
    if present is not None and attached not in around.programs.values() and not old:
        raise BandwidthError(
            f"device {name}: another program is attached at {devices.HOOKS[hook].key}; "
            "remove it, or move it to another preference"
        )
    wanted = around.programs.get(program, 0)
    if present is not None and wanted and attached == wanted and devices.target_of(present) == target:
        return []
    lines = devices.filter_lines(name, hook, around.place.pins, seen, target)
    if not around.abilities.has("programs"):
        raise BandwidthError(
            f"device {name}: the kernel has no clsact, or takes no programs there (sch_ingress, cls_bpf); "
            "load these modules, or use a kernel that has them"
        )
    return lines


def _root(name: str, plane: str, pool: Pool, seen: Attached, may_replace: bool, around: _Around) -> list[str]:
    lines = devices.root_lines(name, plane, seen, may_replace)
    if plane == "htb":
        lines += tree.missing(tree.tree(around.policy, pool), set() if lines else set(seen.classes), name)
    return lines


def _entry(plane: str, pool: Pool, around: _Around, flags: int = 0) -> bytes:
    """Return what the programs must know of a device."""
    layout = around.layout
    return layout["device"].pack(
        {
            "pool": around.policy.pool_numbers[pool.name],
            "plane": layout.constant(f"PLANE_{plane.upper()}"),
            "direction": layout.constant(f"DIRECTION_{pool.direction.upper()}"),
            "flags": flags,
            "htb_default": tables.handle(tables.HTB_DEFAULT) if plane == "htb" else 0,
        }
    )


def _record(item: Device, seen: Attached, plane: str, lines: list[str], old: _Old) -> dict[str, Any]:
    root, clsact = f"qdisc add dev {item.name} root handle ", f"qdisc add dev {item.name} clsact"
    return {
        **vars(item),
        "index": seen.index,
        "chosen": plane,
        "made_root": old.made["made_root"] or any(line.startswith(root) for line in lines),
        "made_clsact": old.made["made_clsact"] or clsact in lines,
    }


def _plan_here(item: Device, plane: str, seen: Attached, old: _Old, around: _Around) -> DevicePlan:
    """Plan a device at which packets themselves are held back, marked or dropped."""
    pool = around.policy.pools[item.pool]
    lines = [] if item.hook == "ingress" else _root(item.name, plane, pool, seen, item.replace_qdisc, around)
    lines += _attach(item.name, item.hook, devices.HOOKS[item.hook].program, seen, old.record, around)
    learnt = devices.our_filter(seen, "learn")
    if item.hook == "ingress" and learnt and devices.program_id(learnt) == around.programs.get("learn"):
        lines.append(f"filter delete dev {item.name} {devices.HOOKS['learn'].key} bpf")
    record = _record(item, seen, plane, lines, old)
    if item.hook == "pod":
        return DevicePlan(item.name, tuple(lines), record)
    key = struct.pack("<I", seen.index << 1 | int(item.hook == "ingress"))
    return DevicePlan(item.name, tuple(lines), record, key, _entry(plane, pool, around))


def _plan_diverted(item: Device, plane: str, seen: Attached, old: _Old, around: _Around) -> DevicePlan:
    """Plan a device whose arriving packets pass one of ours first, at which they are held back."""
    pool, name = around.policy.pools[item.pool], intermediate.name_of(seen.index)
    there = around.seen.get(name, devices.fresh())
    lines = intermediate.make_lines(name, around.place.name, around.links, around.host.proc_root)
    lines += _root(name, plane, pool, there, True, around)
    lines += _attach(name, "egress", "shape", there, {"ours": True}, around)
    lines += _attach(item.name, "learn", "learn", seen, old.record, around)
    lines += _attach(item.name, "ingress", devices.DIVERT, seen, old.record, around, name)
    record = {**_record(item, seen, plane, lines, old), "intermediate": name}
    layout = around.layout
    flags = layout.constant("DEVICE_OWN_WIRE_LENGTH") | layout.constant("DEVICE_INTERMEDIATE")
    key = struct.pack("<I", there.index << 1) if there.index else b""
    return DevicePlan(item.name, tuple(lines), record, key, _entry(plane, pool, around, flags))


def _plan_device(item: Device, old: _Old, around: _Around) -> tuple[DevicePlan, list[str]]:
    seen, pool = around.seen[item.name], around.policy.pools[item.pool]
    _check_speed(item.name, seen.index, pool, around.host.sys_root)
    ingress = item.hook == "ingress"
    queue = around.seen.get(intermediate.name_of(seen.index), devices.fresh()) if ingress else seen
    plane = choose_plane(item, queue, old, around)
    plan = _plan_diverted if ingress and plane != "police" else _plan_here
    warnings = []
    if plane == "htb" and pool.accounting != "wire":
        warnings.append(
            f"device {item.name}: plane htb counts frames as sent, not {pool.accounting} as pool {pool.name}"
        )
    return plan(item, plane, seen, old, around), warnings


def plan_devices(
    wanted: Wanted, state: State, policy: values.Policy, place: Place, layout: bpf_layout.Layout,
    named: frozenset[str], host: Host,
) -> Shaping:  # fmt: skip
    """Return what devices lack, and what is taken off those that aren't wanted any more. Raises BandwidthError."""
    _check_hooks(wanted)
    around = _look(wanted, state, policy, place, layout, host)
    plans, warnings = [], []
    for key, item in wanted.devices.items():
        if item.name not in around.seen:
            if key in named:
                raise BandwidthError(f"device {item.name}: does not exist here; correct the name, or make it first")
            warnings.append(f"device {item.name}: is gone; it is shaped again when a task names it after its return")
            continue
        made = _made(item.name, around.seen[item.name].index, state)
        plan, more = _plan_device(item, _Old(state.devices.get(key, {}), made, key in named), around)
        plans.append((key, plan))
        warnings += more
    kept = {str(item.record["intermediate"]) for _key, item in plans if item.record.get("intermediate")}
    first = _undo_lines(wanted, state, around.seen, frozenset(around.programs.values()))
    last = intermediate.delete_lines(kept, around.links)
    return Shaping(_shared(plans), tuple(first), tuple(last), tuple(warnings))


def _shared(plans: list[tuple[str, DevicePlan]]) -> tuple[tuple[str, DevicePlan], ...]:
    """Return the plans with what was made for one hook of a device known to its other hooks too."""
    made: dict[str, dict[str, bool]] = {}
    for _key, item in plans:
        each = made.setdefault(item.name, dict.fromkeys(_MADE, False))
        each.update({name: True for name in _MADE if item.record[name]})
    return tuple((key, replace(item, record={**item.record, **made[item.name]})) for key, item in plans)


def _look(
    wanted: Wanted, state: State, policy: values.Policy, place: Place, layout: bpf_layout.Layout, host: Host
) -> _Around:
    indexes = host.indexes()
    recorded = recorded_links(state)
    diverted = {
        intermediate.name_of(indexes[item.name])
        for item in wanted.devices.values()
        if item.hook == "ingress" and item.name in indexes
    }
    links = intermediate.look(place.name, recorded, host.run) if recorded or diverted else {}
    names = {item.name for item in wanted.devices.values()} | {raw["name"] for raw in state.devices.values()}
    seen = devices.look_now(names | (diverted & set(links)), indexes, host.indexes, host.run, host.classes)
    return _Around(policy, place, layout, program_ids(place), host, shaping_abilities.Abilities(host.run), links, seen)


def as_recorded(state: State) -> Shaping | None:
    """Return that devices stay as they are, None where they must be looked at, since a tree has a place for each class.

    Starting programs to look takes longer than writing two hundred classes.
    """
    if any(raw.get("chosen") == "htb" for raw in state.devices.values()):
        return None
    return Shaping((), (), (), (), seen=False, recorded_diverts=bool(recorded_links(state)))


def recorded_links(state: State) -> set[str]:
    """Return the intermediate devices that a state knows of."""
    return {str(raw["intermediate"]) for raw in state.devices.values() if raw.get("intermediate")}


def _undo_lines(wanted: Wanted, state: State, seen: Mapping[str, Attached], ids: frozenset[int]) -> list[str]:
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
    return {key: any(raw.get(key) for raw in records) for key in _MADE}


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
