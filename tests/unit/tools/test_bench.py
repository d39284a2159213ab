"""Figures of the matrix benchmark from a summary."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from tools import bench

MANIFEST: dict[str, Any] = {
    "hosts": {"a": {"role": "load", "cpus": 2}, "b": {"role": "tested", "cpus": 4, "cpu_model": "X", "kernel": "6.18"}},
    "schedule": {"blocks": 10, "window_s": 10},
}


def interval(value: float, low: float, high: float) -> dict[str, float]:
    return {"value": value, "low": low, "high": high}


def summary(slo_p99: dict[str, float] | None, kept: float = 98.5) -> dict[str, Any]:
    effects = [
        {"mode": "colocation", "metric": "p90_us", "change_pct": interval(106, 100, 112)},
        {"mode": "colocation", "metric": "p99_us", "change_pct": interval(142, 130, 150)},
        {"mode": "slo_aware", "metric": "p90_us", "change_pct": interval(0.4, -0.1, 0.9)},
        {"mode": "slo_aware", "metric": "p99_us", "change_pct": slo_p99},
    ]
    gains = [{"mode": "slo_aware", "batch_work_kept_pct": interval(kept, kept - 1, kept + 1)}]
    return {"verdict": {"result": "pass"}, "effects": effects, "gains": gains}


def by_name(made: dict[str, Any]) -> dict[str, bench.Figure]:
    return {figure.name: figure for figure in bench.matrix_figures(MANIFEST, made)}


def test_names_are_those_that_others_look_for() -> None:
    names = set(by_name(summary(interval(0.2, 0.0, 0.4))))
    assert {"slo_aware_p90_added_pct", "slo_aware_p99_added_pct", "batch_work_kept_pct"} <= names
    assert {"colocation_p90_added_pct", "colocation_p99_added_pct"} <= names


@pytest.mark.parametrize(
    ("slo_p99", "holds"), [(interval(0.2, 0.0, 1.0), True), (interval(0.2, 0.0, 1.1), False), (None, False)]
)
def test_goal_is_judged_by_the_upper_end_and_never_without_data(slo_p99: dict[str, float] | None, holds: bool) -> None:
    assert by_name(summary(slo_p99))["slo_aware_p99_added_pct"].holds is holds


def kubernetes_run(folder: Path, **changes: Any) -> Path:
    cluster = {"server_version": "v1.34.2", "koordinator": {"version": "1.8.0"}, "shares_machine": True}
    folder.mkdir()
    (folder / "manifest.json").write_text(
        json.dumps({**MANIFEST, "run_id": "r", "substrate": "pod", "cluster": cluster} | changes)
    )
    (folder / "summary.json").write_text(json.dumps(summary(interval(0.2, 0.0, 0.4))))
    return folder


def test_pods_have_names_of_their_own_and_say_what_they_ran_on(tmp_path: Path) -> None:
    options = argparse.Namespace(run=kubernetes_run(tmp_path / "run"), blocks=3)
    found = {figure.name: figure for figure in bench.bench_kubernetes(options)}
    assert {"pod_slo_aware_p90_added_pct", "pod_slo_aware_p99_added_pct", "pod_batch_work_kept_pct"} <= set(found)
    assert all(name.startswith("pod_") for name in found)
    assert found["pod_slo_aware_p99_added_pct"].value == 0.2
    assert found["pod_slo_aware_p99_added_pct"].holds
    method = found["pod_slo_aware_p99_added_pct"].method
    assert "pods of Kubernetes v1.34.2, Koordinator 1.8.0, load generator and control plane on the tested" in method


def test_a_run_of_processes_is_no_benchmark_of_kubernetes(tmp_path: Path) -> None:
    options = argparse.Namespace(run=kubernetes_run(tmp_path / "run", substrate="process"), blocks=3)
    with pytest.raises(bench.BenchError, match=r"were no pods \(substrate process\)"):
        bench.bench_kubernetes(options)


def test_the_matrix_on_pods_is_played_with_its_inventory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "ansible-playbook"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(bench.sys, "executable", str(tmp_path / "python"))
    assert bench.play({"matrix_blocks": 3}, bench.KUBERNETES_INVENTORY)[0].splitlines() == [
        "-i", "inventories/kubernetes_local", "site.yml", "-e", '{"matrix_blocks": 3}',
    ]  # fmt: skip
    assert (bench.ROOT / bench.KUBERNETES_INVENTORY / "hosts.yml").is_file()
    assert bench.play({})[0].splitlines()[0] == "site.yml"


def test_kept_work_is_judged_by_its_value() -> None:
    assert by_name(summary(None, kept=98.0))["batch_work_kept_pct"].holds
    assert not by_name(summary(None, kept=97.9))["batch_work_kept_pct"].holds


def test_nothing_holds_in_an_invalid_run() -> None:
    made = summary(interval(0.2, 0.0, 0.4)) | {"verdict": {"result": "invalid"}}
    assert not any(figure.holds for figure in by_name(made).values())


def test_machine_is_the_tested_one() -> None:
    assert by_name(summary(None))["batch_work_kept_pct"].machine["cpus"] == 4


def test_a_second_load_point_is_refused() -> None:
    made = summary(None)
    made["effects"] *= 2
    with pytest.raises(bench.BenchError, match="has 2, not one"):
        bench.matrix_figures(MANIFEST, made)


def test_written_file_is_a_list_of_plain_objects(tmp_path: Path) -> None:
    figures = list(by_name(summary(interval(0.2, 0.0, 0.4))).values())
    written = json.loads(bench.write("matrix", figures, tmp_path).read_text(encoding="utf-8"))
    assert [sorted(entry) for entry in written] == [
        sorted(["name", "value", "low", "high", "unit", "goal", "holds", "method", "machine"])
    ] * len(figures)
    assert [path.name for path in tmp_path.iterdir()] == ["matrix.json"]


def test_table_marks_a_missed_goal() -> None:
    lines = bench.table(list(by_name(summary(None)).values())).splitlines()
    assert lines[0].startswith("name")
    assert any(line.startswith("slo_aware_p99_added_pct") and line.endswith("NO") for line in lines)


def test_a_run_that_is_not_there_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["matrix", "--run", str(tmp_path / "nothing")]) == 1
    assert "name a finished run directory" in capsys.readouterr().err
