# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Frequency scaling in sysfs: policies, each of one or several CPUs (Documentation/admin-guide/pm/cpufreq.rst)."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import knob

SYS_ROOT = "/sys"
CPU_FOLDER = "devices/system/cpu"
GOVERNOR = "scaling_governor"
ENERGY_PREFERENCE = "energy_performance_preference"
# Stands for what the firmware has chosen, and is shown by the name of that (drivers/cpufreq/intel_pstate.c).
FIRMWARE_PREFERENCE = "default"
_AVAILABLE = {
    GOVERNOR: "scaling_available_governors",
    ENERGY_PREFERENCE: "energy_performance_available_preferences",
}


@dataclass(frozen=True)
class Policy:
    """One policy: its directory and the CPUs that it governs now."""

    path: str
    cpus: frozenset[int]

    def file(self, name: str) -> str:
        """Return the path of one of its files."""
        return os.path.join(self.path, name)

    def allowed(self, name: str) -> tuple[str, ...]:
        """Return the values that a file takes, none where the kernel doesn't say. Raises KnobError."""
        return tuple((knob.read(self.file(_AVAILABLE[name])) or "").split())


def policies(sys_root: str = SYS_ROOT) -> tuple[Policy, ...]:
    """Return the policies that govern an online CPU, in order. Raises KnobError."""
    folder = os.path.join(sys_root, CPU_FOLDER, "cpufreq")
    try:
        names = [name for name in os.listdir(folder) if name.startswith("policy") and name[6:].isdigit()]
    except OSError:
        return ()
    found = []
    for name in sorted(names, key=lambda item: int(item[6:])):
        place = os.path.join(folder, name)
        cpus = frozenset(int(word) for word in (knob.read(os.path.join(place, "affected_cpus")) or "").split())
        if cpus:
            found.append(Policy(place, cpus))
    return tuple(found)


def turbo(sys_root: str = SYS_ROOT) -> tuple[str, bool] | None:
    """Return the switch for frequencies above the nominal one, and whether 1 in it means off; None where none is.

    A driver intel_pstate that was switched off keeps its files, which then cannot be read. Raises KnobError.
    """
    for name, inverted in (("intel_pstate/no_turbo", True), ("cpufreq/boost", False)):
        path = os.path.join(sys_root, CPU_FOLDER, name)
        status = knob.read(os.path.join(os.path.dirname(path), "status")) if inverted else None
        if os.path.exists(path) and status != "off":
            return path, inverted
    return None
