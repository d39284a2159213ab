# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Know a process again, signal exactly it, wait for its end, and find what it left behind."""

from __future__ import annotations

import os
import select
import signal
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import procfs


class ProcessError(Exception):
    """A process could not be signalled or ended."""


@dataclass(frozen=True)
class Identity:
    """What tells a process from a later one with the same number: its start time, and the boot that it belongs to."""

    pid: int
    start_ticks: int
    boot_id: str


def identify(pid: int, proc_root: str = procfs.PROC_ROOT) -> Identity | None:
    """Return the identity of a living process, or None."""
    stat = procfs.read_stat(pid, proc_root)
    if stat is None or stat.dead:
        return None
    return Identity(pid, stat.start_ticks, procfs.read_boot_id(proc_root))


def is_running(identity: Identity, proc_root: str = procfs.PROC_ROOT) -> bool:
    """Tell whether exactly this process still runs (not a zombie, not a later one with its number)."""
    return identify(identity.pid, proc_root) == identity


def send(identity: Identity, number: int, proc_root: str = procfs.PROC_ROOT) -> bool:
    """Send a signal to exactly this process; returns False where it has ended. Raises ProcessError when forbidden."""
    try:
        handle = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return False
    except OSError as exc:
        raise ProcessError(f"process {identity.pid}: cannot be opened ({exc.strerror}); needs Linux 5.3") from exc
    try:
        # The descriptor now names one process: if the identity matches after opening, the signal cannot go astray.
        if not is_running(identity, proc_root):
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    except PermissionError as exc:
        raise ProcessError(f"process {identity.pid}: may not be signalled; run as root") from exc
    finally:
        os.close(handle)
    return True


def wait_end(identity: Identity, timeout_s: float, proc_root: str = procfs.PROC_ROOT) -> bool:
    """Wait until exactly this process has ended, at most `timeout_s` seconds; tells whether it has."""
    try:
        handle = os.pidfd_open(identity.pid)
    except OSError:
        return not is_running(identity, proc_root)
    try:
        if not is_running(identity, proc_root):
            return True
        return bool(select.select([handle], [], [], max(0.0, timeout_s))[0])
    finally:
        os.close(handle)


def session_members(session: Identity, proc_root: str = procfs.PROC_ROOT) -> list[Identity]:
    """Return the living processes of a session, whose number is that of the process that began it.

    Empty where that number now belongs to another process, for then the session has ended and the number was used
    again (a number is not given away while a session carries it).
    """
    boot_id = procfs.read_boot_id(proc_root)
    leader = procfs.read_stat(session.pid, proc_root)
    if boot_id != session.boot_id or (leader is not None and leader.start_ticks != session.start_ticks):
        return []
    stats = procfs.list_stats(proc_root)
    return [
        Identity(stat.pid, stat.start_ticks, boot_id)
        for stat in stats
        if stat.session == session.pid and stat.start_ticks >= session.start_ticks
    ]


def descendants(pid: int, proc_root: str = procfs.PROC_ROOT) -> list[Identity]:
    """Return the living processes below a process, the nearest first."""
    boot_id = procfs.read_boot_id(proc_root)
    children: dict[int, list[procfs.ProcessStat]] = {}
    for stat in procfs.list_stats(proc_root):
        children.setdefault(stat.ppid, []).append(stat)
    found: list[Identity] = []
    queue = [pid]
    while queue:
        for stat in children.get(queue.pop(0), []):
            found.append(Identity(stat.pid, stat.start_ticks, boot_id))
            queue.append(stat.pid)
    return found
