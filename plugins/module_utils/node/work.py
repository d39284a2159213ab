# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much work a batch workload has done so far: one reader for each kind that an aggressor may name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, links, procfs
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.group_counters import GroupReader
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.kept_file import KeptFile, read_fresh
from ansible_collections.colocation.testbed.plugins.module_utils.node.group_places import GroupPlaces

UNITS = {"ffmpeg_progress": "frames", "cpu_time": "cpu_s", "io_bytes": "bytes", "net_bytes": "bytes"}
_FRAME = re.compile(rb"^frame=\s*(\d+)\s*\n", re.MULTILINE)
_IO = re.compile(rb"^(?:read_bytes|write_bytes): (\d+)$", re.MULTILINE)
# ffmpeg appends a block of about 250 bytes for each update; the last whole one is all that counts.
_TAIL_BYTES = 2048

Reader = Callable[[], "float | None"]


class WorkError(Exception):
    """The kind of work is unknown or lacks what it needs."""


def parse_progress(tail: bytes) -> int | None:
    """Return the last complete `frame=N` line of what ffmpeg -progress wrote, or None where there is none yet."""
    found = _FRAME.findall(tail)
    return int(found[-1]) if found else None


def parse_io(content: bytes) -> int:
    """Return bytes read from and written to storage by a process (/proc/<pid>/io, proc(5))."""
    return sum(int(value) for value in _IO.findall(content))


def read_tail(path: str) -> bytes | None:
    """Return the end of a file, or None; opened anew, since a workload that starts again replaces its file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.pread(fd, _TAIL_BYTES, max(0, os.fstat(fd).st_size - _TAIL_BYTES))
    except OSError:
        return None
    finally:
        os.close(fd)


class IoBytes:
    """Bytes of storage traffic of a group's processes; those that end keep their last known share."""

    def __init__(self, directory: str, proc_root: str = procfs.PROC_ROOT) -> None:
        """Take the group's directory."""
        self._procs = f"{directory}/cgroup.procs"
        self._proc_root = proc_root
        self._files: dict[int, KeptFile] = {}
        self._last: dict[int, int] = {}
        self._ended = 0

    def read(self) -> float | None:
        """Return the sum over living and ended processes, or None where group or figures cannot be read."""
        content = read_fresh(self._procs)
        if content is None:
            return None
        pids = {int(word) for word in content.split()}
        for pid in pids - set(self._files):
            self._files[pid] = KeptFile(f"{self._proc_root}/{pid}/io", reopen=False)
        for pid in list(self._files):
            text = self._files[pid].read()
            if text and pid in pids:
                self._last[pid] = parse_io(text)
            else:
                self._files.pop(pid).close()
                self._ended += self._last.pop(pid, 0)
        if pids and not self._last and not self._ended:
            # A kernel without CONFIG_TASK_IO_ACCOUNTING, or a container that may not look.
            return None
        return float(self._ended + sum(self._last.values()))


def net_bytes(interface: str | None, content: bytes | None, outermost: links.Outermost) -> float | None:
    """Return bytes received and sent by an interface, or by the host, each packet once, where none is named."""
    if content is None:
        return None
    counters = procfs.parse_net_dev(content.decode("ascii", "replace"))
    wanted = outermost.among(counters) if interface is None else frozenset({interface})
    chosen = [item for name, item in counters.items() if name in wanted]
    return float(sum(item.rx_bytes + item.tx_bytes for item in chosen)) if chosen else None


def reader(how: Mapping[str, Any], layout: cgroup.Layout, places: GroupPlaces, net: KeptFile) -> Reader:
    """Return the function that reads the work done. Raises WorkError for an unknown kind or a missing key."""
    kind = how.get("kind")
    if kind == "ffmpeg_progress":
        path = _needed(how, "path")

        def frames() -> float | None:
            tail = read_tail(path)
            return None if tail is None else parse_progress(tail)

        return frames
    if kind == "net_bytes":
        interface, outermost = how.get("interface"), links.Outermost()
        return lambda: net_bytes(interface, net.read(), outermost)
    if kind in ("cpu_time", "io_bytes"):
        group = places.of(_needed(how, "group"))
        if kind == "io_bytes":
            return IoBytes(layout.path("cpu", group)).read
        counters = GroupReader(layout, group)
        return lambda: counters.read()["cpu_s"]
    raise WorkError(f"work kind {kind!r}: unknown; one of {', '.join(UNITS)}")


def _needed(how: Mapping[str, Any], key: str) -> str:
    if not how.get(key):
        raise WorkError(f"work kind {how.get('kind')}: needs {key}; add it to the aggressor's work")
    return str(how[key])


def unit(how: Mapping[str, Any]) -> str:
    """Return the unit in which the work is counted: the one given, else the kind's own."""
    return str(how.get("unit") or UNITS.get(str(how.get("kind")), ""))
