# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Interrupts by number and by the names of what they serve (Documentation/core-api/irq/irq-affinity.rst)."""

from __future__ import annotations

import errno
import fnmatch
import os
from dataclasses import dataclass

PROC_ROOT = "/proc"
# Interrupts that the kernel spreads by itself, or that belong to one CPU, refuse a mask with one of these.
# Managed by the kernel, forbidden, or (ENOSPC) the CPUs have no vector left, of which each has about 200 on x86.
REFUSALS = (errno.EIO, errno.EPERM, errno.ENOSPC)


@dataclass(frozen=True)
class Interrupt:
    """One interrupt: its number, the file of its CPU list, and what it serves."""

    number: int
    path: str
    names: tuple[str, ...]


def default_path(proc_root: str = PROC_ROOT) -> str:
    """Return the file with the mask that new interrupts get."""
    return os.path.join(proc_root, "irq", "default_smp_affinity")


def interrupts(proc_root: str = PROC_ROOT) -> tuple[Interrupt, ...]:
    """Return the interrupts that somebody has asked for, by number.

    The kernel keeps a directory for each interrupt, with an empty one in it for each of its users.
    """
    folder = os.path.join(proc_root, "irq")
    try:
        numbers = sorted(int(name) for name in os.listdir(folder) if name.isdigit())
    except OSError:
        return ()
    found = []
    for number in numbers:
        place = os.path.join(folder, str(number))
        path = os.path.join(place, "smp_affinity_list")
        try:
            names = sorted(entry.name for entry in os.scandir(place) if entry.is_dir())
        except OSError:
            continue  # its device was taken away meanwhile
        if names and os.path.exists(path):
            found.append(Interrupt(number, path, tuple(names)))
    return tuple(found)


def matching(pattern: str, among: tuple[Interrupt, ...]) -> tuple[Interrupt, ...]:
    """Return the interrupts of a number, or of a shell pattern for what they serve."""
    if pattern.isdigit():
        return tuple(item for item in among if item.number == int(pattern))
    return tuple(item for item in among if any(fnmatch.fnmatchcase(name, pattern) for name in item.names))
