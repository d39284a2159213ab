# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU lists against the CPUs that a machine has: https://docs.kernel.org/admin-guide/cputopology.html."""

from __future__ import annotations

import os

from ansible_collections.colocation.testbed.plugins.module_utils import quantity

SYS_ROOT = "/sys"


class CpuListError(Exception):
    """A CPU list cannot be read, or names CPUs that this machine does not have."""


def parse(text: str) -> frozenset[int]:
    """Return the CPUs in a list; the empty text is the empty list. Raises CpuListError."""
    try:
        return frozenset(quantity.parse_cpu_list(text))
    except quantity.QuantityError as exc:
        raise CpuListError(str(exc)) from exc


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
            f"{what}: CPU {quantity.format_cpu_list(missing)} asked for, but this machine has "
            f"{quantity.format_cpu_list(present)} online; choose among these"
        )
    return wanted
