# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Masks of CPUs in hexadecimal groups of 32 bits (bitmap_parse in the kernel's lib/bitmap-str.c)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ansible_collections.colocation.testbed.plugins.module_utils import quantity

_GROUP_BITS = 32
_GROUP = re.compile(r"[0-9a-fA-F]{1,8}\Z")


class CpuMaskError(Exception):
    """A text is no mask of CPUs."""


def parse(text: str) -> frozenset[int]:
    """Return the CPUs of a mask such as ``00000001,00000003``. Raises CpuMaskError."""
    mask = 0
    for group in text.strip().split(","):
        if not _GROUP.match(group):
            raise CpuMaskError(f"{text[:80]!r}: is not a CPU mask; the kernel writes hexadecimal groups such as '0f'")
        mask = mask << _GROUP_BITS | int(group, 16)
    cpus = frozenset(bit for bit in range(mask.bit_length()) if mask >> bit & 1)
    if cpus and max(cpus) > quantity.MAX_CPU:
        raise CpuMaskError(f"{text[:80]!r}: names CPUs above {quantity.MAX_CPU}")
    return cpus


def format_mask(cpus: Iterable[int]) -> str:
    """Return the mask of CPUs as the kernel takes it: groups of 32 bits, the highest first."""
    mask = sum(1 << cpu for cpu in set(cpus))
    groups = [f"{mask & 0xFFFFFFFF:x}"]
    while mask := mask >> _GROUP_BITS:
        groups[-1] = groups[-1].zfill(8)
        groups.append(f"{mask & 0xFFFFFFFF:x}")
    return ",".join(reversed(groups))
