# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start a guest's kernel as a recorded process, wait until its system is up, and end it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Callable

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, recorded_process
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cpu_list, processes, procfs
from ansible_collections.colocation.testbed.plugins.module_utils.lab.guest import Paths
from ansible_collections.colocation.testbed.plugins.module_utils.lab.ssh import Access

UP = ("running", "degraded")
_SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_POLL_S = 0.2
_END_DEADLINE_S = 10.0
_TAIL_BYTES = 3000
_UNREACHABLE = 255  # ssh(1): the status where ssh itself failed
# One connection for all: systemd's state once it has settled, what tells this boot from others, failed units.
_QUESTION = (
    "systemctl is-system-running --wait; cat /proc/sys/kernel/random/boot_id; "
    "systemctl list-units --failed --plain --no-legend"
)

Run = Callable[..., commands.Result]


class BootError(Exception):
    """A guest did not come up, or could not be ended; the text says why and ends with its console."""


@dataclass(frozen=True)
class System:
    """A guest that answers: systemd's state, boot id, failed units."""

    state: str
    boot_id: str
    failed_units: tuple[str, ...]


def launch(argv: Sequence[str], paths: Paths, cpus: str) -> None:
    """Start a guest's kernel in a session of its own; it records itself in the pid file before it becomes the kernel.

    So there is no moment at which it runs and nobody knows. Raises BootError, FilesError.
    """
    allowed = cpu_list.parse(cpus) or cpu_list.online()

    def record() -> None:
        os.sched_setaffinity(0, allowed)
        own = processes.identify(os.getpid())
        if own is None:
            raise OSError("/proc does not show this process")
        files.write_json(paths.pid, {"pid": own.pid, "start_ticks": own.start_ticks, "boot_id": own.boot_id})

    files.restore(paths.pid, None)
    files.write_atomic(paths.console, b"")
    try:
        with open(paths.console, "ab") as console:
            subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                cwd="/",
                env={"PATH": _SEARCH_PATH, "LC_ALL": "C", "HOME": paths.directory},
                start_new_session=True,
                preexec_fn=record,
            )
    except (OSError, subprocess.SubprocessError) as exc:
        raise BootError(f"{argv[0]}: could not be started ({exc}); install it, and run as root") from exc


def recorded(paths: Paths) -> recorded_process.Recorded:
    """Return the process of a guest's pid file. Raises ProcessError, FilesError where that is damaged."""
    return recorded_process.from_entry(paths.pid, None)


def pid(paths: Paths, proc_root: str = procfs.PROC_ROOT) -> int | None:
    """Return the number of a guest's kernel while it runs."""
    kernel = recorded(paths).child
    return kernel.pid if kernel is not None and processes.is_running(kernel, proc_root) else None


def end(paths: Paths) -> None:
    """End a guest at once, as pulling the plug would. Raises ProcessError when it survives."""
    recorded_process.end(recorded(paths), _END_DEADLINE_S)


def console_tail(paths: Paths) -> str:
    """Return the last lines of a guest's console."""
    try:
        content = files.read_bytes(paths.console)
    except files.FilesError:
        return "no console"
    text = content[-_TAIL_BYTES:].decode("utf-8", "replace")
    return text if len(content) <= _TAIL_BYTES else text.partition("\n")[2]


def ask(access: Access, name: str, timeout_s: float, run: Run = commands.run) -> System | None:
    """Return the state of a guest once its boot has settled, or None where it doesn't answer (yet)."""
    try:
        done = run(access.argv(name, _QUESTION), timeout_s=max(timeout_s, 1.0), check=False)
    except commands.CommandError:
        return None
    return None if done.status == _UNREACHABLE else parse(done.stdout)


def parse(text: str) -> System | None:
    """Return what the answer to the question says; None where the connection broke in the middle."""
    lines = text.splitlines()
    if len(lines) < 2:
        return None
    return System(lines[0].strip(), lines[1].strip(), tuple(line.split()[0] for line in lines[2:] if line.split()))


def wait_up(
    access: Access, name: str, paths: Paths, deadline_s: float, other_than: str = "", run: Run = commands.run
) -> System:
    """Wait until a guest's system is up, in another boot than ``other_than``, until ``deadline_s`` (monotonic clock).

    Raises BootError with the end of the console when the kernel has ended or the time is over.
    """
    seen = "no answer over ssh"
    while True:
        left_s = deadline_s - time.monotonic()
        if pid(paths) is None:
            raise BootError(f"guest {name}: its kernel has ended; its console says:\n{console_tail(paths)}")
        if left_s <= 0:
            raise BootError(
                f"guest {name}: not up in time ({seen}); set a longer lab_boot_timeout_s, or look at its console:\n"
                f"{console_tail(paths)}"
            )
        system = ask(access, name, left_s, run)
        if system is not None and system.state in UP and system.boot_id != other_than:
            return system
        if system is not None:
            seen = f"systemd says {system.state}"
        time.sleep(_POLL_S)


def reboot(access: Access, names: Iterable[str], run: Run = commands.run) -> dict[str, str]:
    """Ask guests to reboot; returns the boot id that each had. Raises BootError where one doesn't answer."""
    before = {}
    for name in names:
        system = ask(access, name, 30.0, run)
        if system is None:
            raise BootError(f"guest {name}: doesn't answer, so it can't be asked to reboot; remove and make it again")
        before[name] = system.boot_id
    for name in before:
        run(access.argv(name, "systemctl", "--no-block", "reboot"), timeout_s=30.0)
    return before
