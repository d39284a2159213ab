# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From wanted resctrl groups to steps in an order that the kernel accepts; nothing is changed here.

Groups go first, so that their CLOSIDs are free for new ones; then groups are made, get their values, CPUs, monitoring
groups, and at last their threads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import procfs, resctrl, resctrl_check
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl import (
    BANDWIDTH_LINE,
    Group,
    Line,
    ResctrlError,
    State,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl_model import Model
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl_steps import (
    CPUS,
    MAKE,
    MOVE,
    REMOVE,
    SCHEMATA,
    Move,
    Plan,
    Step,
    WantedGroup,
    from_json,
    is_made,
    save,
)


@dataclass
class _Planning:
    """What planning has at hand, and what it has found so far."""

    state: State
    model: Model
    recorded: Mapping[str, Any]
    boot_id: str
    proc_root: str
    steps: list[Step] = field(default_factory=list)
    forget: set[str] = field(default_factory=set)
    gone: list[int] = field(default_factory=list)
    _places: dict[int, str] | None = None

    def ours(self, directory: str) -> bool:
        """Tell whether the journal says that we made a group."""
        return is_made(self.recorded.get(directory), self.boot_id)

    def place(self, tid: int) -> str:
        """Return the directory of the group in which a thread is, that of the root group for unknown ones."""
        if self._places is None:
            self._places = {}
            for group in self.state.groups.values():
                directories = [group.directory, *(item.directory for item in group.monitors.values())]
                # The monitoring groups come last: a control group lists their threads too.
                self._places.update((found, path) for path in directories for found in resctrl.read_tasks(path))
        return self._places.get(tid, self.state.mount_point)


def plan(
    state: State,
    wanted: Sequence[WantedGroup],
    recorded: Mapping[str, Any],
    proc_root: str = procfs.PROC_ROOT,
) -> Plan:
    """Return the steps. ``recorded`` is the journal's kind resctrl, previous by target. Raises ResctrlError.

    Everything that is not possible is found here, before a change. A group that is to be absent is removed if we made
    it; if it was there before, it gets back what the journal says that it had.
    """
    boot_id = procfs.read_boot_id(proc_root)
    resctrl_check.check(state, wanted)
    work = _Planning(state, Model(state), recorded, boot_id, proc_root)
    before = {group.name: work.model.shown(group.name) for group in wanted}
    for group in wanted:
        if group.state == "absent":
            _absent(work, group.name)
    present = [group for group in wanted if group.state == "present"]
    removed = [name for name in state.groups if name not in work.model.groups]
    _make(work, present, removed)
    for group in present:
        _write_values(work, group)
    for group in sorted(present, key=lambda item: not item.name):
        _write_cpus(work, group)
    for group in present:
        _move(work, group)
    after = {group.name: work.model.shown(group.name) for group in wanted}
    return Plan(
        tuple(work.steps),
        {name: item for name, item in before.items() if item is not None},
        {name: item for name, item in after.items() if item is not None},
        frozenset(work.forget),
        tuple(work.gone),
    )


def _absent(work: _Planning, name: str) -> None:
    group = work.model.groups.get(name)
    if group is None:
        return
    if work.ours(group.directory):
        directories = [group.directory, *(item.directory for item in group.monitors.values())]
        members = _members(directories, work.proc_root)
        work.steps.append(Step(REMOVE, group.directory, saved=(save(group),), moves=members))
        work.model.remove(name)
        work.forget |= {group.directory, *(item.directory for item in group.monitors.values())}
        return
    for monitor in group.monitors.values():
        if work.ours(monitor.directory):
            members = _members([monitor.directory], work.proc_root)
            # Only the CPUs of this one are put back, with those of the control group's other monitoring groups.
            work.steps.append(Step(REMOVE, monitor.directory, saved=(save(group),), moves=members))
            work.model.remove_monitor(name, monitor.name)
            work.forget.add(monitor.directory)
    previous = work.recorded.get(group.directory)
    if previous is not None:
        _restore(work, work.model.groups[name], previous)


def _members(directories: Sequence[str], proc_root: str) -> tuple[Move, ...]:
    """Return the threads in groups; the control group comes first, since it lists those of its monitoring groups."""
    places = {tid: directory for directory in directories for tid in resctrl.read_tasks(directory)}
    found = (identified(tid, place, proc_root) for tid, place in sorted(places.items()))
    return tuple(move for move in found if move is not None)


def identified(tid: int, source: str, proc_root: str) -> Move | None:
    """Return a thread as it is moved out of a group, None where it has ended."""
    stat = procfs.read_stat(tid, proc_root)
    return None if stat is None or stat.dead else Move(tid, stat.start_ticks, source)


def _restore(work: _Planning, group: Group, previous: Any) -> None:
    work.forget.add(group.directory)
    if isinstance(previous, Mapping) and previous.get("boot_id") != work.boot_id:
        return
    saved = from_json(group.directory, previous)
    lines = [line for text in saved.lines.values() for line in resctrl.parse_schemata(text)]
    _write_lines(work, group, [line for line in lines if line.values != group.values(line.name)])
    cpus = frozenset(quantity.parse_cpu_list(saved.cpus))
    if group.name and cpus != work.model.groups[group.name].cpus:
        _cpus_step(work, group.name, cpus)


def _make(work: _Planning, present: Sequence[WantedGroup], removed: Sequence[str]) -> None:
    names = [group.name for group in present if group.name not in work.model.groups]
    monitors = [
        (group.name, monitor.name)
        for group in present
        for monitor in group.monitors
        if group.name not in work.model.groups or monitor.name not in work.model.groups[group.name].monitors
    ]
    ours = frozenset(target for target in work.recorded if work.ours(target))
    resctrl_check.check_room(work.state, names, removed, len(monitors), ours)
    for name in names:
        work.steps.append(Step(MAKE, work.model.make(name).directory))
    for name, monitor in monitors:
        work.steps.append(Step(MAKE, work.model.make_monitor(name, monitor).directory))


def _write_values(work: _Planning, wanted: WantedGroup) -> None:
    group = work.model.groups[wanted.name]
    is_new = wanted.name not in work.state.groups
    changed = []
    for name, value in wanted.values.items():
        ids = work.state.root.values(name)
        line = Line(name, dict.fromkeys(ids, settled(work.state, name, value)), "")
        # A new group has what is free then, which may be less than everything: it is always written.
        if is_new or line.values != group.values(name):
            changed.append(line)
    _write_lines(work, group, changed)


def settled(state: State, name: str, value: int) -> int:
    """Return a value as the kernel will show it: bandwidth is rounded up to the steps of the hardware (bw_validate)."""
    bandwidth = state.info.bandwidth
    if name != BANDWIDTH_LINE or bandwidth is None or state.info.mba_mbps:
        return value
    step = max(bandwidth.granularity, 1)
    return -(-value // step) * step


def _write_lines(work: _Planning, group: Group, lines: Sequence[Line]) -> None:
    if not lines:
        return
    text = "".join(f"{resctrl.format_line(line.name, line.values or {})}\n" for line in lines)
    work.steps.append(Step(SCHEMATA, group.directory, text, saved=(save(group),)))
    work.model.write_lines(group.name, tuple(lines))


def _write_cpus(work: _Planning, wanted: WantedGroup) -> None:
    if wanted.cpus is None or wanted.cpus == work.model.groups[wanted.name].cpus:
        return
    if not wanted.name:
        extra = work.model.groups[""].cpus - wanted.cpus
        if extra:
            raise ResctrlError(
                f"resctrl root group: CPU {quantity.format_cpu_list(extra)} cannot be taken from it; give these to "
                "another group instead, the root group keeps the rest"
            )
    _cpus_step(work, wanted.name, wanted.cpus)


def _cpus_step(work: _Planning, name: str, cpus: frozenset[int]) -> None:
    saved = work.model.write_cpus(name, cpus)
    directory = work.model.groups[name].directory
    work.steps.append(Step(CPUS, directory, quantity.format_cpu_list(cpus), saved=saved))


def _move(work: _Planning, wanted: WantedGroup) -> None:
    group = work.model.groups[wanted.name]
    places = [(group.directory, wanted.pids)]
    places += [(group.monitors[item.name].directory, item.pids) for item in wanted.monitors]
    for directory, pids in places:
        moves = []
        for pid in pids:
            found = threads(pid, work.proc_root)
            if not found:
                work.gone.append(pid)
            moves += list(_needed(work, directory, found))
        if moves:
            work.steps.append(Step(MOVE, directory, pids=tuple(pids), moves=tuple(moves)))


def _needed(work: _Planning, directory: str, tids: Sequence[int]) -> Iterator[Move]:
    for tid in tids:
        source = work.place(tid)
        # A thread in a monitoring group is in the control group of that too.
        if source == directory or source.startswith(f"{directory}/mon_groups/"):
            continue
        move = identified(tid, source, work.proc_root)
        if move is not None:
            yield move


def threads(pid: int, proc_root: str = procfs.PROC_ROOT) -> list[int]:
    """Return the threads of a process, none where it has ended. Raises ResctrlError."""
    try:
        return sorted(int(name) for name in os.listdir(f"{proc_root}/{pid}/task"))
    except (FileNotFoundError, ProcessLookupError, NotADirectoryError):
        return []
    except OSError as exc:
        raise ResctrlError(f"process {pid}: its threads cannot be read: {exc.strerror}; run as root") from exc
