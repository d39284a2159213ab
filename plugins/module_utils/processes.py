# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""End a recorded process and what it started, and never any other process that got its number later."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import procfs

_POLL_S = 0.05
KILL_DEADLINE_S = 5.0

Identity = tuple[int, int]
"""(pid, start_ticks): unique within one boot."""


class ProcessError(Exception):
    """A recorded process could not be ended."""


@dataclass(frozen=True)
class Recorded:
    """A process as it was recorded when it was started; the supervisor is its parent, or None."""

    pid: int
    start_ticks: int
    boot_id: str
    supervisor_pid: int | None = None


def parse(raw: Any, where: str) -> Recorded:
    """Return the process that a pid file or a journal entry describes. Raises ProcessError when it is damaged."""
    try:
        supervisor = raw.get("supervisor_pid")
        return Recorded(
            int(raw["pid"]),
            int(raw["start_ticks"]),
            str(raw["boot_id"]),
            None if supervisor is None else int(supervisor),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise ProcessError(
            f"{where}: does not name a process ({exc!r}); look for it with ps and end it by hand, then remove the file"
        ) from exc


def _alive(identity: Identity, proc_root: str) -> bool:
    stat = procfs.read_stat(identity[0], proc_root)
    return stat is not None and not stat.dead and stat.start_ticks == identity[1]


def family(recorded: Recorded, proc_root: str = procfs.PROC_ROOT) -> list[Identity]:
    """Return the living processes that a recorded one stands for: itself, its descendants, its supervisor.

    Members of a session that the process or its supervisor leads belong to it even when their parent has died. Empty
    when the process has ended, when its number belongs to another one by now, or after a reboot.
    """
    if recorded.boot_id != procfs.read_boot_id(proc_root):
        return []
    stats = {stat.pid: stat for stat in procfs.list_stats(proc_root)}
    main = stats.get(recorded.pid)
    if main is None or main.start_ticks != recorded.start_ticks:
        return []
    leaders = {recorded.pid}
    members = {recorded.pid}
    supervisor = recorded.supervisor_pid
    if supervisor is not None and main.ppid == supervisor:
        leaders.add(supervisor)
        members.add(supervisor)
    if main.session in leaders:
        members |= {pid for pid, stat in stats.items() if stat.session in leaders}
    while True:
        found = {pid for pid, stat in stats.items() if stat.ppid in members and pid not in members}
        if not found:
            return [(pid, stats[pid].start_ticks) for pid in sorted(members)]
        members |= found


def _signal(identity: Identity, number: int, proc_root: str) -> None:
    if not _alive(identity, proc_root):
        return
    try:
        os.kill(identity[0], number)
    except ProcessLookupError:
        return
    except PermissionError as exc:
        raise ProcessError(f"process {identity[0]}: may not be ended by this user; run as root") from exc


def wait(gone: Callable[[], bool], deadline_s: float) -> bool:
    """Poll a condition until it holds or ``deadline_s`` has passed; return whether it holds."""
    end = time.monotonic() + deadline_s
    while not gone():
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_S)
    return True


def end(recorded: Recorded, deadline_s: float = 10.0, proc_root: str = procfs.PROC_ROOT) -> int:
    """End a recorded process with its family: SIGTERM to it, after ``deadline_s`` SIGKILL to whoever is left.

    Returns how many processes there were; 0 when it had ended already. Raises ProcessError when one survives.
    """
    members = family(recorded, proc_root)
    if not members:
        return 0

    def gone() -> bool:
        return not any(_alive(member, proc_root) for member in members)

    _signal((recorded.pid, recorded.start_ticks), signal.SIGTERM, proc_root)
    if not wait(gone, deadline_s):
        # Started meanwhile by a member that is still there; a member that died can't start any.
        members = list(dict.fromkeys([*members, *family(recorded, proc_root)]))
        for member in members:
            _signal(member, signal.SIGKILL, proc_root)
        if not wait(gone, KILL_DEADLINE_S):
            left = ", ".join(str(member[0]) for member in members if _alive(member, proc_root))
            raise ProcessError(f"process {left}: still there {KILL_DEADLINE_S:g} s after SIGKILL; see its kernel stack")
    return len(members)


def from_entry(target: str, previous: Any, read_json: Callable[[str], Any]) -> Recorded | None:
    """Return the process of a journal entry: from ``previous``, else from the pid file that ``target`` names.

    None when there is no pid file: the run was killed before the process started. Raises ProcessError.
    """
    if isinstance(previous, Mapping):
        return parse(previous, f"journal entry for process {target}")
    if not os.path.isabs(target):
        raise ProcessError(f"journal entry for process {target}: has neither pid nor pid file; end it by hand")
    return parse(read_json(target), target) if os.path.exists(target) else None
