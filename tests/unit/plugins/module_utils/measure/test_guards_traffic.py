"""Guards of the bandwidth experiment: each passes on a clean window, trips on its fault, and trips without data."""

from __future__ import annotations

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.measure import (
    guards,
    guards_traffic,
    limits,
    schedule_traffic,
)
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import BandwidthRecord
from tests.support import synthetic_bandwidth_run as synthetic
from tests.support.synthetic_bandwidth_run import FAULTS, Options

#: fault: scenario, guard that must trip, whether the window is measured again
EXPECTED = {
    "steal": ("single_priority", "steal", True),
    "silent_class": ("single_priority", "traffic_complete", True),
    "no_packets": ("single_priority", "traffic_complete", True),
    "no_readings": ("single_priority", "intervals_complete", True),
    "no_probe": ("latency", "probe_complete", True),
    "not_in_effect": ("single_priority", "shaping_in_effect", True),
    "foreign_drops": ("single_priority", "foreign_drops", True),
    "drops_unread": ("single_priority", "foreign_drops", True),
    "receiver_busy": ("single_priority", "receiver_cpu", False),
    "no_cpu": ("single_priority", "receiver_cpu", False),
}
#: Faults that no guard is about: objectives find them.
JUDGED = {"never_settles"}


def window(scenario, shaper="ebpf", **options):
    chosen = Options(**options)
    document = synthetic.manifest(chosen)
    cells = schedule_traffic.plan(document)
    cell = next(cell for cell in cells if (cell.scenario, cell.shaper, cell.block) == (scenario, shaper, 1))
    return document, synthetic.window_of(chosen, cell, 0)


def evaluate(scenario, shaper="ebpf", **options):
    return synthetic.evaluate(*window(scenario, shaper, **options))


def tripped(results):
    return {name for name, result in results.items() if not result.ok}


def readings(scenario="single_priority", shaper="ebpf"):
    document, found = window(scenario, shaper)
    return document, BandwidthRecord.of(found.cell), synthetic.traffic(found), synthetic.samples(found)


@pytest.mark.parametrize("scenario", ["single_priority", "multi_priority", "waterline", "class_count", "latency"])
def test_a_clean_window_trips_nothing(scenario):
    results = evaluate(scenario)
    assert tripped(results) == set()
    assert ("probe_complete" in results) == (scenario == "latency")
    assert "receiver_cpu" in results


def test_without_shaping_a_receiver_may_be_busy():
    assert "receiver_cpu" not in evaluate("single_priority", "none", faults={("single_priority", "none", 1): "no_cpu"})


def test_every_fault_has_an_expectation():
    assert set(EXPECTED) | JUDGED == set(FAULTS)


@pytest.mark.parametrize("fault", sorted(EXPECTED))
def test_a_fault_trips_its_guard(fault):
    scenario, guard, repeated = EXPECTED[fault]
    document, found = window(scenario, faults={(scenario, "ebpf", 1): fault})
    results = synthetic.evaluate(document, found)
    assert guard in tripped(results), results[guard]
    record = guards.judged(BandwidthRecord.of(found.cell), tuple(results.values()))
    assert record.kept is not repeated
    assert any(reason.startswith(f"{guard}: ") for reason in record.reasons)


def test_nothing_read_trips_every_guard_but_raises_nothing():
    document, record, _unused, _samples = readings("latency")
    results = guards_traffic.evaluate(document, record, {}, {}, None)
    assert {result.guard for result in results if result.ok} == set()
    assert all(result.text for result in results)


def test_a_receiver_that_foreign_work_fills_is_noise():
    document, record, traffic, samples = readings()
    traffic["cpu"]["load1"]["busy_s"] = 0.99 * traffic["cpu"]["load1"]["window_s"]

    def found():
        results = guards_traffic.evaluate(document, record, traffic, samples, None)
        return next(result for result in results if result.guard == "receiver_cpu")

    assert (found().ok, found().repeatable, found().noise) == (False, False, False)
    for sample in samples["load1"]:
        sample["groups"]["load"]["cpu_s"] = 50.0
    assert (found().ok, found().repeatable, found().noise) == (False, True, True)
    assert found().text.endswith(" by foreign work")


@pytest.mark.parametrize(("shaper", "ok"), [("ebpf", False), ("htb", False), ("none", True)])
def test_a_shaper_of_which_nothing_is_stored_was_not_in_effect(shaper, ok):
    document, record, traffic, samples = readings(shaper=shaper)
    results = guards_traffic.evaluate(document, record, traffic, samples, {"wanted": {}, "applied": {}})
    found = next(result for result in results if result.guard == "shaping_in_effect")
    assert found.ok is ok
    assert (found.figure is None) is not ok


def test_limits_of_the_user_count():
    document, record, traffic, samples = readings()
    traffic["foreign_drops"] = 5
    document["limits"] = {"foreign_drops": 5}
    stored = {"wanted": {"tbf": "rate 1 B/s"}, "applied": {"tbf": "rate 1 B/s"}}
    results = guards_traffic.evaluate(document, record, traffic, samples, stored)
    assert all(result.ok for result in results)
    limits.check(document["limits"], limits.TRAFFIC)


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        ({"lateness": 1}, "limits: 'lateness' is no guard; known are clocks_monotonic, "),
        ({"steal": -1}, "limits: steal is -1; must be a number from 0 up in % of a CPU"),
    ],
)
def test_bad_limits_are_one_sentence(overrides, text):
    with pytest.raises(limits.LimitsError) as caught:
        limits.check(overrides, limits.TRAFFIC)
    assert str(caught.value).startswith(text)


def test_the_matrix_knows_nothing_of_these_guards():
    with pytest.raises(limits.LimitsError):
        limits.check({"foreign_drops": 1})


def test_every_guard_of_the_table_is_evaluated_once():
    assert len({guard.name for guard in limits.TRAFFIC}) == len(limits.TRAFFIC)
    assert set(evaluate("latency")) == {guard.name for guard in limits.TRAFFIC if guard.scope == "measurement"}


@pytest.mark.parametrize(
    ("needed", "capacity", "ok", "figure"),
    [
        ({"a": 50.0}, {"a": 100.0}, True, 50.0),
        ({"a": 50.0, "b": 95.0}, {"a": 100.0, "b": 100.0}, False, 95.0),
        ({"a": 50.0, "b": 95.0}, {"a": 100.0}, False, None),
        ({}, {}, True, 0.0),
    ],
)
def test_senders_must_be_able_to_offer_more(needed, capacity, ok, figure):
    result = guards_traffic.sender_headroom(needed, capacity, {})
    assert (result.ok, result.figure) == (ok, figure)
    assert result.text
