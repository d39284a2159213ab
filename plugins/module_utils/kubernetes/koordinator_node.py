# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Koordinator's agent changes on a node: recorded before it is installed, put back when it is gone."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils import journal, own_changes, undo
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup_foreign, cpu_list
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import Layout
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import best_effort_root
from ansible_collections.colocation.testbed.plugins.module_utils.policy.koordinator_gates import Host

BY = "koordinator_node"
_GROUP_IDENTITY = "cpu_bvt_warp_ns"


class NodeError(Exception):
    """What the agent changed could not be put back; the text says what and why, and it stays in the journal."""


@dataclass(frozen=True)
class Done:
    """What was recorded and what was put back (in check mode: would be), a sentence for each."""

    recorded: tuple[str, ...]
    restored: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Tell whether anything was or would be done."""
        return bool(self.recorded or self.restored)


def host(layout: Layout) -> Host:
    """Return what decides which parts of a policy have an effect on this host. Raises CpuListError or CgroupError."""
    identity = _GROUP_IDENTITY not in cgroup_foreign.lacking(layout)
    # Only Alibaba's kernels, which have group identities, take a burst above the quota.
    return Host(len(cpu_list.online()), layout.hierarchy("cpu").version == 2, identity, identity)


def record(book: journal.Journal, layout: Layout, directories: Iterable[str], lift: bool, check: bool) -> Done:
    """Record what the agent will change; with ``lift`` put limits back that an earlier one left.

    Raises JournalError, FilesError, RootError.
    """
    known = {(entry.kind, entry.target) for entry in book.entries()}
    limits = best_effort_root.neutral(layout)[:2]
    wanted = [journal.Change("value", item.path, item.wanted) for item in limits]
    wanted += [journal.Change("directory", place, {"tree": True}) for place in map(_topmost, directories) if place]
    fresh = [item for item in wanted if (item.kind, item.target) not in known]
    if fresh and not check:
        book.record_many(fresh, BY)
    left_over = [item for item in best_effort_root.neutral(layout) if item.differs] if lift else []
    restored = [f"{item.path}: {item.found} put back to {item.wanted}" for item in left_over]
    if left_over and not check:
        restored = best_effort_root.put_back(left_over)
    return Done(tuple(f"{item.target}: recorded" for item in fresh), tuple(restored))


def _topmost(directory: str) -> str:
    """Return the uppermost directory that must be made for a path, "" where nothing must."""
    path, missing = os.path.realpath(directory), ""
    while not os.path.lexists(path):
        missing, path = path, os.path.dirname(path)
    return missing


def take_back(book: journal.Journal, layout: Layout, check: bool) -> Done:
    """Put back what the agent left. Raises NodeError where that fails, RootError when an agent still writes."""
    if not any(entry.by == BY for entry in book.entries()):
        return Done((), ())
    limits = [item for item in best_effort_root.neutral(layout) if item.differs]
    restored = [f"{item.path}: {item.found} put back to {item.wanted}" for item in limits]
    if limits and not check:
        restored = best_effort_root.put_back(limits)
    try:
        done = own_changes.undo(book, BY, undo.Undo().handlers(), check)
    except own_changes.OwnChangesError as exc:
        raise NodeError(str(exc)) from exc
    told = [item.outcome.text for item in done]
    return Done((), (*restored, *told))
