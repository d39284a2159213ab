# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Groups of resctrl as they will be: planned changes on top of what was read, by the kernel's own rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import resctrl
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl import (
    BANDWIDTH_LINE,
    Group,
    Line,
    Monitor,
    State,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl_steps import Saved, save


class Model:
    """The groups by name, which planning changes as the kernel would."""

    def __init__(self, state: State) -> None:
        """Start from what is there."""
        self.state = state
        self.groups: dict[str, Group] = dict(state.groups)

    def make(self, name: str) -> Group:
        """Add a group with a new group's values: everything, where no other group is exclusive."""
        lines = []
        for line in self.state.root.lines:
            if line.values is not None:
                lines.append(Line(line.name, dict.fromkeys(line.values, self._full(line)), ""))
        directory = f"{self.state.mount_point}/{name}"
        made = Group(name, directory, resctrl.SHAREABLE, tuple(lines), frozenset(), {})
        self.groups[name] = made
        return made

    def _full(self, line: Line) -> int:
        info = self.state.info
        if line.name != BANDWIDTH_LINE:
            return info.cache.cbm_mask if info.cache else 0
        if info.mba_mbps:
            return resctrl.UNLIMITED_MBPS
        return 100 if info.bandwidth and info.bandwidth.linear else max((line.values or {0: 0}).values())

    def remove(self, name: str) -> None:
        """Take a group away; its CPUs go to the root group."""
        gone = self.groups.pop(name)
        self._set_cpus("", self.groups[""].cpus | gone.cpus)

    def make_monitor(self, group: str, name: str) -> Monitor:
        """Add a monitoring group."""
        owner = self.groups[group]
        made = Monitor(name, f"{owner.directory}/mon_groups/{name}", frozenset())
        self.groups[group] = replace(owner, monitors={**owner.monitors, name: made})
        return made

    def remove_monitor(self, group: str, name: str) -> None:
        """Take a monitoring group away."""
        owner = self.groups[group]
        left = {key: item for key, item in owner.monitors.items() if key != name}
        self.groups[group] = replace(owner, monitors=left)

    def _set_cpus(self, name: str, cpus: frozenset[int]) -> None:
        self.groups[name] = replace(self.groups[name], cpus=cpus)

    def write_cpus(self, name: str, cpus: frozenset[int]) -> tuple[Saved, ...]:
        """Give a group its CPUs, which others lose; returns what those had whose CPUs are no longer the same.

        Putting that back in its order works: the others take their CPUs, then the group itself, then what the root
        group monitors. As in cpus_ctrl_write of fs/resctrl/rdtgroup.c.
        """
        before = dict(self.groups)
        dropped = self.groups[name].cpus - cpus
        for other in list(self.groups.values()):
            if other.name == name:
                continue
            left = other.cpus - cpus | (dropped if not other.name else frozenset())
            inside = {key: replace(item, cpus=item.cpus & left) for key, item in other.monitors.items()}
            self.groups[other.name] = replace(other, cpus=left, monitors=inside)
        own = self.groups[name]
        cleared = {key: replace(item, cpus=frozenset()) for key, item in own.monitors.items()}
        self.groups[name] = replace(own, cpus=cpus, monitors=cleared)
        changed = [item for item in before.values() if save(item) != save(self.groups[item.name])]
        return tuple(save(item) for item in sorted(changed, key=lambda item: (not item.name, item.name == name)))

    def write_lines(self, name: str, lines: tuple[Line, ...]) -> None:
        """Set lines of a group's schemata."""
        new = {line.name: line for line in lines}
        owner = self.groups[name]
        self.groups[name] = replace(owner, lines=tuple(new.get(line.name, line) for line in owner.lines))

    def shown(self, name: str) -> dict[str, Any] | None:
        """Return a group as a difference shows it, None where it is not there."""
        group = self.groups.get(name)
        if group is None:
            return None
        found: dict[str, Any] = dict(save(group).lines)
        found["cpus"] = quantity.format_cpu_list(group.cpus)
        found["monitor_groups"] = sorted(group.monitors)
        return found
