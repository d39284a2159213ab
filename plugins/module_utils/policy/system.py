# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A policy's part for the node as a whole: settings in the words of module host_tuning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.policy import effects
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import UNSUPPORTED, NodeFacts, Note
from ansible_collections.colocation.testbed.plugins.module_utils.policy.overlay import Strategy

SYSTEM = "system-config"
MIN_FREE_KIB, MAX_FREE_KIB = 10240, 10485760
_MIN_WATERMARK_SCALE = 10


def min_free_kib(memory_bytes: int, factor: int) -> int:
    """Return vm.min_free_kbytes: KiB of memory · factor / 10000. Koordinator takes 10240 to 10485760."""
    return memory_bytes // 1024 * factor // 10000


def settings(strategies: Mapping[str, Strategy], node: NodeFacts) -> tuple[list[dict[str, Any]], list[Note]]:
    """Return the settings that a policy gives, and notes on those that Koordinator would skip."""
    system = strategies[SYSTEM]
    found: list[dict[str, Any]] = []
    notes: list[Note] = []
    for key in ("minFreeKbytesFactor", "watermarkScaleFactor", *_SWITCHES):
        value = system.get(key)
        if value is None:
            continue
        if key == "minFreeKbytesFactor":
            value = min_free_kib(node.memory_bytes, value)
        problem = _problem(key, value)
        name = effects.find(SYSTEM, (key,)).names[0]
        if problem:
            notes.append(Note((key,), UNSUPPORTED, problem))
        elif name not in node.lacking:
            kind = "sysfs" if name.startswith("/") else "sysctl"
            found.append({"kind": kind, "name": name, "value": str(value), "persist": False})
    return found, notes


_SWITCHES = ("memcgReapBackGround", "schedGroupIdentityEnabled", "schedIdleSaverWmark")


def _problem(key: str, value: int) -> str:
    if key == "minFreeKbytesFactor" and not MIN_FREE_KIB <= value <= MAX_FREE_KIB:
        return f"comes to {value} KiB, and Koordinator takes {MIN_FREE_KIB} to {MAX_FREE_KIB}; change the factor"
    if key == "watermarkScaleFactor" and value < _MIN_WATERMARK_SCALE:
        return f"{value} is below {_MIN_WATERMARK_SCALE}, which Koordinator's agent skips; raise it"
    return ""
