# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which groups of a host a policy is applied to: patterns, classes of service, and what is asked for in each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cgroup_foreign
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import CgroupError, Layout
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import (
    Requests,
    RequestsError,
    Workload,
    requests_of,
    summed,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy.resctrl_groups import GROUPS

# Exists exactly where systemd manages the host (sd_booted(3)).
SYSTEMD = "/run/systemd/system"
_UNITS = (".slice", ".service", ".scope")


class GroupsError(Exception):
    """Entries cannot be used; ``problems`` has one sentence for each thing that is wrong."""

    def __init__(self, problems: Sequence[str]) -> None:
        """Keep the sentences."""
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


@dataclass(frozen=True)
class Entry:
    """A pattern of groups with what holds for each of them."""

    pattern: str
    qos: str
    level: str
    requests: Requests
    required: bool


@dataclass(frozen=True)
class Found:
    """The groups of all entries, and the patterns that matched none."""

    workloads: tuple[Workload, ...]
    unmatched: tuple[str, ...]


def entries(raw: Sequence[Mapping[str, Any]]) -> list[Entry]:
    """Return the entries of option ``groups``. Raises GroupsError with all problems."""
    found: list[Entry] = []
    problems: list[str] = []
    for number, item in enumerate(raw):
        asked: list[Requests] = []
        for place, container in enumerate(item["containers"]):
            try:
                asked.append(requests_of(container, item["qos"], f"groups[{number}].containers[{place}]"))
            except RequestsError as exc:
                problems.append(str(exc))
        total = summed(asked) if asked else Requests()
        found.append(Entry(item["path"], item["qos"], item["level"], total, item["on_no_match"] == "fail"))
    if problems:
        raise GroupsError(problems)
    return found


def overwritten(names: Iterable[str]) -> list[str]:
    """Return a warning if groups are those of systemd's units, else nothing."""
    units = [name for name in names if name.endswith(_UNITS)] if os.path.isdir(SYSTEMD) else []
    if not units:
        return []
    shown = units[0] if len(units) == 1 else f"{units[0]} and {len(units) - 1} more"
    return [
        f"groups of systemd ({shown}): systemctl daemon-reload, which installing packages runs too, writes what its "
        "units say over the values set here; apply the policy again after it"
    ]


def match(layout: Layout, wanted: Sequence[Entry]) -> Found:
    """Return the groups that are there. Raises GroupsError for required patterns without any, and for doubles."""
    problems: list[str] = []
    found: dict[str, Workload] = {}
    unmatched: list[str] = []
    for number, entry in enumerate(wanted):
        try:
            names = cgroup_foreign.expand(layout, entry.pattern)
        except CgroupError as exc:
            problems.append(f"groups[{number}].path: {exc}")
            continue
        if not names:
            unmatched.append(entry.pattern)
            if entry.required:
                problems.append(
                    f"groups[{number}].path: {entry.pattern} matches no group below "
                    f"{layout.hierarchy('cpu').mount}; correct it, start what makes the group, or set on_no_match: skip"
                )
        for name in names:
            if name in found:
                problems.append(f"groups[{number}].path: {name} is matched by an earlier entry too; narrow one of them")
            found[name] = Workload(name, entry.qos, entry.level, entry.requests)
    if problems:
        raise GroupsError(problems)
    return Found(tuple(found.values()), tuple(unmatched))


def existing(layout: Layout, names: Iterable[str]) -> frozenset[str]:
    """Return the groups among ``names`` that are there."""
    return frozenset(name for name in names if os.path.isdir(layout.path("cpu", name)))


def with_processes(
    layout: Layout, resctrl: Sequence[Mapping[str, Any]], workloads: Sequence[Workload]
) -> list[dict[str, Any]]:
    """Return resctrl groups with the processes that are in groups of their class, or below them."""
    found: list[dict[str, Any]] = []
    for group in resctrl:
        inside = [item for item in workloads if GROUPS.get(item.qos_class) == group["name"]]
        pids = {pid for item in inside for pid in _pids_below(layout.path("cpu", item.group))}
        found.append({**group, "pids": sorted(pids)})
    return found


def _pids_below(directory: str) -> Iterable[int]:
    for place, _below, _files in os.walk(directory):
        yield from cgroup.read_pids(place)
