# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From wanted groups to the steps that make them so, in an order that the kernel accepts at every moment.

The kernel's rules behind the order: a v1 cpuset must lie within its parent's and is useless while empty; a v1 group's
quota may not give it a larger share of a CPU than its parent's; a burst may not exceed the quota; while cpu.idle is 1
the weight cannot be written, and it is back at its default once cpu.idle is 0; a partition needs its CPUs first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Callable

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    block,
    cgroup,
    cgroup_check,
    cgroup_devices,
    cgroup_keys,
    cgroup_levels,
    cgroup_quota,
    cgroup_sets,
    procfs,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import CgroupError, Hierarchy, Layout
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_keys import Key
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import (
    ENABLE,
    KEEP,
    MAKE,
    MOVE,
    REMOVE,
    Group,
    Plan,
    Setting,
    Skipped,
    Step,
    Translated,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_tree import Tree
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_values import KernelFile, Option, Value

PINNED = "cpu.idle is 1, which pins the weight at its minimum"


class Planner:
    """Collects the steps for one call; see plan()."""

    def __init__(
        self, layout: Layout, root: str, groups: Sequence[Group], ours: frozenset[str], resolve: Callable[[str], str]
    ) -> None:
        """Check names and values, and bring groups into order, parents first."""
        cgroup_check.check(root, groups, resolve)
        self.layout, self.root, self.ours, self.resolve = layout, root, ours, resolve
        self.tree = Tree()
        self.by_controller = {name: layout.find(name) for name in cgroup.CONTROLLERS}
        self.skipped: list[Skipped] = []
        present = [group for group in groups if group.state == "present"]
        self.present = sorted(present, key=lambda group: (self.full(group.name).count("/"), group.name))
        self.absent = [group for group in groups if group.state == "absent"]
        self.places = self._places()
        for hierarchy in layout.used():
            for full in [*self.places, *(self.full(group.name) for group in self.absent)]:
                cgroup.refuse_symlinks(hierarchy.mount, full)
                cgroup_check.refuse_files(hierarchy, full)

    def full(self, name: str) -> str:
        """Return the path of a group below the hierarchy."""
        return cgroup.below(self.root, name)

    def _places(self) -> list[str]:
        """Return the paths of all groups that must exist, parents first."""
        found: dict[str, None] = {}
        for group in self.present:
            parts = self.full(group.name).split("/")
            found.update(dict.fromkeys("/".join(parts[: count + 1]) for count in range(len(parts))))
        return sorted(found, key=lambda full: (full.count("/"), full))

    def make(self) -> list[Step]:
        """Return the steps that make missing groups, with controllers enabled (v2) and cpusets filled (v1)."""
        steps: list[Step] = []
        for hierarchy in self.layout.used():
            for full in self.places:
                directory = cgroup.join_path(hierarchy.mount, full)
                if hierarchy.version == 2:
                    steps += self._enable(hierarchy, os.path.dirname(directory))
                if not self.tree.exists(directory):
                    self.tree.make(directory)
                    steps.append(Step(MAKE, directory))
        return steps + cgroup_sets.fill(self.layout, self.tree, self.places)

    def _enable(self, hierarchy: Hierarchy, directory: str) -> list[Step]:
        path = f"{directory}/cgroup.subtree_control"
        have = set(("" if self.tree.is_new(directory) else self.tree.real(path) or "").split())
        wanted = [name for name in cgroup.CONTROLLERS if name in hierarchy.controllers]
        missing = [name for name in wanted if name not in have and not self.tree.enabled(directory, name)]
        for name in missing:
            self.tree.enable(directory, name)
        text = " ".join(f"+{name}" for name in missing)
        return [Step(ENABLE, path, text, " ".join(sorted(have)))] if missing else []

    def settings(self) -> list[Setting]:
        """Resolve all wanted values; those that this host lacks go to ``skipped``."""
        return [
            found
            for group in self.present
            for name, value in group.values.items()
            for key, part, shown in cgroup_check.single_values(
                name, value, cgroup_check.shown(self.root, group, name), self.resolve
            )
            if (found := self._resolve(group, key, part, shown))
        ]

    def _resolve(self, group: Group, key: Key, value: Value, shown: str) -> Setting | None:
        checked = key.check(value, shown)
        hierarchy = self.by_controller[key.controller]
        directory = cgroup.join_path(hierarchy.mount, self.full(group.name)) if hierarchy else ""
        files = key.files(hierarchy.version) if hierarchy else ()
        for file in files:
            if hierarchy and self.tree.text(directory, file, hierarchy.mount) is not None:
                return Setting(group.name, key, checked, hierarchy, directory, file)
        if not key.is_neutral(checked) and key.name not in self._lacking(group.name):
            self.skipped.append(Skipped(group.name, key.name, why_lacking(key, hierarchy, files)))
        return None

    def _lacking(self, group: str) -> set[str]:
        return {item.key for item in self.skipped if item.group == group}

    def idle_off(self, settings: Sequence[Setting]) -> list[Step]:
        """Return the writes of cpu.idle = 0; the kernel then puts the weight back to its default."""
        steps: list[Step] = []
        for item in settings:
            written = item.steps(self.tree) if item.key.phase == "idle" and item.value == 0 else []
            if written:
                weight = cgroup_keys.weight_file(item.hierarchy.version)
                self.tree.write(item.directory, weight.name, weight.initial)
            steps += written
        return steps

    def weights(self, settings: Sequence[Setting]) -> list[Step]:
        """Return the writes of weights, except in groups that are or will be idle, whose weight is pinned."""
        idle = {item.directory for item in settings if item.key.phase == "idle" and item.value == 1}
        told = {item.directory for item in settings if item.key.phase == "idle"}
        steps: list[Step] = []
        for item in settings:
            if item.key.phase != "weight":
                continue
            is_idle = item.directory in idle or (item.directory not in told and self._idle_now(item))
            if is_idle:
                self.skipped.append(Skipped(item.group, item.key.name, PINNED))
            else:
                steps += item.steps(self.tree)
        return steps

    def _idle_now(self, item: Setting) -> bool:
        file = cgroup_keys.BY_NAME["cpu_idle"].file(item.hierarchy.version)
        return file is not None and self.tree.text(item.directory, file, item.hierarchy.mount) == "1"

    def idle_on(self, settings: Sequence[Setting]) -> list[Step]:
        """Return the writes of cpu.idle = 1, each after a note of the weight that taking it back would lose."""
        steps: list[Step] = []
        for item in settings:
            written = item.steps(self.tree) if item.key.phase == "idle" and item.value == 1 else []
            if written:
                weight = cgroup_keys.weight_file(item.hierarchy.version)
                present = self.tree.text(item.directory, weight, item.hierarchy.mount) or weight.initial
                steps.append(Step(KEEP, f"{item.directory}/{weight.name}", "", present, weight))
                self.tree.write(item.directory, weight.name, cgroup_keys.PINNED_TEXT[item.hierarchy.version])
            steps += written
        return steps

    def moves(self, proc_root: str) -> list[Step]:
        """Return the steps that bring processes into their groups.

        Raises CgroupError when one of ``pids`` cannot be moved, and when two groups claim a process.
        """
        steps: list[Step] = []
        claimed: dict[int, str] = {}
        for group in self.present:
            for pid in dict.fromkeys((*group.pids, *group.found)):
                other = claimed.setdefault(pid, group.name)
                if other != group.name:
                    raise CgroupError(
                        f"cgroup {self.full(group.name)}: process {pid} is also in the list of {self.full(other)}; "
                        "name it, its unit or its program in one group"
                    )
                if self._movable(group, pid, proc_root):
                    steps += self._move(group, pid, proc_root)
        return steps

    def _movable(self, group: Group, pid: int, proc_root: str) -> bool:
        """Tell whether a process can be moved; one that was named by its number must be."""
        stat = procfs.read_stat(pid, proc_root)
        why = "does not exist" if stat is None or stat.dead else ""
        if stat is not None and stat.kernel_thread:
            why = f"is a thread of the kernel ({stat.comm}), which cannot be moved"
        if why and pid in group.pids:
            raise CgroupError(f"cgroup {self.full(group.name)}: process {pid} {why}; correct pids")
        return not why

    def _move(self, group: Group, pid: int, proc_root: str) -> list[Step]:
        paths = procfs.read_group_paths(pid, proc_root)
        steps: list[Step] = []
        for hierarchy in self.layout.used():
            directory = cgroup.join_path(hierarchy.mount, self.full(group.name))
            old = hierarchy.mount + cgroup.path_in(paths, hierarchy).rstrip("/")
            if old != directory:
                steps.append(Step(MOVE, directory, str(pid), old, optional=pid not in group.pids))
        return steps

    def removals(self) -> list[Step]:
        """Return the steps that remove absent groups, children first. Raises CgroupError unless ours and empty."""
        steps: list[Step] = []
        moved = {pid for group in self.present for pid in (*group.pids, *group.found)}
        for group in self.absent:
            for hierarchy in self.layout.used():
                top = cgroup.join_path(hierarchy.mount, self.full(group.name))
                for directory in [place for place, _below, _files in os.walk(top, topdown=False)]:
                    self._may_remove(directory, moved)
                    self.tree.remove(directory)
                    steps.append(Step(REMOVE, directory, saved=_saved(directory, hierarchy.version)))
        return steps

    def _may_remove(self, directory: str, moved: set[int]) -> None:
        if directory not in self.ours:
            raise CgroupError(
                f"{directory}: is not in the journal, so this collection did not make it; remove it by hand"
            )
        left = [pid for pid in cgroup.read_pids(directory) if pid not in moved]
        if left:
            shown = ", ".join(str(pid) for pid in left[:10])
            raise CgroupError(f"{directory}: processes {shown} are in it; end or move them, then remove the group")


def why_lacking(key: Key, hierarchy: Hierarchy | None, files: Sequence[KernelFile]) -> str:
    """Return why a host cannot be given an option, whose files on this hierarchy would be ``files``."""
    if hierarchy is None:
        return f"needs {key.needs}; this host has no {key.controller} controller"
    without = f" without {' and '.join(file.name for file in files)}" if files else ""
    return f"needs {key.needs}; this host has {key.controller} on v{hierarchy.version}{without}"


def _saved(directory: str, version: int) -> tuple[tuple[str, str], ...]:
    """Return what a removed group must be given again if a later step fails, in the order of KEYS."""
    tree = Tree()
    found: dict[str, str] = {}
    for file in (file for key in cgroup_keys.KEYS for file in key.files(version)):
        text = tree.real(f"{directory}/{file.name}")
        if text is not None and text != file.initial:
            found[file.name] = file.restoring(text)
    if found.get("cpu.idle") == "1":
        found.pop(cgroup_keys.weight_file(version).name, None)
    lines = ((name, tree.real(f"{directory}/{name}") or "") for name in cgroup_devices.names(version))
    return (*found.items(), *((name, line) for name, text in lines for line in text.splitlines()))


def plan(
    layout: Layout,
    root: str,
    groups: Sequence[Group],
    ours: frozenset[str] = frozenset(),
    proc_root: str = procfs.PROC_ROOT,
    resolve: Callable[[str], str] = block.whole_disk,
    foreign: bool = False,
) -> Plan:
    """Return the steps that bring ``groups`` about; reads the kernel, changes nothing.

    ``ours`` are the group directories that the journal says we made, ``resolve`` turns a disk into "8:0". ``foreign``:
    the groups are someone else's, who makes them, enables controllers and fills cpusets; only values are set. Raises
    CgroupError for bad names and values, cpusets outside their parent's, processes that don't exist, and groups to be
    removed that are not ours or not empty.
    """
    planner = Planner(layout, root, groups, ours, resolve)
    tree = planner.tree
    make, places = ([], []) if foreign else (planner.make(), planner.places)
    settings = planner.settings()
    cgroup_quota.check(tree, [item for item in settings if item.key.phase == "bandwidth"])
    values = _value_steps(planner, settings, places)
    steps = [*make, *values, *planner.moves(proc_root), *planner.removals()]
    pinned = {(item.group, item.key) for item in planner.skipped if item.why == PINNED}
    shown = [item for item in settings if (item.group, item.key.name) not in pinned]
    read = tree.untouched()
    before, after = _values(shown, read, real=True), _values(shown, tree, real=False)
    return Plan(tuple(steps), tuple(planner.skipped), before, after, tuple(_translated(shown, tree)), read)


def plan_values(layout: Layout, root: str, groups: Sequence[Group]) -> tuple[Step, ...]:
    """Return the steps that bring values about in groups that exist; nothing else is planned. Raises CgroupError."""
    planner = Planner(layout, root, groups, frozenset(), block.whole_disk)
    return tuple(_value_steps(planner, planner.settings(), planner.places))


def _value_steps(planner: Planner, settings: Sequence[Setting], places: Sequence[str]) -> list[Step]:
    """Return the writes of all values, in the order that docs/cgroup.md gives reasons for.

    ``places`` are the groups whose cpusets are kept within each other, parents first.
    """
    tree = planner.tree
    idle_off = planner.idle_off(settings)
    phases: dict[str, list[Setting]] = {}
    for item in settings:
        phases.setdefault(item.key.phase, []).append(item)
    joined = [item for item in phases.get("partition", []) if item.value == "member"]
    apart = [item for item in phases.get("partition", []) if item.value != "member"]
    members = [step for item in reversed(joined) for step in item.steps(tree)]
    sets = cgroup_sets.plan(planner.layout, tree, places, phases.get("cpuset", []))
    partitions = [step for item in apart for step in item.steps(tree)]
    bands = cgroup_sets.plan_bandwidth(tree, phases.get("bandwidth", []))
    levels = cgroup_levels.plan(tree, phases.get("level", []))
    plain = [step for item in phases.get("plain", []) for step in item.steps(tree)]
    weights = planner.weights(settings)
    steps = [*idle_off, *members, *sets.up, *bands.up, *levels.up, *weights, *plain]
    return [*steps, *levels.down, *bands.down, *sets.down, *partitions, *planner.idle_on(settings)]


def _values(settings: Sequence[Setting], tree: Tree, real: bool) -> dict[str, dict[str, Option]]:
    found: dict[str, dict[str, Option]] = {}
    limits: dict[tuple[str, str], dict[str, Value]] = {}
    for item in settings:
        text = tree.real(f"{item.directory}/{item.file.name}") if real else item.text(tree)
        if text is None:
            continue
        if item.key.line:
            limits.setdefault((item.group, item.key.name), {})[item.key.line] = item.file.parse(text)
        else:
            found.setdefault(item.group, {})[item.key.name] = item.file.parse(text)
    for (group, name), lines in limits.items():
        found.setdefault(group, {})[name] = cgroup_devices.collect(lines)
    return found


def _translated(settings: Sequence[Setting], tree: Tree) -> Iterator[Translated]:
    """Yield the values that the kernel holds in another unit, or rounded."""
    for item in settings:
        text = item.file.render(item.value, item.text(tree))
        if item.file.translates or item.file.parse(text) != item.value:
            name = item.key.name + (f" {item.key.line}" if item.key.line else "")
            yield Translated(item.group, name, item.value, f"{item.directory}/{item.file.name}", text)
