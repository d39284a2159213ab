# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's CPU list format (``0-3,8``): https://docs.kernel.org/admin-guide/cputopology.html."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

SYS_ROOT = "/sys"
_PART = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")


class CpuListError(Exception):
    """A CPU list cannot be read, or names CPUs that this machine does not have."""


def parse(text: str) -> frozenset[int]:
    """Return the CPUs in a list; the empty text is the empty list. Raises CpuListError."""
    cpus: set[int] = set()
    for part in text.strip().split(",") if text.strip() else []:
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise CpuListError(f"CPU list {text!r}: {part.strip()!r} is not a CPU or a range; write it like 0-3,8")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise CpuListError(f"CPU list {text!r}: range {part.strip()!r} ends before it begins; write it like 0-3,8")
        cpus.update(range(first, last + 1))
    return frozenset(cpus)


def render(cpus: Iterable[int]) -> str:
    """Return the shortest list of these CPUs, as the kernel prints it."""
    parts: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], cpu]
        else:
            parts.append([cpu])
    return ",".join("-".join(str(end) for end in part) for part in parts)


def online(sys_root: str = SYS_ROOT) -> frozenset[int]:
    """Return the CPUs that are online. Raises CpuListError."""
    path = os.path.join(sys_root, "devices/system/cpu/online")
    try:
        with open(path, encoding="ascii") as handle:
            return parse(handle.read())
    except OSError as exc:
        raise CpuListError(f"{path}: cannot be read: {exc.strerror}; is /sys mounted?") from exc


def require_online(text: str, what: str, sys_root: str = SYS_ROOT) -> frozenset[int]:
    """Return the CPUs in ``text``; raises CpuListError naming ``what`` where this machine lacks one of them."""
    try:
        wanted = parse(text)
    except CpuListError as exc:
        raise CpuListError(f"{what}: {exc}") from exc
    present = online(sys_root)
    missing = wanted - present
    if missing:
        raise CpuListError(
            f"{what}: CPU {render(missing)} asked for, but this machine has {render(present)} online; "
            "choose among these"
        )
    return wanted
