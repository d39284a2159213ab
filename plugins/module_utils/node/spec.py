# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a supervised process is: its specification on disk, its files, and what its pid file says."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import processes

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}\Z")


class SpecError(Exception):
    """A process specification or pid file is damaged or asks for something that is not allowed."""


@dataclass(frozen=True)
class ProcessSpec:
    """Everything that decides how a process runs: when it changes, the process is started again.

    `group` is the control group below `cgroup_root` (empty: stay where the supervisor is), `cpus` and
    `supervisor_cpus` are CPU lists (empty: no change), `files` maps configuration files to their SHA-256. After
    `max_duration_s` the process is stopped, so that none outlives a controller that died.
    """

    name: str
    argv: tuple[str, ...]
    state_dir: str
    env: Mapping[str, str] = field(default_factory=dict)
    directory: str = "/"
    group: str = ""
    cgroup_root: str = ""
    cpus: str = ""
    supervisor_cpus: str = ""
    stop_signal: str = "TERM"
    stop_timeout_s: float = 10.0
    max_duration_s: float | None = None
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def group_path(self) -> str:
        """Return the group below each hierarchy, or the empty string."""
        return "/".join(part for part in (self.cgroup_root, self.group) if part) if self.group else ""

    @property
    def paths(self) -> Paths:
        """Return where the files of this process are."""
        return Paths(self.state_dir, self.name)

    def to_json(self) -> str:
        """Return the text that is kept on disk; equal specifications have equal texts."""
        return json.dumps(asdict(self), sort_keys=True, indent=1, ensure_ascii=False) + "\n"

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the specification."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()


@dataclass(frozen=True)
class Paths:
    """The files of one process below the state directory."""

    state_dir: str
    name: str

    def _file(self, suffix: str) -> str:
        return os.path.join(self.state_dir, "processes", self.name + suffix)

    @property
    def spec(self) -> str:
        """Return the specification's path."""
        return self._file(".json")

    @property
    def tool_spec(self) -> str:
        """Return the path of the specification that a command of the node tool reads."""
        return self._file(".tool.json")

    @property
    def pid(self) -> str:
        """Return the pid file's path."""
        return self._file(".pid")

    @property
    def log(self) -> str:
        """Return the log's path; the log of the run before is kept beside it with `.1`."""
        return self._file(".log")

    @property
    def exit(self) -> str:
        """Return the path of the file that says how the process ended."""
        return self._file(".exit")

    @property
    def all(self) -> tuple[str, ...]:
        """Return every file that may exist for the process."""
        return (self.spec, self.tool_spec, self.pid, self.log, self.log + ".1", self.exit)


@dataclass(frozen=True)
class PidFile:
    """What the supervisor says about its child: `running` with identities, or `failed` with a sentence."""

    state: str
    child: processes.Identity | None
    supervisor: processes.Identity
    digest: str
    error: str

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the pid file."""
        return {
            "state": self.state,
            "pid": self.child.pid if self.child else None,
            "start_ticks": self.child.start_ticks if self.child else None,
            "boot_id": self.supervisor.boot_id,
            "supervisor_pid": self.supervisor.pid,
            "supervisor_start_ticks": self.supervisor.start_ticks,
            "spec_sha256": self.digest,
            "error": self.error,
        }


def check_name(name: str) -> str:
    """Return a process name unchanged; raises SpecError unless it is safe as a file and unit name."""
    if not _NAME.match(name):
        raise SpecError(
            f"process name {name!r}: not allowed; use up to 64 lower-case letters, digits and . _ - "
            "and begin with a letter or digit"
        )
    return name


def signal_number(name: str) -> int:
    """Return the number of a signal given as QUIT or SIGQUIT. Raises SpecError."""
    wanted = name.upper() if name.upper().startswith("SIG") else f"SIG{name.upper()}"
    found = {item.name: item.value for item in signal.Signals}.get(wanted)
    if found is None:
        raise SpecError(f"signal {name!r}: unknown; give a name such as TERM, QUIT or INT")
    return found


def from_dict(value: Any, where: str) -> ProcessSpec:
    """Build a specification from a JSON object and check it. Raises SpecError naming `where`."""
    try:
        fields = {**value, "argv": tuple(value["argv"])}
        result = ProcessSpec(**fields)
    except (TypeError, KeyError) as exc:
        raise SpecError(f"{where}: not a process specification ({exc}); run module process again") from exc
    check_name(result.name)
    signal_number(result.stop_signal)
    if not result.argv:
        raise SpecError(f"process {result.name}: argv is empty; give the program and its arguments")
    return result


def load(path: str) -> ProcessSpec:
    """Read a specification. Raises SpecError."""
    try:
        return from_dict(files.read_json(path), path)
    except files.FilesError as exc:
        raise SpecError(str(exc)) from exc


def read_pid_file(path: str) -> PidFile | None:
    """Return the content of a pid file, None where there is none or a crash left it damaged."""
    try:
        if not os.path.exists(path):
            return None
        raw = files.read_json(path)
        boot_id = str(raw["boot_id"])
        child = processes.Identity(int(raw["pid"]), int(raw["start_ticks"]), boot_id) if raw["pid"] else None
        supervisor = processes.Identity(int(raw["supervisor_pid"]), int(raw["supervisor_start_ticks"]), boot_id)
        return PidFile(str(raw["state"]), child, supervisor, str(raw["spec_sha256"]), str(raw["error"]))
    except (files.FilesError, KeyError, TypeError, ValueError):
        return None
