# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep the controller off the measured CPUs where it shares the machine with them, as in the lab."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.colocation.testbed.plugins.module_utils import quantity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


@contextlib.contextmanager
def controller_on(cpus: str, proc_root: Path = Path("/proc")) -> Iterator[None]:
    """Run this process and the playbook's main process on a CPU list; give both their CPUs back afterwards.

    An empty list changes nothing. The main process wakes up many times a second to look for results.
    """
    wanted = set(quantity.parse_cpu_list(cpus))
    before: dict[int, set[int]] = {}
    try:
        for thread in _threads((os.getpid(), os.getppid()), proc_root) if wanted else ():
            # A thread may end in between; the CPUs may be none of those that the controller was given.
            with contextlib.suppress(OSError):
                before[thread] = os.sched_getaffinity(thread)
                os.sched_setaffinity(thread, wanted)
        yield
    finally:
        for thread, had in before.items():
            with contextlib.suppress(OSError):
                os.sched_setaffinity(thread, had)


def _threads(processes: Collection[int], proc_root: Path) -> list[int]:
    found: list[int] = []
    for process in processes:
        with contextlib.suppress(FileNotFoundError):
            found += [int(entry.name) for entry in (proc_root / str(process) / "task").iterdir()]
    return found
