# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A directory of our own with files in it: with given content, generated text, or made by a program.

The directory is one entry of the journal and goes as a whole, with whatever programs have left in it since.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils import files

DIRECTORY_MODE = 0o755
PLACEHOLDER = "{path}"
RECIPE_SUFFIX = ".recipe.json"
_POLL_S = 0.05

Run = Callable[[Sequence[str]], object]
"""Runs argv to its end; raises when the program fails."""


class FileTreeError(Exception):
    """A file of the tree cannot be as asked for; the text says which, why and what to do."""


@dataclass(frozen=True)
class Wanted:
    """One file: path below the directory, mode, and either content or the program that makes it (``{path}``).

    ``validate`` is a program that must accept the file before it gets its name.
    """

    path: str
    mode: int
    content: bytes | None = None
    command: tuple[str, ...] = ()
    validate: tuple[str, ...] = ()

    @property
    def recipe(self) -> bytes:
        """What is remembered of a made file, to know later whether it has to be made again."""
        return (json.dumps({"argv": list(self.command)}, sort_keys=True) + "\n").encode()


@dataclass(frozen=True)
class Change:
    """One thing to change: words for people, and text before and after for a diff."""

    path: str
    text: str
    before: str
    after: str
    wanted: Wanted | None = None


def check_paths(paths: Iterable[str]) -> None:
    """Raise FileTreeError for a path that is absolute, leaves the directory, or is named twice."""
    seen: set[str] = set()
    for path in paths:
        if not path or path.startswith("/") or ".." in path.split("/") or path != os.path.normpath(path):
            raise FileTreeError(f"{path!r}: must be a plain path below the directory, such as html/index.html")
        if path in seen:
            raise FileTreeError(f"{path!r} is named twice; remove one")
        seen.add(path)


def plan(directory: str, subdirectories: Sequence[str], wanted: Sequence[Wanted]) -> tuple[Change, ...]:
    """Return what has to change, in order; reads only. Raises FileTreeError, FilesError."""
    check_paths([*subdirectories, *(item.path for item in wanted)])
    changes = []
    for relative in ("", *subdirectories):
        path = os.path.join(directory, relative) if relative else directory
        if os.path.islink(path) or (os.path.exists(path) and not os.path.isdir(path)):
            raise FileTreeError(f"{path}: is not a directory; move it away")
        if not os.path.isdir(path):
            changes.append(Change(path, f"make directory {path}", "", "directory\n"))
    for item in wanted:
        changes += _plan_file(directory, item)
    return tuple(changes)


def _plan_file(directory: str, item: Wanted) -> list[Change]:
    path = os.path.join(directory, item.path)
    if os.path.islink(path) or (os.path.exists(path) and not os.path.isfile(path)):
        raise FileTreeError(f"{path}: is not a regular file; move it away")
    if item.content is None:
        before = _read(path + RECIPE_SUFFIX)
        made = os.path.isfile(path) and before == item.recipe
        return [] if made else [Change(path, f"make {path}", _shown(before), _shown(item.recipe), item)]
    before = _read(path)
    if before != item.content:
        return [Change(path, f"write {path}", _shown(before), _shown(item.content), item)]
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if mode != item.mode:
        return [Change(path, f"set mode of {path}", f"mode {mode:04o}\n", f"mode {item.mode:04o}\n", item)]
    return []


def _read(path: str) -> bytes | None:
    return files.read_bytes(path) if os.path.isfile(path) else None


def _shown(content: bytes | None, limit_bytes: int = 8192) -> str:
    if content is None:
        return ""
    if len(content) > limit_bytes:
        return f"{len(content)} bytes\n"
    return content.decode("utf-8", errors="replace")


def apply(changes: Sequence[Change], run: Run) -> None:
    """Make the changes. Raises FileTreeError, FilesError, or what ``run`` raises; no file is ever half written."""
    for change in changes:
        if change.wanted is None:
            _make_directory(change.path)
        elif change.wanted.content is None:
            _make(change.path, change.wanted, run)
        else:
            _write(change.path, change.wanted, run)


def _make_directory(path: str) -> None:
    try:
        os.mkdir(path)
        # The mode given to mkdir is narrowed by the umask, and the service reads as another user.
        os.chmod(path, DIRECTORY_MODE)
    except OSError as exc:
        raise FileTreeError(f"{path}: cannot be made: {exc.strerror}; check the directory above") from exc


@contextlib.contextmanager
def alone(directory: str, deadline_s: float) -> Iterator[None]:
    """Keep other runs of this collection from working on the tree, or on others beside it, at the same time.

    The lock is on the nearest directory above that exists, so that it leaves nothing behind. Raises FileTreeError when
    it can't be had before the deadline, in seconds.
    """
    above = os.path.dirname(directory)
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    handle = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        until_s = time.monotonic() + deadline_s
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until_s:
                    raise FileTreeError(
                        f"{directory}: another run has worked on it for {deadline_s:g} s; wait until that has ended"
                    ) from None
                time.sleep(_POLL_S)
        yield
    finally:
        os.close(handle)


def _write(path: str, wanted: Wanted, run: Run) -> None:
    content = wanted.content or b""
    if not wanted.validate:
        files.write_atomic(path, content, wanted.mode)
        return
    candidate = f"{path}.new"
    files.write_atomic(candidate, content, wanted.mode)
    _accept(candidate, path, wanted, run)


def _make(path: str, wanted: Wanted, run: Run) -> None:
    root, extension = os.path.splitext(path)
    candidate = f"{root}.new{extension}"
    _discard(candidate)
    try:
        run([word.replace(PLACEHOLDER, candidate) for word in wanted.command])
    except BaseException:
        _discard(candidate)
        raise
    if not os.path.isfile(candidate) or os.path.getsize(candidate) == 0:
        _discard(candidate)
        raise FileTreeError(f"{path}: {wanted.command[0]} succeeded but left no content; run it by hand")
    os.chmod(candidate, wanted.mode)
    _accept(candidate, path, wanted, run)
    files.write_atomic(path + RECIPE_SUFFIX, wanted.recipe, 0o644)


def _accept(candidate: str, path: str, wanted: Wanted, run: Run) -> None:
    try:
        if wanted.validate:
            run([word.replace(PLACEHOLDER, candidate) for word in wanted.validate])
        os.replace(candidate, path)
    finally:
        _discard(candidate)


def _discard(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
