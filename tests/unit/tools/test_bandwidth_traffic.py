"""What receivers saw, as rates and as switches: pure parts of the bandwidth benchmark."""

from __future__ import annotations

import math

import pytest

from tools.bandwidth import accuracy, arrivals, switching, traffic

MS = 1_000_000


def test_rates_are_taken_between_arrivals() -> None:
    # 1000 bytes each 10 ms: 800 kbit/s, whatever part of a period the window ends in.
    reads = [(n * 10 * MS, 1000) for n in range(100)]
    for end_ms in (500, 503, 509):
        assert traffic.rate(reads, 3 * MS, end_ms * MS) == pytest.approx(800_000)
    assert traffic.rate(reads[:1], 0, 10 * MS) == pytest.approx(800_000)
    assert traffic.rate([], 0, MS) == 0


def test_a_pause_at_the_end_of_a_window_does_not_decide() -> None:
    steady = [(n * MS, 1000) for n in range(3000)]
    # The first 20 ms arrive together: the machine stood still.
    paused = [(max(ns, 20 * MS), size) for ns, size in steady]
    assert traffic.rate(paused, 0, 3000 * MS) == pytest.approx(8e6, rel=5e-4)


def test_rates_of_flows_and_of_all() -> None:
    received = traffic.Received(0, {n: [(k * 10 * MS + n, 1000) for k in range(101)] for n in (0, 1)})
    assert received.rate(0.1, 0.9) == pytest.approx(1_600_000, rel=0.02)
    assert received.rates(0.1, 0.9) == pytest.approx({0: 800_000, 1: 800_000})


def test_accuracy_is_the_same_on_both_sides() -> None:
    assert accuracy.accuracy_pct(101, 100) == accuracy.accuracy_pct(99, 100) == pytest.approx(99)
    assert accuracy.ideal_bit(100, "payload") == 100e6
    assert accuracy.ideal_bit(100, "wire") == pytest.approx(95.64e6, rel=1e-4)
    assert accuracy.reached_by([99.0] * 10 + [100.0] * 190) == 100.0
    assert accuracy.reached_by([99.0] * 11 + [100.0] * 189) == 99.0


def test_slots_become_milliseconds_again() -> None:
    start = 5 * arrivals.SLOTS - 2
    even, odd = arrivals.unrolled({arrivals.SLOTS - 2: 1, 0: 2, arrivals.SLOTS + 1: 3}, start)
    assert even == {start: 1, start + 2: 2}
    assert odd == {start + 3: 3}


ONLINE = {
    **dict.fromkeys(range(1000, 1150), 50_000),
    **dict.fromkeys(range(1400, 1550), 50_000),
    **{800: 80, 990: 1000},
}


def test_bursts_are_what_comes_without_a_pause_from_where_it_is_over_the_line() -> None:
    assert switching.find_bursts(ONLINE, 20e6) == [switching.Burst(1000, 1149), switching.Burst(1400, 1549)]


def test_a_burst_is_settled_when_offline_traffic_keeps_its_bound() -> None:
    offline = {**dict.fromkeys(range(900, 1008), 100_000), **dict.fromkeys(range(1008, 1200), 20_000)}
    events = [(1005 * MS, "low"), (1190 * MS, "high")]
    first, second = switching.judge(switching.find_bursts(ONLINE, 20e6), offline, events, 20e6)
    # 15 % of 20 ms at 20,000 bytes each are 60,000: less than one ms at the high rate.
    assert (first.detected_ms, first.settled_ms, first.high_again_ms) == (5, 8, 41)
    assert math.isinf(second.settled_ms)


def test_bursts_begin_anywhere_in_a_window() -> None:
    plan = switching.schedule(50, 1, 0.15, 0.2)
    assert plan == switching.schedule(50, 1, 0.15, 0.2)
    assert len({round(wait_s % 0.01, 4) for wait_s, _ in plan}) > 30
