"""Figures of the node benchmark from the times of its rounds."""

from __future__ import annotations

import argparse
import os

import pytest

from tools import bench, bench_figures, bench_node

ROUND = {
    "start": 0.2,
    "first": 0.7,
    "again": 0.4,
    "plain": 0.1,
    "start_cpu": 0.1,
    "first_cpu": 0.6,
    "again_cpu": 0.3,
    "task_overhead": 0.5,
    "task_first": 1.2,
    "task_again": 0.8,
}


def by_name(rounds: list[dict[str, float]]) -> dict[str, bench_figures.Figure]:
    return {figure.name: figure for figure in bench_node.figures(rounds, {"cpus": 2})}


def test_figures_have_the_names_that_others_look_for_and_peers() -> None:
    found = by_name([ROUND] * 3)
    assert {"cgroup_200_groups_s", "cgroup_200_groups_plain_loop_s", "module_start_s"} <= set(found)
    assert found["cgroup_200_groups_s"].value == pytest.approx(0.7)
    assert found["cgroup_200_groups_again_beyond_ansible_s"].value == pytest.approx(0.3)
    assert all(figure.unit == "s" and figure.method and figure.machine == {"cpus": 2} for figure in found.values())


def test_goals_are_judged_by_the_upper_end() -> None:
    assert by_name([ROUND] * 3)["cgroup_200_groups_s"].holds
    scattered = [{**ROUND, "first": first} for first in (0.3, 0.9, 1.5)]
    assert not by_name(scattered)["cgroup_200_groups_s"].holds
    assert not by_name([{**ROUND, "task_again": 1.2}] * 3)["cgroup_200_groups_again_beyond_ansible_s"].holds


def test_times_of_tasks_come_from_the_report() -> None:
    names = ("overhead", "first", "again")
    cases = "".join(
        f'<testcase name="[localhost] bench: {name}" time="0.{place}5"/>' for place, name in enumerate(names)
    )
    report = f"<testsuites><testsuite>{cases}<testcase name='other' time='9'/></testsuite></testsuites>"
    assert bench_node.task_seconds(report) == {"overhead": 0.05, "first": 0.15, "again": 0.25}
    with pytest.raises(bench_figures.BenchError, match="no task again, first, overhead"):
        bench_node.task_seconds("<testsuites/>")


def test_what_the_plain_loop_writes_is_what_the_module_writes() -> None:
    assert len(bench_node.VALUES) == 8
    assert {item[1] for item in bench_node.PLAIN} >= {"cpu.shares", "cpu.cfs_burst_us", "blkio.bfq.weight", "pids.max"}


def test_too_few_rounds_are_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(bench_figures.BenchError, match="fewer than three rounds"):
        bench_node.bench(argparse.Namespace(rounds=2))
    assert bench.main(["node", "--rounds", "1"]) == 1
    assert "no figure is given" in capsys.readouterr().err
