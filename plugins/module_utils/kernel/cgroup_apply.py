# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out planned steps on the kernel: journalled first, read back after each write, rolled back as a whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from ansible_collections.colocation.testbed.plugins.module_utils import files, journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cgroup,
    cgroup_hints,
    cgroup_keys,
    cgroup_lines,
    procfs,
)
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

_WEIGHTS = tuple(cgroup_keys.weight_file(version).name for version in (1, 2))


def _explained(path: str, action: str, exc: OSError) -> CgroupError:
    return CgroupError(f"{path}: {action} failed: {exc.strerror} ({cgroup_hints.why(path, exc.errno or 0)})")


def _write(path: str, text: str) -> None:
    try:
        files.write_kernel(path, text)
    except files.FilesError as exc:
        if isinstance(exc.__cause__, OSError):
            raise _explained(path, f"writing {text!r}", exc.__cause__) from exc
        raise CgroupError(str(exc)) from exc


def _read(path: str) -> str:
    try:
        found = files.read_kernel(path)
    except files.FilesError as exc:
        raise CgroupError(str(exc)) from exc
    if found is None:
        raise CgroupError(f"{path}: is gone; someone else removed it, run again")
    return found.strip()


def _write_checked(step: Step) -> None:
    try:
        _write(step.path, step.text)
    except CgroupError as exc:
        found = _read_or_nothing(step.path)
        raise CgroupError(f"{exc}" if found is None else f"{exc}; it still reads {found!r}") from exc
    found = _read(step.path)
    if not _holds(step, found, step.text):
        raise CgroupError(f"{step.path}: wrote {step.text!r}, read {found!r}; the kernel did not take the value")


def _read_or_nothing(path: str) -> str | None:
    try:
        return _read(path)
    except CgroupError:
        return None


def _holds(step: Step, found: str, text: str) -> bool:
    """Tell whether a file's content has the value that a text sets."""
    return found == text if step.file is None else step.file.parse(found) == step.file.parse(text)


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


def _lives(pid: str) -> bool:
    stat = procfs.read_stat(int(pid))
    return stat is not None and not stat.dead


def _change_directory(step: Step) -> None:
    try:
        if step.kind == MAKE:
            os.mkdir(step.path, 0o755)
        else:
            os.rmdir(step.path)
    except OSError as exc:
        raise _explained(step.path, "making the group" if step.kind == MAKE else "removing the group", exc) from exc


def _do(step: Step) -> bool:
    """Carry out one step; tells whether it was possible, which it only need not be where the step is optional."""
    if step.kind == WRITE:
        if step.optional and not os.path.exists(step.path) and os.path.isdir(os.path.dirname(step.path)):
            return False
        _write_checked(step)
    elif step.kind == ENABLE:
        _enable(step)
    elif step.kind == MOVE:
        try:
            _move(step)
        except CgroupError:
            if step.optional and not _lives(step.text):
                return False
            raise
    elif step.kind in (MAKE, REMOVE):
        _change_directory(step)
    return True


def _undo(step: Step) -> None:
    """Take one step back; a group that is gone needs nothing, nor does a process that has ended."""
    if step.kind == MAKE:
        if os.path.isdir(step.path):
            os.rmdir(step.path)
    elif step.kind == REMOVE:
        os.mkdir(step.path, 0o755)
        for name, text in step.saved:
            _write(f"{step.path}/{name}", text)
    elif step.kind == MOVE:
        # One that the kernel refused, or that someone else has moved on since, has nothing to go back from.
        if int(step.text) in cgroup.read_pids(step.path) and _lives(step.text):
            _write(f"{step.previous}/cgroup.procs", step.text)
    elif step.kind == ENABLE:
        _write(step.path, step.text.replace("+", "-"))
    elif os.path.exists(step.path) and (step.kind == KEEP or not _holds(step, _read(step.path), step.previous)):
        _write(step.path, step.previous)


def changes(steps: Sequence[Step], ours: frozenset[str], entries: Iterable[journal.Entry] = ()) -> list[journal.Change]:
    """Return the journal's entries for steps: groups that are made, and values in groups that are not ours.

    Values in our own groups need none, since they vanish with the group. Nor do weights of groups that were idle before
    (``entries``: the journal so far): the kernel pins them again, and refuses to have them written.
    """
    made = {step.path for step in steps if step.kind == MAKE} | ours
    idle = {entry.target for entry in entries if entry.kind == "value" and entry.previous == "1"}
    idle.update(step.path for step in steps if step.kind == WRITE and step.previous == "1")
    found: list[journal.Change] = []
    for step in steps:
        directory, name = os.path.split(step.path)
        if name in _WEIGHTS and f"{directory}/cpu.idle" in idle:
            continue
        if step.kind == MAKE:
            found.append(journal.Change("cgroup", step.path))
        elif step.kind in (WRITE, KEEP, ENABLE) and directory not in made:
            line = step.file.line if step.file else ""
            target = cgroup_lines.target(step.path, line) if line else step.path
            found.append(journal.Change("line" if line else "value", target, step.previous, step.text))
    return found


def _roll_back(done: Sequence[Step]) -> list[str]:
    failed = []
    for step in reversed(done):
        try:
            _undo(step)
        except (CgroupError, OSError) as exc:
            failed.append(f"{step.path} ({exc})")
    return failed


def apply(
    steps: Sequence[Step], book: journal.Journal, by: str, ours: frozenset[str], lenient: bool = True
) -> tuple[Step, ...]:
    """Carry out steps; all or none. Raises CgroupError (rolled back) or JournalError (nothing was changed).

    Returns the writes to files that no group could be asked about before, and that turned out to be missing; with
    ``lenient`` off they are an error. What cannot be rolled back stays in the journal and is named in the error.
    """
    entries = book.entries() if steps else ()
    wanted = changes(steps, ours, entries)
    known = {(entry.kind, entry.target) for entry in entries}
    if wanted:
        book.record_many(wanted, by)
    done: list[Step] = []
    lacking: list[Step] = []
    try:
        for step in steps:
            # A refused write may have been taken in part, so it is taken back too; a directory is all or nothing.
            if step.kind not in (MAKE, REMOVE):
                done.append(step)
            if not _do(step):
                done.pop()
                lacking += [step] if step.kind == WRITE else []
            if step.kind in (MAKE, REMOVE):
                done.append(step)
        if lacking and not lenient:
            raise _lacks(lacking)
    except CgroupError as exc:
        failed = _roll_back(done)
        if failed:
            raise CgroupError(f"{exc}; could not be taken back: {', '.join(failed)}; run reset") from exc
        book.forget_many({(change.kind, change.target) for change in wanted} - known)
        raise CgroupError(f"{exc}; what came before it was taken back") from exc
    _forget(book, {step.path for step in steps if step.kind == REMOVE})
    return tuple(lacking)


def carry_out(steps: Sequence[Step]) -> None:
    """Carry out steps that the journal knows of already, as far as the kernel lets. Raises CgroupError."""
    for step in steps:
        _do(step)


def _lacks(steps: Sequence[Step]) -> CgroupError:
    names = sorted({os.path.basename(step.path) for step in steps})
    return CgroupError(
        f"{steps[0].path}: this kernel has no {', '.join(names)} in its groups; leave the values out, "
        "or set on_missing to skip"
    )


def _forget(book: journal.Journal, removed: set[str]) -> None:
    """Drop the entries of removed groups and of values in them."""
    if removed:
        book.forget_many(
            (entry.kind, entry.target)
            for entry in book.entries()
            if entry.target in removed or (entry.kind in ("value", "line") and os.path.dirname(entry.target) in removed)
        )
