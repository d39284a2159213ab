# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring back values that parents and children constrain in each other, where one by one the kernel refuses them.

The journal keeps the first value of each file, so after several changes going back entry by entry can pass through
states that are illegal: a quota above the parent's, a cpuset outside of it, a burst above its quota.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cgroup,
    cgroup_apply,
    cgroup_keys,
    cgroup_plan,
    procfs,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import CgroupError, Hierarchy, Layout
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import Group
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_values import Option

_PHASES = ("bandwidth", "cpuset", "level", "partition")


def together(values: Iterable[tuple[str, str]], proc_root: str = procfs.PROC_ROOT) -> None:
    """Write (file, text) pairs of control groups in an order that is legal at every moment, as far as possible.

    Other files are left alone. Nothing is raised: who asked looks at each file afterwards.
    """
    try:
        layout = cgroup.detect(proc_root)
    except CgroupError:
        return
    for root, groups in _groups(layout, values).items():
        try:
            cgroup_apply.carry_out(cgroup_plan.plan_values(layout, root, groups))
        except CgroupError:
            continue


def _groups(layout: Layout, values: Iterable[tuple[str, str]]) -> dict[str, list[Group]]:
    """Return what is wanted of groups, by the first part of their path."""
    wanted: dict[str, dict[str, Option]] = {}
    for path, text in values:
        for hierarchy in layout.used():
            full, name = os.path.split(path[len(hierarchy.mount) + 1 :])
            if path.startswith(f"{hierarchy.mount}/") and full:
                wanted.setdefault(full, {}).update(_options(hierarchy, name, text))
    found: dict[str, list[Group]] = {}
    for full, options in wanted.items():
        root, _slash, name = full.partition("/")
        if options:
            found.setdefault(root, []).append(Group(name, values=options))
    return found


def _options(hierarchy: Hierarchy, name: str, text: str) -> dict[str, Option]:
    """Return the options that a file's text stands for; none for values that nothing constrains."""
    found: dict[str, Option] = {}
    for key in cgroup_keys.KEYS:
        file = key.file(hierarchy.version)
        if file is None or file.name != name or key.phase not in _PHASES or (not text and hierarchy.version == 1):
            continue
        try:
            found[key.name] = file.parse(text)
        except CgroupError:
            continue
    return found
