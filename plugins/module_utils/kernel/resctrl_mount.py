# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mount resctrl now and at every start: as a systemd unit where systemd runs, else as a line of fstab."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    mounts,
    procfs,
    resctrl,
    resctrl_undo,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl import ResctrlError

OPTIONS = ("cdp", "cdpl2", "mba_MBps", "debug")
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Places:
    """Where things are; injected for tests. ``fs_type`` and ``source`` are what mount(8) is given."""

    proc_root: str = procfs.PROC_ROOT
    fstab: str = "/etc/fstab"
    unit_directory: str = "/etc/systemd/system"
    systemd_running: str = "/run/systemd/system"
    fs_type: str = "resctrl"
    source: str = "resctrl"
    run: Callable[..., commands.Result] = field(default=commands.run)


@dataclass(frozen=True)
class Task:
    """One thing to do, as a person reads it, and the function that does it."""

    text: str
    do: Callable[[], None]


class Mounter:
    """Brings one mount about, or takes back what it brought about earlier."""

    def __init__(self, point: str, options: Sequence[str], book: journal.Journal, by: str, places: Places) -> None:
        """Name mount point, options, journal and author; nothing is done yet."""
        self._point = point.rstrip("/") or "/"
        self._options = tuple(name for name in OPTIONS if name in options)
        self._book = book
        self._by = by
        self._places = places

    def mounting(self, persist: bool) -> list[Task]:
        """Return what has to be done until it is mounted. Raises ResctrlError where it cannot be."""
        tasks = []
        if not self._is_mounted():
            if not os.path.isdir(self._point):
                raise ResctrlError(
                    f"{self._point}: there is no such directory (kernel and CPU that have resctrl make "
                    f"{resctrl.MOUNT_POINT}); look at what resctrl_info says is missing, or name an existing directory"
                )
            tasks.append(Task(f"mounted on {self._point} with {self._shown()}", self._mount))
        if persist and not self._is_in_fstab():
            tasks += self._unit_tasks() if os.path.isdir(self._places.systemd_running) else [self._fstab_task()]
        return tasks

    def _shown(self, options: Sequence[str] | None = None) -> str:
        names = self._options if options is None else options
        return f"the options {','.join(names)}" if names else "no options"

    def _is_mounted(self) -> bool:
        found = mounts.at(self._point, self._places.proc_root)
        if found is None:
            return False
        if found.fs_type == self._places.fs_type and found.fs_type not in resctrl.FS_TYPES:
            return True
        state = resctrl.read_state(self._point, self._places.proc_root)
        if state is not None and set(state.options) != set(self._options):
            raise ResctrlError(
                f"{self._point}: resctrl is mounted with {self._shown(state.options)}, but {self._shown()} are asked "
                "for; unmount it first, which removes all groups in it, or ask for the options that it has"
            )
        return state is not None

    def _mount(self) -> None:
        places = self._places
        self._book.record("mount", self._point, {"fs_type": places.fs_type}, self._by)
        argv = ["mount", "-t", places.fs_type, "-o", self._all_options(), places.source, self._point]
        try:
            places.run(argv, timeout_s=_TIMEOUT_S)
        except commands.CommandError as exc:
            self._book.forget("mount", self._point)
            raise ResctrlError(f"{exc}; look at what resctrl_info says is missing, and at the kernel log") from exc

    def _all_options(self, *more: str) -> str:
        return ",".join(("nosuid", "nodev", "noexec", *more, *self._options))

    # systemd

    def unit_name(self) -> str:
        """Return the name that systemd wants of a unit for this mount point (systemd-escape(1))."""
        escaped = []
        for number, char in enumerate(self._point.strip("/")):
            plain = char.isascii() and (char.isalnum() or char in ":_" or (char == "." and number))
            escaped.append("-" if char == "/" else char if plain else "".join(f"\\x{b:02x}" for b in char.encode()))
        return f"{''.join(escaped) or '-'}.mount"

    def unit_text(self) -> str:
        """Return the unit's file."""
        return (
            "[Unit]\nDescription=Cache and memory bandwidth control (resctrl)\n"
            f"ConditionPathIsDirectory={self._point}\n\n"
            f"[Mount]\nWhat={self._places.source}\nWhere={self._point}\nType={self._places.fs_type}\n"
            f"Options={self._all_options()}\n\n[Install]\nWantedBy=local-fs.target\n"
        )

    def _unit_tasks(self) -> list[Task]:
        path = f"{self._places.unit_directory}/{self.unit_name()}"
        tasks = []
        if self._read(path) != self.unit_text():
            tasks.append(Task(f"{path} written", lambda: self._write_unit(path)))
        if not self._is_enabled():
            tasks.append(Task(f"{self.unit_name()} enabled", self._enable))
        return tasks

    def _read(self, path: str) -> str | None:
        try:
            return files.read_text_or_none(path)
        except files.FilesError as exc:
            raise ResctrlError(str(exc)) from exc

    def _is_enabled(self) -> bool:
        return self._systemctl("is-enabled", self.unit_name(), check=False).stdout.strip() == "enabled"

    def _systemctl(self, *words: str, check: bool = True) -> commands.Result:
        try:
            return self._places.run(["systemctl", *words], timeout_s=_TIMEOUT_S, check=check)
        except commands.CommandError as exc:
            raise ResctrlError(str(exc)) from exc

    def _write_unit(self, path: str) -> None:
        try:
            self._book.record("file", path, files.capture(path), self._by)
            files.write_atomic(path, self.unit_text())
        except files.FilesError as exc:
            raise ResctrlError(str(exc)) from exc
        self._reload_where_needed()

    def _reload_where_needed(self) -> None:
        # Reloading makes systemd write the values of all its slices anew, over those that a policy has set there.
        shown = self._systemctl("show", "--property=NeedDaemonReload", "--value", self.unit_name(), check=False)
        if shown.stdout.strip() == "yes":
            self._systemctl("daemon-reload")

    def _enable(self) -> None:
        # "active" is what the mount's own entry takes back, which looks for groups of others first.
        self._book.record("unit", self.unit_name(), {"enabled": False, "active": True}, self._by)
        self._systemctl("enable", "--no-reload", self.unit_name())

    # fstab

    def _is_in_fstab(self) -> bool:
        for line in (self._read(self._places.fstab) or "").splitlines():
            fields = line.split()
            if len(fields) < 4 or fields[0].startswith("#") or mounts.unescape(fields[1]) != self._point:
                continue
            options = [name for name in fields[3].split(",") if name in OPTIONS]
            if fields[2] != self._places.fs_type or set(options) != set(self._options):
                raise ResctrlError(
                    f"{self._places.fstab}: mounts {fields[2]} on {self._point} with {self._shown(options)}, but "
                    f"{self._shown()} are asked for; change that line, or ask for what it has"
                )
            return True
        return False

    def _fstab_task(self) -> Task:
        line = f"{self._places.source} {self._point} {self._places.fs_type} {self._all_options('nofail')} 0 0"
        present = self._read(self._places.fstab)
        missing_end = "\n" if present and not present.endswith("\n") else ""
        return Task(f"{self._places.fstab}: {line}", lambda: self._append(present, f"{missing_end}{line}\n"))

    def _append(self, present: str | None, appended: str) -> None:
        path = self._places.fstab
        previous = {"path": path, "appended": appended, "created": present is None}
        self._book.record("mount", f"{resctrl_undo.FSTAB}{self._point}", previous, self._by)
        try:
            resctrl_undo.rewrite(path, f"{present or ''}{appended}")
        except files.FilesError as exc:
            raise ResctrlError(str(exc)) from exc

    # Taking back

    def unmounting(self) -> list[Task]:
        """Return what has to be done to take back what the journal says was done for this mount."""
        entries = {(entry.kind, entry.target): entry for entry in self._book.entries()}
        unit = self.unit_name()
        keys = [
            ("unit", unit),
            ("file", f"{self._places.unit_directory}/{unit}"),
            ("mount", f"{resctrl_undo.FSTAB}{self._point}"),
            ("mount", self._point),
        ]
        found = [entries[key] for key in keys if key in entries]
        return [Task(f"{entry.target} taken back", partial(self._take_back, entry)) for entry in found]

    def _take_back(self, entry: journal.Entry) -> None:
        if entry.kind == "unit":
            self._systemctl("disable", "--no-reload", entry.target)
        elif entry.kind == "file":
            try:
                files.restore(entry.target, entry.previous)
            except files.FilesError as exc:
                raise ResctrlError(str(exc)) from exc
            self._reload_where_needed()
        else:
            outcome = resctrl_undo.undo_mount(entry, False, self._places.proc_root, self._places.run)
            if outcome.result != "undone":
                raise ResctrlError(outcome.text)
        self._book.forget(entry.kind, entry.target)
