# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From wanted groups to the steps that make them so, in an order that the kernel accepts at every moment.

The kernel's rules behind the order: a v1 cpuset must lie within its parent's and is useless while empty; a v1 group's
quota may not give it a larger share of a CPU than its parent's; a burst may not exceed the quota; while cpu.idle is 1
the weight cannot be written, and it is back at its default once cpu.idle is 0.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cgroup_keys, cgroup_sets, procfs
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import CgroupError, Hierarchy, Layout
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_keys import Value
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
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_tree import Tree

PINNED = "cpu.idle is 1, which pins the weight at its minimum"


class Planner:
    """Collects the steps for one call; see plan()."""

    def __init__(self, layout: Layout, root: str, groups: Sequence[Group], ours: frozenset[str]) -> None:
        """Check names and bring groups into order, parents first."""
        if not root:
            raise CgroupError("cgroup root '': is empty; give a path below the hierarchy such as colocation-testbed")
        self.layout, self.root, self.ours = layout, cgroup.check_name(root), ours
        self.tree = Tree()
        self.skipped: list[Skipped] = []
        names = [group.name for group in groups]
        double = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
        if double:
            raise CgroupError(f"cgroup {double[0]!r}: is given twice; give all its values in one entry")
        present = [group for group in groups if group.state == "present"]
        self.present = sorted(present, key=lambda group: (self.full(group.name).count("/"), group.name))
        self.absent = [group for group in groups if group.state == "absent"]
        self.places = self._places()
        for hierarchy in layout.used():
            for full in [*self.places, *(self.full(group.name) for group in self.absent)]:
                cgroup.refuse_symlinks(hierarchy.mount, full)

    def full(self, name: str) -> str:
        """Return the path of a group below the hierarchy."""
        return f"{self.root}/{cgroup.check_name(name)}" if name else self.root

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
        """Resolve all wanted values; those that this host lacks go to ``skipped``. Raises CgroupError on bad ones."""
        return [
            found
            for group in self.present
            for name, value in group.values.items()
            if (found := self._resolve(group, name, value))
        ]

    def _resolve(self, group: Group, name: str, value: Value) -> Setting | None:
        shown = f"cgroup {self.full(group.name)}: {name}"
        key = cgroup_keys.BY_NAME.get(name)
        if key is None:
            raise CgroupError(f"{shown}: is not known; write one of {', '.join(sorted(cgroup_keys.BY_NAME))}")
        checked = key.check(value, shown)
        hierarchy = self.layout.find(key.controller)
        file = key.file(hierarchy.version) if hierarchy else None
        directory = cgroup.join_path(hierarchy.mount, self.full(group.name)) if hierarchy else ""
        if hierarchy and file and self.tree.text(directory, file, hierarchy.mount) is not None:
            return Setting(group.name, key, checked, hierarchy, directory, file)
        if key.is_neutral(checked):
            return None
        seen = f"has {key.controller} on v{hierarchy.version}" if hierarchy else f"has no {key.controller} controller"
        where = f" without {file.name}" if hierarchy and file else ""
        self.skipped.append(Skipped(group.name, name, f"needs {key.needs}; this host {seen}{where}"))
        return None

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
        """Return the steps that bring processes into their groups. Raises CgroupError when one does not exist."""
        steps: list[Step] = []
        for group in self.present:
            for pid in group.pids:
                if procfs.read_stat(pid, proc_root) is None:
                    raise CgroupError(f"cgroup {self.full(group.name)}: process {pid} does not exist; correct pids")
                paths = procfs.read_group_paths(pid, proc_root)
                for hierarchy in self.layout.used():
                    directory = cgroup.join_path(hierarchy.mount, self.full(group.name))
                    old = hierarchy.mount + _path_in(paths, hierarchy).rstrip("/")
                    if old != directory:
                        steps.append(Step(MOVE, directory, str(pid), old))
        return steps

    def removals(self) -> list[Step]:
        """Return the steps that remove absent groups, children first. Raises CgroupError unless ours and empty."""
        steps: list[Step] = []
        moved = {pid for group in self.present for pid in group.pids}
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


def _path_in(paths: Mapping[str, str], hierarchy: Hierarchy) -> str:
    if hierarchy.version == 2:
        return paths.get("", "/")
    return next((path for names, path in paths.items() if hierarchy.controllers[0] in names.split(",")), "/")


def _saved(directory: str, version: int) -> tuple[tuple[str, str], ...]:
    """Return what a removed group must be given again if a later step fails, in the order of KEYS."""
    tree = Tree()
    found: dict[str, str] = {}
    for key in cgroup_keys.KEYS:
        file = key.file(version)
        text = tree.real(f"{directory}/{file.name}") if file else None
        if file and text is not None and text != file.initial:
            found[file.name] = text
    if found.get("cpu.idle") == "1":
        found.pop(cgroup_keys.weight_file(version).name, None)
    return tuple(found.items())


def plan(
    layout: Layout,
    root: str,
    groups: Sequence[Group],
    ours: frozenset[str] = frozenset(),
    proc_root: str = procfs.PROC_ROOT,
) -> Plan:
    """Return the steps that bring ``groups`` about; reads the kernel, changes nothing.

    ``ours`` are the group directories that the journal says we made. Raises CgroupError for bad names and values,
    cpusets outside their parent's, processes that don't exist, and groups to be removed that are not ours or not empty.
    """
    planner = Planner(layout, root, groups, ours)
    tree = planner.tree
    make = planner.make()
    settings = planner.settings()
    idle_off = planner.idle_off(settings)
    sets = cgroup_sets.plan(layout, tree, planner.places, [item for item in settings if item.key.phase == "cpuset"])
    bands = cgroup_sets.plan_bandwidth(tree, [item for item in settings if item.key.phase == "bandwidth"])
    plain = [step for item in settings if item.key.phase == "plain" for step in item.steps(tree)]
    weights = planner.weights(settings)
    steps = [*make, *idle_off, *sets.up, *bands.up, *weights, *plain, *bands.down, *sets.down]
    steps += [*planner.idle_on(settings), *planner.moves(proc_root), *planner.removals()]
    pinned = {(item.group, item.key) for item in planner.skipped}
    shown = [item for item in settings if (item.group, item.key.name) not in pinned]
    before = _values(shown, Tree(), real=True)
    return Plan(tuple(steps), tuple(planner.skipped), before, _values(shown, tree, real=False))


def _values(settings: Sequence[Setting], tree: Tree, real: bool) -> dict[str, dict[str, Value]]:
    found: dict[str, dict[str, Value]] = {}
    for item in settings:
        text = tree.real(f"{item.directory}/{item.file.name}") if real else item.text(tree)
        if text is not None:
            found.setdefault(item.group, {})[item.key.name] = item.file.parse(text)
    return found
