# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that a parent and its children constrain in each other: cpusets, and CPU bandwidth.

Two passes keep every intermediate state legal: what grows is written from the top down, then what shrinks from the
bottom up.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cgroup_keys, cgroup_values
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import CgroupError, Hierarchy, Layout
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import WRITE, Setting, Step
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_tree import Tree
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_values import KernelFile

SET_KEYS = ("cpuset_mems", "cpuset_cpus")
# What a partition reads that has its CPUs; one without them adds why it is invalid.
_APART = ("root", "isolated")


@dataclass
class Passes:
    """Writes from the top down, and writes from the bottom up."""

    up: list[Step] = field(default_factory=list)
    down: list[Step] = field(default_factory=list)


def _set_file(name: str, version: int) -> KernelFile:
    file = cgroup_keys.BY_NAME[name].file(version)
    if file is None:
        raise CgroupError(f"cgroup key {name}: has no file on cgroup v{version}; report this as a defect")
    return file


def _top(tree: Tree, hierarchy: Hierarchy, file: KernelFile, places: Sequence[str]) -> tuple[int, ...]:
    """Return the set of the hierarchy's root.

    On v2 the root has only the effective one, which lacks what it has handed over to partitions. Those of our own
    groups are still ours to give.
    """
    suffix = "" if hierarchy.version == 1 else ".effective"
    numbers = set(_numbers(tree.real(f"{hierarchy.mount}/{file.name}{suffix}") or ""))
    for full in places if hierarchy.version == 2 else ():
        directory = cgroup.join_path(hierarchy.mount, full)
        if tree.real(f"{directory}/{cgroup_values.PARTITION}") in _APART:
            numbers |= set(_numbers(tree.real(f"{directory}/{file.name}") or ""))
    return tuple(sorted(numbers))


def fill(layout: Layout, tree: Tree, places: Sequence[str]) -> list[Step]:
    """Return the writes that give new (or still empty) v1 cpusets their parent's CPUs and memory nodes."""
    hierarchy = layout.find("cpuset")
    steps: list[Step] = []
    if hierarchy is None or hierarchy.version == 2:
        return steps
    for full in places:
        directory = cgroup.join_path(hierarchy.mount, full)
        for name in SET_KEYS:
            file = _set_file(name, 1)
            above = tree.text(os.path.dirname(directory), file, hierarchy.mount)
            if tree.text(directory, file, hierarchy.mount) == "" and above:
                tree.write(directory, file.name, above)
                steps.append(Step(WRITE, f"{directory}/{file.name}", above, "", file))
    return steps


def plan(layout: Layout, tree: Tree, places: Sequence[str], settings: Sequence[Setting]) -> Passes:
    """Return the writes that bring all cpusets about. Raises CgroupError for one outside its parent's."""
    passes = Passes()
    hierarchy = layout.find("cpuset")
    if hierarchy is not None:
        for name in SET_KEYS:
            wanted = {item.directory: item for item in settings if item.key.name == name}
            final = _final(hierarchy, name, tree, places, wanted)
            _write_sets(hierarchy, _set_file(name, hierarchy.version), tree, final, passes)
    return passes


def _final(
    hierarchy: Hierarchy, name: str, tree: Tree, places: Sequence[str], wanted: dict[str, Setting]
) -> dict[str, tuple[int, ...]]:
    """Return the set that each directory gets; () is v2's "as the parent"."""
    file = _set_file(name, hierarchy.version)
    final: dict[str, tuple[int, ...]] = {}
    effective = {hierarchy.mount: _top(tree, hierarchy, file, places)}
    for full in places:
        directory = cgroup.join_path(hierarchy.mount, full)
        present = tree.text(directory, file, hierarchy.mount)
        if present is None:
            continue
        above = effective[os.path.dirname(directory)]
        item = wanted.get(directory)
        inherits = hierarchy.version == 1 and (tree.is_new(directory) or tree.real(f"{directory}/{file.name}") == "")
        mine = _numbers(str(item.value)) if item else above if inherits else _numbers(present)
        if hierarchy.version == 1 and not mine:
            raise CgroupError(f"cgroup {full}: {name} is empty, which v1 does not allow; give at least one number")
        if not set(mine) <= set(above):
            raise CgroupError(
                f"cgroup {full}: {name} {quantity.format_cpu_list(mine)} is not within its parent's "
                f"{quantity.format_cpu_list(above)}; choose from those, or widen the parent"
            )
        final[directory] = mine
        effective[directory] = mine or above
    return final


@functools.lru_cache(maxsize=1024)
def _numbers(text: str) -> tuple[int, ...]:
    return quantity.parse_cpu_list(text)


