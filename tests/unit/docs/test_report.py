"""The commands of docs/report.md for bandwidth runs do what the page says, on runs that were made up."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.synthetic_bandwidth_run import Options, make_bandwidth_run
from tests.support.synthetic_bandwidth_scenarios import only

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("## Runs of the bandwidth experiment") :]
REPORT, COMPARE = re.findall(r"```\n(ansible-playbook [^\n]+)\n```", SECTION)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work") / "results"
    for name, seed in (("20261201T090000Z-7c1e", 1), ("before", 2), ("after", 3)):
        make_bandwidth_run(folder / name, Options(run_id=name, seed=seed, scenarios=only("single_priority")))
    return folder


def play(command, results):
    argv = [part.replace("results/", f"{results}/") for part in shlex.split(command)]
    argv[0] = str(Path(sys.executable).parent / argv[0])
    environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "COLUMNS": "120"}
    return subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=180)


def test_the_report_is_made_of_the_run_that_is_named(results):
    done = play(REPORT, results)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Run 20261201T090000Z-7c1e" in done.stdout
    assert (results / "20261201T090000Z-7c1e" / "report.html").exists()


def test_two_runs_are_compared(results):
    done = play(COMPARE, results)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no regression against run before" in done.stdout
    assert "CPU per Gbit" in done.stdout
