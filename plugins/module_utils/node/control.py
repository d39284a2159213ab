# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start, stop and look at supervised processes: what module `process` does, without Ansible in it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import processes
from ansible_collections.colocation.testbed.plugins.module_utils.node import spec as specs
from ansible_collections.colocation.testbed.plugins.module_utils.node import unit
from ansible_collections.colocation.testbed.plugins.module_utils.recorded_process import wait as wait_until

BY = "process"
# Isolated from the caller's environment and without site-packages: the tool needs the standard library only.
PYTHON_FLAGS = ("-I", "-S")
_START_DEADLINE_S = 20.0
# What the supervisor needs beyond the child's own time to stop: killing and collecting what is left.
_STOP_SLACK_S = 15.0
_KILL_DEADLINE_S = 5.0
_LOG_TAIL_BYTES = 2000


class ControlError(Exception):
    """A process could not be started or stopped, or ended before it was ready; the text says why."""


@dataclass(frozen=True)
class Manager:
    """How processes run on a host: detached (`supervised`) or as transient units (`systemd`)."""

    kind: str
    state_dir: str
    python: str
    instance: str = ""

    @property
    def tool(self) -> str:
        """Return the path of the node tool."""
        return os.path.join(self.state_dir, "node.pyz")

    def tool_argv(self, command: str, spec_path: str) -> tuple[str, ...]:
        """Return the argv that runs a command of the node tool."""
        return (self.python, *PYTHON_FLAGS, self.tool, command, "--spec", spec_path)


@dataclass(frozen=True)
class Status:
    """Whether a process runs, by its pid file; `digest` is that of the specification with which it was started."""

    state: str
    pid_file: specs.PidFile | None

    @property
    def running(self) -> bool:
        """Tell whether anything of the process is still there."""
        return self.state in ("running", "orphaned", "ending")

    def runs_as(self, spec: specs.ProcessSpec) -> bool:
        """Tell whether it runs, supervised, with exactly this specification."""
        return self.state == "running" and self.pid_file is not None and self.pid_file.digest == spec.digest

    @property
    def pid(self) -> int | None:
        """Return the number of the process while it runs."""
        return self.pid_file.child.pid if self.running and self.pid_file and self.pid_file.child else None


def status(paths: specs.Paths) -> Status:
    """Return what a process is doing: running, orphaned, ending, failed, stopped, or absent (never started)."""
    found = specs.read_pid_file(paths.pid)
    if found is None:
        return Status("stopped" if os.path.exists(paths.spec) else "absent", None)
    child = found.child is not None and processes.is_running(found.child)
    supervisor = processes.is_running(found.supervisor)
    if child:
        return Status("running" if supervisor else "orphaned", found)
    if supervisor:
        return Status("ending", found)
    return Status("failed" if found.state == "failed" else "stopped", found)


def read_exit(paths: specs.Paths) -> dict[str, Any] | None:
    """Return how the process ended last time, or None where it was never recorded."""
    if not os.path.exists(paths.exit):
        return None
    return dict(files.read_json(paths.exit))


def log_tail(paths: specs.Paths) -> str:
    """Return the last lines of the log."""
    try:
        with open(paths.log, "rb") as handle:
            handle.seek(max(0, os.fstat(handle.fileno()).st_size - _LOG_TAIL_BYTES))
            text = handle.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return text if len(text) < _LOG_TAIL_BYTES else text.partition("\n")[2]


def prepare(
    manager: Manager, paths: specs.Paths, outputs: Sequence[str], tool_spec: str | None, book: journal.Journal
) -> None:
    """Journal what starting will leave on the host, remove what a run before left, write the tool's specification.

    `outputs` are files that the process will write.
    """
    folder = os.path.dirname(paths.spec)
    changes = [] if os.path.isdir(folder) else [journal.Change("directory", folder, {"tree": True})]
    known = {entry.target for entry in book.entries()} if outputs else set()
    changes += [journal.Change("file", path, files.capture(path)) for path in outputs if path not in known]
    changes.append(journal.Change("process", paths.pid))
    if manager.kind == "systemd":
        name = unit.name(paths.name, manager.instance)
        changes += [journal.Change("file", unit.path(name)), journal.Change("unit", name)]
    book.record_many(changes, BY)
    os.makedirs(folder, exist_ok=True)
    for path in (paths.pid, paths.exit, *outputs):
        files.restore(path, None)
    if tool_spec is not None:
        files.write_atomic(paths.tool_spec, tool_spec)


