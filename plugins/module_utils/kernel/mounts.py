# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is mounted where: /proc/self/mountinfo (proc(5))."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import procfs


class MountsError(Exception):
    """The table of mounts cannot be read, or a file system cannot be mounted or unmounted."""


@dataclass(frozen=True)
class Mount:
    """One mount: where, which type of file system, from what, and the options of mount point and file system."""

    point: str
    fs_type: str
    source: str
    options: tuple[str, ...]


def unescape(text: str) -> str:
    r"""Return a field of mountinfo as it was: the kernel writes space, tab, line feed and backslash as \ooo."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), text)


def lines(text: str) -> list[str]:
    """Return the lines of mountinfo; names in it may hold signs that other programs take for ends of lines."""
    return [line for line in text.split("\n") if line]


def parse(text: str) -> tuple[Mount, ...]:
    """Return the mounts of mountinfo's text in its order: of several on one point the last is the visible one."""
    found = []
    for line in lines(text):
        head, dash, tail = line.partition(" - ")
        fields, kind = head.split(" "), tail.split(" ")
        if dash and len(fields) >= 6 and len(kind) >= 3:
            options = dict.fromkeys([*fields[5].split(","), *kind[2].split(",")])
            found.append(Mount(unescape(fields[4]), kind[0], unescape(kind[1]), tuple(options)))
    return tuple(found)


def table(proc_root: str = procfs.PROC_ROOT) -> str:
    """Return mountinfo of this process; bytes that are not UTF-8 are replaced. Raises MountsError."""
    try:
        text = procfs.read_text(f"{proc_root}/self/mountinfo")
    except procfs.ProcError as exc:
        raise MountsError(str(exc)) from exc
    if text is None:
        raise MountsError(f"{proc_root}/self/mountinfo: not there; mount /proc")
    return text


def read(proc_root: str = procfs.PROC_ROOT) -> tuple[Mount, ...]:
    """Return the mounts that this process sees. Raises MountsError."""
    return parse(table(proc_root))


def at(point: str, proc_root: str = procfs.PROC_ROOT) -> Mount | None:
    """Return the visible mount on a directory, None where nothing is mounted on it. Raises MountsError."""
    return next((mount for mount in reversed(read(proc_root)) if mount.point == point), None)
