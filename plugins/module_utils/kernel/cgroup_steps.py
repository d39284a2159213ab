# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wanted of control groups, and the single changes that bring it about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import Hierarchy
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_keys import KernelFile, Key, Value
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_tree import Tree

MAKE, WRITE, KEEP, ENABLE, MOVE, REMOVE = "make", "write", "keep", "enable", "move", "remove"


@dataclass(frozen=True)
class Group:
    """A wanted group: name below our root ("" is the root itself), state, values by option name, processes."""

    name: str
    state: str = "present"
    values: Mapping[str, Value] = field(default_factory=dict)
    pids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Step:
    """One change. ``path`` is a directory for make, move and remove, else a file; ``previous`` takes it back.

    ``keep`` changes nothing: it has a value written again that taking back the step after it would lose.
    """

    kind: str
    path: str
    text: str = ""
    previous: str = ""
    file: KernelFile | None = None
    saved: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Skipped:
    """A value that was not set, and why."""

    group: str
    key: str
    why: str


@dataclass(frozen=True)
class Plan:
    """Steps in order; values that can't be set here; values by group and option before and after."""

    steps: tuple[Step, ...]
    skipped: tuple[Skipped, ...]
    before: Mapping[str, Mapping[str, Value]]
    after: Mapping[str, Mapping[str, Value]]


@dataclass(frozen=True)
class Setting:
    """A wanted value resolved to a file of this host."""

    group: str
    key: Key
    value: Value
    hierarchy: Hierarchy
    directory: str
    file: KernelFile

    def text(self, tree: Tree) -> str:
        """Return the file's content as it will be."""
        return tree.text(self.directory, self.file, self.hierarchy.mount) or self.file.initial

    def current(self, tree: Tree) -> Value:
        """Return the value as it will be."""
        return self.file.parse(self.text(tree))

    def wanted(self, tree: Tree) -> Value:
        """Return the value as the kernel will show it: rounded to pages, clamped, translated."""
        return self.file.parse(self.file.render(self.value, self.text(tree)))

    def steps(self, tree: Tree) -> list[Step]:
        """Return the write that brings the value, none when it is there; the tree then has it."""
        present = self.text(tree)
        text = self.file.render(self.value, present)
        if self.file.parse(text) == self.file.parse(present):
            return []
        tree.write(self.directory, self.file.name, text)
        return [Step(WRITE, f"{self.directory}/{self.file.name}", text, present, self.file)]
