# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What control groups have: directories, values, and the files to sample, all ancestors included."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Sequence
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cgroup_devices, cgroup_keys
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import Hierarchy, Layout
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import Group, Plan, Step
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_tree import Tree
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_values import Option


def directories(layout: Layout, full: str) -> dict[str, str]:
    """Return {controller: directory} of a group, for each controller that a workload's group is made in."""
    found = ((item, layout.find(item)) for item in cgroup.CONTROLLERS)
    return {item: cgroup.join_path(hierarchy.mount, full) for item, hierarchy in found if hierarchy}


def values(layout: Layout, full: str, tree: Tree | None = None) -> dict[str, Option]:
    """Return {option: value} of a group (path below the hierarchies) for every option that this kernel has.

    None when there is no such group. Of the two options for one file, the one in the hierarchy's own unit is told.
    """
    view = tree or Tree()
    hierarchies = {name: layout.find(name) for name in cgroup.CONTROLLERS}
    found: dict[str, Option] = {}
    for key in cgroup_keys.KEYS:
        hierarchy = hierarchies[key.controller]
        if hierarchy is None or key.name == ("cpu_weight" if hierarchy.version == 1 else "cpu_shares"):
            continue
        directory = cgroup.join_path(hierarchy.mount, full)
        names = view.names(directory)
        for file in key.files(hierarchy.version):
            if file.name in names and (text := view.real(f"{directory}/{file.name}")) is not None:
                found[key.name] = file.parse(text)
                break
    return {**found, **_limits(layout, full, view)}


def _limits(layout: Layout, full: str, view: Tree) -> dict[str, Option]:
    """Return the limits for each disk, empty lists where there is none."""
    hierarchy = layout.find("io")
    if hierarchy is None:
        return {}
    directory = cgroup.join_path(hierarchy.mount, full)
    found: dict[str, Option] = {}
    for name, files in cgroup_devices.FILES[hierarchy.version].items():
        names = view.names(directory)
        texts = {file: view.real(f"{directory}/{file}") for file in files if file in names}
        contents = {file: text for file, text in texts.items() if text is not None}
        if contents:
            found[name] = cgroup_devices.present(name, hierarchy.version, contents)
    return found


@functools.cache
def _names(controller: str, version: int) -> tuple[str, ...]:
    """Return the files of a controller that have values."""
    files = [file.name for key in cgroup_keys.KEYS if key.controller == controller for file in key.files(version)]
    more = cgroup_devices.names(version) if controller == "io" else ()
    return tuple(sorted({*files, *more}))


def policy_files(layout: Layout, root: str, names: Iterable[str], tree: Tree | None = None) -> dict[str, str]:
    """Return {sample key: file} for every value of the groups and of all their ancestors.

    The key is the path below our root + "/" + file name; our root itself is "/file", ancestors are "../file" and so on
    (docs/architecture.md, Samples).
    """
    view = tree or Tree()
    fulls: set[str] = {""}
    for name in names:
        parts = cgroup.below(root, name).split("/")
        fulls.update("/".join(parts[: count + 1]) for count in range(len(parts)))
    found: dict[str, str] = {}
    for full in sorted(fulls):
        shown = os.path.relpath(f"/{full}", f"/{root}")
        prefix = "" if shown == "." else shown
        for hierarchy in layout.used():
            directory = cgroup.join_path(hierarchy.mount, full)
            present = view.names(directory)
            found.update(
                (f"{prefix}/{name}", f"{directory}/{name}") for name in value_files(hierarchy) if name in present
            )
    return dict(sorted(found.items()))


@functools.cache
def value_files(hierarchy: Hierarchy) -> tuple[str, ...]:
    """Return the files with values of the controllers that are bound to a hierarchy."""
    layout = Layout("", (hierarchy,))
    found = (name for item in cgroup.CONTROLLERS if layout.find(item) for name in _names(item, hierarchy.version))
    return tuple(dict.fromkeys(found))


def policy_values(found: dict[str, str], tree: Tree | None = None) -> dict[str, str | None]:
    """Return the content of each file, without line end; None when it cannot be read (any more)."""
    view = tree or Tree()
    read: dict[str, str | None] = {}
    for key, path in found.items():
        try:
            read[key] = view.real(path)
        except cgroup.CgroupError:
            read[key] = None
    return read


def describe(layout: Layout) -> dict[str, Any]:
    """Return the host's layout for a module's result."""
    return {
        "version": layout.version,
        "hierarchies": [
            {"mount": item.mount, "version": item.version, "controllers": list(item.controllers)}
            for item in layout.hierarchies
        ],
    }


def diff(layout: cgroup.Layout, plan: Plan, root: str, groups: Sequence[Group]) -> dict[str, Any]:
    """Return the values before and after, by the groups' paths; a group that isn't there is left out."""
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    made = {step.path for step in plan.steps if step.kind == "make"}
    removed = {step.path for step in plan.steps if step.kind == "remove"}
    for group in groups:
        shown = f"{root}/{group.name}" if group.name else root
        directories = set(layout.directories(shown))
        if not directories & made and (group.state == "present" or directories & removed):
            before[shown] = dict(plan.before.get(group.name, {}))
        if group.state == "present":
            after[shown] = dict(plan.after.get(group.name, {}))
    return {"before": before, "after": after}


def lacking(layout: cgroup.Layout, root: str, steps: tuple[Step, ...]) -> list[dict[str, Any]]:
    """Return what turned out to be missing only when it was written, as entries of ``not_set``."""
    found = []
    for step in steps:
        for item in layout.used():
            prefix = f"{item.mount}/{root}"
            if step.path.startswith(f"{prefix}/"):
                group, _slash, file = step.path[len(prefix) + 1 :].rpartition("/")
                found.append({"group": group, "key": file, "why": "this kernel has no such file in its groups"})
    return found
