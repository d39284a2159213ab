# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Single writes to resctrl: what was wrote, what is read afterwards, and what the kernel says when it refuses."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping

from ansible_collections.colocation.testbed.plugins.module_utils import files, quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import procfs, resctrl
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl import ResctrlError
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl_steps import Move, Saved

_HINTS = {
    errno.EACCES: "run as root",
    errno.EPERM: "run as root",
    errno.EROFS: "resctrl is mounted read-only; remount it",
    errno.ENOSPC: "no CLOSID or RMID is free; remove groups, or ask for fewer",
    errno.EEXIST: "someone else made it meanwhile; run again",
    errno.ENOENT: "the group is gone; someone else removed it, run again",
    errno.ENODEV: "the group is gone; someone else removed it, run again",
    errno.EBUSY: "the kernel is still counting what earlier groups have in the cache; run again in a moment",
}


def explained(mount_point: str, path: str, action: str, exc: OSError) -> ResctrlError:
    """Return the error for something that the kernel refused, with its own words from info/last_cmd_status."""
    said = resctrl.last_status(mount_point)
    hint = _HINTS.get(exc.errno or 0, "see the kernel log")
    return ResctrlError(f"{path}: {action} failed: {exc.strerror} ({f'the kernel says: {said}' if said else hint})")


def write(mount_point: str, path: str, text: str) -> None:
    """Write a text to a file in one call. Raises ResctrlError; an OSError is its cause's cause."""
    try:
        files.write_kernel(path, text)
    except files.FilesError as exc:
        if isinstance(exc.__cause__, OSError):
            raise explained(mount_point, path, f"writing {text!r}", exc.__cause__) from exc.__cause__
        raise ResctrlError(str(exc)) from exc


def write_lines(mount_point: str, directory: str, text: str) -> None:
    """Write lines of schemata, which the kernel takes all or none, and read them back. Raises ResctrlError."""
    path = f"{directory}/schemata"
    write(mount_point, path, text)
    found = {line.name: line for line in resctrl.parse_schemata(resctrl.read(path))}
    for line in resctrl.parse_schemata(text):
        seen = found.get(line.name)
        if seen is None or any((seen.values or {}).get(cache) != value for cache, value in (line.values or {}).items()):
            raise ResctrlError(
                f"{path}: wrote {line.text!r}, read {seen.text.strip() if seen else ''!r}; the kernel did not take it"
            )


def write_cpus(mount_point: str, directory: str, text: str) -> None:
    """Write a CPU list, empty for none, and read it back. Raises ResctrlError."""
    # An empty write would not reach the kernel.
    write(mount_point, f"{directory}/cpus_list", f"{text}\n")
    found = quantity.format_cpu_list(resctrl.read_cpus(directory))
    if found != text:
        raise ResctrlError(f"{directory}/cpus_list: wrote {text!r}, read {found!r}; the kernel did not take the value")


def make(mount_point: str, directory: str) -> None:
    """Make a group. Raises ResctrlError."""
    try:
        os.mkdir(directory, 0o755)
    except OSError as exc:
        raise explained(mount_point, directory, "making the group", exc) from exc


def remove(mount_point: str, directory: str) -> None:
    """Remove a group, whose threads and CPUs go to the root group; one that is gone is fine. Raises ResctrlError."""
    try:
        os.rmdir(directory)
    except FileNotFoundError:
        return
    except OSError as exc:
        raise explained(mount_point, directory, "removing the group", exc) from exc


def move(mount_point: str, directory: str, tid: int) -> bool:
    """Move a thread into a group; False where it has ended. Raises ResctrlError.

    A monitoring group only takes threads of its control group, so that is written first.
    """
    control, monitoring, _name = directory.partition("/mon_groups/")
    for place in [control, directory] if monitoring else [directory]:
        try:
            write(mount_point, f"{place}/tasks", str(tid))
        except ResctrlError as exc:
            if isinstance(exc.__cause__, ProcessLookupError):
                return False
            raise
    return True


def move_back(mount_point: str, item: Move, proc_root: str = procfs.PROC_ROOT) -> bool:
    """Move exactly this thread to where it was; False where it has ended or its group is gone. Raises ResctrlError."""
    stat = procfs.read_stat(item.tid, proc_root)
    if stat is None or stat.start_ticks != item.start_ticks or not os.path.isdir(item.source):
        return False
    return move(mount_point, item.source, item.tid)


def restore_lines(mount_point: str, saved: Saved) -> bool:
    """Write the lines of schemata that differ from what was saved; tells whether any did. Raises ResctrlError."""
    present = {line.name: line.values for line in _lines(saved.directory)}
    wanted = [line for text in saved.lines.values() for line in resctrl.parse_schemata(text)]
    changed = [line.text for line in wanted if line.name in present and present[line.name] != line.values]
    if changed:
        write_lines(mount_point, saved.directory, "".join(f"{text}\n" for text in changed))
    return bool(changed)


def _lines(directory: str) -> tuple[resctrl.Line, ...]:
    return resctrl.parse_schemata(resctrl.read_optional(f"{directory}/schemata") or "")


def restore_cpus(mount_point: str, saved: Saved) -> bool:
    """Give a group and its monitoring groups the CPUs that were saved; tells whether any differed. Raises ResctrlError.

    The root group cannot lose CPUs; it has them back when the other groups are as they were.
    """
    changed = False
    if saved.directory != mount_point:
        changed = _restore_list(mount_point, saved.directory, saved.cpus)
    return _restore_monitors(mount_point, saved.directory, saved.monitors) or changed


def _restore_monitors(mount_point: str, directory: str, monitors: Mapping[str, str]) -> bool:
    places = [(f"{directory}/mon_groups/{name}", text) for name, text in monitors.items()]
    results = [_restore_list(mount_point, place, text) for place, text in places if os.path.isdir(place)]
    return any(results)


def _restore_list(mount_point: str, directory: str, text: str) -> bool:
    if quantity.format_cpu_list(resctrl.read_cpus(directory)) == text:
        return False
    write_cpus(mount_point, directory, text)
    return True
