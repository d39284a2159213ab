# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is true of control groups: values, what ancestors leave of them, tasks, pressure; and how groups are found."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cgroup,
    cgroup_keys,
    cgroup_report,
    group_counters,
    psi,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import CgroupError, Layout
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_tree import Tree
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_values import NO_LIMIT

# Limits of which the smallest among a group and its ancestors counts.
_SMALLEST = ("memory_max_bytes", "memory_swap_max_bytes", "pids_max")
_EFFECTIVE_SETS = {
    1: {"cpuset_cpus": "cpuset.effective_cpus", "cpuset_mems": "cpuset.effective_mems"},
    2: {"cpuset_cpus": "cpuset.cpus.effective", "cpuset_mems": "cpuset.mems.effective"},
}
_PATTERN = re.compile(r"[A-Za-z0-9_@:.*?\[\]!-]+\Z")


def describe(layout: Layout, full: str, tree: Tree) -> dict[str, Any]:
    """Return everything about a group (path below the hierarchies). Raises CgroupError when files are unreadable."""
    paths = cgroup_report.directories(layout, full)
    return {
        "exists": all(os.path.isdir(path) for path in paths.values()),
        "paths": paths,
        "values": cgroup_report.values(layout, full, tree),
        "effective": effective(layout, full, tree),
        "pids": cgroup.group_pids(layout, full),
        "tasks": _tasks(layout, full, tree),
        "pressure": pressure(layout, full),
    }


def _ancestors(full: str) -> list[str]:
    """Return a group's path and those of its ancestors, the hierarchy's root last."""
    parts = full.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts), -1, -1)]


def _value(layout: Layout, name: str, full: str, tree: Tree) -> int | None:
    key = cgroup_keys.BY_NAME[name]
    hierarchy = layout.find(key.controller)
    file = key.file(hierarchy.version) if hierarchy else None
    if hierarchy is None or file is None:
        return None
    text = tree.real(f"{cgroup.join_path(hierarchy.mount, full)}/{file.name}")
    return None if text is None else int(file.parse(text))


def effective(layout: Layout, full: str, tree: Tree) -> dict[str, Any]:
    """Return what a group has once its ancestors are counted in; nothing for a group that isn't there.

    CPUs and memory nodes as the kernel says; of limits the smallest (-1: none); ``cpu_limit_milli`` is the smallest
    quota·1000/period, in thousandths of a CPU, rounded down.
    """
    found: dict[str, Any] = {}
    cpuset = layout.find("cpuset")
    if cpuset is not None:
        directory = cgroup.join_path(cpuset.mount, full)
        for name, file in _EFFECTIVE_SETS[cpuset.version].items():
            text = tree.real(f"{directory}/{file}")
            found.update({} if text is None else {name: text})
    for name in _SMALLEST:
        if _value(layout, name, full, tree) is not None:
            limits = [_value(layout, name, place, tree) for place in _ancestors(full)]
            found[name] = min((limit for limit in limits if limit not in (None, NO_LIMIT)), default=NO_LIMIT)
    if _value(layout, "cpu_quota_us", full, tree) is not None:
        found["cpu_limit_milli"] = _cpu_limit_milli(layout, full, tree)
    return found


def _cpu_limit_milli(layout: Layout, full: str, tree: Tree) -> int:
    shares = []
    for place in _ancestors(full):
        quota = _value(layout, "cpu_quota_us", place, tree)
        period = _value(layout, "cpu_period_us", place, tree)
        if quota is not None and quota != NO_LIMIT and period:
            shares.append(Fraction(quota * 1000, period))
    return int(min(shares)) if shares else NO_LIMIT


def _tasks(layout: Layout, full: str, tree: Tree) -> int | None:
    """Return how many threads are in a group itself, None where there is no such group."""
    cpu = layout.hierarchy("cpu")
    directory = cgroup.join_path(cpu.mount, full)
    text = tree.real(f"{directory}/{'tasks' if cpu.version == 1 else 'cgroup.threads'}")
    return None if text is None else len(group_counters.parse_tids(text.encode()) or [])


def pressure(layout: Layout, full: str) -> dict[str, dict[str, int | None] | None]:
    """Return for each resource how long tasks of a group have waited, None where the kernel doesn't tell.

    On v1 only Alibaba's kernels do, beside cpuacct. On hybrid hosts the group is not in the v2 hierarchy.
    """
    cpu = layout.find("cpuacct")
    found: dict[str, dict[str, int | None] | None] = {}
    for resource in psi.RESOURCES:
        path = f"{cgroup.join_path(cpu.mount, full)}/{resource}.pressure" if cpu else ""
        try:
            text = files.read_kernel(path) if cpu else None
            found[resource] = psi.parse(text) if text else None
        except (files.FilesError, psi.PsiError):
            # The file is there but refuses to be read where pressure was switched off at boot (psi=0).
            found[resource] = None
    return found


def below(layout: Layout, root: str) -> list[str]:
    """Return the names of all groups below a root in any hierarchy, parents first; "" is the root itself."""
    found: set[str] = set()
    for hierarchy in layout.used():
        top = cgroup.join_path(hierarchy.mount, root)
        found.update(os.path.relpath(place, top) for place, _names, _files in os.walk(top))
    return sorted("" if name == "." else name for name in found)


def matching(layout: Layout, patterns: Iterable[str]) -> list[str]:
    """Return the paths below the hierarchies that match shell patterns; ``**`` is any number of parts.

    Raises CgroupError for a pattern that could leave the hierarchy.
    """
    found: set[str] = set()
    for pattern in patterns:
        if not all(_PATTERN.match(part) and part not in (".", "..") for part in pattern.split("/")):
            raise CgroupError(
                f"cgroup pattern {pattern!r}: not allowed; give a path below the hierarchy of letters, digits, "
                "_ @ : . - and * ? [ ], parts joined by '/', without '..' and without a leading '/'"
            )
        for hierarchy in layout.used():
            places = glob.glob(f"{glob.escape(hierarchy.mount)}/{pattern}/", recursive=True)
            names = (
                os.path.relpath(place, hierarchy.mount) for place in places if not os.path.islink(place.rstrip("/"))
            )
            found.update(name for name in names if name != ".")
    return sorted(found)
