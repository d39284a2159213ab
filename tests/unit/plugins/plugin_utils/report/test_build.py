from __future__ import annotations

import json

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.report import build
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import ReportError
from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir import RunDirectoryError
from tests.support.synthetic_readings import Options
from tests.support.synthetic_run import make_run

SMALL = Options(blocks=3, window_s=3.0)


@pytest.fixture
def run_dir(tmp_path):
    return make_run(tmp_path / "results" / "one", SMALL).path


def test_writing_twice_changes_nothing(run_dir):
    first = build.build(run_dir)
    assert build.outdated(first) == ["summary.json", "summary.csv", "report.html"]
    assert build.write(first) == ["summary.json", "summary.csv", "report.html"]
    before = {path.name: path.stat().st_mtime_ns for path in run_dir.iterdir()}
    assert build.write(build.build(run_dir)) == []
    assert {path.name: path.stat().st_mtime_ns for path in run_dir.iterdir()} == before


def test_what_was_edited_or_damaged_is_made_again(run_dir):
    build.write(build.build(run_dir))
    (run_dir / "report.html").write_text("edited", encoding="utf-8")
    (run_dir / "summary.json").write_text("{", encoding="utf-8")
    report = build.build(run_dir)
    assert build.write(report) == ["summary.json", "report.html"]
    assert json.loads((run_dir / "summary.json").read_text(encoding="utf-8")) == report.summary


def test_measurements_are_never_touched(run_dir):
    before = {path: path.read_bytes() for path in (run_dir / "measurements").rglob("*") if path.is_file()}
    build.write(build.build(run_dir))
    after = {path: path.read_bytes() for path in (run_dir / "measurements").rglob("*") if path.is_file()}
    assert before == after


def test_newest_run_is_found_and_what_is_no_run_passed_over(tmp_path):
    results = tmp_path / "results"
    make_run(results / "b", Options(blocks=3, window_s=3.0, stop_after=1, created="2026-11-30T20:00:00+00:00"))
    make_run(results / "a", Options(blocks=3, window_s=3.0, stop_after=1, created="2026-12-01T08:00:00+00:00"))
    (results / "c").mkdir()
    (results / "c" / "manifest.json").write_text('{"schema": "colocation.testbed/manifest/9"}', encoding="utf-8")
    (results / "notes.txt").write_text("mine", encoding="utf-8")
    assert build.newest_run(results).name == "a"


@pytest.mark.parametrize("exists", [True, False])
def test_no_run_is_one_sentence_with_the_way_out(tmp_path, exists):
    results = tmp_path / "results"
    if exists:
        results.mkdir()
    with pytest.raises(ReportError, match=r"results: holds no run directory .*; measure one"):
        build.newest_run(results)


def test_damaged_measurement_names_its_file(run_dir):
    damaged = next((run_dir / "measurements").glob("002-*")) / "load.json"
    damaged.write_text(damaged.read_text(encoding="utf-8")[:100], encoding="utf-8")
    with pytest.raises(RunDirectoryError, match=r"load\.json"):
        build.build(run_dir)
