# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What control groups have: directories, values, and the files to sample, all ancestors included."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cgroup_keys
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import Layout
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_tree import Tree


def _full(root: str, name: str) -> str:
    return f"{root}/{cgroup.check_name(name)}" if name else root


def paths(layout: Layout, root: str, name: str) -> dict[str, str]:
    """Return {controller: directory} of a group, for each controller that a workload's group is made in."""
    full = _full(root, name)
    return {item: layout.path(item, full) for item in cgroup.CONTROLLERS if layout.find(item)}


def values(layout: Layout, root: str, name: str) -> dict[str, cgroup_keys.Value]:
    """Return {option: value} of a group for every option that this kernel has; none when there is no such group."""
    tree = Tree()
    full = _full(root, name)
    found: dict[str, cgroup_keys.Value] = {}
    for key in cgroup_keys.KEYS:
        hierarchy = layout.find(key.controller)
        file = key.file(hierarchy.version) if hierarchy else None
        # Of the two options for one file, the one in the hierarchy's own unit is told.
        translated = hierarchy is not None and key.name == ("cpu_weight" if hierarchy.version == 1 else "cpu_shares")
        if hierarchy is None or file is None or translated:
            continue
        text = tree.real(f"{cgroup.join_path(hierarchy.mount, full)}/{file.name}")
        if text is not None:
            found[key.name] = file.parse(text)
    return found


def policy_files(layout: Layout, root: str, names: Iterable[str]) -> dict[str, str]:
    """Return {sample key: file} for every value of the groups and of all their ancestors.

    The key is the path below our root + "/" + file name; our root itself is "/file", ancestors are "../file" and so on
    (docs/architecture.md, Samples).
    """
    fulls: set[str] = {""}
    for name in names:
        parts = _full(root, name).split("/")
        fulls.update("/".join(parts[: count + 1]) for count in range(len(parts)))
    found: dict[str, str] = {}
    for full in sorted(fulls):
        shown = os.path.relpath(f"/{full}", f"/{root}")
        prefix = "" if shown == "." else shown
        for key in cgroup_keys.KEYS:
            hierarchy = layout.find(key.controller)
            file = key.file(hierarchy.version) if hierarchy else None
            if hierarchy is None or file is None:
                continue
            path = f"{cgroup.join_path(hierarchy.mount, full)}/{file.name}"
            if os.path.exists(path):
                found[f"{prefix}/{file.name}"] = path
    return dict(sorted(found.items()))


def policy_values(found: dict[str, str]) -> dict[str, str | None]:
    """Return the content of each file, without line end; None when it cannot be read (any more)."""
    read: dict[str, str | None] = {}
    for key, path in found.items():
        try:
            read[key] = Tree().real(path)
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
