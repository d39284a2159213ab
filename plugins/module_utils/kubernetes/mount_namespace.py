# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A mount namespace that outlives its processes, with directories of ours over those of the host.

Programs with fixed paths can so write where they want and leave nothing behind; and mounts made inside are shared
between all processes inside, as kubelet and container runtimes need it, also where nobody shares the host's own.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils import commands, journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import mounts, processes, procfs
from ansible_collections.colocation.testbed.plugins.module_utils.recorded_process import wait as wait_until

BY = "mount_namespace"
KIND = "mount_namespace"
NSFS = "nsfs"
_KILL_DEADLINE_S = 10.0

Run = Callable[..., commands.Result]


class MountNamespaceError(Exception):
    """The namespace cannot be made or removed; the text names the path, why, and what to do."""


@dataclass(frozen=True)
class Bind:
    """A directory `source` that is seen at `target` inside the namespace."""

    source: str
    target: str


@dataclass(frozen=True)
class Space:
    """A namespace by the file that keeps it; the file's directory is a private mount, as unshare(1) wants."""

    path: str
    proc_root: str = procfs.PROC_ROOT
    run: Run = commands.run

    @property
    def directory(self) -> str:
        """Return the directory of the file, which holds nothing else."""
        return os.path.dirname(self.path)

    @property
    def prefix(self) -> tuple[str, ...]:
        """Return what to put before a command so that it runs inside."""
        return ("nsenter", f"--mount={self.path}")

    def exists(self) -> bool:
        """Tell whether the namespace is there."""
        found = mounts.at(self.path, self.proc_root)
        return found is not None and found.fs_type == NSFS

    def bound(self) -> tuple[str, ...]:
        """Return the mount points that are seen inside. Raises CommandError."""
        text = self.run([*self.prefix, "cat", "/proc/self/mountinfo"]).stdout
        return tuple(item.point for item in mounts.parse(text))

    def pids(self) -> tuple[int, ...]:
        """Return the processes inside, in ascending order."""
        wanted = os.stat(self.path)
        found = []
        for entry in os.listdir(self.proc_root):
            if entry.isdigit():
                try:
                    if os.path.samestat(os.stat(f"{self.proc_root}/{entry}/ns/mnt"), wanted):
                        found.append(int(entry))
                except OSError:
                    continue
        return tuple(sorted(found))


def check(space: Space, binds: Sequence[Bind]) -> None:
    """Raise MountNamespaceError for paths that are relative, twice there or links, and for a directory in use."""
    for path in [space.path, *(part for bind in binds for part in (bind.source, bind.target))]:
        if not os.path.isabs(path) or os.path.normpath(path) != path or path == "/":
            raise MountNamespaceError(f"mount namespace: {path!r} is no absolute path without . and ..; correct it")
    targets = [bind.target for bind in binds]
    twice = sorted({target for target in targets if targets.count(target) > 1})
    if twice:
        raise MountNamespaceError(f"mount namespace: {twice[0]} has two directories; leave one out")
    links = [bind.target for bind in binds if os.path.realpath(bind.target) != bind.target]
    if links:
        raise MountNamespaceError(f"mount namespace: {links[0]} is a symbolic link; name {os.path.realpath(links[0])}")
    if os.path.isdir(space.directory) and set(os.listdir(space.directory)) - {os.path.basename(space.path)}:
        raise MountNamespaceError(f"{space.directory}: holds other files; give the namespace a directory of its own")


def missing(space: Space, binds: Sequence[Bind]) -> list[Bind]:
    """Return the binds that the namespace lacks, all of them where it is not there. Raises CommandError."""
    if not space.exists():
        return list(binds)
    there = set(space.bound())
    return [bind for bind in binds if bind.target not in there]


def make(space: Space, binds: Sequence[Bind], book: journal.Journal) -> None:
    """Make what is missing, journalled first. Raises MountNamespaceError, CommandError, JournalError."""
    if not space.exists():
        _make_space(space, book)
    todo = missing(space, binds)
    folders = [path for bind in todo for path in _missing_folders(bind.target)]
    book.record_many([journal.Change("directory", path) for path in dict.fromkeys(folders)], BY)
    for bind in todo:
        for path in (bind.source, bind.target):
            os.makedirs(path, exist_ok=True)
    for bind in todo:
        space.run([*space.prefix, "mount", "--bind", bind.source, bind.target])
    left = missing(space, binds)
    if left:
        raise MountNamespaceError(f"{left[0].target}: was bound and is not seen in {space.path}; look at dmesg")


