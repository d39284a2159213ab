from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import synthetic_bandwidth_run
from tests.support.synthetic_bandwidth_scenarios import only
from tests.support.synthetic_readings import Options
from tests.support.synthetic_run import make_run

ROOT = Path(__file__).resolve().parents[4]
ANSIBLE = Path(sys.executable).parent / "ansible"
OPTIONS = Options(run_id="one", blocks=3, window_s=2.0)


def report(results: Path, *arguments: str, **asked: object) -> tuple[dict, str]:
    """Run the action as a user would; returns its result and what was shown before it."""
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
        "ANSIBLE_NOCOLOR": "1",
        "COLUMNS": "120",
    }
    options = ["-a", json.dumps(asked)] if asked else []
    argv = [str(ANSIBLE), "localhost", "-m", "colocation.testbed.report", *options, *arguments]
    done = subprocess.run(argv, cwd=results.parent, env=environment, capture_output=True, text=True, timeout=120)
    shown, _, result = done.stdout.partition("localhost | ")
    assert result, done.stdout + done.stderr
    return {**json.loads(result[result.index("{") :]), "failed": result.startswith("FAILED")}, shown


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work") / "results"
    make_run(folder / "one", OPTIONS)
    make_run(folder / "invalid", Options(run_id="invalid", blocks=3, window_s=2.0, pm_qos_held=False, created="2020"))
    bandwidth = synthetic_bandwidth_run.Options(run_id="bandwidth", scenarios=only("waterline"), created="2021")
    synthetic_bandwidth_run.make_bandwidth_run(folder / "bandwidth", bandwidth)
    return folder


def test_newest_run_is_reported_once(results):
    predicted, _ = report(results, "--check")
    assert predicted["changed"] is True
    assert not (results / "one" / "report.html").exists()

    result, shown = report(results)
    assert result["changed"] is True
    assert result["run_dir"] == str(results / "one")
    assert result["verdict"]["result"] == "pass"
    assert all(Path(path).stat().st_size > 500 for path in result["files"])
    assert "PASS" in shown
    assert "slo_aware" in shown
    assert f"Report: {results / 'one' / 'report.html'}" in shown
    assert all(line in shown for line in result["text"].splitlines())

    again, _ = report(results)
    assert again["changed"] is False
    assert again["written"] == []


def test_verdict_fails_the_task_only_when_asked_and_after_writing(results):
    result, shown = report(results, run_dir="results/invalid", fail_on=["invalid"], show=False)
    assert result["failed"] is True
    assert result["msg"].startswith("run invalid is invalid: This run does not count")
    assert "INVALID" not in shown
    assert (results / "invalid" / "report.html").exists()


def test_a_run_of_the_bandwidth_experiment_has_its_own_report(results):
    result, shown = report(results, run_dir="results/bandwidth", fail_on=["fail", "inconclusive", "invalid"])
    assert result["failed"] is False
    assert result["changed"] is True
    assert "Run bandwidth" in shown
    assert "waterline.dynamic: giving way P95" in shown
    assert all((results / "bandwidth" / name).exists() for name in ("summary.json", "summary.csv", "report.html"))

    again, _ = report(results, run_dir="results/bandwidth")
    assert again["changed"] is False


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"results_dir": "nowhere"}, "nowhere: holds no run directory"),
        ({"run_dir": "results"}, "manifest.json"),
        ({"fail_on": ["bad"]}, "bad"),
        ({"run_dirs": "x"}, "run_dirs"),
    ],
)
def test_bad_input_is_one_sentence(results, asked, text):
    result, _ = report(results, **asked)
    assert result["failed"] is True
    assert text in result["msg"]
    assert "Traceback" not in result["msg"]
