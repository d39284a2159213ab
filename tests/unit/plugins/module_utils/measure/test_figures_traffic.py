"""Figures of one window of traffic: from readings that can be computed by hand, and from damaged ones."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.measure import figures_traffic as ft

MANIFEST = {
    "hosts": {"t": {"role": "tested"}, "l": {"role": "load"}},
    "link_bps": 1e9,
    "accounting": "payload",
}
CASE = {"classes": {"online": {"role": "online"}, "offline": {"role": "offline"}}, "pool": None}


def counted(expected, received, **more):
    usual = {"expected_bps": expected, "received_bps": received, "flows": 1, "sent_bytes": None, "retransmits": 0}
    received_bytes = None if received is None else int(received)
    return {**usual, "floor_bps": None, "received_bytes": received_bytes, "intervals_bps": [], **more}


def figures(shaper="ebpf", case=CASE, **traffic):
    usual = {"start_mono_s": 10.0, "end_mono_s": 18.0, "window_s": 8.0, "classes": {}}
    return ft.figures(MANIFEST, case, shaper, {**usual, **traffic})


def test_error_and_accuracy_are_those_of_each_class():
    classes = {"a": counted(100.0, 99.0), "b": counted(100.0, 100.5), "c": counted(100.0, 100.0)}
    found = ft.class_figures({"classes": classes})
    assert found["a"].error_pct == pytest.approx(-1.0)
    assert found["b"].accuracy_pct == pytest.approx(99.5)
    run = figures(classes=classes)
    assert run["accuracy_pct"] == pytest.approx(99.5)
    assert run["accuracy_p95_pct"] == pytest.approx(99.0)
    assert run["overshoot_pct"] == pytest.approx(0.5)


def test_one_class_of_twenty_may_be_off_and_the_second_counts():
    classes = {f"c{n}": counted(100.0, 100.0) for n in range(19)}
    assert figures(classes={**classes, "bad": counted(100.0, 50.0)})["accuracy_p95_pct"] == pytest.approx(100.0)
    assert figures(classes={**classes, "bad": counted(100.0, 50.0), "worse": counted(100.0, 40.0)})[
        "accuracy_p95_pct"
    ] == pytest.approx(50.0)


def test_a_class_without_figure_leaves_no_accuracy_at_all():
    found = figures(classes={"a": counted(100.0, 100.0), "b": counted(100.0, None)})
    assert found["accuracy_pct"] is None
    assert found["accuracy_p95_pct"] is None
    assert found["received_mbps"] is None


def test_a_class_at_rest_is_wholly_off():
    found = ft.class_figures({"classes": {"a": counted(100.0, 0.0)}})["a"]
    assert (found.error_pct, found.accuracy_pct) == (-100.0, 0.0)
    assert found.fluctuation_pct is None


def test_a_class_that_is_only_probed_takes_no_rate_away():
    classes = {"bulk": counted(1e6, 1e6), "online": counted(None, None, flows=0)}
    found = figures(classes=classes, rr_latency_us={"online": [[100, 5]], "other": [[100, 5]]})
    assert found["received_mbps"] == 1.0
    assert found["accuracy_pct"] == 100.0


def test_only_a_class_that_is_held_can_exceed_its_limit():
    paced = counted(100.0, 110.0, offered_bps=100.0)
    assert figures(classes={"paced": paced})["overshoot_pct"] is None
    assert figures(classes={"paced": paced, "held": counted(100.0, 101.0)})["overshoot_pct"] == pytest.approx(1.0)
    assert figures(classes={"a": counted(100.0, 110.0, offered_bps=200.0)})["overshoot_pct"] == pytest.approx(10.0)


def test_requests_are_kept_by_the_class_that_has_least_of_its_own():
    classes = {"a": counted(None, 150.0, floor_bps=100.0), "b": counted(None, 9.0, floor_bps=10.0)}
    assert figures(classes=classes)["request_kept_pct"] == pytest.approx(90.0)


def test_cost_is_the_tested_hosts_time_for_each_gbit_received():
    cpu = {"t": {"busy_s": 2.0, "system_s": 1.0, "softirq_s": 0.5}, "l": {"busy_s": 9.0}}
    found = figures(classes={"a": counted(None, 1.0, received_bytes=500_000_000)}, cpu=cpu)
    assert found["cpu_s_per_gbit"] == pytest.approx(0.5)
    assert found["kernel_cpu_s_per_gbit"] == pytest.approx(0.375)


def test_no_packets_cost_nothing_that_could_be_told():
    cpu = {"t": {"busy_s": 2.0, "system_s": 1.0, "softirq_s": 0.5}}
    found = figures(classes={"a": counted(100.0, 0.0)}, cpu=cpu, programs={"egress": {"run_ns": 0, "runs": 0}})
    assert found["cpu_s_per_gbit"] is None
    assert found["program_ns_per_packet"] is None
    assert found["utilisation_pct"] == 0.0


def test_programs_are_told_by_packet():
    programs = {"in": {"run_ns": 3000, "runs": 10}, "out": {"run_ns": 1000, "runs": 10}}
    assert figures(programs=programs)["program_ns_per_packet"] == 200.0


def test_round_trips_are_those_of_online_classes():
    found = figures(rr_latency_us={"online": [[100, 98], [900, 2]], "offline": [[5000, 100]]})
    assert (found["rr_p50_us"], found["rr_p99_us"]) == (100.0, 900.0)
    assert figures(rr_latency_us={"offline": [[5000, 100]]})["rr_p50_us"] == 5000.0
    assert figures(rr_latency_us={"online": []})["rr_p50_us"] is None
    assert figures(rr_latency_us={"online": [["x", 1]]})["rr_p50_us"] is None


def switch(wanted_s, settled_ms, direction="down"):
    return {"wanted_mono_s": wanted_s, "settled_ms": settled_ms, "direction": direction}


def test_only_the_way_down_is_urgent_and_one_that_never_came_counts_as_long_as_it_was_watched():
    switches = [switch(11.0, 5.0), switch(12.0, 40.0, "up"), switch(16.0, None)]
    before, *answers = ({"mono_ns": int(moment_s * 1e9)} for moment_s in (10.99, 11.004, 12.04, 16.5))
    found = figures(switches=switches, events=[before, *answers])
    assert found["switch_p95_ms"] == 2000.0
    assert found["switch_up_p95_ms"] == 40.0
    assert found["switches"] == 2.0
    assert (found["transitions"], found["transitions_per_change"]) == (4.0, 1.0)


def test_without_events_nothing_is_said_of_transitions():
    assert figures(switches=[switch(11.0, 5.0)], events=[])["transitions_per_change"] is None
    calm = figures(events=[{}])
    assert (calm["transitions"], calm["transitions_per_change"]) == (1.0, None)
    assert figures("htb", events=[])["transitions"] is None


def test_use_of_the_link_is_of_what_it_can_carry_as_payload():
    classes = {"a": counted(None, 500e6)}
    assert figures(classes=classes)["utilisation_pct"] == pytest.approx(50.0)
    assert figures("htb", classes=classes)["utilisation_pct"] == pytest.approx(50.0 * 1514 / 1448)
    pool = {**CASE, "pool": {"total_bps": 2e9}}
    assert figures(case=pool, classes=classes)["utilisation_pct"] == pytest.approx(25.0)


def test_every_figure_is_named_and_nothing_is_asked_of_an_empty_window():
    found = ft.figures(MANIFEST, CASE, "ebpf", {})
    assert tuple(found) == ft.METRICS
    assert {name: value for name, value in found.items() if value is not None} == {}


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=300), st.floats(0.01, 1.0))
def test_a_percentile_is_a_value_that_so_many_reach(values, share):
    found = ft.percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-6


@given(st.lists(st.tuples(st.floats(1e3, 1e9), st.floats(0, 2e9)), min_size=1, max_size=50))
def test_accuracy_is_between_0_and_100_whatever_was_received(pairs):
    classes = {str(n): counted(expected, received) for n, (expected, received) in enumerate(pairs)}
    found = figures(classes=classes)
    assert 0.0 <= found["accuracy_p95_pct"] <= found["accuracy_pct"] + 1e-9 <= 100.0 + 1e-6
    assert found["overshoot_pct"] >= 0.0
    assert math.isfinite(found["overshoot_pct"])
