# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start one process in its control groups and CPUs, wait for it, and end everything that it started.

Runs as `node.pyz supervise --spec FILE`, detached or as a systemd unit. It stays outside the workload's groups, so that
its own work is not counted as the workload's.
"""

from __future__ import annotations

import ctypes
import math
import os
import resource
import signal
import sys
import time
from typing import NoReturn

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cpu_list, processes, procfs
from ansible_collections.colocation.testbed.plugins.module_utils.node import spec as specs

# prctl(2)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_WAITED = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGCHLD})
# Beyond the usual soft limit of 1,024, which a few thousand connections exceed.
_OPEN_FILES = 65536
_SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_REAP_DEADLINE_S = 5.0


class SuperviseError(Exception):
    """The process could not be started; the text becomes the `error` of the pid file."""


def environment(spec: specs.ProcessSpec) -> dict[str, str]:
    """Return the child's environment: the same on every host and run, whatever the caller's shell had."""
    return {"PATH": _SEARCH_PATH, "LC_ALL": "C", "HOME": "/", **spec.env}


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise SuperviseError(f"prctl {option}: {os.strerror(ctypes.get_errno())}; the kernel must allow prctl")


def group_directories(layout: cgroup.Layout, group: str) -> list[str]:
    """Return the directories of a group in every hierarchy that has it. Raises SuperviseError where none has."""
    places = [cgroup.join_path(item.mount, group) for item in layout.hierarchies]
    found = [place for place in places if os.path.isdir(place)]
    if not found:
        raise SuperviseError(
            f"control group {group}: in none of the {len(places)} hierarchies (looked for {places[0]} and the like); "
            "apply it with module cgroup before the process is started"
        )
    return found


def _join(directories: list[str], pid: int) -> None:
    for directory in directories:
        try:
            cgroup.move(directory, pid)
        except cgroup.CgroupError as exc:
            hint = "; a cpuset needs cpuset.cpus and cpuset.mems first" if "No space left" in str(exc) else ""
            raise SuperviseError(f"{exc}{hint}") from exc


def _set_cpus(cpus: str, what: str) -> None:
    if not cpus:
        return
    try:
        os.sched_setaffinity(0, cpu_list.parse(cpus))
    except (OSError, cpu_list.CpuListError) as exc:
        raise SuperviseError(f"{what} {cpus}: cannot be used ({exc}); choose CPUs that are online and allowed") from exc


def open_log(path: str) -> None:
    """Begin a new log, keep the one before as `.1`, and let standard output and error go there."""
    if os.path.exists(path):
        os.replace(path, path + ".1")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.close(handle)


class Supervisor:
    """One child and what it started."""

    def __init__(self, spec: specs.ProcessSpec) -> None:
        """Take the specification; nothing happens yet."""
        self.spec = spec
        self.child = 0
        self.identity: processes.Identity | None = None
        self.status: int | None = None
        self.allowed_cpus = os.sched_getaffinity(0)

    def start(self) -> None:
        """Start the child and return when it runs its program. Raises SuperviseError."""
        directories = group_directories(cgroup.detect(), self.spec.group_path) if self.spec.group else []
        reading, writing = os.pipe2(os.O_CLOEXEC)
        parent = os.getpid()
        _set_cpus(self.spec.supervisor_cpus, "supervisor: housekeeping CPUs")
        self.child = os.fork()
        if self.child == 0:
            os.close(reading)
            self._become_child(directories, writing, parent)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            error = pipe.read().decode("utf-8", "replace")
        if error:
            os.waitpid(self.child, 0)
            raise SuperviseError(error)
        # Not processes.identify: a child that has ended already is still there as a zombie, and counts as started.
        stat = procfs.read_stat(self.child)
        if stat is not None:
            self.identity = processes.Identity(self.child, stat.start_ticks, procfs.read_boot_id())

    def _become_child(self, directories: list[str], error_pipe: int, parent: int) -> NoReturn:
        """Set everything up and replace this process by the program; errors go to the parent through the pipe."""
        program, text = self.spec.argv[0], ""
        try:
            os.setsid()
            # The stop signal, not SIGKILL: a server that is killed cannot end its own workers.
            _prctl(_PR_SET_PDEATHSIG, specs.signal_number(self.spec.stop_signal))
            if os.getppid() != parent:
                os._exit(1)
            os.sched_setaffinity(0, self.allowed_cpus)
            _join(directories, os.getpid())
            # After the cpuset, because joining one resets the affinity.
            _set_cpus(self.spec.cpus, "cpus")
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            soft = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            program = self.spec.directory
            os.chdir(self.spec.directory)
            program = self.spec.argv[0]
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            os.execvpe(program, list(self.spec.argv), environment(self.spec))  # noqa: S606  no shell is the point
        except OSError as exc:
            text = f"{program}: {exc.strerror}; install it or correct its path"
        except Exception as exc:  # whatever it is, the parent must learn it
            text = str(exc)
        os.write(error_pipe, text.encode())
        os._exit(127)

    def wait(self) -> None:
        """Wait until the child ends by itself or this process is told to stop; then end what is left of it."""
        limit_s = self.spec.max_duration_s
        deadline = math.inf if limit_s is None else time.monotonic() + limit_s
        while self._reap() and self.status is None:
            if self._must_stop(deadline):
                self._stop()
                break
        self._end_leftovers()

    def _must_stop(self, deadline: float) -> bool:
        """Wait for a signal; tells whether it, or the end of the allowed duration, means that the child must stop."""
        # The kernel takes no infinite time-out; an hour only is how often the loop goes round.
        received = signal.sigtimedwait(_WAITED, min(3600.0, max(0.0, deadline - time.monotonic())))
        if received is not None:
            return received.si_signo != signal.SIGCHLD
        if time.monotonic() < deadline:
            return False
        _say(f"{self.spec.name}: stopped after its longest duration of {self.spec.max_duration_s:g} s")
        return True

    def _reap(self) -> bool:
        """Collect ended children; tells whether any child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.child:
                self.status = status

    def _stop(self) -> None:
        os.kill(self.child, specs.signal_number(self.spec.stop_signal))
        # A stopped process takes the signal only when it goes on.
        os.kill(self.child, signal.SIGCONT)
        if not self._reap_within(self.spec.stop_timeout_s):
            text = f"{self.spec.name}: still there {self.spec.stop_timeout_s:g} s after the stop signal; killed"
            _say(text)
            os.kill(self.child, signal.SIGKILL)
            self._reap_within(_REAP_DEADLINE_S)

    def _reap_within(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while self._reap() and self.status is None:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            signal.sigtimedwait({signal.SIGCHLD}, left_s)
        return True

    def _end_leftovers(self) -> None:
        """Kill what the child started and left; being the subreaper, all of it is below this process."""
        deadline = time.monotonic() + _REAP_DEADLINE_S
        while self._reap() and time.monotonic() < deadline:
            for identity in processes.descendants(os.getpid()):
                processes.send(identity, signal.SIGKILL)
            signal.sigtimedwait({signal.SIGCHLD}, 0.1)

    def outcome(self) -> dict[str, int | float | None]:
        """Return how the child ended: exit status or signal, and when (wall clock, seconds)."""
        if self.status is None:
            return {"status": None, "signal": None, "time": time.time()}
        ended_by = os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else None
        status = None if ended_by else os.WEXITSTATUS(self.status)
        return {"status": status, "signal": ended_by, "time": time.time()}


def _write_pid_file(supervisor: Supervisor, state: str, error: str = "") -> None:
    own = processes.identify(os.getpid())
    if own is None:
        raise SuperviseError("supervisor: /proc does not show this process; mount /proc")
    content = specs.PidFile(state, supervisor.identity, own, supervisor.spec.digest, error)
    files.write_json(supervisor.spec.paths.pid, content.to_dict())


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run(spec_path: str) -> int:
    """Supervise the process of a specification file until it has ended. Returns the tool's exit status."""
    try:
        spec = specs.load(spec_path)
    except specs.SpecError as exc:
        sys.stderr.write(f"{exc}\n")
        return 2
    signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED)
    supervisor = Supervisor(spec)
    try:
        open_log(spec.paths.log)
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        supervisor.start()
        _write_pid_file(supervisor, "running")
    except (SuperviseError, cgroup.CgroupError) as exc:
        sys.stderr.write(f"{exc}\n")
        sys.stderr.flush()
        _write_pid_file(supervisor, "failed", str(exc))
        return 1
    supervisor.wait()
    files.write_json(spec.paths.exit, supervisor.outcome())
    return 0
