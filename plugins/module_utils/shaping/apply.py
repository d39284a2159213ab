# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring one shaper about instead of another: take off what is there, apply, read back, say what was counted."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, journal
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import devices, plan, reconcile
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.instance import Place
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.values import BandwidthError
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, net_drops
from ansible_collections.colocation.testbed.plugins.module_utils.shaping import groups, ours, qdiscs
from ansible_collections.colocation.testbed.plugins.module_utils.shaping.wanted import Wanted

ERRORS = (*reconcile.ERRORS, cgroup.CgroupError)
BPF_STATISTICS = "/proc/sys/kernel/bpf_stats_enabled"
_BY = "bandwidth_shaper"


@dataclass(frozen=True)
class Here:
    """Where a shaper is: the instance of our programs, the journal, how programs are run, whether only to predict."""

    place: Place
    book: journal.Journal
    check: bool
    run: devices.Run = commands.run


@dataclass(frozen=True)
class Outcome:
    """What was done: whether anything changed, milliseconds that applying took, lines for tc(8), plane by direction."""

    changed: bool
    apply_ms: float
    lines: tuple[str, ...]
    planes: Mapping[str, str]
    in_effect: bool


def route(address: str, run: devices.Run = commands.run) -> dict[str, Any]:
    """Return device, MTU in bytes and what the link can carry on the way to an address. Raises BandwidthError."""
    plain, _percent, device = address.partition("%")
    of_family = "-6" if ":" in address else "-4"
    through = ["oif", device] if device else []
    shown = run(["ip", "-j", of_family, "route", "get", plain, *through], check=False)
    found = json.loads(shown.stdout or "[]") if shown.status == 0 else []
    if not found or "dev" not in found[0]:
        raise BandwidthError(f"address {address}: no device leads there; correct the address or the route")
    name = str(found[0]["dev"])
    if name == "lo":
        raise BandwidthError(f"address {address}: is this host's own; name the other host's")
    link = json.loads(run(["ip", "-j", "link", "show", "dev", name]).stdout)[0]
    return {"device": name, "mtu_bytes": int(link["mtu"]), "link_bps": _link_bps(name, int(link["ifindex"]))}


def _link_bps(name: str, index: int, sys_root: str = "/sys") -> int | None:
    """Return what a device of hardware can carry, None for one of software, whose figure means nothing."""
    place = os.path.join(sys_root, "class/net", name)
    try:
        # /sys shows the devices of the namespace in which it was mounted, which may be another one.
        mine = int(files.read_text(os.path.join(place, "ifindex"))) == index
        speed_mbit = int(files.read_text(os.path.join(place, "speed")))
    except (files.FilesError, ValueError):
        return None
    hardware = os.path.exists(os.path.join(place, "device"))
    return speed_mbit * 10**6 if mine and hardware and speed_mbit > 0 else None


def apply(wanted: Wanted, load: bool, here: Here) -> Outcome:
    """Bring a shaper about. Raises what ERRORS lists; then nothing of it is on the device.

    :param load: whether our programs are loaded also where another shaper is wanted.
    """
    kept = wanted.kind in ("htb", "tbf") and _as_wanted(wanted, here)
    removed = False if kept else _clear(wanted, load, here)
    started_s = time.monotonic()
    if wanted.kind == "ebpf":
        # A check may come before the groups of classes are made.
        named = frozenset[str]() if here.check else ours.named(wanted)
        done = _reconcile(ours.edit(wanted), named, here)
        took_ms = _since_ms(started_s)
        _check_known(wanted, load, here)
        in_effect = not (done.changed and here.check)
        return Outcome(removed or done.changed, took_ms, done.lines, ours.planes(here.place), in_effect)
    lines = _put_on(wanted, here) if wanted.kind in ("htb", "tbf") and not kept else ()
    took_ms = _since_ms(started_s)
    planes = {} if wanted.kind == "none" else dict.fromkeys(wanted.directions, wanted.kind)
    return Outcome(removed or bool(lines), took_ms, lines, planes, kept or not here.check)


def _check_known(wanted: Wanted, load: bool, here: Here) -> None:
    """Refuse received classes of groups where nothing can tell them apart, and take all off again."""
    grouped = [item.name for item in wanted.of("ingress") if item.group]
    if grouped and ours.planes(here.place).get("ingress") == "police":
        _clear(replace(wanted, kind="none"), load, here)
        raise BandwidthError(
            f"class {grouped[0]}: is received and known by its group, which takes an intermediate device (ifb, "
            "act_mirred) that this kernel lacks; receive one class, by address"
        )


def _since_ms(started_s: float) -> float:
    return 1e3 * (time.monotonic() - started_s)


def _reconcile(edit: reconcile.Edit, named: frozenset[str], here: Here) -> reconcile.Outcome:
    return reconcile.reconcile(here.place, edit, named, here.book, _BY, here.check, plan.Host(run=here.run))


def start_afresh(wanted: Wanted, load: bool, here: Here) -> bool:
    """Take every shaper off, so that counters begin at 0. Tells whether there was one; a check changes nothing."""
    return not here.check and _clear(replace(wanted, kind="none"), load, here)


