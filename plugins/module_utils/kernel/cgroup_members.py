# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which processes are meant by systemd units and by programs' names (systemctl(1), proc(5))."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Callable

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, procfs
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import CgroupError, Layout
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import Group

# The kernel keeps 15 bytes of a program's name (TASK_COMM_LEN).
COMM_LENGTH = 15
_UNIT = re.compile(r"[A-Za-z0-9:_.@\\][A-Za-z0-9:_.@\\-]*\.(?:service|scope|slice|socket|mount|swap)\Z")
_PROPERTIES = "--property=LoadState,ControlGroup"
_TIMEOUT_S = 20.0

Paths = Mapping[int, Mapping[str, str]]
"""The groups of every process, as procfs.read_group_paths() returns them, by process number."""


def resolve(
    groups: Sequence[Group],
    layout: Layout,
    root: str,
    proc_root: str = procfs.PROC_ROOT,
    run: Callable[..., commands.Result] = commands.run,
) -> list[Group]:
    """Return the groups with the processes of their units and programs as ``found``.

    A unit's processes are those in its control group and below; a program's those of this exact name that are in
    ``root`` or below already, so that other hosts on the same machine keep theirs. Raises CgroupError for names that
    cannot be, units that systemd does not know, and where there is no systemd.
    """
    units = list(dict.fromkeys(unit for group in groups for unit in group.units))
    names = {name for group in groups for name in group.process_names}
    _check(units, names)
    if not units and not names:
        return list(groups)
    control_groups = _control_groups(units, run) if units else {}
    paths = _all_paths(proc_root)
    of_unit = {unit: _below(control_groups[unit], paths) for unit in units}
    of_name = _named(names, _own(layout, root, paths), proc_root) if names else {}
    found: list[Group] = []
    for group in groups:
        pids = [pid for unit in group.units for pid in of_unit[unit]]
        pids += [pid for name in group.process_names for pid in of_name[name]]
        found.append(replace(group, found=tuple(dict.fromkeys(pids))))
    return found


def _check(units: Iterable[str], names: Iterable[str]) -> None:
    for unit in units:
        if not _UNIT.match(unit):
            raise CgroupError(f"unit {unit!r}: is not the full name of a unit; write one such as nginx.service")
    for name in names:
        if not name or len(name.encode()) > COMM_LENGTH or "\n" in name or "/" in name:
            raise CgroupError(
                f"process name {name!r}: is not what the kernel keeps, the first {COMM_LENGTH} bytes of a program's "
                "name; write what /proc/<pid>/comm says"
            )


def _control_groups(units: Sequence[str], run: Callable[..., commands.Result]) -> dict[str, str]:
    """Return {unit: path of its control group}; "" where it has no processes."""
    try:
        shown = run(["systemctl", "show", _PROPERTIES, "--", *units], timeout_s=_TIMEOUT_S)
    except commands.CommandError as exc:
        raise CgroupError(f"units {', '.join(units)}: {exc}; on a host without systemd give pids instead") from exc
    blocks = [
        dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in shown.stdout.split("\n\n")
    ]
    if len(blocks) != len(units):
        raise CgroupError(f"units {', '.join(units)}: systemctl answered for {len(blocks)} of them; run it by hand")
    for unit, block in zip(units, blocks):
        if block.get("LoadState") != "loaded":
            raise CgroupError(f"unit {unit}: is {block.get('LoadState') or 'not known'} here; correct its name")
    return {unit: block.get("ControlGroup", "") for unit, block in zip(units, blocks)}


def _all_paths(proc_root: str) -> dict[int, dict[str, str]]:
    pids = (int(name) for name in os.listdir(proc_root) if name.isdigit())
    return {pid: procfs.read_group_paths(pid, proc_root) for pid in pids}


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top.rstrip('/')}/")


def _below(control_group: str, paths: Paths) -> list[int]:
    """Return the processes in systemd's hierarchy (named on v1 and hybrid hosts, else v2) at a path or below."""
    if control_group in ("", "/"):
        return []
    where = ((pid, found.get("name=systemd", found.get("", ""))) for pid, found in paths.items())
    return sorted(pid for pid, path in where if _is_below(path, control_group))


def _own(layout: Layout, root: str, paths: Paths) -> list[int]:
    """Return the processes that are in our root or below in some hierarchy."""
    used = layout.used()
    return sorted(
        pid for pid, found in paths.items() if any(_is_below(cgroup.path_in(found, item), f"/{root}") for item in used)
    )


def _named(names: Iterable[str], pids: Iterable[int], proc_root: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {name: [] for name in names}
    for pid in pids:
        stat = procfs.read_stat(pid, proc_root)
        if stat is not None and not stat.dead and stat.comm in found:
            found[stat.comm].append(pid)
    return found
