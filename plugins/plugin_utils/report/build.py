# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the files of a report from a run directory, and find the run directory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.plugin_utils import rundir_files
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report import csv_table as bandwidth_csv
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report import html as bandwidth_html
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report import summary as bandwidth_summary
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report import terminal as bandwidth_terminal
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report import view as bandwidth_view
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_rundir import BandwidthRun
from ansible_collections.colocation.testbed.plugins.plugin_utils.report import csv_table, html, model, terminal
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Outcome, ReportError
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.terminal import Line
from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir import RunDirectory, RunDirectoryError
from ansible_collections.colocation.testbed.plugins.plugin_utils.summary import summarise

SUMMARY_JSON, SUMMARY_CSV, REPORT_HTML = "summary.json", "summary.csv", "report.html"


@dataclass(frozen=True)
class Report:
    """What was made of a run, not yet written. ``say`` tells it in lines of a width, with Unicode or without."""

    run: RunDirectory | BandwidthRun
    summary: Mapping[str, Any]
    view: Outcome
    texts: Mapping[str, str]
    say: Callable[[int, bool], list[Line]]

    def path(self, name: str) -> Path:
        """Say where one of the files goes."""
        return self.run.path / name


def build(run_dir: Path) -> Report:
    """Judge a run of whatever experiment and make its report; writes nothing.

    Raises RunDirectoryError for a damaged directory and ReportError for what cannot be drawn.
    """
    return _BUILDERS[rundir_files.experiment_of(rundir_files.read_manifest(run_dir), run_dir)](run_dir)


def _matrix(run_dir: Path) -> Report:
    run = RunDirectory.open(run_dir)
    summary = summarise(run)
    view = model.build(summary, run.manifest)
    texts = {SUMMARY_CSV: csv_table.render(view), REPORT_HTML: html.render(run, summary)}
    return Report(run, summary, view, texts, functools.partial(terminal.render, view))


def _bandwidth(run_dir: Path) -> Report:
    run = BandwidthRun.open(run_dir)
    summary = bandwidth_summary.summarise(run)
    view = bandwidth_view.build(summary, run.manifest)
    texts = {SUMMARY_CSV: bandwidth_csv.render(view), REPORT_HTML: bandwidth_html.render(run, view)}
    return Report(run, summary, view, texts, functools.partial(bandwidth_terminal.render, view))


_BUILDERS: Mapping[str, Callable[[Path], Report]] = {
    rundir_files.MATRIX: _matrix,
    rundir_files.BANDWIDTH: _bandwidth,
}
_OPENERS: Mapping[str, Callable[[Path], RunDirectory | BandwidthRun]] = {
    rundir_files.MATRIX: RunDirectory.open,
    rundir_files.BANDWIDTH: BandwidthRun.open,
}


def outdated(report: Report) -> list[str]:
    """Name the files that are missing or differ from what would be written."""
    names = [name for name, text in report.texts.items() if _differs(report.path(name), text)]
    return [SUMMARY_JSON, *names] if _summary_differs(report) else names


def write(report: Report) -> list[str]:
    """Write what is missing or differs, each file as a whole, and name it.

    Raises RunDirectoryError or ReportError when a file cannot be written.
    """
    names = outdated(report)
    try:
        for name in names:
            if name == SUMMARY_JSON:
                report.run.write_summary(report.summary)
            else:
                files.write_atomic(str(report.path(name)), report.texts[name])
    except files.FilesError as error:
        raise ReportError(str(error)) from error
    return names


def _differs(path: Path, text: str) -> bool:
    try:
        return files.read_text_or_none(str(path)) != text
    except files.FilesError:
        return True


def _summary_differs(report: Report) -> bool:
    try:
        return report.run.summary() != report.summary
    except RunDirectoryError:
        return True


def newest_run(results_dir: Path) -> Path:
    """Find the run that was made last; what is no readable run directory of this version is passed over.

    Raises ReportError when there is none.
    """
    found: list[tuple[str, str, Path]] = []
    for path in sorted(results_dir.glob("*/manifest.json")):
        try:
            manifest = rundir_files.read_manifest(path.parent)
            run = _OPENERS[rundir_files.experiment_of(manifest, path.parent)](path.parent)
        except RunDirectoryError:
            continue
        found.append((str(run.manifest["created"]), path.parent.name, path.parent))
    if not found:
        raise ReportError(
            f"{results_dir}: holds no run directory that this version can read; "
            "measure one with the playbook matrix or bandwidth, or set run_dir to one elsewhere"
        )
    return max(found)[2]