def start(manager: Manager, spec: specs.ProcessSpec) -> None:
    """Start a prepared process and return when its program runs. Raises ControlError with the supervisor's sentence."""
    paths = spec.paths
    if not os.path.exists(manager.tool):
        raise ControlError(f"{manager.tool}: not there; apply role node to this host first")
    files.write_atomic(paths.spec, spec.to_json())
    argv = manager.tool_argv("supervise", paths.spec)
    error = _start_unit(manager, spec, argv) if manager.kind == "systemd" else _start_detached(argv, paths)
    found = specs.read_pid_file(paths.pid)
    if found is None or found.state == "failed":
        if found is not None:
            processes.wait_end(found.supervisor, _KILL_DEADLINE_S)
        reason = found.error if found else error.strip() or "the supervisor wrote nothing"
        raise ControlError(f"process {spec.name}: could not be started: {reason}")


def _start_detached(argv: tuple[str, ...], paths: specs.Paths) -> str:
    """Start the supervisor in a session of its own; returns what it printed before it opened its log."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
            start_new_session=True,
        )
        wait_until(lambda: os.path.exists(paths.pid) or process.poll() is not None, _START_DEADLINE_S)
        output.seek(0)
        return output.read().decode("utf-8", "replace")


def _start_unit(manager: Manager, spec: specs.ProcessSpec, argv: tuple[str, ...]) -> str:
    name = unit.name(spec.name, manager.instance)
    files.write_atomic(unit.path(name), unit.render(spec, argv))
    _reread_unit(name)
    commands.run(["systemctl", "start", name])
    wait_until(lambda: os.path.exists(spec.paths.pid), _START_DEADLINE_S)
    return f"unit {name} wrote no pid file; see journalctl -u {name}"


def _reread_unit(name: str) -> None:
    """Let systemd read its unit files again if what it has of this unit is another text.

    Not otherwise: it would write the values of all of its control groups again, over those of a policy.
    """
    shown = commands.run(["systemctl", "show", "--property=NeedDaemonReload", "--value", name])
    if shown.stdout.strip() != "no":
        commands.run(["systemctl", "daemon-reload"])


def stop(manager: Manager, paths: specs.Paths, book: journal.Journal) -> None:
    """Stop a process and everything that it started, and return when all of it has ended. Raises ControlError."""
    before = status(paths)
    if before.pid_file is not None and before.running:
        # The recorded one: the caller's may have another stop signal by now.
        spec = specs.load(paths.spec)
        if manager.kind == "systemd":
            commands.run(["systemctl", "stop", unit.name(paths.name, manager.instance)], timeout_s=_limit_s(spec))
        if processes.send(before.pid_file.supervisor, specs.signal_number("TERM")):
            processes.wait_end(before.pid_file.supervisor, _limit_s(spec))
        _end_orphans(spec, before.pid_file)
    keys = [("process", paths.pid)]
    if manager.kind == "systemd":
        keys += _remove_unit(manager, paths)
    book.forget_many(keys)


def _limit_s(spec: specs.ProcessSpec) -> float:
    return spec.stop_timeout_s + _STOP_SLACK_S


def _end_orphans(spec: specs.ProcessSpec, pid_file: specs.PidFile) -> None:
    """End what a supervisor that was killed left behind; nothing is left where it ended in an orderly way."""
    child = pid_file.child
    if child is None:
        return
    if processes.send(child, specs.signal_number(spec.stop_signal)):
        processes.wait_end(child, spec.stop_timeout_s)
    kill = specs.signal_number("KILL")

    def gone() -> bool:
        left = processes.session_members(child)
        for identity in left:
            processes.send(identity, kill)
        return not left

    if not wait_until(gone, _KILL_DEADLINE_S):
        left = ", ".join(str(item.pid) for item in processes.session_members(child))
        raise ControlError(
            f"process {spec.name}: {left} still there after SIGKILL; see /proc/PID/stack for where it hangs"
        )


def _remove_unit(manager: Manager, paths: specs.Paths) -> list[tuple[str, str]]:
    name = unit.name(paths.name, manager.instance)
    if os.path.exists(unit.path(name)):
        os.unlink(unit.path(name))
        _reread_unit(name)
    return [("unit", name), ("file", unit.path(name))]


def remove(paths: specs.Paths) -> None:
    """Remove the files of a stopped process."""
    for path in paths.all:
        files.restore(path, None)


def wait_ended(paths: specs.Paths, timeout_s: float) -> bool:
    """Wait until a process has ended by itself and its exit is recorded; tells whether it has within `timeout_s`."""
    before = status(paths)
    if before.pid_file is None or not before.running:
        return True
    return processes.wait_end(before.pid_file.supervisor, timeout_s) and wait_until(
        lambda: not status(paths).running, _KILL_DEADLINE_S
    )
