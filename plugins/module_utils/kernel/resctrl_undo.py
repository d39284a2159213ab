# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How journal entries of resctrl and of mounts are taken back. A handler accepts that there is nothing to undo.

resctrl forgets all groups when it is unmounted and when the machine is restarted: entries of an earlier boot need
nothing, and what is mounted is only unmounted when no group of others is in it.
"""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files
from ansible_collections.colocation.testbed.plugins.module_utils.journal import Entry, Outcome
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    mounts,
    procfs,
    resctrl,
    resctrl_write,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl import ResctrlError
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl_steps import Move, from_json, is_made

UNMOUNT_TIMEOUT_S = 30.0
# How the journal names a line that we added to fstab: this, and the mount point.
FSTAB = "fstab:"


def undo_resctrl(entry: Entry, check: bool, proc_root: str = procfs.PROC_ROOT) -> Outcome:
    """Remove a group that we made; put back values and CPUs of one that was there; move a thread back."""
    previous = entry.previous
    if not isinstance(previous, Mapping) or "boot_id" not in previous:
        return Outcome("failed", f"{entry.target}: what was there was not recorded; set it by hand")
    if previous["boot_id"] != procfs.read_boot_id(proc_root):
        return Outcome("undone", f"{entry.target}: gone, since the machine was restarted")
    head, tasks, name = entry.target.rpartition("/tasks:")
    if tasks:
        return _undo_task(head, name, previous, check, proc_root)
    if not os.path.isdir(entry.target):
        return Outcome("undone", f"{entry.target}: not there")
    mount_point = _mount_point(entry.target, proc_root)
    if mount_point is None:
        return Outcome("undone", f"{entry.target}: resctrl is not mounted any more, and its groups went with it")
    if is_made(previous, previous["boot_id"]):
        if not check:
            resctrl_write.remove(mount_point, entry.target)
        return Outcome("undone", f"{entry.target}: removed")
    return _undo_values(entry, previous, mount_point, check)


def _mount_point(directory: str, proc_root: str) -> str | None:
    """Return the mounted resctrl in which a group is."""
    points = [item.point for item in mounts.read(proc_root) if item.fs_type in resctrl.FS_TYPES]
    return next((point for point in points if f"{directory}/".startswith(f"{point}/")), None)


def _undo_values(entry: Entry, previous: Any, mount_point: str, check: bool) -> Outcome:
    saved = from_json(entry.target, previous)
    if check:
        return Outcome("undone", f"{entry.target}: put back")
    changed = resctrl_write.restore_lines(mount_point, saved)
    changed = resctrl_write.restore_cpus(mount_point, saved) or changed
    return Outcome("undone", f"{entry.target}: {'put back' if changed else 'is as it was'}")


def _undo_task(mount_point: str, name: str, previous: Any, check: bool, proc_root: str) -> Outcome:
    tid, _colon, ticks = name.partition(":")
    if not tid.isdigit() or not ticks.isdigit() or not isinstance(previous.get("group"), str):
        return Outcome("failed", f"thread {name}: its entry is damaged; move it by hand")
    where = previous["group"]
    moved = check or resctrl_write.move_back(mount_point, Move(int(tid), int(ticks), where), proc_root)
    return Outcome(
        "undone", f"thread {tid}: {f'moved back to {where}' if moved else 'has ended, or its group is gone'}"
    )


def undo_mount(
    entry: Entry,
    check: bool,
    proc_root: str = procfs.PROC_ROOT,
    run: Callable[..., commands.Result] = commands.run,
) -> Outcome:
    """Unmount what we mounted, unless groups of others are in a resctrl there: they would be lost.

    Or take our line out of fstab.
    """
    if entry.target.startswith(FSTAB):
        return _undo_fstab(entry.previous, check)
    found = mounts.at(entry.target, proc_root)
    if found is None:
        return Outcome("undone", f"{entry.target}: not mounted")
    if not isinstance(entry.previous, Mapping) or entry.previous.get("fs_type") != found.fs_type:
        return Outcome(
            "failed", f"{entry.target}: something else ({found.fs_type}) is mounted there now; unmount it by hand"
        )
    foreign = foreign_groups(entry.target, proc_root)
    if foreign and not check:
        return Outcome(
            "failed", f"{entry.target}: {', '.join(foreign[:5])} in it, made by others; remove and undo again"
        )
    if not check:
        run(["umount", entry.target], timeout_s=UNMOUNT_TIMEOUT_S)
    return Outcome("undone", f"{entry.target}: unmounted")


def _undo_fstab(previous: Any, check: bool) -> Outcome:
    """Take exactly the text out that we had added; what others have added since stays."""
    raw = previous if isinstance(previous, Mapping) else {}
    path, appended = raw.get("path"), raw.get("appended")
    if not isinstance(path, str) or not isinstance(appended, str):
        return Outcome("failed", "fstab: the line that was added was not recorded; remove it by hand")
    head, found, tail = (files.read_text_or_none(path) or "").rpartition(appended)
    if not found:
        return Outcome("undone", f"{path}: our line is not there any more")
    if not check and not head + tail and raw.get("created") is True:
        files.restore(path, None)
    elif not check:
        rewrite(path, head + tail)
    return Outcome("undone", f"{path}: our line removed")


def rewrite(path: str, text: str) -> None:
    """Replace a file that keeps its mode and owner; a new one is readable by all. Raises FilesError."""
    mode, owner = 0o644, None
    if os.path.exists(path):
        found = os.stat(path)
        mode, owner = stat.S_IMODE(found.st_mode), (found.st_uid, found.st_gid)
    files.write_atomic(path, text, mode, owner)


def foreign_groups(mount_point: str, proc_root: str = procfs.PROC_ROOT) -> list[str]:
    """Return the groups and monitoring groups in a mounted resctrl, none where something else is mounted."""
    try:
        state = resctrl.read_state(mount_point, proc_root)
    except ResctrlError:
        state = None
    if state is None:
        return []
    found = [f"group {name}" for name in state.groups if name]
    return found + [f"monitoring group {posixpath.basename(name)}" for name in state.root.monitors]
