# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out planned steps on the kernel: journalled first, read back after each write, rolled back as a whole."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from ansible_collections.colocation.testbed.plugins.module_utils import files, journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import CgroupError
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import (
    ENABLE,
    KEEP,
    MAKE,
    MOVE,
    REMOVE,
    WRITE,
    Step,
)

_HINTS = {
    ("cgroup.subtree_control", errno.EBUSY): "on v2 a group with child groups holds no processes; move them to a child",
    ("cgroup.subtree_control", errno.ENOENT): "the controller is not enabled above; delegate it to this group",
    ("cpu.shares", errno.EINVAL): "the group's cpu.idle is 1, or the value is outside 2..262144",
    ("cpu.weight", errno.EINVAL): "the group's cpu.idle is 1, or the value is outside 1..10000",
    ("cpu.cfs_quota_us", errno.EINVAL): "below 1000, below the burst, or a larger share of a CPU than the parent's",
    ("cpu.cfs_period_us", errno.EINVAL): "outside 1000..1000000, or a larger share of a CPU than the parent's",
    ("cpu.max", errno.EINVAL): "quota below 1000, period outside 1000..1000000, or quota below cpu.max.burst",
    ("cpu.cfs_burst_us", errno.EINVAL): "the burst is above the quota",
    ("cpu.max.burst", errno.EINVAL): "the burst is above the quota",
    ("cpuset.cpus", errno.EINVAL): "a CPU is offline or does not exist",
    ("cpuset.cpus", errno.EACCES): "not within the parent's CPUs",
    ("cpuset.cpus", errno.EBUSY): "a child group has CPUs that would be taken away",
    ("cpuset.mems", errno.EACCES): "not within the parent's memory nodes",
    ("memory.limit_in_bytes", errno.EBUSY): "more is in use, or the limit of memory+swap is lower",
    ("cgroup.procs", errno.ESRCH): "the process has ended",
    ("cgroup.procs", errno.ENOSPC): "the group's cpuset is empty",
    ("cgroup.procs", errno.EINVAL): "kernel threads cannot be moved",
    ("cgroup.procs", errno.EBUSY): "on v2 a group with child groups holds no processes; choose a child",
}
_GENERAL_HINTS = {
    errno.EROFS: "the hierarchy is mounted read-only; remount it",
    errno.EACCES: "run as root",
    errno.EPERM: "run as root, in a group that is delegated to this user",
    errno.EEXIST: "someone else made it meanwhile; run again",
    errno.ENOENT: "the group or this file is gone; someone else removed it, run again",
    errno.ENODEV: "the group is gone; someone else removed it, run again",
}


def _explained(path: str, action: str, exc: OSError) -> CgroupError:
    number = exc.errno or 0
    hint = _HINTS.get((os.path.basename(path), number)) or _GENERAL_HINTS.get(number) or "see the kernel log"
    return CgroupError(f"{path}: {action} failed: {exc.strerror} ({hint})")


def _write(path: str, text: str) -> None:
    try:
        files.write_kernel(path, text)
    except files.FilesError as exc:
        if isinstance(exc.__cause__, OSError):
            raise _explained(path, f"writing {text!r}", exc.__cause__) from exc
        raise CgroupError(str(exc)) from exc


def _read(path: str) -> str:
    try:
        return files.read_text(path).strip()
    except files.FilesError as exc:
        raise CgroupError(str(exc)) from exc


def _write_checked(step: Step, text: str) -> None:
    _write(step.path, text)
    found = _read(step.path)
    same = found == text if step.file is None else step.file.parse(found) == step.file.parse(text)
    if not same:
        raise CgroupError(f"{step.path}: wrote {text!r}, read {found!r}; the kernel did not take the value")


def _enable(step: Step) -> None:
    _write(step.path, step.text)
    found = _read(step.path).split()
    missing = [word[1:] for word in step.text.split() if word[1:] not in found]
    if missing:
        raise CgroupError(f"{step.path}: wrote {step.text!r}, read {' '.join(found)!r}; {missing[0]} is not enabled")


