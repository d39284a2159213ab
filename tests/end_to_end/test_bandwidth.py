"""The bandwidth experiment as a user runs it, on real traffic: figures in bounds, a kill, resuming, nothing left."""

from __future__ import annotations

import itertools
import json
import statistics
from pathlib import Path
from typing import Any

import bounds
import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import snapshot
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_rundir import BandwidthRun
from tests.end_to_end.bench_lab import STATE_DIR, Lab

pytestmark = pytest.mark.measures

PLAYBOOK = "playbooks/bandwidth.yml"
WIRE = 1448 / 1514
#: Everything that the experiment can do, once: three shapers, both directions, many classes, waterline, latency, and
#: several received classes over IPv6, of TCP and of datagrams.
SELECT = ["single_priority.both", "waterline.dynamic", "small", "latency"]
SCENARIOS = {
    "single_priority": {"cases": {"both": {"shapers": ["ebpf", "tbf"]}}},
    "latency": {"cases": {"offline_saturates": {"shapers": ["ebpf", "htb"]}}},
    "small": {
        "title": "Small classes",
        "description": "forty classes of 4 Mbit/s from one process, and two received ones of both protocols over IPv6",
        "direction": "egress",
        "shapers": ["ebpf"],
        "pool": {"total": "1Gbit/s"},
        "cases": {
            "forty": {"classes": {"pod": {"count": 40, "limit": "4Mbit/s", "message": "16KiB"}}},
            "received": {
                "direction": "ingress",
                "family": "ipv6",
                "classes": {
                    "stream": {"limit": "40Mbit/s", "flows": 2},
                    "datagrams": {"protocol": "udp", "limit": "16Mbit/s", "offered": "24Mbit/s", "flows": 2},
                },
            },
        },
    },
}
VARIABLES = {"bandwidth_matrix_select": SELECT, "bandwidth_matrix_scenarios": SCENARIOS, "bandwidth_matrix_blocks": 1}
CELLS = 7


def sending() -> bool:
    """Return whether traffic is being sent at this moment."""
    return any(Path(STATE_DIR, "hosts/e2e-tested/processes").glob("bw-send*.pid"))


def bandwidth_runs(lab: Lab) -> list[Path]:
    return [path for path in lab.runs() if '"experiment": "bandwidth"' in (path / "manifest.json").read_text()]


@pytest.fixture(scope="module")
def before(lab: Lab) -> dict[str, dict[str, str]]:
    """Return what the machine looked like before, once its packages are there."""
    lab.good(PLAYBOOK, bandwidth_matrix_blocks=0)
    lab.good("playbooks/reset.yml")
    return lab.picture()


@pytest.fixture(scope="module")
def measured(lab: Lab, before: dict[str, dict[str, str]]) -> BandwidthRun:
    """Return a whole run that was killed in the middle of a window and resumed."""

    def half_way() -> bool:
        return lab.results.is_dir() and len(list(lab.results.glob("*/measurements/00[2-9]*"))) >= 1 and sending()

    lab.kill_when(half_way, PLAYBOOK, **VARIABLES)
    done = lab.good(PLAYBOOK, **VARIABLES)
    assert "resuming run" in done.output
    (path,) = bandwidth_runs(lab)
    return BandwidthRun.open(path)


def traffic(run: BandwidthRun, case: str, shaper: str) -> dict[str, Any]:
    """Return what was counted in a cell."""
    (record,) = [item for item in run.measurements() if (item.case, item.shaper) == (case, shaper)]
    return run.traffic(record)


def off_pct(item: dict[str, Any]) -> float:
    return float(100 * (item["received_bps"] / item["expected_bps"] - 1))


def test_check_mode_on_a_bare_host_predicts_and_changes_nothing(lab, before):
    done = lab.good(PLAYBOOK, "--check", "--diff", **VARIABLES)
    assert done.recap("changed") > 0
    assert snapshot.differences(before, lab.picture()) == []


