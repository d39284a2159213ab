# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Control groups that someone else makes and removes, such as kubelet: found by pattern, given values, nothing more."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence
from dataclasses import replace

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    block,
    cgroup,
    cgroup_devices,
    cgroup_keys,
    cgroup_lines,
    cgroup_plan,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import CgroupError, Layout
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_keys import Key
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import Group, Plan, Skipped
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_tree import Tree

_PROBE = "colocation-testbed-probe"
_ANY_DISK = "0:0"
SETS = ("cpuset_cpus", "cpuset_mems", "cpuset_partition")
_IDLE = "cpu_idle"


def expand(layout: Layout, pattern: str) -> list[str]:
    """Return the groups whose path below the cpu hierarchy matches a pattern, in ascending order.

    ``*``, ``?`` and ``[…]`` match within one part of the path. Raises CgroupError for a pattern that could leave the
    hierarchy, and for a matching group with a name that is not safe.
    """
    parts = pattern.split("/")
    if not all(parts) or any(part in (".", "..") or "\n" in part for part in parts):
        raise CgroupError(
            f"cgroup pattern {pattern!r}: not allowed; give a path below the hierarchy, parts joined by '/', without "
            "'..' and without a leading '/'"
        )
    mount = layout.hierarchy("cpu").mount
    found = [""]
    for part in parts:
        found = [
            f"{above}/{name}" if above else name
            for above in found
            for name in cgroup.children(f"{mount}/{above}" if above else mount)
            if fnmatch.fnmatchcase(name, part)
        ]
    return [cgroup.check_name(name) for name in sorted(found)]


def _keys() -> list[Key]:
    fields = ((name, field) for name, fields in cgroup_devices.FIELDS.items() for field in fields)
    return [*cgroup_keys.KEYS, *(cgroup_devices.key(name, _ANY_DISK, field) for name, field in fields)]


def lacking(layout: Layout) -> dict[str, str]:
    """Return why this host's groups cannot be given an option, for each that they can't."""
    tree = Tree()
    found: dict[str, str] = {}
    for key in _keys():
        hierarchy = layout.find(key.controller)
        files = key.files(hierarchy.version) if hierarchy else ()
        if hierarchy is not None:
            # Nothing is made: the view tells what a new group would have.
            directory = f"{hierarchy.mount}/{_PROBE}"
            tree.make(directory)
            if any(tree.text(directory, file, hierarchy.mount) is not None for file in files):
                continue
        found[key.name] = cgroup_plan.why_lacking(key, hierarchy, files)
    return found


def plan(layout: Layout, groups: Sequence[Group]) -> Plan:
    """Return the steps that give existing groups their values; ``name`` is the path below the hierarchies.

    Raises CgroupError for a group that does not exist, one that is given twice, bad values, and values of cpusets,
    which only whoever makes the groups can keep within each other.
    """
    for group in groups:
        _check(layout, group)
    tops = list(dict.fromkeys(group.name.split("/")[0] for group in groups))
    plans = [_plan_below(layout, top, [item for item in groups if item.name.split("/")[0] == top]) for top in tops]
    return Plan(
        tuple(step for item in plans for step in item.steps),
        tuple(skipped for item in plans for skipped in item.skipped),
        {name: values for item in plans for name, values in item.before.items()},
        {name: values for item in plans for name, values in item.after.items()},
        tuple(translated for item in plans for translated in item.translated),
    )


def _check(layout: Layout, group: Group) -> None:
    if not os.path.isdir(layout.path("cpu", group.name)):
        raise CgroupError(f"cgroup {group.name}: does not exist; only values of existing groups are set here")
    for name in SETS:
        if name in group.values:
            raise CgroupError(f"cgroup {group.name}: {name}: is not set in groups that someone else made; leave it out")


def _plan_below(layout: Layout, top: str, groups: Sequence[Group]) -> Plan:
    renamed = [replace(group, name=group.name[len(top) + 1 :]) for group in groups]
    found = cgroup_plan.plan(layout, top, renamed, foreign=True)
    skipped = [_told(layout, replace(item, group=_full(top, item.group))) for item in found.skipped]
    return Plan(
        found.steps,
        tuple(skipped),
        {_full(top, name): values for name, values in found.before.items()},
        {_full(top, name): values for name, values in found.after.items()},
        tuple(replace(item, group=_full(top, item.group)) for item in found.translated),
    )


def _full(top: str, name: str) -> str:
    return cgroup.below(top, name)


def _told(layout: Layout, item: Skipped) -> Skipped:
    """Return why a value was not set: the group may not be in the controller's hierarchy at all."""
    key = next((key for key in _keys() if key.name == item.key), None)
    hierarchy = layout.find(key.controller) if key else None
    if hierarchy is None or os.path.isdir(cgroup.join_path(hierarchy.mount, item.group)):
        return item
    return replace(item, why=f"the group is not in {hierarchy.mount}")


def targets(layout: Layout, groups: Sequence[Group]) -> frozenset[str]:
    """Return what the journal calls the values of groups, whether they have to be changed or not.

    The weight of an idle group is among them: it can only be put back when the group is idle no more.
    """
    found: set[str] = set()
    for group in groups:
        for name, value in group.values.items():
            found.update(target for key in _rows(name, value) for target in _files(layout, group, key))
        if group.values.get(_IDLE) == 1 and (hierarchy := layout.find("cpu")) is not None:
            directory = cgroup.join_path(hierarchy.mount, group.name)
            found.add(f"{directory}/{cgroup_keys.weight_file(hierarchy.version).name}")
    return frozenset(found)


def _rows(name: str, value: object) -> list[Key]:
    if name in cgroup_keys.BY_NAME:
        return [cgroup_keys.BY_NAME[name]]
    return [key for key, _value, _where in cgroup_devices.expand(name, value, name, block.whole_disk)]


def _files(layout: Layout, group: Group, key: Key) -> list[str]:
    hierarchy = layout.find(key.controller)
    if hierarchy is None:
        return []
    directory = cgroup.join_path(hierarchy.mount, group.name)
    paths = [(file, f"{directory}/{file.name}") for file in key.files(hierarchy.version)]
    return [cgroup_lines.target(path, file.line) if file.line else path for file, path in paths]
