# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A directory that several runs share as a cache: one writer at a time, enough space, nothing half made."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator

_POLL_S = 0.2


class CacheError(Exception):
    """The cache cannot be written, is locked for too long or is full; the text names the setting that moves it."""


def try_lock(handle: int) -> bool:
    """Take the exclusive lock of an open file without waiting; tells whether it was had."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def locked(directory: str, making: str, setting: str, timeout_s: float) -> Iterator[None]:
    """Keep others from making things in a cache at the same time; makes the directory where it is missing.

    ``making`` says in words what is made there, ``setting`` is the variable that moves the cache. Raises CacheError
    when the directory cannot be written, or after ``timeout_s`` seconds.
    """
    try:
        os.makedirs(directory, exist_ok=True)
        handle = os.open(os.path.join(directory, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise CacheError(f"{directory}: cannot be written: {exc.strerror}; choose another {setting}") from exc
    deadline = time.monotonic() + timeout_s
    try:
        while not try_lock(handle):
            if time.monotonic() > deadline:
                raise CacheError(
                    f"{directory}: another run has been making {making} for {timeout_s:g} s; wait for it, or end it"
                )
            time.sleep(_POLL_S)
        yield
    finally:
        os.close(handle)


def require_space(directory: str, making: str, setting: str, needed_bytes: int) -> None:
    """Raise CacheError where the file system of a directory has less than ``needed_bytes`` free."""
    status = os.statvfs(directory)
    free = status.f_bavail * status.f_frsize
    if free < needed_bytes:
        raise CacheError(
            f"{directory}: has {free >> 20} MiB free, making {making} needs {needed_bytes >> 20}; free some, or "
            f"choose another {setting}"
        )
