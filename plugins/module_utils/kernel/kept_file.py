# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of /proc, /sys or a control group that is read again and again: opened once, then only pread()."""

from __future__ import annotations

import os

_CHUNK_BYTES = 65536


def read_fresh(path: str) -> bytes | None:
    """Return the content of a file that is opened anew, or None.

    For `tasks` and `cgroup.procs` of cgroup v1: while such a file is open and read more often than once a second, the
    kernel answers from the list that it made first (cgroup_pidlist_start in kernel/cgroup/cgroup-v1.c).
    """
    kept = KeptFile(path)
    try:
        return kept.read()
    finally:
        kept.close()


class KeptFile:
    """Keeps a descriptor open. A read that fails closes it; `reopen` tells whether the path is tried again."""

    def __init__(self, path: str, reopen: bool = True) -> None:
        """Name the file; it is opened by the first read."""
        self.path = path
        self._reopen = reopen
        self._fd = -1
        self._opened = False

    def read(self) -> bytes | None:
        """Return the whole content, or None where it cannot be read now."""
        if self._fd >= 0:
            content = self._read_open()
            if content is not None or not self._reopen:
                return content
        if self._opened and not self._reopen:
            return None
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        self._opened = True
        return self._read_open()

    def _read_open(self) -> bytes | None:
        try:
            content = os.pread(self._fd, _CHUNK_BYTES, 0)
            if len(content) < _CHUNK_BYTES:
                return content
            parts = [content]
            offset = len(content)
            while part := os.pread(self._fd, _CHUNK_BYTES, offset):
                parts.append(part)
                offset += len(part)
            return b"".join(parts)
        except OSError:
            self.close()
            return None

    def read_text(self) -> str | None:
        """Return the whole content as text, or None."""
        content = self.read()
        return None if content is None else content.decode("utf-8", "replace")

    def read_int(self) -> int | None:
        """Return the content as a number, or None where it is none."""
        content = self.read()
        try:
            return None if content is None else int(content)
        except ValueError:
            return None

    def close(self) -> None:
        """Give the descriptor back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
