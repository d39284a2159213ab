# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Let only one matrix of a user use a tested node at a time: a second one would spoil the windows of the first."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The worker of a playbook that was killed needs this long to notice and to stop what it started, in seconds.
WAIT_S = 15.0
_POLL_S = 0.2


class ClaimError(Exception):
    """Somebody else measures on the node."""


def directory() -> Path:
    """Return where claims are kept: the user's cache, since whoever controls the nodes runs here."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "colocation-testbed" / "claims"


@contextlib.contextmanager
def claimed(node: str, folder: Path, wait_s: float = WAIT_S) -> Iterator[None]:
    """Hold a node. The kernel gives it free when this process ends, however it does.

    :raises ClaimError: where another process still holds it after ``wait_s`` seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{node}.lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _lock(handle, node, wait_s)
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
        yield
    finally:
        os.close(handle)


def require_free(node: str, folder: Path, wait_s: float = WAIT_S) -> None:
    """Return when nobody holds a node; nothing is written where nobody ever did.

    :raises ClaimError: where a process still holds it after ``wait_s`` seconds.
    """
    path = folder / f"{node}.lock"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        _lock(handle, node, wait_s)
    finally:
        os.close(handle)


def _lock(handle: int, node: str, wait_s: float) -> None:
    deadline_s = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline_s:
                holder = os.pread(handle, 32, 0).decode(errors="replace") or "unknown"
                raise ClaimError(
                    f"{node}: another experiment is measuring there (process {holder} on this machine); "
                    "wait until it has ended, or end that playbook"
                ) from None
            time.sleep(_POLL_S)
        else:
            return
