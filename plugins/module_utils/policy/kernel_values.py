# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a policy, a node and its workloads to the kernel values that are wanted, and the state of each key.

Pure: the same for cgroup v1 and v2, since the options of module cgroup are; which of them a node can have, its facts
tell. Expects a policy that validation has found good.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.policy import (
    applications,
    bandwidth,
    blkio,
    burst,
    cpu,
    effects,
    memory,
    overlay,
    resctrl_groups,
    system,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import (
    DEGRADED,
    SUPPORTED,
    UNSUPPORTED,
    NodeFacts,
    Note,
    Wanted,
    Workload,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy.overlay import Strategy
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary import SECTIONS

_RESOURCES = (cpu.options, memory.options, blkio.options, burst.options)
_WORST = (SUPPORTED, DEGRADED, UNSUPPORTED)


def wanted(policy: Mapping[str, Any], node: NodeFacts, workloads: Sequence[Workload]) -> Wanted:
    """Return what a policy wants of a node, in the words of the modules.

    Options that the node lacks are left out; the states say which keys that concerns. Only what is switched on is
    wanted: a disabled block has no options, so that whoever had set them can take them back.
    """
    strategies = {section: overlay.strategy(policy, section, node.labels) for section in SECTIONS}
    applied = [*workloads, *applications.workloads(strategies, node.kubepods)]
    cgroups: list[Mapping[str, Any]] = []
    notes: dict[str, list[Note]] = {section: [] for section in SECTIONS}
    for workload in applied:
        options: dict[str, Any] = {}
        for resource in _RESOURCES:
            part = resource(strategies, node, workload)
            options.update({name: value for name, value in part.options.items() if name not in node.lacking})
            notes[burst.BURST if resource is burst.options else cpu.QOS] += part.notes
        cgroups.append({"group": workload.group, "options": options})
    host, system_notes = system.settings(strategies, node)
    notes[system.SYSTEM] += system_notes
    notes[cpu.THRESHOLD] += cpu.notes(strategies, applied)
    notes[cpu.QOS] += [*blkio.notes(strategies, node), *resctrl_groups.notes(strategies, node.cache)]
    states = [row for section in SECTIONS if section in policy for row in _rows(strategies[section], node, notes)]
    can_tell_apart = not any(name in node.lacking for name in effects.BANDWIDTH_NAMES)
    link = bandwidth.wanted(strategies[bandwidth.SECTION], applied) if can_tell_apart else {"pools": [], "classes": []}
    return Wanted(tuple(cgroups), tuple(resctrl_groups.groups(strategies)), tuple(host), tuple(states), link)


def _rows(strategy: Strategy, node: NodeFacts, notes: Mapping[str, list[Note]]) -> Iterator[tuple[str, str, str]]:
    """Yield the row of each key that the policy gives, and of each default that comes to a kernel value."""
    told: dict[tuple[str, ...], tuple[str, str]] = {}
    for note in notes[strategy.section]:
        row = (note.state, note.reason)
        told[note.names] = _worse(told[note.names], row) if note.names in told else row
    # Keys within lists have notes alone, since every entry has its own.
    keys = dict.fromkeys([*effects.keys(strategy.section), *strategy.given, *told])
    for names in keys:
        if names in told or (strategy.get(*names) is not None and _is_told(strategy, names)):
            off = _switched_off(strategy, names)
            row = (SUPPORTED, "without effect: it is switched off") if off else told.get(names, (SUPPORTED, ""))
            yield (strategy.path(*names), *(row if off else _worse(row, _state(strategy, names, node))))


def _worse(one: tuple[str, str], other: tuple[str, str]) -> tuple[str, str]:
    """Return the worse of two states, the first where they are equal."""
    return max(one, other, key=lambda row: _WORST.index(row[0]))


def _state(strategy: Strategy, names: tuple[str, ...], node: NodeFacts) -> tuple[str, str]:
    effect = effects.find(strategy.section, names)
    if effect.kind == effects.NOTHING:
        return UNSUPPORTED, effect.text
    lacking = [node.lacking[name] for name in effect.names if name in node.lacking]
    if lacking:
        return (UNSUPPORTED if len(lacking) == len(effect.names) else DEGRADED), lacking[0]
    return SUPPORTED, ""


def _is_told(strategy: Strategy, names: tuple[str, ...]) -> bool:
    """Tell whether a key has a row: the policy gives it, or its default comes to a kernel value."""
    kind = effects.find(strategy.section, names).kind
    in_effect = kind in effects.CARRIED_OUT and not _switched_off(strategy, names)
    return names in strategy.given or in_effect


def _switched_off(strategy: Strategy, names: tuple[str, ...]) -> bool:
    """Tell whether a key counts for nothing, because the switch beside it is off."""
    if names[-1] in ("enable", "policy"):
        return False
    switch = (*names[:2], "enable") if len(names) > 2 else ("enable",)
    if strategy.section == burst.BURST:
        return bool(strategy.get("policy") == "none")
    return bool(strategy.get(*switch) is False)