def _missing_folders(path: str) -> list[str]:
    found = []
    while not os.path.isdir(path):
        found.append(path)
        path = os.path.dirname(path)
    return found[::-1]


def _make_space(space: Space, book: journal.Journal) -> None:
    if not os.path.isdir(space.directory):
        book.record("directory", space.directory, {"tree": True}, BY)
        os.makedirs(space.directory)
    if mounts.at(space.directory, space.proc_root) is None:
        below = _file_system(space.directory, space)
        book.record("mount", space.directory, {"fs_type": below}, BY)
        space.run(["mount", "--bind", space.directory, space.directory])
    # unshare(1): the file must not lie on a shared mount, and would keep itself alive there.
    space.run(["mount", "--make-private", space.directory])
    book.record(KIND, space.path, None, BY)
    with open(space.path, "a", encoding="utf-8"):
        pass
    space.run(["unshare", f"--mount={space.path}", "--propagation", "shared", "true"])
    if not space.exists():
        raise MountNamespaceError(f"{space.path}: no namespace was kept there; does this kernel allow unshare(2)?")


def _file_system(path: str, space: Space) -> str:
    """Return the type of the file system that a path lies on, as mountinfo will show it for a bind mount."""
    points = [item for item in mounts.read(space.proc_root) if f"{path}/".startswith(item.point.rstrip("/") + "/")]
    if not points:
        raise MountNamespaceError(f"{path}: lies on no mount in {space.proc_root}/self/mountinfo; mount /proc")
    return max(points, key=lambda item: len(item.point)).fs_type


def end_inside(space: Space) -> int:
    """Kill every process in a namespace of ours until none is left, at most 10 s; returns how many were killed.

    Programs that were started inside may have outlived those who would have ended them. Raises MountNamespaceError.
    """
    ended: set[int] = set()

    def none_left() -> bool:
        left = space.pids() if space.exists() else ()
        for pid in left:
            identity = processes.identify(pid, space.proc_root)
            if identity is not None and processes.send(identity, signal.SIGKILL, space.proc_root):
                ended.add(pid)
        return not left

    if not wait_until(none_left, _KILL_DEADLINE_S):
        shown = ", ".join(str(pid) for pid in space.pids()[:5])
        raise MountNamespaceError(f"{space.path}: processes {shown} stay in the namespace; see /proc/PID/stack for why")
    return len(ended)


def undo(entry: journal.Entry, check: bool, run: Run = commands.run) -> journal.Outcome:
    """End what is inside a namespace that we made, and remove it with all of its mounts."""
    space = Space(entry.target, run=run)
    if not space.exists():
        return journal.Outcome("undone", f"{entry.target}: not there")
    if check:
        return journal.Outcome("undone", f"{entry.target}: removed")
    ended = end_inside(space)
    run(["umount", space.path])
    return journal.Outcome("undone", f"{entry.target}: {ended} processes inside ended, removed")


def remove(space: Space, binds: Sequence[Bind], book: journal.Journal) -> None:
    """Remove the namespace, what runs inside, all mounts inside, and what was made for it.

    Directories that were made for the binds go when they are empty; files that others put there stay. Raises
    MountNamespaceError, CommandError.
    """
    end_inside(space)
    for point in (space.path, space.directory):
        if mounts.at(point, space.proc_root) is not None:
            space.run(["umount", point])
    if os.path.exists(space.path):
        os.unlink(space.path)
    known = {entry.target for entry in book.entries() if entry.kind == "directory" and entry.by == BY}
    folders = sorted(known & {*_folders(binds), space.directory}, key=len, reverse=True)
    gone = []
    for folder in folders:
        if not os.path.isdir(folder) or not os.listdir(folder):
            if os.path.isdir(folder):
                os.rmdir(folder)
            gone.append(("directory", folder))
    book.forget_many([(KIND, space.path), ("mount", space.directory), *gone])


def _folders(binds: Sequence[Bind]) -> set[str]:
    found = set()
    for bind in binds:
        path = bind.target
        while path != "/":
            found.add(path)
            path = os.path.dirname(path)
    return found
