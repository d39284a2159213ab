# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring listed processes into their wanted state, and say what became of them: the work of module `process`."""

from __future__ import annotations

import base64
import os
import zlib
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import files, journal
from ansible_collections.colocation.testbed.plugins.module_utils.node import control, entries, ready, spec
from ansible_collections.colocation.testbed.plugins.module_utils.recorded_process import wait as wait_until


class Handler:
    """Brings processes into their wanted state, one after the other."""

    def __init__(self, manager: control.Manager, check_mode: bool) -> None:
        """Take what all processes of this host share."""
        self.manager = manager
        self.check_mode = check_mode
        self.book = journal.of(manager.state_dir)

    def handle(self, entry: entries.Entry) -> dict[str, Any]:
        """Bring one process into its state, and return what became of it."""
        before = control.status(entry.paths)
        changed = self._stop_or_start(entry, before)
        if entry.wait and not self.check_mode:
            self._wait(entry)
        return self.report(entry, changed)

    def _stop_or_start(self, entry: entries.Entry, before: control.Status) -> bool:
        if entry.spec is None:
            if entry.state == "ended":
                return False
            leaving = before.running or (entry.state == "absent" and before.state != "absent")
            if leaving and not self.check_mode:
                control.stop(self.manager, entry.paths, self.book)
                if entry.state == "absent":
                    control.remove(entry.paths)
            return leaving
        if entry.state == "started" and before.runs_as(entry.spec):
            return False
        if not self.check_mode:
            if before.running:
                control.stop(self.manager, entry.paths, self.book)
            self._start(entry, entry.spec)
        return True

    def _start(self, entry: entries.Entry, wanted: spec.ProcessSpec) -> None:
        ready.check_port(entry.name, entry.ready, entry.port_setting)
        control.prepare(self.manager, entry.paths, entry.outputs, entry.tool_spec, self.book)
        control.start(self.manager, wanted)
        ended = False

        def settled() -> bool:
            nonlocal ended
            if entry.ready.holds():
                return True
            ended = not control.status(entry.paths).running
            return ended

        in_time = wait_until(settled, entry.ready_timeout_s)
        if in_time and not ended:
            return
        if not ended:
            control.stop(self.manager, entry.paths, self.book)
        how = "ended" if ended else f"took longer than {entry.ready_timeout_s:g} s and was stopped"
        raise control.ControlError(
            f"process {entry.name}: {how} before it was ready ({entry.ready.describe()}); "
            f"its log {entry.paths.log} ends with: {_last_line(entry.paths)}"
        )

    def _wait(self, entry: entries.Entry) -> None:
        if control.status(entry.paths).state == "absent":
            raise control.ControlError(f"process {entry.name}: was never started here; start it before waiting for it")
        if control.wait_ended(entry.paths, entry.timeout_s):
            self.book.forget("process", entry.paths.pid)
            return
        control.stop(self.manager, entry.paths, self.book)
        raise control.ControlError(
            f"process {entry.name}: still ran after {entry.timeout_s:g} s and was stopped; "
            f"its log {entry.paths.log} ends with: {_last_line(entry.paths)}"
        )

    def report(self, entry: entries.Entry, changed: bool) -> dict[str, Any]:
        """Return what is known of a process now."""
        now = control.status(entry.paths)
        return {
            "name": entry.name,
            "state": "running" if now.running else now.state,
            "pid": now.pid,
            "changed": changed,
            "exit": None if now.running else control.read_exit(entry.paths),
            "log_tail": "" if now.running else control.log_tail(entry.paths),
        }


def _last_line(paths: spec.Paths) -> str:
    lines = [line.strip() for line in control.log_tail(paths).splitlines() if line.strip()]
    return lines[-1] if lines else "nothing"


def fetch(paths: list[str]) -> dict[str, Any]:
    """Return the content of files, compressed, with null for those that do not exist."""
    result: dict[str, Any] = {}
    for path in paths:
        if not os.path.exists(path):
            result[path] = None
            continue
        content = zlib.compress(files.read_bytes(path), 6)
        result[path] = {"content_b64_zlib": base64.b64encode(content).decode("ascii")}
    return result


def describe(entry: entries.Entry, now: control.Status, wanted: bool) -> str:
    """Return a process as a diff shows it: its state, and what it is started with."""
    if not wanted:
        text = files.read_text_or_none(entry.paths.spec) or ""
        return f"{entry.name}: {'running' if now.running else now.state}\n{text}"
    state = "running" if entry.spec is not None else entry.state
    return f"{entry.name}: {state}\n{entry.spec.to_json() if entry.spec is not None else ''}"
