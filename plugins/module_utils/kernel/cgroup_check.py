# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with wanted groups on any host, all of it at once: names, and values out of the kernel's range."""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Callable

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cgroup_devices, cgroup_keys
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import CgroupError
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_keys import Key
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import Group
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_values import Option, Value

OPTIONS = (*cgroup_keys.BY_NAME, *cgroup_devices.FIELDS)


def single_values(
    name: str, value: Option, shown: str, resolve: Callable[[str], str]
) -> Iterator[tuple[Key, Value, str]]:
    """Yield each single value of an option with its row and how it is named in errors. Raises CgroupError."""
    key = cgroup_keys.BY_NAME.get(name)
    if key is not None:
        yield key, value, shown
    elif name in cgroup_devices.FIELDS:
        yield from cgroup_devices.expand(name, value, shown, resolve)
    else:
        raise CgroupError(f"{shown}: is not known; write one of {', '.join(sorted(OPTIONS))}")


def shown(root: str, group: Group, name: str) -> str:
    """Return how an option of a group is named in errors."""
    return f"cgroup {root}/{group.name}: {name}" if group.name else f"cgroup {root}: {name}"


def refuse_files(hierarchy: cgroup.Hierarchy, full: str) -> None:
    """Raise CgroupError for a group that would be called like a file that the kernel makes in every group."""
    place = hierarchy.mount
    known = _value_files(hierarchy.version) | _files(hierarchy.mount)
    for name in full.split("/"):
        if name in known or name in _files(place):
            raise CgroupError(f"cgroup {full}: the kernel has a file called {name} in its groups; choose another name")
        place = f"{place}/{name}"


@functools.cache
def _value_files(version: int) -> frozenset[str]:
    return frozenset(file.name for key in cgroup_keys.KEYS for file in key.files(version))


@functools.lru_cache(maxsize=256)
def _files(place: str) -> frozenset[str]:
    try:
        with os.scandir(place) as found:
            return frozenset(item.name for item in found if not item.is_dir(follow_symlinks=False))
    except OSError:
        return frozenset()


def check(root: str, groups: Sequence[Group], resolve: Callable[[str], str]) -> None:
    """Raise CgroupError with one sentence for each thing that is wrong; ``resolve`` turns a disk into "8:0"."""
    if not root:
        raise CgroupError("cgroup root '': is empty; give a path below the hierarchy such as colocation-testbed")
    cgroup.check_name(root)
    counted = Counter(group.name for group in groups)
    problems = [
        f"cgroup {name!r}: is given twice; give all its values in one entry"
        for name, count in counted.items()
        if count > 1
    ]
    problems += [text for group in groups for text in _problems(root, group, resolve)]
    if problems:
        raise CgroupError("; ".join(problems))


def _problems(root: str, group: Group, resolve: Callable[[str], str]) -> Iterator[str]:
    try:
        cgroup.below(root, group.name)
    except CgroupError as exc:
        yield str(exc)
    if group.state == "absent":
        yield from _unwanted(root, group)
        return
    for name, value in group.values.items():
        try:
            for key, part, where in single_values(name, value, shown(root, group, name), resolve):
                yield from _out_of_range(key, part, where)
        except CgroupError as exc:
            yield str(exc)


def _unwanted(root: str, group: Group) -> Iterator[str]:
    """Yield a sentence about what is asked of a group that shall not exist."""
    members = [name for name in ("pids", "units", "process_names") if getattr(group, name)]
    given = [*group.values, *members]
    if given:
        where = cgroup.below(root, group.name) if group.name else root
        yield f"cgroup {where}: state is absent, so {', '.join(given)} would do nothing; leave out one of the two"


def _out_of_range(key: Key, value: Value, where: str) -> Iterator[str]:
    try:
        key.check(value, where)
    except CgroupError as exc:
        yield str(exc)
