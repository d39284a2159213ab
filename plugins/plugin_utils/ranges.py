# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranges of whole numbers, and names, that both later parts and the preflight table hold users to."""

from __future__ import annotations

import re
from typing import Any

_WHOLE = re.compile(r"-?[0-9]{1,18}")
#: Least and greatest size of the service's page.
PAGE_BYTES = (1_000, 100_000_000)
SLOWDOWN_PCT = (1, 1000)
TCP_PORT = (1, 65535)
#: A host's name in the inventory, after which files are called.
HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


def whole(value: Any) -> int | None:
    """Return a whole number, also one that the command line gave as a text; None for anything else."""
    written = str(value)
    if isinstance(value, (bool, float)) or not _WHOLE.fullmatch(written):
        return None
    return int(written)


def is_inside(value: Any, allowed: tuple[int, int]) -> bool:
    """Return whether a value is a whole number within a range, both ends included."""
    number = whole(value)
    return number is not None and allowed[0] <= number <= allowed[1]
