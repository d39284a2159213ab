# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what is wanted of resctrl groups against what the host can do, before anything is changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import resctrl
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl import (
    BANDWIDTH_LINE,
    EXCLUSIVE,
    SHAREABLE,
    Cache,
    ResctrlError,
    State,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl_steps import WantedGroup


def shown(name: str) -> str:
    """Return how a group is named to people."""
    return f"resctrl group {name}" if name else "resctrl root group"


def check(state: State, wanted: Sequence[WantedGroup]) -> None:
    """Raise ResctrlError, with one sentence, for the first thing that is not possible on this host."""
    for group in wanted:
        _check_names(group)
    _check_twice([group.name for group in wanted], "resctrl group", "is there twice; name each once")
    present = [group for group in wanted if group.state == "present"]
    pids = [pid for group in present for pid in (*group.pids, *(pid for item in group.monitors for pid in item.pids))]
    _check_twice(pids, "process", "is wanted in two resctrl groups; name it in one")
    for group in present:
        found = state.groups.get(group.name)
        if found is not None and found.mode not in (SHAREABLE, EXCLUSIVE):
            raise ResctrlError(
                f"{shown(group.name)}: is in mode {found.mode}, which allows no change; choose another name"
            )
        _check_values(state, group)
        if group.monitors and state.info.rmids is None:
            raise ResctrlError(f"{shown(group.name)}: this host has no cache monitoring; leave monitor_groups out")
    _check_cpus(state, present)


def _check_names(group: WantedGroup) -> None:
    if group.name:
        resctrl.check_name(group.name)
    for monitor in group.monitors:
        resctrl.check_name(monitor.name, "monitoring group")
    _check_twice([item.name for item in group.monitors], "monitoring group", "is there twice; name each once")


def _check_twice(items: Sequence[object], what: str, advice: str) -> None:
    seen = set()
    for item in items:
        if item in seen:
            raise ResctrlError(f"{what} {item or '(root)'}: {advice}")
        seen.add(item)


def _check_values(state: State, group: WantedGroup) -> None:
    for name, value in group.values.items():
        if not state.root.values(name):
            raise ResctrlError(f"{shown(group.name)}: this host's schemata have no line {name}; leave its value out")
        if name != BANDWIDTH_LINE and state.info.cache is not None:
            check_mask(state.info.cache, value, shown(group.name))
            _check_exclusive(state, group.name, name, value)
        elif name == BANDWIDTH_LINE:
            _check_bandwidth(state, group.name, value)


def check_mask(cache: Cache, mask: int, what: str) -> None:
    """Raise ResctrlError unless the kernel takes the mask (cbm_validate in fs/resctrl/ctrlmondata.c)."""
    if mask > cache.cbm_mask or (mask == 0 and cache.min_cbm_bits > 0):
        raise ResctrlError(
            f"{what}: cache mask {mask:x} is not among the ways {cache.cbm_mask:x} of this host; choose some"
        )
    low = mask & -mask
    first_run = mask & ~(mask + low)
    if first_run != mask and not cache.sparse_masks:
        raise ResctrlError(
            f"{what}: cache mask {mask:x} has a gap, which this host does not take; choose adjacent ways"
        )
    if bin(first_run).count("1") < cache.min_cbm_bits:
        raise ResctrlError(
            f"{what}: cache mask {mask:x} has too few ways; this host takes no fewer than {cache.min_cbm_bits}"
        )


def _check_exclusive(state: State, name: str, line: str, mask: int) -> None:
    for other in state.groups.values():
        values = [value for item in resctrl.L3_LINES for value in other.values(item).values()]
        if other.mode == EXCLUSIVE and other.name != name and any(mask & value for value in values):
            raise ResctrlError(
                f"{shown(name)}: {line} mask {mask:x} overlaps with the exclusive group {other.name or '(root)'}; "
                "choose other ways, or write shareable into its file mode"
            )


def _check_bandwidth(state: State, name: str, value: int) -> None:
    bandwidth = state.info.bandwidth
    if state.info.mba_mbps or bandwidth is None:
        return
    most = 100 if bandwidth.linear else max(state.root.values(BANDWIDTH_LINE).values())
    if not bandwidth.minimum <= value <= most:
        raise ResctrlError(
            f"{shown(name)}: memory bandwidth {value} is not possible here; choose {bandwidth.minimum} to {most}"
        )


def _check_cpus(state: State, present: Sequence[WantedGroup]) -> None:
    known = frozenset(cpu for group in state.groups.values() for cpu in group.cpus)
    owner: dict[int, str] = {}
    for group in present:
        for cpu in sorted(group.cpus or ()):
            if cpu not in known:
                raise ResctrlError(
                    f"{shown(group.name)}: CPU {cpu} is not online (there are {quantity.format_cpu_list(known)}); "
                    "choose among these"
                )
            if cpu in owner:
                raise ResctrlError(
                    f"CPU {cpu}: wanted by {shown(owner[cpu])} and {shown(group.name)}; a CPU is in one group only"
                )
            owner[cpu] = group.name


def check_room(state: State, made: Sequence[str], removed: Iterable[str], monitors: int, ours: frozenset[str]) -> None:
    """Raise ResctrlError where the groups to be made are more than the hardware can tell apart.

    ``made`` and ``removed`` are names of control groups, ``monitors`` how many monitoring groups are added.
    """
    gone = frozenset(removed)
    left = [group for group in state.groups.values() if group.name not in gone]
    foreign = [group.name for group in left if group.name and group.directory not in ours]
    others = f"others made {', '.join(foreign)}" if foreign else "no group of others is there"
    closids, rmids = state.info.closids, state.info.rmids
    if made and closids is not None and len(left) + len(made) > closids:
        raise ResctrlError(
            f"resctrl groups {', '.join(made)}: this host can tell {closids} groups apart (CLOSIDs, the root group "
            f"takes one), and {len(left)} exist; {others}; remove groups, or ask for fewer"
        )
    used = sum(1 + len(group.monitors) for group in left)
    if rmids is not None and (made or monitors) and used + len(made) + monitors > rmids:
        raise ResctrlError(
            f"resctrl groups: {len(made) + monitors} more are wanted, but this host can monitor {rmids} (RMIDs) and "
            f"{used} are in use; {others}; remove groups, or ask for fewer"
        )
