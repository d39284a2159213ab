# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swap areas as settings: which are switched off or on, and whether memory can take what is in them."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import procfs, swap
from ansible_collections.colocation.testbed.plugins.module_utils.tuning.settings import Roots, Setting, TuningError

ALL = "all"
UNKEPT = "fstab and units are not edited; the host's own areas are in use again after boot, so apply again after it"


@dataclass(frozen=True)
class Switch:
    """An area that is switched; ``area`` is how it was in use, None when it wasn't."""

    path: str
    on: bool
    area: swap.Area | None


def resolve(setting: Setting, roots: Roots) -> tuple[tuple[Switch, ...], str]:
    """Return the areas that a setting is about, in order of priority, and what the host lacks.

    An area that is as wanted already is in the result too. Raises TuningError.
    """
    if setting.value not in ("disabled", "enabled"):
        raise TuningError(f"{setting.value!r} is not one of disabled, enabled; write one of these")
    on = setting.value == "enabled"
    try:
        used, elsewhere = swap.areas(roots.proc), swap.is_elsewhere(roots.proc)
    except swap.SwapError as exc:
        raise TuningError(str(exc)) from exc
    if setting.name == ALL:
        if on:
            raise TuningError("'all' can only be disabled; name the device or file that is to be enabled")
        why = "this host is a container, whose swap is its machine's; set it there" if elsewhere and not used else ""
        return tuple(Switch(area.path, on, area) for area in used), why
    if not setting.name.startswith("/"):
        raise TuningError(f"{setting.name!r} is not 'all' or the path of a device or file; write one of these")
    # The kernel lists an area by its real path, fstab by a link such as /dev/disk/by-uuid/….
    path = os.path.realpath(setting.name)
    area = next((area for area in used if area.path == path), None)
    if area is None and not os.path.exists(path):
        return (), f"there is no {setting.name}" if on else ""
    return (Switch(path, on, area),), ""


def require_memory(switches: list[Switch], roots: Roots) -> None:
    """Raise TuningError when the memory cannot take what is in the areas that are to be switched off."""
    used = sum(item.area.used_bytes for item in switches if not item.on and item.area is not None)
    try:
        text = files.read_text(os.path.join(roots.proc, "meminfo")) if used else ""
    except files.FilesError as exc:
        raise TuningError(str(exc)) from exc
    available = procfs.parse_meminfo(text).get("MemAvailable", 0) if used else 0
    if used > available:
        raise TuningError(
            f"swap: {used // 2**20} MiB are swapped out and {available // 2**20} MiB of memory are available; "
            "free memory before swap is switched off"
        )
