# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a kubelet and what it starts leave on a host beside files: control groups of pods, routes, tables of nftables.

They are written down before the programs are started that make them, and taken back here.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from typing import Any, Callable

from ansible_collections.colocation.testbed.plugins.module_utils import commands, journal
from ansible_collections.colocation.testbed.plugins.module_utils.journal import Entry, Outcome
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cgroup,
    netns_value,
    processes,
    procfs,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import mount_namespace
from ansible_collections.colocation.testbed.plugins.module_utils.recorded_process import wait as wait_until

CGROUP_TREE, ROUTE, NFT_TABLE = "cgroup_tree", "route", "nft_table"
_KILL_DEADLINE_S = 15.0
_RMDIR_DEADLINE_S = 10.0

Run = Callable[..., commands.Result]


def handlers(run: Run = commands.run) -> Mapping[str, journal.Handler]:
    """Return how each kind of entry is undone; what can be foreseen to fail becomes an outcome."""
    table: dict[str, Callable[[Entry, bool], Outcome]] = {
        CGROUP_TREE: undo_cgroup_tree,
        ROUTE: lambda entry, check: _undo_network(entry, check, _route, run),
        NFT_TABLE: lambda entry, check: _undo_network(entry, check, _nft_table, run),
        mount_namespace.KIND: lambda entry, check: mount_namespace.undo(entry, check, run),
    }
    return {kind: _guarded(handler) for kind, handler in table.items()}


def _guarded(handler: Callable[[Entry, bool], Outcome]) -> journal.Handler:
    def call(entry: Entry, check: bool) -> Outcome:
        try:
            return handler(entry, check)
        except (
            cgroup.CgroupError,
            commands.CommandError,
            mount_namespace.MountNamespaceError,
            processes.ProcessError,
            OSError,
        ) as exc:
            return Outcome("failed", f"{entry.target}: {exc}; undo again, or remove it by hand")

    return call


def tree(directory: str) -> list[str]:
    """Return a group and all below it, children before parents; none where there is none."""
    return [folder for folder, _below, _files in os.walk(directory, topdown=False)]


def members(directory: str) -> list[int]:
    """Return the processes of a group and of all below it. Raises CgroupError."""
    return sorted({pid for folder in tree(directory) for pid in cgroup.read_pids(folder)})


def undo_cgroup_tree(entry: Entry, check: bool, proc_root: str = procfs.PROC_ROOT) -> Outcome:
    """End all processes of pods in a tree of groups that was not there before, and remove it."""
    path = entry.target
    if not os.path.isdir(path):
        return Outcome("undone", f"{path}: not there")
    if check:
        return Outcome("undone", f"{path}: its pods ended, removed")
    ended = end_members(path, proc_root)
    if not wait_until(lambda: _removed(path), _RMDIR_DEADLINE_S):
        left = members(path)
        who = f"process {left[0]} is still in it" if left else "it stays busy"
        return Outcome("failed", f"{path}: {who}; end it and undo again")
    return Outcome("undone", f"{path}: {ended} processes of pods ended, removed")


def end_members(directory: str, proc_root: str = procfs.PROC_ROOT) -> int:
    """Kill every process in a tree of groups until none is left, at most 15 s; returns how many. Raises CgroupError."""
    ended: set[int] = set()

    def none_left() -> bool:
        left = members(directory)
        for pid in left:
            identity = processes.identify(pid, proc_root)
            if identity is not None and processes.send(identity, signal.SIGKILL, proc_root):
                ended.add(pid)
        return not left

    wait_until(none_left, _KILL_DEADLINE_S)
    return len(ended)


def _removed(directory: str) -> bool:
    for folder in tree(directory):
        try:
            os.rmdir(folder)
        except OSError:
            return not os.path.isdir(directory)
    return not os.path.isdir(directory)


def recorded_space(proc_root: str = procfs.PROC_ROOT) -> Any:
    """Return the network namespace of this process as an entry keeps it, None for the machine's own."""
    space = netns_value.current(proc_root)
    return None if space is None else netns_value.recorded("", space)


def target(what: str, proc_root: str = procfs.PROC_ROOT) -> str:
    """Return the name of a route or table in the journal: it is preceded by the namespace's."""
    space = netns_value.current(proc_root)
    return f"{space.name or space.inode}/{what}" if space is not None else what


def _undo_network(
    entry: Entry, check: bool, remove: Callable[[str, tuple[str, ...], bool, Run], bool], run: Run
) -> Outcome:
    """Remove something from the network namespace in which it was made; it goes with the namespace by itself."""
    owned = netns_value.parse(entry.previous)
    what, prefix = entry.target, ()  # type: tuple[str, tuple[str, ...]]
    if owned is not None:
        what = entry.target.partition("/")[2]
        found = netns_value.entering(owned[1])
        if found is None:
            return Outcome("undone", f"{entry.target}: is gone with its network namespace")
        prefix = found
    there = remove(what, prefix, check, run)
    return Outcome("undone", f"{entry.target}: {'removed' if there else 'not there'}")


def _route(what: str, prefix: tuple[str, ...], check: bool, run: Run) -> bool:
    shown = run([*prefix, "ip", "-j", "route", "show", "exact", what]).stdout
    there = bool(json.loads(shown or "[]"))
    if there and not check:
        run([*prefix, "ip", "route", "delete", what])
    return there


def _nft_table(what: str, prefix: tuple[str, ...], check: bool, run: Run) -> bool:
    family, name = what.split(" ")
    there = run([*prefix, "nft", "list", "table", family, name], check=False).status == 0
    if there and not check:
        run([*prefix, "nft", "delete", "table", family, name])
    return there
