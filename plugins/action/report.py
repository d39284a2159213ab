# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the report of a run on the controller, and show its table whatever the callback."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.colocation.testbed.plugins.plugin_utils.report import build, terminal
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.build import Report
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import ReportError
from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir import RunDirectoryError

_SPEC = {
    "run_dir": {"type": "str", "default": ""},
    "results_dir": {"type": "str", "default": "results"},
    "show": {"type": "bool", "default": True},
    "fail_on": {
        "type": "list",
        "elements": "str",
        "default": [],
        "choices": ["fail", "inconclusive", "invalid", "partial"],
    },
}
_COLOURS = {
    "pass": "green",
    "fail": "red",
    "inconclusive": "yellow",
    "invalid": "red",
    "none": None,
    "": None,
}
_WIDEST = 140
_USUAL = 79

display = Display()


class ActionModule(ActionBase):
    """Controller side of module report; nothing runs on a host."""

    _requires_connection = False
    _supports_check_mode = True
    _supports_diff = False
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Build the report, write what differs, show the table."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _unused, arguments = self.validate_argument_spec(argument_spec=_SPEC)
        try:
            report = build.build(_run_dir(arguments))
            changed = build.outdated(report) if self._task.check_mode else build.write(report)
        except (ReportError, RunDirectoryError) as exc:
            raise AnsibleActionFail(f"report: {exc}") from None  # Ansible would append the cause, said already
        width = min(shutil.get_terminal_size((display.columns or _USUAL, 24)).columns, _WIDEST)
        lines = report.say(width, os.environ.get("TERM") != "dumb")
        if arguments["show"]:
            _show(lines, report.path(build.REPORT_HTML))
        return {**result, **_outcome(report, changed, lines), **_failure(report, arguments["fail_on"])}


def _run_dir(arguments: dict[str, Any]) -> Path:
    if arguments["run_dir"]:
        return Path(arguments["run_dir"]).expanduser().absolute()
    return build.newest_run(Path(arguments["results_dir"]).expanduser().absolute())


def _show(lines: Sequence[terminal.Line], page: Path) -> None:
    display.display("")
    for line in lines:
        display.display(line.text, color=_COLOURS[line.tone])
    display.display(f"\nReport: {page}")


def _outcome(report: Report, changed: Sequence[str], lines: Sequence[terminal.Line]) -> dict[str, Any]:
    names = (build.SUMMARY_JSON, build.SUMMARY_CSV, build.REPORT_HTML)
    return {
        "changed": bool(changed),
        "run_dir": str(report.run.path),
        "run_id": report.view.run_id,
        "partial": report.view.partial,
        "verdict": report.summary["verdict"],
        "files": [str(report.path(name)) for name in names],
        "written": list(changed),
        "text": terminal.as_text(lines),
    }


def _failure(report: Report, fail_on: Sequence[str]) -> dict[str, Any]:
    met = [word for word in fail_on if word == report.view.result or (word == "partial" and report.view.partial)]
    if not met:
        return {}
    reasons = "; ".join(report.view.reasons)
    detail = f": {reasons}" if reasons else ""
    return {"failed": True, "msg": f"run {report.view.run_id} is {met[0]}: {report.view.sentence}{detail}"}
