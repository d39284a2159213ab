# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wanted of control groups, and the single changes that bring it about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import Hierarchy
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_keys import Key
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_tree import Tree
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_values import KernelFile, Option, Value

MAKE, WRITE, KEEP, ENABLE, MOVE, REMOVE = "make", "write", "keep", "enable", "move", "remove"


@dataclass(frozen=True)
class Group:
    """A wanted group: name below our root ("" is the root itself), state, values by option name, processes.

    ``pids`` must live; ``found`` were found by the units and names (cgroup_members) and may have ended since.
    """

    name: str
    state: str = "present"
    values: Mapping[str, Option] = field(default_factory=dict)
    pids: tuple[int, ...] = ()
    units: tuple[str, ...] = ()
    process_names: tuple[str, ...] = ()
    found: tuple[int, ...] = ()


@dataclass(frozen=True)
class Step:
    """One change. ``path`` is a directory for make, move and remove, else a file; ``previous`` takes it back.

    ``keep`` changes nothing: it has a value written again that taking back the step after it would lose. ``optional``:
    a file that the kernel may turn out to lack, or a process that may have ended.
    """

    kind: str
    path: str
    text: str = ""
    previous: str = ""
    file: KernelFile | None = None
    saved: tuple[tuple[str, str], ...] = ()
    optional: bool = False


@dataclass(frozen=True)
class Skipped:
    """A value that was not set, and why."""

    group: str
    key: str
    why: str


@dataclass(frozen=True)
class Translated:
    """A value that the kernel holds in another unit or rounded: the option, what was wanted, where and as what."""

    group: str
    key: str
    wanted: Value
    file: str
    text: str


@dataclass(frozen=True)
class Plan:
    """Steps in order; values that can't be set here, or not exactly; values by group and option before and after."""

    steps: tuple[Step, ...]
    skipped: tuple[Skipped, ...]
    before: Mapping[str, Mapping[str, Option]]
    after: Mapping[str, Mapping[str, Option]]
    translated: tuple[Translated, ...] = ()
    read: Tree = field(default_factory=Tree)


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
        tree.write(self.directory, self.file.name, self.file.after(text, present))
        path, back = f"{self.directory}/{self.file.name}", self.file.restoring(present)
        return [Step(WRITE, path, text, back, self.file, optional=tree.guessed(self.hierarchy.mount, self.file))]
