"""Reports of the second lane arrive whole, once, and are missed where its process ended without them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import lane
import pytest

# A report in two pieces, a test that only begins, and the end.
REPORTING = f"""
import json, os, time
with open(os.environ["{lane.REPORTS}"], "a") as stream:
    for name, phases in (("a", ("setup", "call", "teardown")), ("b", ("setup",))):
        for phase in phases:
            text = json.dumps({{"nodeid": name, "when": phase}}) + "\\n"
            stream.write(text[:9])
            stream.flush()
            time.sleep(0.05)
            stream.write(text[9:])
            stream.flush()
"""


def test_reports_are_taken_once_and_missed_where_there_are_none(tmp_path: Path) -> None:
    made = lane.Lane(tmp_path, [sys.executable, "-c", REPORTING])
    try:
        assert [report["when"] for report in made.take("a")] == ["setup", "call", "teardown"]
        assert made.take("a") == []
        assert made.take("b") == []
    finally:
        made.stop()


def test_a_process_that_fails_at_once_has_no_reports(tmp_path: Path) -> None:
    made = lane.Lane(tmp_path, [sys.executable, "-c", "raise SystemExit(3)"])
    assert made.take("a") == []
    made.stop()


def test_what_one_session_writes_another_one_reads(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    name = "tests/unit/test_x.py::test_y[\udcff \n]"
    path = tmp_path / "written"
    writer = lane.Writer(pytestconfig, path)
    for when in ("setup", "call", "teardown"):
        outcome: Literal["passed", "failed"] = "failed" if when == "call" else "passed"
        writer.pytest_runtest_logreport(
            pytest.TestReport(name, ("test_x.py", 3, "test_y"), {}, outcome, "what was wrong", when, duration=1.5)
        )
    copied = f"import os; open(os.environ[{lane.REPORTS!r}], 'a').write({path.read_text()!r})"
    made = lane.Lane(tmp_path, [sys.executable, "-c", copied])
    found = made.take(name)
    made.stop()
    reports = [pytestconfig.hook.pytest_report_from_serializable(config=pytestconfig, data=data) for data in found]
    assert [(report.when, report.outcome) for report in reports] == [
        ("setup", "passed"),
        ("call", "failed"),
        ("teardown", "passed"),
    ]
    assert reports[1].longreprtext == "what was wrong"
    assert reports[1].duration == 1.5
