"""The waterline: trips inside the window, holds, comes back once, and is not fooled by pauses."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tools.bandwidth.single_packets import MS, SECOND, START, Bench

FRAME = 1514
WATERLINE = 20_971_520  # 20 MiB/s
BUDGET = WATERLINE // 100  # of a window of 10 ms
LOW, HIGH = 20_000_000, 100_000_000
ONLINE, OFFLINE = 0, Bench.FROM
HIGH_STATE, LOW_STATE = 0, 1
TRIP, WINDOW, HOLD = 1, 2, 3


def prepare(bench: Bench, **pool: Any) -> None:
    bench.set_class(role="offline", horizon_ns=SECOND)
    bench.set_waterline(WATERLINE, LOW, HIGH, **pool)
    # The first packet opens the first window.
    bench.send(ingress_ifindex=ONLINE)


def online(bench: Bench, size: int, ms: float = 0) -> None:
    """Let some bytes of the online class pass at once, then time."""
    while size > 0:
        # A test run takes at most 64 KiB.
        part = max(min(size, 60_000), FRAME)
        bench.send(ingress_ifindex=ONLINE, wire_len=part)
        size -= part
    bench.now += int(ms * MS)


def pace_of_offline(bench: Bench) -> int:
    """Return ns that an offline packet takes; it comes a second after the one before, so that the clock is idle."""
    bench.put("pool_states", 0, "pool_state", {**bench.pool_state(), "lock": 0, "offline_clock": 0})
    sent = bench.send(ingress_ifindex=OFFLINE)
    assert not sent.dropped
    return sent.tstamp - bench.now


def cost(rate: int) -> int:
    return (FRAME * SECOND + rate // 2) // rate


def changes(bench: Bench) -> list[tuple[int, int, int]]:
    return [(event["time_ns"], event["to"], event["reason"]) for event in bench.events()]


def test_offline_classes_are_throttled_the_moment_the_budget_is_used(bench: Bench) -> None:
    prepare(bench)
    assert pace_of_offline(bench) == cost(HIGH)
    bench.now += 2 * MS
    sent = FRAME
    while sent + FRAME < BUDGET:
        online(bench, FRAME)
        sent += FRAME
    assert bench.pool_state()["state"] == HIGH_STATE
    # Shards are added up once in a sixteenth of the budget.
    for _ in range(BUDGET // 16 // FRAME + 2):
        online(bench, FRAME)
    assert changes(bench) == [(START + 2 * MS, LOW_STATE, TRIP)]
    assert pace_of_offline(bench) == cost(LOW)


def test_a_burst_is_counted_from_its_first_packet_on(bench: Bench) -> None:
    """Windows of the accounts would split it: what came before one ended would not count any more."""
    prepare(bench)
    bench.now += 10 * MS
    # Closes a window, so that the next one ends amidst the burst.
    bench.send(ingress_ifindex=OFFLINE)
    bench.now += 8 * MS
    for _ in range(5):
        assert bench.pool_state()["state"] == HIGH_STATE
        online(bench, BUDGET // 5, 1)
    assert changes(bench) == [(START + 22 * MS, LOW_STATE, TRIP)]


def test_what_is_below_the_line_never_trips(bench: Bench) -> None:
    prepare(bench)
    for _ in range(300):
        bench.now += 3 * MS
        online(bench, BUDGET // 5)
    assert changes(bench) == []


def test_one_large_packet_trips_at_once(bench: Bench) -> None:
    prepare(bench)
    online(bench, BUDGET)
    assert changes(bench) == [(START, LOW_STATE, TRIP)]


def test_it_takes_the_held_number_of_quiet_windows_to_come_back(bench: Bench) -> None:
    prepare(bench)
    online(bench, BUDGET)
    times = []
    for _ in range(60):
        bench.now += MS
        bench.send(ingress_ifindex=OFFLINE)
        times.append((bench.now, bench.pool_state()["state"]))
    # The window with the burst isn't quiet; three more are held.
    back = next(time for time, state in times if state == HIGH_STATE)
    assert back == START + 40 * MS
    assert [(to, reason) for _, to, reason in changes(bench)] == [(LOW_STATE, TRIP), (HIGH_STATE, HOLD)]


def test_hold_and_window_are_settings(bench: Bench) -> None:
    prepare(bench, hold=1, window_ns=5 * MS)
    online(bench, BUDGET)
    for _ in range(30):
        bench.now += MS
        bench.send(ingress_ifindex=OFFLINE)
    assert [time - START for time, _, _ in changes(bench)] == [0, 10 * MS]


def test_a_bursty_service_does_not_make_it_flap(bench: Bench) -> None:
    prepare(bench)
    # A burst of 1.2 budgets every 15 ms: 80 % of the waterline on average, over it in most windows.
    for _ in range(40):
        online(bench, BUDGET * 12 // 10)
        for _ in range(15):
            bench.now += MS
            bench.send(ingress_ifindex=OFFLINE)
    assert [(to, reason) for _, to, reason in changes(bench)] == [(LOW_STATE, TRIP)]


def test_a_steady_service_over_the_line_keeps_it_low_and_one_below_brings_it_back(bench: Bench) -> None:
    prepare(bench)
    for share, expected in ((120, LOW_STATE), (98, LOW_STATE), (80, HIGH_STATE)):
        for _ in range(100):
            online(bench, BUDGET * share // 100 // 10, ms=1)
        assert bench.pool_state()["state"] == expected, share
    assert len(changes(bench)) == 2


def test_a_burst_after_a_long_pause_is_not_averaged_away(bench: Bench) -> None:
    prepare(bench)
    bench.now += 3600 * SECOND
    online(bench, FRAME)
    online(bench, BUDGET)
    assert changes(bench) == [(bench.now, LOW_STATE, TRIP)]


def test_a_pause_counts_as_quiet_windows(bench: Bench) -> None:
    prepare(bench)
    online(bench, BUDGET)
    bench.now += 30 * MS
    bench.send(ingress_ifindex=OFFLINE)
    bench.now += 10 * MS
    bench.send(ingress_ifindex=OFFLINE)
    assert [to for _, to, _ in changes(bench)] == [LOW_STATE, HIGH_STATE]


def test_rates_of_the_last_window_are_kept(bench: Bench) -> None:
    prepare(bench)
    bench.now += 10 * MS
    online(bench, FRAME)
    for _ in range(10):
        online(bench, 10_000, ms=1)
        bench.send(ingress_ifindex=OFFLINE)
    found = bench.pool_state()
    # The packet that closes a window belongs to the next one.
    assert found["online_rate"] == (FRAME + 10 * 10_000) * 100
    assert found["offline_rate"] == 9 * FRAME * 100


@pytest.mark.parametrize(
    ("total", "rate", "allowed"),
    [(110_000_000, 15_000_000, 95_000_000), (110_000_000, 1_000_000, HIGH), (30_000_000, 15_000_000, LOW)],
)
def test_continuous_mode_gives_what_is_left(bench: Bench, total: int, rate: int, allowed: int) -> None:
    prepare(bench, flags=bench.constant("POOL_CONTINUOUS"), total=total)
    for _ in range(30):
        online(bench, rate // 1000, ms=1)
    assert pace_of_offline(bench) == cost(allowed)


def test_offline_bytes_do_not_count_against_the_line(bench: Bench) -> None:
    prepare(bench)
    for _ in range(100):
        bench.send(ingress_ifindex=OFFLINE, wire_len=FRAME)
    assert changes(bench) == []


def test_pools_do_not_share_a_waterline(bench: Bench) -> None:
    prepare(bench)
    bench.set_waterline(WATERLINE, LOW, HIGH, number=1)
    bench.set_class(107, role="offline", pool=1, horizon_ns=SECOND)
    bench.set_member("device", struct.pack("<I", 8), egress=107)
    bench.send(ingress_ifindex=8)
    online(bench, BUDGET)
    assert bench.pool_state(0)["state"] == LOW_STATE
    assert bench.pool_state(1)["state"] == HIGH_STATE
    bench.now += SECOND
    assert bench.send(ingress_ifindex=8).tstamp - bench.now == cost(HIGH)


def test_only_the_last_events_are_kept(bench: Bench) -> None:
    prepare(bench, hold=1)
    for _ in range(50):
        online(bench, BUDGET)
        for _ in range(4):
            bench.now += 10 * MS
            bench.send(ingress_ifindex=OFFLINE)
    count, each = bench.pool_state()["transitions"], bench.constant("EVENTS_EACH")
    assert count == 100
    numbers = sorted(bench.read("events", slot, "event")["number"] for slot in range(each))
    assert numbers == list(range(count - each, count))
