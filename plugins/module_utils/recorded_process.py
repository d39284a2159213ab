# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""End a process that the journal knows, with its supervisor and all that it started, and never any other process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import processes, procfs
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.processes import Identity, ProcessError

_POLL_S = 0.05
KILL_DEADLINE_S = 5.0


@dataclass(frozen=True)
class Recorded:
    """A process and its supervisor, as a pid file or a journal entry names them; either may be missing."""

    child: Identity | None
    supervisor: Identity | None

    def members(self, proc_root: str = procfs.PROC_ROOT) -> list[Identity]:
        """Return the living processes that were recorded or come from recorded ones, the one to tell first.

        A supervisor ends its child in an orderly way. What a dead child left is found by its session.
        """
        found: dict[Identity, None] = {}
        for identity in filter(None, (self.supervisor, self.child)):
            if processes.is_running(identity, proc_root):
                found[identity] = None
                found.update(dict.fromkeys(processes.descendants(identity.pid, proc_root)))
            found.update(dict.fromkeys(processes.session_members(identity, proc_root)))
        return list(found)


def _identity(raw: Any, prefix: str, where: str) -> Identity | None:
    try:
        if raw.get(f"{prefix}pid") is None:
            return None
        return Identity(int(raw[f"{prefix}pid"]), int(raw[f"{prefix}start_ticks"]), str(raw["boot_id"]))
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise ProcessError(
            f"{where}: does not name a process ({exc!r}); look for it with ps and end it by hand, then remove the file"
        ) from exc


def parse(raw: Any, where: str) -> Recorded:
    """Return what a pid file's or journal entry's content names. Raises ProcessError when it is damaged."""
    return Recorded(_identity(raw, "", where), _identity(raw, "supervisor_", where))


def from_entry(target: str, previous: Any) -> Recorded:
    """Return the process of a journal entry: from ``previous``, else from the pid file that ``target`` names.

    Without a pid file there is none: the run was killed before the process started. Raises ProcessError, FilesError.
    """
    if previous is not None:
        return parse(previous, f"journal entry for process {target}")
    if not os.path.isabs(target):
        raise ProcessError(f"journal entry for process {target}: has neither pid nor pid file; end it by hand")
    return parse(files.read_json(target), target) if os.path.exists(target) else Recorded(None, None)


def wait(condition: Callable[[], bool], deadline_s: float) -> bool:
    """Poll a condition until it holds or ``deadline_s`` has passed; return whether it holds."""
    end_s = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > end_s:
            return False
        time.sleep(_POLL_S)
    return True


def end(recorded: Recorded, deadline_s: float, proc_root: str = procfs.PROC_ROOT) -> int:
    """End a recorded process: SIGTERM to supervisor or child, after ``deadline_s`` SIGKILL to whoever is left.

    Returns how many processes there were; 0 when all had ended. Raises ProcessError when one survives.
    """
    members = recorded.members(proc_root)

    def gone() -> bool:
        return not recorded.members(proc_root) and not any(processes.is_running(item, proc_root) for item in members)

    if members:
        processes.send(members[0], signal.SIGTERM, proc_root)
    if members and not wait(gone, deadline_s):
        for member in dict.fromkeys([*members, *recorded.members(proc_root)]):
            processes.send(member, signal.SIGKILL, proc_root)
        if not wait(gone, KILL_DEADLINE_S):
            left = ", ".join(str(item.pid) for item in members if processes.is_running(item, proc_root))
            raise ProcessError(f"process {left}: still there {KILL_DEADLINE_S:g} s after SIGKILL; see its kernel stack")
    return len(members)
