# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pressure stall information: how long tasks waited for CPU, memory, I/O (Documentation/accounting/psi.rst)."""

from __future__ import annotations

import os

RESOURCES = ("cpu", "memory", "io")


class PsiError(Exception):
    """A pressure file has content that psi.rst does not describe."""


def parse(text: str) -> dict[str, int | None]:
    """Return {"some_us", "full_us"}: total stall time since boot, None where the kernel has no such line.

    Kernels before 5.13 have no "full" line for the CPU. Raises PsiError on anything else.
    """
    totals: dict[str, int | None] = {"some_us": None, "full_us": None}
    for line in text.splitlines():
        kind, *fields = line.split()
        key = f"{kind}_us"
        total = next((field[6:] for field in fields if field.startswith("total=")), "")
        if key not in totals or not total.isdecimal():
            raise PsiError(f"pressure line {line[:60]!r}: expected 'some|full … total=N'; see psi.rst")
        totals[key] = int(total)
    return totals


def is_available(proc_root: str = "/proc") -> bool:
    """Tell whether the kernel keeps pressure figures (CONFIG_PSI, and not switched off by psi=0)."""
    try:
        with open(os.path.join(proc_root, "pressure", "cpu"), encoding="ascii") as handle:
            return bool(handle.readline())
    except OSError:
        return False