def test_a_run_that_was_killed_is_resumed_and_whole(measured):
    assert measured.finished
    assert len(measured.measurements()) == CELLS
    assert measured.validate() > CELLS * 5


def test_a_limit_is_kept_in_both_directions_by_every_shaper(measured):
    for shaper in ("ebpf", "tbf"):
        classes = traffic(measured, "both", shaper)["classes"]
        assert classes["bulk"]["expected_bps"] == pytest.approx(500e6 * WIRE)
        assert bounds.STARVED_PCT < off_pct(classes["bulk"]) < 0.5, shaper
        assert off_pct(classes["bulk_in"]) < 1.5, shaper
        assert classes["bulk_in"]["received_bytes"] > 0


def test_forty_classes_have_their_own_limits_each(measured):
    classes = traffic(measured, "forty", "ebpf")["classes"]
    assert len(classes) == 40
    assert max(map(off_pct, classes.values())) < 3
    assert statistics.median(map(off_pct, classes.values())) > bounds.STARVED_PCT


def test_received_classes_of_both_protocols_have_their_own_limits_over_ipv6(measured):
    classes = traffic(measured, "received", "ebpf")["classes"]
    assert classes["stream"]["expected_bps"] == pytest.approx(40e6 * 1428 / 1514)
    assert classes["datagrams"]["expected_bps"] == pytest.approx(16e6 * 1448 / 1510)
    for name, item in classes.items():
        assert bounds.STARVED_PCT < off_pct(item) < 1.5, name
        assert item["steady"], name


def test_the_waterline_switches_once_each_way_for_each_burst(measured):
    found = traffic(measured, "dynamic", "ebpf")
    down = [item for item in found["switches"] if item["direction"] == "down"]
    assert len(down) >= 10
    settled = sorted(item["settled_ms"] for item in down if item["settled_ms"] is not None)
    assert len(settled) > 0.8 * len(down)
    assert settled[len(settled) // 2] < 200
    throttled = [event["throttled"] for event in found["events"]]
    assert all(now != then for now, then in itertools.pairwise(throttled))
    assert len(throttled) <= 2 * len(down) + 4


def test_the_services_round_trips_are_those_of_an_empty_queue(measured):
    for shaper in ("ebpf", "htb"):
        found = traffic(measured, "offline_saturates", shaper)
        took = [value for value, count in found["rr_latency_us"]["online"] for _each in range(count)]
        assert len(took) > 500
        # The batch work's own queue is 20 ms deep.
        assert statistics.median(took) < 15_000, shaper


def test_what_was_asked_is_what_the_kernel_had(measured):
    for record in measured.measurements():
        policy = measured.policy(record)
        assert policy["wanted"]
        assert policy["applied"] == policy["wanted"]


def test_processor_time_was_counted_on_both_hosts(measured):
    for record in measured.measurements():
        cpu = measured.traffic(record)["cpu"]
        assert set(cpu) == {"e2e-tested", "e2e-load"}
        assert all(0 < item["busy_s"] <= 1.05 * item["window_s"] for item in cpu.values())


def test_the_report_is_there(measured):
    assert (measured.path / "report.html").stat().st_size > 10_000
    summary = json.loads((measured.path / "summary.json").read_text())
    assert summary["verdict"]["result"] in ("pass", "fail", "inconclusive", "invalid")


def test_bad_input_stops_it_before_anything_changes(lab, before, measured):
    done = lab.play(PLAYBOOK, bandwidth_matrix_select=["latncy"])
    assert done.status != 0
    assert "'latncy' names no scenario or case; did you mean latency" in done.output


def test_reset_after_a_kill_leaves_nothing(lab, before, measured):
    had = lab.measurements()
    again = {"bandwidth_matrix_select": ["waterline.dynamic"], "bandwidth_matrix_blocks": 2}
    lab.kill_when(lambda: lab.measurements() > had and sending(), PLAYBOOK, **again)
    lab.good("playbooks/reset.yml")
    assert snapshot.differences(before, lab.picture()) == []
    assert measured.path.is_dir()
