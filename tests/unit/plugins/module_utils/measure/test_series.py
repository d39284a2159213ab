"""Samples to figures: windows on the host's own clock, counters that must grow, shares of CPU time."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.measure import series
from tests.support import synthetic_run
from tests.support.synthetic_readings import Options


def sample(second, **more):
    return {"wall_s": 1000.0 + second, "mono_s": 50.0 + second, **more}


def cpu(busy_s, idle_s, steal_s=0.0):
    values = dict.fromkeys(series.CPU_CLASSES, 0.0)
    return {"0": {**values, "user_s": busy_s, "idle_s": idle_s, "steal_s": steal_s}}


json_objects = st.lists(st.dictionaries(st.text(), st.none() | st.integers() | st.floats(allow_nan=False) | st.text()))


@given(json_objects, st.booleans())
def test_lines_go_there_and_back_and_an_unfinished_last_one_is_left_out(objects, cut):
    lines = [json.dumps(value, ensure_ascii=False) for value in objects]
    text = "".join(line + "\n" for line in lines) + ('{"wall_s": 1' if cut else "")
    assert list(series.parse_lines(text.encode("utf-8", "surrogatepass"))) == [json.loads(line) for line in lines]


@given(st.binary(max_size=200))
def test_any_bytes_are_samples_or_one_sentence(content):
    try:
        found = series.parse_lines(content)
    except series.SeriesError as exc:
        message = str(exc)
    else:
        message = "samples, line"
        assert all(isinstance(value, dict) for value in found)
    assert message.startswith("samples, line")


def test_damaged_line_is_named():
    with pytest.raises(series.SeriesError, match="line 2"):
        series.parse_lines('{"wall_s": 1}\n{"wall\n{"wall_s": 3}\n')
    with pytest.raises(series.SeriesError, match="line 1: is not an object"):
        series.parse_lines("[1]\n")


def test_window_is_moved_to_the_hosts_own_clock():
    load = {"start_wall_s": 100.0, "end_wall_s": 108.0}
    window = series.host_window(load, load_offset_s=0.5, host_offset_s=3.0)
    assert (window.start_s, window.end_s, window.duration_s) == (102.5, 110.5, 8.0)


def test_cut_takes_what_lies_inside_and_one_more_at_each_edge():
    samples = [sample(second) for second in range(-3, 14)]
    found = series.cut(samples, series.Window(1000.4, 1008.4))
    assert [item["wall_s"] - 1000 for item in found.inside] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [item["wall_s"] - 1000 for item in found.around] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_cut_does_not_reach_for_samples_far_away():
    found = series.cut([sample(-5), sample(4), sample(20), {"wall_s": None}], series.Window(1000.0, 1008.0))
    assert found.inside == found.around == (sample(4),)


@given(st.lists(st.integers(min_value=0, max_value=100), min_size=2, max_size=20))
def test_increase_is_the_difference_unless_the_counter_ever_fell(values):
    samples = [sample(index, work={"batch": {"done": value}}) for index, value in enumerate(values)]
    grown = series.increase(samples, "work", "batch", "done")
    assert grown == (values[-1] - values[0] if values == sorted(values) else None)


@pytest.mark.parametrize("gap", [None, "12", True, {}])
def test_increase_needs_every_reading(gap):
    samples = [sample(0, net={"rx_bytes": 1}), sample(1, net={"rx_bytes": gap}), sample(2, net={"rx_bytes": 9})]
    assert series.increase(samples, "net", "rx_bytes") is None
    assert series.increase(samples, "nothing", "there") is None


def test_rates_use_the_monotonic_clock():
    stepped = [
        {"wall_s": 1000.0, "mono_s": 50.0, "net": {"rx_bytes": 0, "tx_bytes": 0}},
        {"wall_s": 1900.0, "mono_s": 52.0, "net": {"rx_bytes": 400, "tx_bytes": 20}},
    ]
    assert series.net_bytes_per_s(stepped) == {"rx": 200.0, "tx": 10.0}


def test_shares_of_cpu_time():
    samples = [sample(0, cpus=cpu(10, 10, 0)), sample(1, cpus=cpu(10.2, 10.7, 0.1)), sample(2, cpus=cpu(10.8, 11, 0.2))]
    assert series.utilisation_pct(samples, [0]) == pytest.approx(40.0)
    assert series.steal_pct(samples, 0) == pytest.approx(10.0)
    assert series.worst_second_steal_pct(samples, 0) == pytest.approx(10.0)
    assert series.utilisation_pct(samples, [0, 1]) is None
    assert series.class_shares_pct(samples, []) is None


def test_idle_time_that_falls_by_rounding_counts_as_none():
    samples = [sample(0, cpus=cpu(10, 10.01)), sample(1, cpus=cpu(11, 10.0))]
    assert series.utilisation_pct(samples, [0]) == pytest.approx(100.0)


def test_foreign_cpu_is_what_neither_group_used():
    def groups(service, batch):
        return {"service": {"cpu_s": service}, "batch": {"cpu_s": batch}}

    samples = [sample(0, cpus=cpu(0, 0), groups=groups(5, 5)), sample(10, cpus=cpu(9, 1), groups=groups(8, 10))]
    assert series.foreign_cpu_pct(samples, [0]) == pytest.approx(10.0)
    more = [samples[0], {**samples[1], "groups": groups(10, 10)}]
    assert series.foreign_cpu_pct(more, [0]) == 0.0
    unread = [samples[0], {**samples[1], "groups": {"service": None, "batch": {"cpu_s": 10}}}]
    assert series.foreign_cpu_pct(unread, [0]) is None
    never = [{**sample, "groups": {"batch": sample["groups"]["batch"], "service": None}} for sample in samples]
    assert series.foreign_cpu_pct(never, [0]) == pytest.approx(40.0)


def test_pressure_waiting_and_work():
    samples = [
        sample(0, psi={"cpu": {"some_us": 0}}, groups={"service": {"wait_s": 1.0, "cpu_s": 0}},
               work={"batch": {"done": 10}}),
        sample(4, psi={"cpu": {"some_us": 1_000_000}}, groups={"service": {"wait_s": 1.2, "cpu_s": 2}},
               work={"batch": {"done": 50}}),
    ]  # fmt: skip
    assert series.psi_pct(samples, "cpu") == pytest.approx(25.0)
    assert series.psi_pct(samples, "io") is None
    assert series.runqueue_wait_pct(samples) == pytest.approx(5.0)
    assert series.group_cpu_pct(samples, "service", [0, 1]) == pytest.approx(25.0)
    assert series.work_per_s(samples) == pytest.approx(10.0)


def test_time_series_of_a_window_counts_from_its_start():
    found = synthetic_run.readings(Options(), "colocation")
    window = series.host_window(found.load, 0.0, 0.25)
    seconds = series.seconds_of(series.cut(found.samples["tested1"], window), [0])
    assert len(seconds) == 9
    assert seconds[0].t_s == pytest.approx(0.4)
    assert seconds[3].groups_pct["batch"] > 50
    assert sum(seconds[3].classes_pct.values()) == pytest.approx(100.0)
