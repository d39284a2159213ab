"""What a user does, in order: look, provision, measure, be interrupted, go on, compare, take everything away."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import snapshot
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import netns
from ansible_collections.colocation.testbed.plugins.plugin_utils import rundir
from tests.end_to_end.bench_lab import NETNS_PREFIX, STATE_DIR, Lab, wait_for

pytestmark = pytest.mark.measures


@pytest.fixture(scope="module")
def before(lab: Lab) -> dict[str, dict[str, str]]:
    """Return what the machine looked like before the first playbook, once its packages are there.

    Packages stay after a reset unless asked for, so they are no part of the comparison.
    """
    lab.good("playbooks/provision.yml")
    lab.good("playbooks/reset.yml")
    return lab.picture()


@pytest.fixture(scope="module")
def first_run(lab: Lab, before: dict[str, dict[str, str]]) -> rundir.RunDirectory:
    """Return a whole run that was killed in the middle of a window and resumed."""
    lab.kill_when(lambda: lab.results.is_dir() and lab.measurements() >= 2 and sending(), "site.yml", matrix_blocks=3)
    partial = rundir.RunDirectory.open(lab.runs()[0])
    assert not partial.finished
    assert 2 <= len(partial.measurements()) < 9
    lab.good("site.yml", matrix_blocks=3)
    return rundir.RunDirectory.open(lab.runs()[0])


def sending() -> bool:
    """Return whether load is being sent at this moment."""
    return Path(STATE_DIR, "hosts/e2e-load/processes/load.pid").exists()


def verdict(run: rundir.RunDirectory) -> dict:
    """Return the verdict in a run's summary."""
    return json.loads((run.path / "summary.json").read_text())["verdict"]


def test_check_mode_on_a_bare_host_predicts_and_changes_nothing(lab, before):
    done = lab.good("site.yml", "--check", "--diff")
    assert done.recap("changed") > 0
    assert snapshot.differences(before, lab.picture()) == []


def test_a_run_that_was_killed_is_resumed_under_its_own_id(lab, first_run):
    assert len(lab.runs()) == 1
    assert first_run.finished
    assert len(first_run.measurements()) == 9
    assert {record.attempt for record in first_run.measurements()} == {1}


def test_every_file_of_the_run_follows_its_schema(first_run):
    assert first_run.validate() > 9 * 5


def test_the_report_is_there_and_judges(first_run):
    assert (first_run.path / "report.html").stat().st_size > 50_000
    assert (first_run.path / "summary.csv").read_text().count("\n") > 3
    assert verdict(first_run)["result"] in ("pass", "fail", "inconclusive", "invalid")


def test_the_batch_workload_worked_where_it_should_and_only_there(first_run):
    for record in first_run.measurements():
        lines = first_run.samples(record)["e2e-tested"]
        work = [line["work"]["batch"]["done"] for line in lines if line["work"].get("batch")]
        # Until ffmpeg has written its first progress there is nothing to read.
        frames = [done for done in work if done is not None]
        if record.mode == "baseline":
            assert not any(frames)
        else:
            assert frames[-1] > frames[0]


def test_the_policy_was_read_back_inside_the_window(first_run):
    found = {record.mode: first_run.samples(record)["e2e-tested"][-1]["policy"] for record in first_run.measurements()}
    assert found["slo_aware"]["batch/cpu.idle"] == "1"
    assert found["colocation"]["batch/cpu.idle"] == "0"


def test_all_modes_of_a_block_get_the_same_arrivals(first_run):
    sent: dict[int, set[tuple]] = {}
    for record in first_run.measurements():
        load = first_run.load(record)
        sent.setdefault(record.block, set()).add((load["seed"], load["scheduled"]))
    assert all(len(kinds) == 1 for kinds in sent.values())
    assert len(set.union(*sent.values())) == 3


def test_idle_states_were_held_off_in_every_window(first_run):
    for record in first_run.measurements():
        guard = {result.guard: result for result in first_run.validity(record)}["pm_qos_held"]
        assert guard.ok, guard.text


def test_provisioning_again_changes_nothing(lab, first_run):
    assert lab.good("site.yml", matrix_blocks=0).recap("changed") == 0


def test_a_run_compared_with_itself_has_not_changed(lab, first_run, tmp_path):
    report = tmp_path / "junit.xml"
    runs = [str(first_run.path)] * 2
    done = lab.play("playbooks/compare.yml", compare_run_dirs=runs, compare_junit_file=str(report))
    if verdict(first_run)["result"] == "invalid":
        # Noise may have spoiled this run; then comparing must refuse, and say why.
        assert done.status != 0
        assert "invalid" in done.output
    else:
        assert done.status == 0, done.output[-4000:]
        assert "<testsuite" in report.read_text()


def test_without_the_hold_the_run_is_invalid_by_that_guard(lab, first_run):
    lab.good("site.yml", matrix_blocks=1, matrix_modes=["baseline", "slo_aware"], matrix_hold_pm_qos=False)
    run = rundir.RunDirectory.open(lab.runs()[-1])
    assert verdict(run)["result"] == "invalid"
    assert any("PM QoS" in reason or "pm_qos" in reason for reason in verdict(run)["reasons"])


def test_a_measured_host_is_not_reset_and_an_interrupted_run_stops_what_it_started(lab, before, first_run):
    had = lab.measurements()
    refused: list[str] = []

    def reset_then_interrupt(_token: str, group: int) -> None:
        done = lab.play("playbooks/reset.yml")
        refused.append(f"{done.status} {done.output}")
        os.killpg(group, signal.SIGINT)

    lab.end_when(
        lambda: lab.measurements() > had and sending(),
        reset_then_interrupt,
        "site.yml",
        matrix_blocks=8,
        matrix_seed=6,
    )
    assert not refused[0].startswith("0 ")
    assert "another experiment is measuring there" in refused[0]
    namespaces = [f"{NETNS_PREFIX}e2e-tested", f"{NETNS_PREFIX}e2e-load"]
    wait_for(lambda: not any(netns.pids(name) for name in namespaces), 60)


def test_reset_after_a_kill_leaves_nothing(lab, before, first_run):
    had = lab.measurements()
    lab.kill_when(lambda: lab.measurements() > had and sending(), "site.yml", matrix_blocks=2, matrix_seed=5)
    lab.good("playbooks/reset.yml")
    assert snapshot.differences(before, lab.picture()) == []
    assert first_run.path.is_dir()


def test_reset_twice_changes_nothing(lab, before):
    lab.good("playbooks/reset.yml")
    assert lab.good("playbooks/reset.yml").recap("changed") == 0
