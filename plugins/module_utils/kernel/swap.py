# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Areas that the kernel swaps to: /proc/swaps, swapon(8) and swapoff(8)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Callable

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files

PROC_ROOT = "/proc"
_ESCAPED = re.compile(r"\\([0-7]{3})")
# How lxcfs tells a container how much swap it may use; there is nothing to switch.
_NO_AREA = "virtual"
_TIMEOUT_S = 600.0

Run = Callable[..., commands.Result]


class SwapError(Exception):
    """Swap cannot be listed or switched; the text says which area, why and what to do."""


@dataclass(frozen=True)
class Area:
    """One area in use: device or file, its size and use in bytes, and its priority (negative: the kernel's choice)."""

    path: str
    size_bytes: int
    used_bytes: int
    priority: int


def parse(text: str) -> tuple[Area, ...]:
    """Return the areas in the text of /proc/swaps, highest priority first. Raises SwapError."""
    found = []
    for line in text.splitlines()[1:]:
        fields = line.split()
        if fields[1:2] == [_NO_AREA]:
            continue
        try:
            name = _ESCAPED.sub(lambda match: chr(int(match.group(1), 8)), fields[0])
            found.append(Area(name, int(fields[-3]) * 1024, int(fields[-2]) * 1024, int(fields[-1])))
        except (ValueError, IndexError) as exc:
            raise SwapError(
                f"/proc/swaps: the line {line!r} is not understood; report it with the kernel's version"
            ) from exc
    return tuple(sorted(found, key=lambda area: -area.priority))


def _text(proc_root: str) -> str:
    try:
        return files.read_text_or_none(os.path.join(proc_root, "swaps")) or ""
    except files.FilesError as exc:
        raise SwapError(str(exc)) from exc


def areas(proc_root: str = PROC_ROOT) -> tuple[Area, ...]:
    """Return the areas in use; none where the kernel has no swap. Raises SwapError."""
    return parse(_text(proc_root))


def is_elsewhere(proc_root: str = PROC_ROOT) -> bool:
    """Tell whether a container is shown swap that only its machine can switch. Raises SwapError."""
    return any(line.split()[1:2] == [_NO_AREA] for line in _text(proc_root).splitlines()[1:])


def switch_off(path: str, run: Run = commands.run) -> None:
    """Stop using an area; what is in it goes back to memory. Raises SwapError."""
    try:
        run(["swapoff", path], timeout_s=_TIMEOUT_S)
    except commands.CommandError as exc:
        raise SwapError(f"swap {path}: {exc}") from exc


def switch_on(path: str, priority: int | None, run: Run = commands.run) -> None:
    """Use an area. A priority below 0 is the kernel's own choice and cannot be asked for. Raises SwapError."""
    chosen = ["-p", str(priority)] if priority is not None and priority >= 0 else []
    try:
        run(["swapon", *chosen, path], timeout_s=_TIMEOUT_S)
    except commands.CommandError as exc:
        raise SwapError(f"swap {path}: {exc}") from exc