def _move(step: Step) -> None:
    _write(f"{step.path}/cgroup.procs", step.text)
    if int(step.text) not in cgroup.read_pids(step.path):
        raise CgroupError(f"{step.path}/cgroup.procs: wrote {step.text}, it is not in there; the process has ended")


def _change_directory(step: Step) -> None:
    try:
        if step.kind == MAKE:
            os.mkdir(step.path, 0o755)
        else:
            os.rmdir(step.path)
    except OSError as exc:
        raise _explained(step.path, "making the group" if step.kind == MAKE else "removing the group", exc) from exc


def _do(step: Step) -> None:
    if step.kind == WRITE:
        _write_checked(step, step.text)
    elif step.kind == ENABLE:
        _enable(step)
    elif step.kind == MOVE:
        _move(step)
    elif step.kind in (MAKE, REMOVE):
        _change_directory(step)


def _undo(step: Step) -> None:
    """Take one step back; a group that is gone needs nothing."""
    if step.kind == MAKE:
        if os.path.isdir(step.path):
            os.rmdir(step.path)
    elif step.kind == REMOVE:
        os.mkdir(step.path, 0o755)
        for name, text in step.saved:
            _write(f"{step.path}/{name}", text)
    elif step.kind == MOVE:
        _write(f"{step.previous}/cgroup.procs", step.text)
    elif step.kind == ENABLE:
        _write(step.path, step.text.replace("+", "-"))
    elif os.path.exists(step.path) and (step.kind == KEEP or _read(step.path) != step.previous):
        _write(step.path, step.previous)


def changes(steps: Sequence[Step], ours: frozenset[str]) -> list[journal.Change]:
    """Return the journal's entries for steps: groups that are made, and values in groups that are not ours.

    Values in our own groups need none, since they vanish with the group.
    """
    made = {step.path for step in steps if step.kind == MAKE} | ours
    found: list[journal.Change] = []
    for step in steps:
        if step.kind == MAKE:
            found.append(journal.Change("cgroup", step.path))
        elif step.kind in (WRITE, KEEP, ENABLE) and os.path.dirname(step.path) not in made:
            found.append(journal.Change("value", step.path, step.previous, step.text))
    return found


def _roll_back(done: Sequence[Step]) -> list[str]:
    failed = []
    for step in reversed(done):
        try:
            _undo(step)
        except (CgroupError, OSError) as exc:
            failed.append(f"{step.path} ({exc})")
    return failed


def apply(steps: Sequence[Step], book: journal.Journal, by: str, ours: frozenset[str]) -> None:
    """Carry out steps; all or none. Raises CgroupError (rolled back) or JournalError (nothing was changed).

    What cannot be rolled back stays in the journal and is named in the error.
    """
    wanted = changes(steps, ours)
    known = {(entry.kind, entry.target) for entry in book.entries()} if wanted else set()
    if wanted:
        book.record_many(wanted, by)
    done: list[Step] = []
    try:
        for step in steps:
            # A refused write may have been taken in part, so it is taken back too; a directory is all or nothing.
            if step.kind not in (MAKE, REMOVE):
                done.append(step)
            _do(step)
            if step.kind in (MAKE, REMOVE):
                done.append(step)
    except CgroupError as exc:
        failed = _roll_back(done)
        if failed:
            raise CgroupError(f"{exc}; could not be taken back: {', '.join(failed)}; run reset") from exc
        book.forget_many({(change.kind, change.target) for change in wanted} - known)
        raise CgroupError(f"{exc}; what came before it was taken back") from exc
    removed = {step.path for step in steps if step.kind == REMOVE}
    if removed:
        book.forget_many(
            (entry.kind, entry.target)
            for entry in book.entries()
            if entry.target in removed or (entry.kind == "value" and os.path.dirname(entry.target) in removed)
        )
