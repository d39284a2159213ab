# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wanted of resctrl groups, and the single changes that bring it about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl import Group, ResctrlError, format_line

MAKE, SCHEMATA, CPUS, MOVE, REMOVE = "make", "schemata", "cpus", "move", "remove"
KIND = "resctrl"


@dataclass(frozen=True)
class WantedMonitor:
    """A wanted monitoring group and the processes in it."""

    name: str
    pids: tuple[int, ...] = ()


@dataclass(frozen=True)
class WantedGroup:
    """A wanted control group ("" is the root group): a value for all caches by line of schemata, CPUs, processes."""

    name: str
    state: str = "present"
    values: Mapping[str, int] = field(default_factory=dict)
    cpus: frozenset[int] | None = None
    pids: tuple[int, ...] = ()
    monitors: tuple[WantedMonitor, ...] = ()


@dataclass(frozen=True)
class Saved:
    """What a group had, to put it back: lines of schemata by name, CPU list, CPU lists of its monitoring groups."""

    directory: str
    lines: Mapping[str, str]
    cpus: str
    monitors: Mapping[str, str]

    def as_json(self, boot_id: str) -> dict[str, Any]:
        """Return what the journal keeps; resctrl forgets everything at a restart, hence the boot."""
        return {"boot_id": boot_id, "lines": dict(self.lines), "cpus": self.cpus, "monitors": dict(self.monitors)}


@dataclass(frozen=True)
class Move:
    """A thread that goes to another group; the start time tells it from a later one of its number."""

    tid: int
    start_ticks: int
    source: str


@dataclass(frozen=True)
class Step:
    """One change of the group in ``directory``; ``saved`` and ``moves`` take it back, ``pids`` are looked at again."""

    kind: str
    directory: str
    text: str = ""
    saved: tuple[Saved, ...] = ()
    pids: tuple[int, ...] = ()
    moves: tuple[Move, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Steps in order, groups before and after by name as shown to people, and journal entries that become obsolete."""

    steps: tuple[Step, ...]
    before: Mapping[str, Mapping[str, Any]]
    after: Mapping[str, Mapping[str, Any]]
    forget: frozenset[str]
    gone: tuple[int, ...]


def save(group: Group) -> Saved:
    """Return what a group has now, as far as this library changes it."""
    lines = {line.name: format_line(line.name, line.values) for line in group.lines if line.values is not None}
    monitors = {name: quantity.format_cpu_list(item.cpus) for name, item in group.monitors.items()}
    return Saved(group.directory, lines, quantity.format_cpu_list(group.cpus), monitors)


def from_json(directory: str, raw: Any) -> Saved:
    """Return what the journal kept. Raises ResctrlError when it is damaged."""
    try:
        lines, monitors = dict(raw["lines"]), dict(raw["monitors"])
        texts = [*lines.values(), *monitors.values(), raw["cpus"]]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("not text")  # noqa: TRY301
        return Saved(directory, lines, raw["cpus"], monitors)
    except (KeyError, TypeError, ValueError) as exc:
        raise ResctrlError(f"{directory}: its recorded state is damaged ({exc!r}); set it by hand") from exc


def made(boot_id: str) -> dict[str, Any]:
    """Return what the journal keeps of a group that was made."""
    return {"boot_id": boot_id, "made": True}


def is_made(previous: Any, boot_id: str) -> bool:
    """Tell whether a journal entry says that a group was made since the machine was started."""
    return isinstance(previous, Mapping) and previous.get("made") is True and previous.get("boot_id") == boot_id


def task_target(mount_point: str, move: Move) -> str:
    """Return the journal's name of a thread."""
    return f"{mount_point}/tasks:{move.tid}:{move.start_ticks}"
