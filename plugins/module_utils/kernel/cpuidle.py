# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU idle states in sysfs (Documentation/admin-guide/pm/cpuidle.rst)."""

from __future__ import annotations

import os
from dataclasses import dataclass

CPU_ROOT = "/sys/devices/system/cpu"


@dataclass(frozen=True)
class IdleState:
    """One idle state of one CPU: its name, what leaving it costs (None: not told), and the files that count its use."""

    name: str
    latency_us: int | None
    usage_path: str
    time_path: str


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as handle:
            return handle.read().strip()
    except OSError:
        return ""


def driver(cpu_root: str = CPU_ROOT) -> str | None:
    """Return the name of the cpuidle driver, or None where the kernel has none (idle CPUs then just halt)."""
    name = _read(os.path.join(cpu_root, "cpuidle", "current_driver"))
    return name if name and name != "none" else None


def states(cpu: int, cpu_root: str = CPU_ROOT) -> list[IdleState]:
    """Return the idle states of a CPU in order of depth, empty where the kernel shows none."""
    folder = os.path.join(cpu_root, f"cpu{cpu}", "cpuidle")
    try:
        names = [name for name in os.listdir(folder) if name.startswith("state") and name[5:].isdigit()]
    except OSError:
        return []
    found = []
    for name in sorted(names, key=lambda item: int(item[5:])):
        path = os.path.join(folder, name)
        latency = _read(os.path.join(path, "latency"))
        found.append(
            IdleState(
                name=_read(os.path.join(path, "name")),
                latency_us=int(latency) if latency.isdigit() else None,
                usage_path=os.path.join(path, "usage"),
                time_path=os.path.join(path, "time"),
            )
        )
    return found


def deep_states(cpu: int, cpu_root: str = CPU_ROOT) -> list[IdleState]:
    """Return the states that nobody enters while no exit latency is allowed.

    The first state is what is left then, whatever it is called: POLL, C0 (Linux 2.6), snooze (POWER), WFI (Arm). So are
    those that cost no time to leave, as firmware says of C1 on many AMD processors.
    """
    return [state for state in states(cpu, cpu_root)[1:] if state.latency_us != 0]
