"""Figures of the bandwidth benchmark from what its parts find."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.measure.statistics import Interval
from tools import bench_bandwidth, bench_figures
from tools.bandwidth import cpu_cost, figures, quiet, ratios

WHERE = {"cpus": 2, "disturbed": False}


def by_name(found: Sequence[bench_figures.Figure]) -> dict[str, bench_figures.Figure]:
    return {figure.name: figure for figure in found}


def accuracy_rows(values: Sequence[float]) -> list[dict[str, Any]]:
    return [
        {"mbit": mbit, "repeat": repeat, "arrived_bit": mbit * 1e4 * value, "accuracy_pct": value}
        for mbit in (50, 200)
        for repeat, value in enumerate(values)
    ]


def test_accuracy_is_judged_by_the_lower_end_of_the_worst_rate() -> None:
    rows = accuracy_rows([99.95, 99.96, 99.97])
    rows[0]["accuracy_pct"] = 99.99
    good = by_name(figures.one_class(rows, "", True, "m", WHERE))
    assert good["bandwidth_accuracy_one_class_pct"].holds
    assert good["bandwidth_accuracy_one_class_pct"].value == pytest.approx(99.96)
    assert {"bandwidth_accuracy_one_class_50_mbit_pct", "bandwidth_accuracy_one_class_200_mbit_pct"} <= set(good)
    scattered = by_name(figures.one_class(accuracy_rows([99.99, 99.99, 99.8]), "", True, "m", WHERE))
    assert not scattered["bandwidth_accuracy_one_class_pct"].holds
    received = by_name(figures.one_class(accuracy_rows([99.7, 99.7, 99.8]), "_ingress", True, "m", WHERE, 99.5))
    assert received["bandwidth_accuracy_one_class_ingress_pct"].holds
    peer = by_name(figures.one_class(accuracy_rows([95, 95, 94]), "_htb", False, "m", WHERE))
    assert peer["bandwidth_accuracy_one_class_htb_pct"].holds


def test_the_worst_five_percent_of_the_classes_are_left_out() -> None:
    rows = [
        {"repeat": repeat, "accuracy_pct": 90.0 if number < 10 else 99.8, "dropped": 1}
        for repeat in range(3)
        for number in range(200)
    ]
    found = figures.many_classes(rows, "", True, "m", WHERE)[0]
    assert (found.name, found.value, found.holds) == ("bandwidth_accuracy_200_classes_p95_pct", 99.8, True)
    assert "worst 90.000 %" in found.method
    rows[10]["accuracy_pct"] = rows[210]["accuracy_pct"] = rows[410]["accuracy_pct"] = 99.0
    assert not figures.many_classes(rows, "", True, "m", WHERE)[0].holds


def test_a_ratio_of_added_costs_has_the_interval_of_the_pairs() -> None:
    found = ratios.ratio_interval([1.0, 1.1, 0.9, 1.0], [2.0, 2.2, 1.8, 2.0])
    assert found is not None
    assert found.value == pytest.approx(0.5)
    assert found.high - found.low < 1e-6
    found = ratios.ratio_interval([1.0, 2.0, 0.5, 1.5], [2.0, 2.1, 1.9, 2.0])
    assert found is not None
    assert found.low < 0.625 < found.high
    # A peer that costs nothing measurable is no measure.
    assert ratios.ratio_interval([1.0, 1.0, 1.0], [0.5, -0.5, 0.1]) is None


def test_ratios_of_whole_costs_are_geometric() -> None:
    assert ratios.geometric_ratio([1.0, 4.0], [2.0, 2.0]).value == pytest.approx(1.0)


def test_a_quantile_has_values_as_ends_and_needs_enough_of_them() -> None:
    found = ratios.upper_quantile(list(range(1, 101)), 0.95)
    assert found == Interval(95, 90, 100)
    assert math.isinf(ratios.upper_quantile(list(range(60)), 0.95).high)


def cpu_rows(used: dict[str, list[float]], arrived: float = 200e6) -> list[dict[str, Any]]:
    return [
        {"load": "", "mbit": 200, "block": block, "variant": name, "cpu_pct": value, "arrived_bit": arrived,
         "piece_bytes": 65_000}
        for name, values in used.items()
        for block, value in enumerate(values)
    ]  # fmt: skip


USED = {
    "none": [10.0, 10.1, 9.9],
    "ours": [11.0, 11.2, 10.9],
    "htb": [13.0, 13.1, 12.9],
    "tbf": [10.0, 10.2, 9.8],
}


def test_cpu_time_is_compared_beyond_no_shaper() -> None:
    found = by_name(figures.cpu(cpu_rows(USED), "", "", "m", WHERE))
    assert found["bandwidth_cpu_ratio_htb"].value == pytest.approx(3.1 / 9, rel=0.01)
    assert found["bandwidth_cpu_ratio_htb"].holds
    assert found["bandwidth_cpu_ratio_tbf"].value is None
    assert not found["bandwidth_cpu_ratio_tbf"].holds
    assert found["bandwidth_cpu_whole_ratio_htb"].value == pytest.approx(11.03 / 13, rel=0.01)
    assert found["bandwidth_cpu_none_pct"].goal == figures.PEER


def test_unequal_bitrates_cannot_hold() -> None:
    found = by_name(figures.cpu(cpu_rows(USED, arrived=190e6), "", "", "m", WHERE))
    assert not found["bandwidth_cpu_ratio_htb"].holds
    assert "bitrates differ" in found["bandwidth_cpu_ratio_htb"].method


def test_cpu_time_is_what_was_not_idle_at_the_wanted_bitrate() -> None:
    row = {"window_s": 2.0, "mbit": 100, "arrived_bit": 50e6, "meter": [-7.0, -10.0]}
    assert cpu_cost.with_cpu([row], cpus=2)[0]["cpu_pct"] == pytest.approx(100.0)
    marked = {**row, "meter": [0.0, 1.0]}
    assert cpu_cost.with_cpu([marked], 0, [3.0, 3.5])[0]["cpu_pct"] == pytest.approx(50.0)


def test_idle_time_in_both_resolutions() -> None:
    text = " .idle_sleeptime : 1500000000 nsecs\n .iowait_sleeptime: 500000000 nsecs\n .idle_sleeptime  : 1000 nsecs\n"
    assert cpu_cost.idle_s(text) == pytest.approx(2.000001)
    assert cpu_cost.idle_ticks_s("cpu  1 2 3 400 50 6 7 8\n") == pytest.approx(4.5)


def test_peers_have_room_for_the_largest_packet() -> None:
    load = cpu_cost.Load("", 200, 1448, 4, "edt")
    assert load.wire_bit == 209_116_000
    assert "burst 80000" in cpu_cost.peer_lines("tbf", load)[0]
    assert "quantum 60000" in cpu_cost.peer_lines("htb", load)[1]
    assert cpu_cost.peer_lines("none", load) == []
    assert cpu_cost.Load("_512_b", 40, 512, 4, "edt").socket_options() == {"segment_bytes": 524}


def plane(settled: float, **more: Any) -> dict[str, Any]:
    found = {"bursts": 80, "per_change": 1.0, "mean_settled_ms": 6.0, "method": "m", "machine": WHERE}
    return {**found, "settled": Interval(settled, 1, settled + 1), "detected": Interval(5, 4, 6), **more}


def test_the_worse_plane_is_the_figure() -> None:
    found = by_name(figures.switches({"edt": plane(7.0), "htb": plane(11.0)}, 80))
    assert (found["waterline_switch_p95_ms"].value, found["waterline_switch_p95_ms"].holds) == (11.0, False)
    assert found["waterline_switch_edt_p95_ms"].holds
    assert found["waterline_transitions_per_change"].holds
    missed = by_name(figures.switches({"edt": plane(7.0, bursts=79), "htb": plane(8.0)}, 80))
    assert not missed["waterline_switch_p95_ms"].holds
    flapping = by_name(figures.switches({"edt": plane(7.0), "htb": plane(8.0, per_change=1.1)}, 80))
    assert not flapping["waterline_transitions_per_change"].holds


def test_the_rest() -> None:
    maps = {"maps": {"meta": 4096, "stats": 2**21}, "programs": {"shape": 4096}}
    assert not figures.memory(maps, "m", WHERE)[0].holds
    assert figures.resident({"left": [], "attached": True}, "m", WHERE)[0].holds
    assert not figures.resident({"left": [], "attached": False}, "m", WHERE)[0].holds
    assert not figures.resident({"left": ["agent"], "attached": True}, "m", WHERE)[0].holds
    lost = {"atomic": {"cpus": 2, "bytes_lost_pct": 0.0, "time_lost_pct": 0.0}}
    assert figures.two_cpus(lost, "m", WHERE)[0].holds
    assert not figures.two_cpus({"atomic": {**lost["atomic"], "cpus": 1}}, "m", WHERE)[0].holds
    assert not figures.two_cpus({"atomic": {**lost["atomic"], "time_lost_pct": -0.1}}, "m", WHERE)[0].holds
    packets = [{"load": load, "repeat": n, "packets": 9, "ns": 200.0 + n} for load in figures.LOADS for n in (0, 1)]
    names = [figure.name for figure in figures.per_packet(packets, "m", WHERE)]
    assert names == [f"bandwidth_program_ns_per_packet{load}" for load in ("", "_512_b", "_gso")]


def test_a_second_run_that_changes_something_fails_the_goal() -> None:
    rows = [{"plane": "police", "first_ms": 40.0 + n, "again_ms": 20.0, "changed": [True, False]} for n in range(3)]
    assert by_name(figures.applying(rows, ["police"], "m", WHERE))["bandwidth_200_classes_ms"].holds
    rows[1]["changed"] = [True, True]
    assert not by_name(figures.applying(rows, ["police"], "m", WHERE))["bandwidth_200_classes_ms"].holds


def test_disturbance_is_said(tmp_path: Path) -> None:
    found = figures.figure("x", 1.0, "ms", "no goal", True, "m", {"disturbed": True})
    assert "disturbed" in found.method
    stat = tmp_path / "stat"
    stat.write_text("cpu  1 0 1 10000 0 0 0 50 0 0\n", encoding="ascii")
    # Not one idle tick in the sample: others use all of the machine.
    assert quiet.Watch(str(tmp_path), 0.01).end()["disturbed"] is True
    assert quiet.times(stat.read_text(), 7.0) == quiet.Times(0.5, 100.0, 7.0)


def test_stolen_time_is_a_share_of_the_machine(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  1 0 1 100 0 0 0 50 0 0\n", encoding="ascii")
    watch = quiet.Watch(str(tmp_path), 0.0)
    watch.busy_pct, watch.cpus = 0.0, 2
    watch.start = quiet.Times(0.5, 1.0, watch.start.clock_s - 10)
    assert watch.end()["disturbed"] is False
    stat.write_text("cpu  1 0 1 100 0 0 0 250 0 0\n", encoding="ascii")
    later = watch.end()
    assert later["disturbed"] is True
    assert later["steal_pct"] == pytest.approx(10, rel=0.01)


def test_parts_are_chosen_by_name() -> None:
    assert bench_bandwidth.chosen(None) == list(bench_bandwidth.PARTS)
    assert bench_bandwidth.chosen("cpu,accuracy") == ["accuracy", "cpu"]
    with pytest.raises(bench_figures.BenchError, match="no such part; choose from"):
        bench_bandwidth.bench(argparse.Namespace(only="speed"))


def test_figures_of_other_parts_are_kept(tmp_path: Path) -> None:
    def figure(name: str, value: float) -> bench_figures.Figure:
        return bench_figures.Figure(name, value, None, None, "ms", "no goal", True, "m", {})

    bench_figures.write("bandwidth", [figure("a", 1), figure("b", 2)], tmp_path)
    path = bench_figures.write("bandwidth", [figure("b", 3)], tmp_path, keep=True)
    assert [(item["name"], item["value"]) for item in json.loads(path.read_text())] == [("a", 1), ("b", 3)]
    path.write_text("[1]")
    with pytest.raises(bench_figures.BenchError, match="run all parts"):
        bench_figures.write("bandwidth", [figure("b", 3)], tmp_path, keep=True)
