# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out planned changes of resctrl: journalled first, read back after each write, rolled back as a whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import procfs, resctrl, resctrl_write
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl import ResctrlError
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl_plan import identified, threads
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl_steps import (
    CPUS,
    KIND,
    MAKE,
    MOVE,
    REMOVE,
    SCHEMATA,
    Move,
    Plan,
    Step,
    is_made,
    made,
    task_target,
)

_ROUNDS = 5


def recorded(book: journal.Journal) -> dict[str, Any]:
    """Return what the journal knows of resctrl: previous by target."""
    return {entry.target: entry.previous for entry in book.entries() if entry.kind == KIND}


def owned(book: journal.Journal, by: str, mount_point: str) -> frozenset[str]:
    """Return the names of the control groups that an author made or changed, alone or in a monitoring group.

    Entries of threads don't count: a thread goes with its group, or is put back by undo. Raises JournalError.
    """
    found = set()
    for entry in book.entries():
        below = entry.target[len(mount_point) :]
        if entry.kind != KIND or entry.by != by or not f"{entry.target}/".startswith(f"{mount_point}/"):
            continue
        if below.startswith("/tasks:"):
            continue
        found.add("" if below.startswith("/mon_groups/") else below.strip("/").partition("/")[0])
    return frozenset(found)


class Apply:
    """Carries out one plan on one mounted resctrl."""

    def __init__(self, mount_point: str, book: journal.Journal, by: str, proc_root: str = procfs.PROC_ROOT) -> None:
        """Name the mount, the journal and who changes."""
        self._mount = mount_point
        self._book = book
        self._by = by
        self._proc_root = proc_root
        self._boot_id = procfs.read_boot_id(proc_root)
        self._known = recorded(book)
        self._ours: set[str] = {target for target, item in self._known.items() if is_made(item, self._boot_id)}
        self._new: set[str] = set()

    def run(self, plan: Plan) -> None:
        """Carry out the steps; all or none. Raises ResctrlError (rolled back) or JournalError (nothing was changed).

        What cannot be rolled back stays in the journal and is named in the error.
        """
        self._forget_earlier_boots(plan.steps)
        self._ours |= {step.directory for step in plan.steps if step.kind == MAKE}
        self._record(change for step in plan.steps for change in self._changes(step))
        done: list[Step] = []
        try:
            for step in plan.steps:
                # A refused write may have been taken in part, so it is taken back too; a directory is all or nothing.
                if step.kind not in (MAKE, REMOVE):
                    done.append(step)
                self._do(step)
                if step.kind in (MAKE, REMOVE):
                    done.append(step)
        except ResctrlError as exc:
            failed = self._roll_back(done)
            if failed:
                raise ResctrlError(f"{exc}; could not be taken back: {', '.join(failed)}; run reset") from exc
            self._book.forget_many((KIND, target) for target in self._new)
            raise ResctrlError(f"{exc}; what came before it was taken back") from exc
        if plan.forget:
            self._book.forget_many((KIND, target) for target in plan.forget)

    def _forget_earlier_boots(self, steps: Sequence[Step]) -> None:
        """Drop entries of an earlier boot, whose groups went with it: the first entry of a target would win."""
        stale = [
            target
            for target, previous in self._known.items()
            if isinstance(previous, Mapping) and previous.get("boot_id") not in (None, self._boot_id)
        ]
        if steps and stale:
            self._book.forget_many((KIND, target) for target in stale)
            self._known = {target: item for target, item in self._known.items() if target not in stale}

    def _record(self, changes: Iterable[journal.Change]) -> None:
        wanted = list(changes)
        if wanted:
            self._book.record_many(wanted, self._by)
            self._new |= {change.target for change in wanted} - set(self._known)

    def _changes(self, step: Step) -> list[journal.Change]:
        """Return the journal's entries for a step. What is in a group of ours needs none: it goes with the group."""
        if step.kind == MAKE:
            inside = step.directory.partition("/mon_groups/")[0] in self._ours - {step.directory}
            return [] if inside else [journal.Change(KIND, step.directory, made(self._boot_id))]
        if step.kind in (SCHEMATA, CPUS):
            return [
                journal.Change(KIND, item.directory, item.as_json(self._boot_id))
                for item in step.saved
                if item.directory not in self._ours
            ]
        return self._task_changes(step.directory, step.moves) if step.kind == MOVE else []

    def _task_changes(self, directory: str, moves: Sequence[Move]) -> list[journal.Change]:
        """Return entries for threads that a removed group would not give back to where they were."""
        found = []
        for item in moves:
            source = self._mount if self._inside_ours(item.source) else item.source
            if source != self._mount or not self._inside_ours(directory):
                previous = {"boot_id": self._boot_id, "group": source}
                found.append(journal.Change(KIND, task_target(self._mount, item), previous))
        return found

    def _inside_ours(self, directory: str) -> bool:
        return directory in self._ours or directory.partition("/mon_groups/")[0] in self._ours

    def _do(self, step: Step) -> None:
        if step.kind == MAKE:
            resctrl_write.make(self._mount, step.directory)
        elif step.kind == REMOVE:
            resctrl_write.remove(self._mount, step.directory)
        elif step.kind == SCHEMATA:
            resctrl_write.write_lines(self._mount, step.directory, step.text)
        elif step.kind == CPUS:
            resctrl_write.write_cpus(self._mount, step.directory, step.text)
        else:
            self._move(step)

    def _move(self, step: Step) -> None:
        """Move threads until none of the processes is outside: one that isn't moved yet may start others meanwhile."""
        left = list(step.moves)
        for _round in range(_ROUNDS):
            for item in left:
                resctrl_write.move(self._mount, step.directory, item.tid)
            left = self._outside(step)
            if not left:
                return
            self._record(self._task_changes(step.directory, left))
        raise ResctrlError(
            f"{step.directory}/tasks: wrote {left[0].tid}, it is not in there; processes start threads faster than "
            "these can be moved, stop them for a moment"
        )

    def _outside(self, step: Step) -> list[Move]:
        inside = resctrl.read_tasks(step.directory)
        source = next(iter(step.moves)).source
        tids = [tid for pid in step.pids for tid in threads(pid, self._proc_root) if tid not in inside]
        found = (identified(tid, source, self._proc_root) for tid in tids)
        return [item for item in found if item is not None]

    def _roll_back(self, done: Sequence[Step]) -> list[str]:
        failed = []
        for step in reversed(done):
            try:
                self._undo(step)
            except (ResctrlError, OSError) as exc:
                failed.append(f"{step.directory} ({exc})")
        return failed

    def _undo(self, step: Step) -> None:
        """Take one step back; a group that is gone needs nothing."""
        if step.kind == MAKE:
            resctrl_write.remove(self._mount, step.directory)
            return
        if step.kind == REMOVE:
            self._make_again(step)
        for saved in step.saved:
            if os.path.isdir(saved.directory):
                if step.kind != CPUS:
                    resctrl_write.restore_lines(self._mount, saved)
                if step.kind != SCHEMATA:
                    resctrl_write.restore_cpus(self._mount, saved)
        for item in step.moves:
            resctrl_write.move_back(self._mount, item, self._proc_root)

    def _make_again(self, step: Step) -> None:
        below = [f"{saved.directory}/mon_groups/{name}" for saved in step.saved for name in saved.monitors]
        for path in dict.fromkeys([step.directory, *below]):
            if not os.path.isdir(path):
                resctrl_write.make(self._mount, path)