def _as_wanted(wanted: Wanted, here: Here) -> bool:
    there, _seen = qdiscs.look(wanted.device, here.run)
    if bool(there.root) != ("egress" in wanted.directions) or there.ifb != ("ingress" in wanted.directions):
        return False
    return qdiscs.applied(wanted, there, here.run) == qdiscs.expected(wanted)


def _clear(wanted: Wanted, load: bool, here: Here) -> bool:
    """Take off what another kind of shaper put on; the programs of ours stay loaded, or are loaded on demand."""
    changed = False
    if wanted.kind != "ebpf":
        changed = _park(wanted, load, here)
    there, _seen = qdiscs.look(wanted.device, here.run)
    if here.check:
        return changed or not there.nothing
    return qdiscs.take_off(wanted.device, here.book, here.run) or changed


def _park(wanted: Wanted, load: bool, here: Here) -> bool:
    if not load and not os.path.isdir(here.place.pins):
        return False
    return _reconcile(ours.edit(wanted), frozenset(), here).changed


def _put_on(wanted: Wanted, here: Here) -> tuple[str, ...]:
    there, seen = qdiscs.look(wanted.device, here.run)
    if "egress" in wanted.directions and not seen.has_default_root and not there.root:
        raise BandwidthError(
            f"device {wanted.device}: has root qdisc {seen.root_kind} {seen.root_handle}, which isn't the kernel's "
            "default; remove it, or measure on another device"
        )
    hooks = "" if there.redirected else seen.hooks
    links, lines = qdiscs.lines_for(wanted, hooks)
    if here.check:
        return tuple(lines)
    qdiscs.record(wanted, hooks, here.book)
    try:
        qdiscs.carry_out(links, lines, here.run)
        _read_back(wanted, here)
    except BaseException:
        qdiscs.take_off(wanted.device, here.book, here.run)
        raise
    return tuple(lines)


def _read_back(wanted: Wanted, here: Here) -> None:
    if not _as_wanted(wanted, here):
        raise BandwidthError(f"device {wanted.device}: {wanted.kind} reads back other than written; update iproute2")


def remove(device: str, here: Here) -> bool:
    """Take everything off: shapers, programs, groups, statistics. Tells whether there was anything."""
    there, _seen = qdiscs.look(device, here.run) if device else (qdiscs.There(), None)
    made = groups.ours(here.book)
    counting = any(item.kind == "value" and item.target == BPF_STATISTICS for item in here.book.entries())
    done = _reconcile(lambda _before: plan.Wanted({}, {}, {}), frozenset(), here)
    if not here.check:
        if device:
            qdiscs.take_off(device, here.book, here.run)
        groups.remove(made, here.book)
        if counting:
            _count_programs(False, here)
    return done.changed or not there.nothing or bool(made) or counting


def set_up(names: list[str], statistics: bool, here: Here) -> bool:
    """Make the groups of classes, and let the kernel count runs of programs. Tells whether anything had to change."""
    lacking = groups.missing(groups.mount(), names) if names else []
    if lacking and not here.check:
        groups.make(lacking, here.book)
    return _count_programs(True, here) or bool(lacking) if statistics else bool(lacking)


def _count_programs(on: bool, here: Here) -> bool:
    """Let the kernel count time and runs of all programs (kernel.bpf_stats_enabled), or as it was before."""
    found = files.read_text(BPF_STATISTICS).strip()
    entry = next((item for item in here.book.entries() if item.kind == "value" and item.target == BPF_STATISTICS), None)
    wanted = "1" if on else str(entry.previous).strip() if entry else found
    if found != wanted and not here.check:
        if on:
            here.book.record("value", BPF_STATISTICS, found, _BY, note=wanted)
        files.write_kernel(BPF_STATISTICS, wanted)
    if not on:
        here.book.forget("value", BPF_STATISTICS)
    return found != wanted


def report(wanted: Wanted, outcome: Outcome, here: Here) -> dict[str, Any]:
    """Return settings as wanted and as the kernel has them, and what was counted so far."""
    counted = ours.counted(here.place) if wanted.kind == "ebpf" else {"pools": {}, "classes": {}, "programs": {}}
    if wanted.kind == "ebpf":
        drops = sum(item["dropped"] for item in counted["classes"].values())
        return {
            "wanted": ours.texts(wanted),
            "applied": ours.applied(wanted, here.place, outcome.in_effect),
            "counted": {**counted, "drops": drops + _tree_drops(wanted, here), "ecn_marks": _marks(counted)},
            "stack_drops": net_drops.read(),
        }
    shaping = wanted.kind != "none"
    there, _seen = qdiscs.look(wanted.device, here.run)
    return {
        "wanted": qdiscs.expected(wanted) if shaping else {},
        "applied": qdiscs.applied(wanted, there, here.run) if shaping else {},
        "counted": {**counted, "drops": qdiscs.dropped(wanted, there, here.run), "ecn_marks": None},
        "stack_drops": net_drops.read(),
    }


def _marks(counted: Mapping[str, Any]) -> int:
    return sum(int(item["marked"]) for item in counted["classes"].values())


def _tree_drops(wanted: Wanted, here: Here) -> int:
    """Return what the queues of plane htb dropped."""
    shown = json.loads(here.run(["tc", "-s", "-j", "qdisc", "show", "dev", wanted.device]).stdout)
    return sum(int(item.get("drops", 0)) for item in shown if item.get("root") and item.get("kind") in ("htb", "fq"))
