# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which disk is meant: from a path or MAJ:MIN to the number of a whole disk (sysfs-dev-block, /sys/dev/block)."""

from __future__ import annotations

import os
import re
import stat
from typing import Callable

SYS_ROOT = "/sys"
_NUMBER = re.compile(r"[0-9]{1,7}:[0-9]{1,7}\Z")


class BlockError(Exception):
    """A disk is not there, or is not a whole disk."""


def whole_disk(device: str, sys_root: str = SYS_ROOT, status: Callable[[str], os.stat_result] = os.stat) -> str:
    """Return "MAJ:MIN" of a whole disk that is given so or as a path. Raises BlockError for anything else."""
    number = device if _NUMBER.match(device) else _number_of(device, status)
    place = f"{sys_root}/dev/block/{number}"
    if not os.path.isdir(place):
        raise BlockError(f"device {device}: there is no block device {number}; look at {sys_root}/dev/block")
    if os.path.exists(f"{place}/partition"):
        disk = os.path.dirname(os.path.realpath(place))
        raise BlockError(
            f"device {device}: is a partition of {os.path.basename(disk)}, and limits are of whole disks; "
            f"write /dev/{os.path.basename(disk)} ({_dev(disk)})"
        )
    return number


def _dev(directory: str) -> str:
    try:
        with open(f"{directory}/dev", encoding="ascii") as handle:
            return handle.read().strip()
    except OSError:
        return "number unknown"


def _number_of(path: str, status: Callable[[str], os.stat_result]) -> str:
    if not path.startswith("/") or "\n" in path:
        raise BlockError(f"device {path!r}: is neither a number such as 8:0 nor a path; write one such as /dev/sda")
    try:
        found = status(path)
    except OSError as exc:
        raise BlockError(f"device {path}: {exc.strerror}; write the path of a disk such as /dev/sda") from exc
    if not stat.S_ISBLK(found.st_mode):
        raise BlockError(f"device {path}: is no block device; write the path of a disk such as /dev/sda")
    return f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