def _write_sets(
    hierarchy: Hierarchy, file: KernelFile, tree: Tree, final: dict[str, tuple[int, ...]], passes: Passes
) -> None:
    for directory, numbers in final.items():
        present = _numbers(tree.text(directory, file, hierarchy.mount) or "")
        free = hierarchy.version == 2 or not present
        if set(numbers) != set(present) and (free or not set(numbers) <= set(present)):
            passes.up += _write_set(directory, file, tree, present, numbers if free else (*present, *numbers))
    for directory, numbers in reversed(list(final.items())):
        present = _numbers(tree.text(directory, file, hierarchy.mount) or "")
        if set(numbers) != set(present):
            passes.down += _write_set(directory, file, tree, present, numbers)


def _write_set(
    directory: str, file: KernelFile, tree: Tree, present: Sequence[int], numbers: Sequence[int]
) -> list[Step]:
    text = quantity.format_cpu_list(numbers)
    tree.write(directory, file.name, text)
    return [Step(WRITE, f"{directory}/{file.name}", text, quantity.format_cpu_list(present), file)]


def plan_bandwidth(tree: Tree, settings: Sequence[Setting]) -> Passes:
    """Return the writes of quotas, periods and bursts. Raises CgroupError for a burst above the quota."""
    passes = Passes()
    bundles: dict[str, dict[str, Setting]] = {}
    for item in settings:
        bundles.setdefault(item.directory, {})[item.key.name] = item
    for items in bundles.values():
        old = _ratio(tree, items, wanted=False)
        new = _ratio(tree, items, wanted=True)
        _check_burst(tree, items)
        steps = _merge(_bundle(tree, items))
        if new < old:
            passes.down[:0] = steps
        else:
            passes.up += steps
    return passes


def _figure(tree: Tree, items: dict[str, Setting], name: str, wanted: bool) -> int:
    """Return a value of a bundle, read from the kernel when the bundle doesn't set it."""
    if name in items:
        return int(items[name].wanted(tree) if wanted else items[name].current(tree))
    item = next(iter(items.values()))
    file = cgroup_keys.BY_NAME[name].file(item.hierarchy.version)
    text = tree.text(item.directory, file, item.hierarchy.mount) if file else None
    return int(file.parse(text)) if file and text is not None else 0


def _ratio(tree: Tree, items: dict[str, Setting], wanted: bool) -> Fraction:
    quota = _figure(tree, items, "cpu_quota_us", wanted)
    period = _figure(tree, items, "cpu_period_us", wanted)
    no_limit = Fraction(2**62)
    return no_limit if quota == cgroup_values.NO_LIMIT or period == 0 else Fraction(quota, period)


def _check_burst(tree: Tree, items: dict[str, Setting]) -> None:
    quota, burst = (_figure(tree, items, name, wanted=True) for name in ("cpu_quota_us", "cpu_burst_us"))
    if quota != cgroup_values.NO_LIMIT and burst > quota:
        group = next(iter(items.values())).directory
        raise CgroupError(
            f"{group}: cpu_burst_us {burst} is above cpu_quota_us {quota}, which the kernel refuses; lower the burst"
        )


def _bundle(tree: Tree, items: dict[str, Setting]) -> list[Step]:
    """Return the writes of one group: burst before a falling quota, after a rising one; period while unlimited.

    When period and quota both fall or rise, no order of the two keeps the share of a CPU between the old and the new
    one; without a quota a group has its parent's, which is always legal.
    """
    burst = items.get("cpu_burst_us")
    lower_first = burst is not None and int(burst.wanted(tree)) < int(burst.current(tree))
    steps = burst.steps(tree) if burst is not None and lower_first else []
    period, quota = items.get("cpu_period_us"), items.get("cpu_quota_us")
    if period is not None and period.wanted(tree) != period.current(tree):
        limit = quota or _quota_now(tree, period)
        if limit.current(tree) != cgroup_values.NO_LIMIT:
            lifted = replace(limit, value=cgroup_values.NO_LIMIT)
            back = limit if quota else replace(limit, value=limit.current(tree))
            steps += [*lifted.steps(tree), *period.steps(tree), *back.steps(tree)]
        else:
            steps += period.steps(tree)
    steps += quota.steps(tree) if quota is not None else []
    return steps + (burst.steps(tree) if burst is not None else [])


def _quota_now(tree: Tree, near: Setting) -> Setting:
    key = cgroup_keys.BY_NAME["cpu_quota_us"]
    return replace(near, key=key, file=key.file(near.hierarchy.version) or near.file)


def _merge(steps: Sequence[Step]) -> list[Step]:
    """Join writes of the same file that follow each other (cpu.max holds quota and period)."""
    merged: list[Step] = []
    for step in steps:
        if merged and merged[-1].path == step.path:
            merged[-1] = replace(merged[-1], text=step.text)
        else:
            merged.append(step)
    return merged
