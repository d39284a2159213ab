# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the network of a lab as planned, journalled step by step, and take it away again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils import commands, journal, undo
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import netns, procfs
from ansible_collections.colocation.testbed.plugins.module_utils.lab import plan, topology

BY = "lab"
_KINDS = (plan.NETNS, plan.LINK)


class NetworkError(Exception):
    """The lab's network is not as it should be; the text says what and what to do."""


@dataclass(frozen=True)
class Outcome:
    """What was changed (or would be), in words, and one line for each namespace and interface before and after."""

    changes: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]


def run_ip(argv: netns.Argv) -> str:
    """Run a program of iproute2 and return its output. Raises CommandError."""
    return commands.run(argv).stdout


def require_idle(name: str) -> None:
    """Raise NetworkError where processes are in a namespace that is to go: it would live on with them, without a name.

    They are named and never ended: what the collection started is undone by the journal of its host, and all others
    belong to somebody else.
    """
    found = netns.pids(name)
    if found:
        shown = ", ".join(f"{pid} ({' '.join(procfs.read_command(pid)[:1]) or 'unknown'})" for pid in found)
        raise NetworkError(
            f"network namespace {name} is in use by process {shown}: run the playbook reset, which stops the "
            "workloads, or end these processes, then repeat"
        )


def owned(book: journal.Journal) -> frozenset[tuple[str, str]]:
    """Return (kind, target) of all namespaces and interfaces that the collection made."""
    return frozenset((entry.kind, entry.target) for entry in book.entries() if entry.kind in _KINDS)


def read_state(wanted: topology.Topology | None, own: frozenset[tuple[str, str]]) -> plan.State:
    """Return the interfaces of all namespaces that exist among the wanted ones and our own."""
    candidates = {*(wanted.namespaces if wanted else ()), *(target for kind, target in own if kind == plan.NETNS)}
    state = {}
    for name in sorted(candidates & set(netns.names())):
        if not netns.exists(name):
            raise NetworkError(
                f"{netns.path(name)}: is a file without a namespace, left over by something else than "
                f"'ip netns delete'; remove it with: ip netns delete {name}"
            )
        state[name] = netns.read_interfaces(name, run_ip)
    return state


def _apply(steps: Sequence[plan.Step], book: journal.Journal) -> None:
    """Take the steps, each journalled before it is taken."""
    for step in steps:
        for kind, target in step.forgets:
            if kind == plan.NETNS:
                require_idle(target)
    if not netns.is_mount():
        # iproute2 makes the directory and binds it to itself when it adds the first namespace, and never takes it back.
        book.record("directory", netns.RUN_ROOT, None, BY, "existed" if os.path.isdir(netns.RUN_ROOT) else "made")
    for step in steps:
        if step.records:
            book.record_many([journal.Change(kind, target) for kind, target in step.records], BY)
        run_ip(step.argv)
        book.forget_many(step.forgets)


def make(wanted: topology.Topology, book: journal.Journal, check: bool) -> Outcome:
    """Make the network and read it back; with ``check`` only say what would change.

    Raises NetworkError, and CommandError, JournalError, NetnsError, ForeignError of what it uses.
    """
    own = owned(book)
    state = read_state(wanted, own)
    steps = plan.to_topology(wanted, state, own)
    before = tuple(plan.describe_state(state, own, wanted.queue))
    if steps and not check:
        _apply(steps, book)
        own = owned(book)
        left = plan.to_topology(wanted, read_state(wanted, own), own)
        if left:
            raise NetworkError(
                f"the lab is not as asked for: '{left[0].text}' had no effect; try: {' '.join(left[0].argv)}"
            )
    return Outcome(tuple(step.text for step in steps), before, tuple(plan.describe(wanted)))


def remove(book: journal.Journal, check: bool) -> Outcome:
    """Undo the network's entries of the journal, and leave all others. Raises as make()."""
    own = owned(book)
    if not own:
        return Outcome((), (), ())
    before = tuple(plan.describe_state(read_state(None, own), own))
    for kind, target in own:
        if kind == plan.NETNS:
            require_idle(target)
    known = undo.Undo().handlers()
    handlers = {kind: known[kind] if kind in _KINDS else keep for kind in journal.KINDS}
    done = book.undo({**handlers, "directory": _undo_run_root}, check=check)
    failed = [item.outcome.text for item in done if item.outcome.result == "failed"]
    if failed:
        raise NetworkError("; ".join(failed))
    return Outcome(tuple(item.outcome.text for item in done if item.entry.kind in _KINDS), before, ())


def keep(entry: journal.Entry, check: bool) -> journal.Outcome:
    """Leave an entry of another part alone."""
    return journal.Outcome("kept", f"{entry.target}: not part of this")


def _undo_run_root(entry: journal.Entry, check: bool) -> journal.Outcome:
    """Unmount and remove the directory of the namespaces when the lab's first one had brought it about."""
    path = entry.target
    if path != netns.RUN_ROOT:
        return keep(entry, check)
    if netns.names():
        return journal.Outcome("undone", f"{path}: left, as others have namespaces there")
    if not check:
        while netns.is_mount():
            commands.run(["umount", path])
        if entry.note == "made" and os.path.isdir(path):
            os.rmdir(path)
    return journal.Outcome("undone", f"{path}: as it was")
