# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Control groups of the running kernel below a root of the test's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import snapshot, undo
from ansible_collections.colocation.testbed.plugins.module_utils.journal import Journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cgroup_apply, cgroup_plan
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import Group


def _layout() -> cgroup.Layout | None:
    try:
        found = cgroup.detect()
    except cgroup.CgroupError:
        return None
    return found if found.version in ("v1", "hybrid") else None


class Host:
    """The kernel's groups below a root of this test's own, and a journal."""

    def __init__(self, directory: Path) -> None:
        layout = _layout()
        if layout is None or os.geteuid() != 0:
            pytest.skip("needs root and cgroup v1 hierarchies")
        self.layout = layout
        self.root = f"colocation-testbed-test-{os.getpid()}"
        self.state = str(directory / "state")
        self.book = Journal(str(directory / "state" / "journal.json"))

    def ours(self) -> frozenset[str]:
        return frozenset(entry.target for entry in self.book.entries() if entry.kind == "cgroup")

    def plan(self, *groups: Group):  # type: ignore[no-untyped-def]
        return cgroup_plan.plan(self.layout, self.root, groups, self.ours())

    def apply(self, *groups: Group) -> int:
        found = self.plan(*groups)
        cgroup_apply.apply(found.steps, self.book, "test", self.ours())
        return len(found.steps)

    def read(self, controller: str, name: str, file: str) -> str:
        group = f"{self.root}/{name}" if name else self.root
        return Path(self.layout.path(controller, group), file).read_text().strip()

    def directories(self) -> list[str]:
        tops = [cgroup.join_path(item.mount, self.root) for item in self.layout.used()]
        return [place for top in tops for place, _, _ in os.walk(top)]

    def undo(self):  # type: ignore[no-untyped-def]
        actions = undo.Undo(term_deadline_s=2.0)
        return self.book.undo(actions.handlers(), settle=actions.settle)

    def foreign(self, *groups: Group) -> None:
        """Make groups that the journal knows nothing of."""
        self.apply(*groups)
        self.book.forget_many((entry.kind, entry.target) for entry in self.book.entries())

    def picture(self) -> dict[str, str]:
        """Return every directory and value at our root and below."""
        taken = snapshot.take(snapshot.Wanted(ignore=("[!c]*",)))["cgroups"]
        return {key: text for key, text in taken.items() if f"/{self.root}" in key}

    def clear(self) -> None:
        """Remove what a failed test has left."""
        for item in self.layout.used():
            for place, _, _ in os.walk(cgroup.join_path(item.mount, self.root), topdown=False):
                os.rmdir(place)
