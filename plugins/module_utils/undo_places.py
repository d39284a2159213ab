# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take back directories and control groups that we made, and foresee it: what is in them may be taken back before."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ansible_collections.colocation.testbed.plugins.module_utils import recorded_process
from ansible_collections.colocation.testbed.plugins.module_utils.journal import Entry, Outcome, Undone
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, procfs

_RMDIR_DEADLINE_S = 5.0
_SHOWN = 5
_STAYS = "stays, since "


@dataclass
class Foreseen:
    """What one undo has come to so far: processes that it ends, places that it removes, and groups that stay.

    In check mode all of it is still there when the place around it is looked at.
    """

    pids: set[int] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    stuck: set[str] = field(default_factory=set)

    def noted(self, entry: Entry, outcome: Outcome) -> Outcome:
        """Remember what became of a place, and return the outcome."""
        if outcome.result == "undone" and entry.previous is None:
            self.paths.add(entry.target)
        return outcome


def undo_directory(entry: Entry, check: bool, ahead: Foreseen) -> Outcome:
    """Remove a directory that we made: with all in it when it was recorded as a tree of ours, else only if empty."""
    path = entry.target
    if not os.path.isdir(path):
        return Outcome("undone", f"{path}: not there")
    tree = isinstance(entry.previous, Mapping) and entry.previous.get("tree") is True
    mounted = [place for place, _below, _files in os.walk(path) if os.path.ismount(place)]
    if mounted:
        return Outcome("failed", f"{path}: {mounted[0]} is a mount point; unmount it and undo again")
    inside = sorted(name for name in os.listdir(path) if not check or f"{path}/{name}" not in ahead.paths)
    if inside and not tree:
        shown = ", ".join(inside[:_SHOWN])
        return Outcome("failed", f"{path}: holds {shown}, which we did not put there; move it away")
    if not check:
        shutil.rmtree(path) if tree else os.rmdir(path)
    ahead.paths.add(path)
    return Outcome("undone", f"{path}: removed")


def undo_cgroup(entry: Entry, check: bool, ahead: Foreseen, proc_root: str = procfs.PROC_ROOT) -> Outcome:
    """Remove a group directory that we made, when nobody is in it; kills nothing."""
    path = entry.target
    ahead.stuck.discard(path)
    if not os.path.isdir(path):
        return Outcome("undone", f"{path}: not there")
    if not check:
        # Ended processes stay in their group until their parent has reaped them.
        recorded_process.wait(lambda: not cgroup.read_pids(path), _RMDIR_DEADLINE_S)
    inside = [pid for pid in cgroup.read_pids(path) if not check or pid not in ahead.pids]
    # In check mode groups in it may be those of another journal of this machine, undone before in the real run.
    below = [name for name in cgroup.children(path) if not check or f"{path}/{name}" in ahead.stuck]
    if inside or below:
        ahead.stuck.add(path)
        return Outcome("failed", f"{path}: {_in_the_way(path, inside, below, ahead, proc_root)}")
    if not check and not recorded_process.wait(lambda: _rmdir(path), _RMDIR_DEADLINE_S):
        ahead.stuck.add(path)
        return Outcome("failed", f"{path}: stays busy; look at its cgroup.procs")
    ahead.paths.add(path)
    return Outcome("undone", f"{path}: removed")


def _in_the_way(path: str, inside: Sequence[int], below: Sequence[str], ahead: Foreseen, proc_root: str) -> str:
    """Return who keeps a group from being removed: strangers are told, a group of ours in it tells for itself."""
    strange = [name for name in below if f"{path}/{name}" not in ahead.stuck]
    who = [f"process {pid} ({_name(pid, proc_root)})" for pid in inside[:_SHOWN]]
    who += [f"group {name}" for name in strange[:_SHOWN]]
    if not who:
        return f"{_STAYS}group {below[0]} in it does"
    return f"holds {', '.join(who)}, which we did not make; end it or move it away, and undo again"


def condensed(failed: Sequence[Undone]) -> list[str]:
    """Return the sentences of what failed, each fact once: a group has a directory in every hierarchy, and parents."""
    found: dict[tuple[str, str], list[str]] = {}
    texts: list[str] = []
    for item in failed:
        path, text = item.entry.target, item.outcome.text
        said = text[len(path) + 2 :]
        if item.entry.kind != "cgroup" or not text.startswith(f"{path}: "):
            texts.append(text)
        elif not said.startswith(_STAYS):
            found.setdefault((os.path.basename(path), said), []).append(path)
    for (_name_of_group, said), paths in found.items():
        more = len(paths) - 1
        others = f" (and in {more} other hierarch{'y' if more == 1 else 'ies'})" if more else ""
        texts.append(f"{paths[0]}{others}: {said}")
    return texts or [item.outcome.text for item in failed]


def _rmdir(path: str) -> bool:
    try:
        os.rmdir(path)
    except OSError:
        return not os.path.isdir(path)
    return True


def _name(pid: int, proc_root: str) -> str:
    stat = procfs.read_stat(pid, proc_root)
    return stat.comm if stat else "ended"
