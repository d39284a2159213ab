"""When a packet leaves: arithmetic of the clocks to the nanosecond, on packets that the kernel runs the programs on."""

from __future__ import annotations

import struct

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import bpf
from tools.bandwidth.single_packets import LOOPBACK, MS, SECOND, START, Bench, ethernet, ipv4, ipv6

FRAME = 1514  # 14 Ethernet, 20 IPv4, 32 TCP, 1448 payload
HEADERS = 66
RATE = 12_500_000  # bytes a second: 80 ns a byte
GSO = {"gso_segs": 4, "gso_size": 1448, "wire_len": FRAME + 3 * HEADERS}
LONG = ethernet(0x0800, ipv4(2 * 1448))


def left(bench: Bench, **context: int) -> int:
    """Send one packet of the class and return how many ns after now it leaves."""
    sent = bench.send(**context)
    assert not sent.dropped
    return sent.tstamp - bench.now


@pytest.mark.parametrize(
    ("accounting", "one", "segmented"),
    [
        ("wire", FRAME, FRAME + 3 * HEADERS),
        ("l1", FRAME + 24, FRAME + 3 * HEADERS + 4 * 24),
        ("skb", FRAME, FRAME),
        ("payload", 1448, 1448),
    ],
)
def test_each_accounting_counts_what_it_says(bench: Bench, accounting: str, one: int, segmented: int) -> None:
    bench.set_pool(accounting=accounting)
    bench.set_class(limit=RATE)
    assert left(bench) == one * 80
    bench.now += SECOND
    assert left(bench, **GSO) == segmented * 80
    assert bench.stats()["bytes"] == one + segmented


def test_overhead_is_added_to_each_segment(bench: Bench) -> None:
    bench.set_pool(overhead=50)
    bench.set_class(limit=RATE)
    assert left(bench, **GSO) == (FRAME + 3 * HEADERS + 4 * 50) * 80


def test_wire_length_is_worked_out_where_the_kernel_does_not_know_it(bench: Bench) -> None:
    bench.set_device(flags=bench.constant("DEVICE_OWN_WIRE_LENGTH"))
    bench.set_class(limit=RATE)
    sent = bench.send(LONG, gso_segs=2, gso_size=1448, wire_len=len(LONG))
    assert sent.tstamp - START == (len(LONG) + HEADERS) * 80
    bench.now += SECOND
    sent = bench.send(LONG, gso_segs=0, gso_size=1448, wire_len=len(LONG))
    assert sent.tstamp - bench.now == (len(LONG) + HEADERS) * 80


@pytest.mark.parametrize(
    ("frame", "payload"),
    [
        (ethernet(0x0800, ipv4(1000, protocol=17)), 1000),
        (ethernet(0x0800, ipv4(1000), tags=(0x8100,)), 1000),
        (ethernet(0x0800, ipv4(1000), tags=(0x88A8, 0x8100)), 1000),
        (ethernet(0x86DD, ipv6(1000, b"\1" * 16, b"\2" * 16)), 1000),
        (ethernet(0x0800, ipv4(0)), 0),  # an acknowledgement
        (ethernet(0x0800, ipv4(0, protocol=17)), 14 + 20 + 8),  # an empty datagram isn't free
    ],
)
def test_payload_behind_every_kind_of_header(bench: Bench, frame: bytes, payload: int) -> None:
    bench.set_pool(accounting="payload")
    bench.set_class(limit=RATE)
    sent = bench.send(frame)
    assert bench.stats()["bytes"] == payload
    assert sent.tstamp == (START + payload * 80 if payload else 0)


@pytest.mark.parametrize("rate", [1, 1000, 20_971_520, 125_000_000, 12_500_000_000])
def test_cost_is_exact_to_the_nearest_nanosecond(bench: Bench, rate: int) -> None:
    bench.set_class(limit=rate)
    sent = bench.send()
    assert sent.tstamp - START == (FRAME * SECOND + rate // 2) // rate


def test_packets_are_spaced_and_a_burst_goes_first(bench: Bench) -> None:
    bench.set_class(limit=RATE, burst_ns=MS)
    cost, times = FRAME * 80, []
    for _ in range(12):
        times.append(bench.send().tstamp)
    expected = [START - MS + number * cost for number in range(1, 13)]
    # Departures are at the ends of halves of the burst; the clock isn't rounded.
    slot = MS // 2
    assert times == [-(-time // slot) * slot if time > START else 0 for time in expected]
    assert bench.class_state()["limit_clock"] == expected[-1]
    assert bench.stats()["delayed"] == sum(time > START for time in expected)
    assert bench.stats()["delay_max_ns"] == times[-1] - START


def test_what_arrives_gets_its_time_too(bench: Bench) -> None:
    flags = bench.constant("DEVICE_OWN_WIRE_LENGTH") | bench.constant("DEVICE_INTERMEDIATE")
    bench.set_device(direction="ingress", flags=flags)
    bench.set_class(limit=12_500_000)
    assert bench.send().tstamp == START + 1514 * 80


def test_idle_time_is_not_saved_up_beyond_the_burst(bench: Bench) -> None:
    bench.set_class(limit=RATE, burst_ns=MS)
    bench.send()
    bench.now += 3600 * SECOND
    assert bench.send().tstamp == 0
    assert bench.class_state()["limit_clock"] == bench.now - MS + FRAME * 80


def test_beyond_the_horizon_packets_are_dropped_and_their_time_is_given_back(bench: Bench) -> None:
    bench.set_class(limit=RATE, horizon_ns=4 * MS)
    accepted = 0
    while not bench.send().dropped:
        accepted += 1
        assert accepted < 100
    # A packet may start up to the horizon: one at 0, then one for each started cost.
    assert accepted == 4 * MS // (FRAME * 80) + 1
    clock = bench.class_state()["limit_clock"]
    assert clock == START + accepted * FRAME * 80
    for _ in range(50):
        assert bench.send().dropped
    assert bench.class_state()["limit_clock"] == clock
    found = bench.stats()
    assert (found["dropped"], found["dropped_bytes"]) == (51, 51 * FRAME)
    # A flood leaves nothing behind: as soon as the backlog has drained, packets pass.
    bench.now = clock - MS
    assert not bench.send().dropped


def test_a_packet_longer_than_the_horizon_passes_an_idle_clock(bench: Bench) -> None:
    bench.set_class(limit=1000, horizon_ns=MS)
    assert left(bench) == FRAME * MS
    bench.now += 3600 * SECOND
    assert not bench.send(wire_len=20 * FRAME).dropped
    assert bench.send().dropped


@pytest.mark.parametrize("frames", [1, 2, 5])
def test_ten_full_frames_may_wait_though_the_rate_is_slow(bench: Bench, frames: int) -> None:
    bench.set_class(limit=100_000, horizon_ns=MS)
    accepted = 0
    while not bench.send(wire_len=frames * FRAME).dropped:
        accepted += 1
        assert accepted < 100
    # One that starts at once, and what starts within the time of ten.
    assert accepted == 10 // frames + 1
    bench.set_device(plane="police")
    bench.now += 3600 * SECOND
    assert not bench.send().dropped
    assert bench.send().dropped


def test_all_clocks_are_refunded_when_one_refuses(bench: Bench) -> None:
    bench.set_pool(low=RATE, high=RATE)
    bench.set_class(role="offline", limit=RATE * 10, horizon_ns=0)
    while not bench.send().dropped:
        before = bench.class_state()["limit_clock"], bench.pool_state()["offline_clock"]
    assert bench.send(at=START + FRAME * 8).dropped
    assert (bench.class_state()["limit_clock"], bench.pool_state()["offline_clock"]) == before


def test_the_slower_of_two_clocks_decides(bench: Bench) -> None:
    bench.set_pool(low=RATE, high=RATE)
    bench.set_class(role="offline", limit=RATE // 2)
    assert left(bench) == FRAME * 160
    bench.set_class(role="offline", limit=RATE * 2)
    bench.now += SECOND
    assert left(bench) == FRAME * 80


@pytest.mark.parametrize(("tos", "marked"), [(2, True), (1, True), (0, False), (3, False)])
def test_congestion_is_marked_where_the_sender_understands_it(bench: Bench, tos: int, marked: bool) -> None:
    bench.set_class(limit=RATE, ecn_ns=MS)
    frame = ethernet(0x0800, ipv4(tos=tos))
    first = bench.send(frame)
    assert first.data[15] & 3 == tos
    for _ in range(9):
        last = bench.send(frame)
    assert last.data[15] & 3 == (3 if marked else tos)
    # A packet that carries the mark already counts as marked; one that isn't capable never does.
    assert bench.stats()["marked"] == (1 if tos else 0)
    assert last.data[24:26] == ethernet(0x0800, ipv4(tos=last.data[15]))[24:26], "checksum"


def test_the_senders_own_pacing_is_kept_below_the_limit(bench: Bench) -> None:
    bench.set_class(limit=RATE)
    wanted = START + 7 * MS
    assert bench.send(tstamp=wanted).tstamp == wanted + FRAME * 80


@pytest.mark.parametrize("class_from", [Bench.FROM, 0])
def test_a_time_of_another_clock_is_removed(bench: Bench, class_from: int) -> None:
    sent = bench.send(tstamp=1_790_000_000 * SECOND, ingress_ifindex=class_from)
    assert (sent.dropped, sent.tstamp) == (False, 0)


def test_clocks_go_on_when_time_wraps(bench: Bench) -> None:
    bench.set_class(limit=RATE)
    bench.now = 2**64 - FRAME * 80 - 1
    bench.put("class_states", Bench.CLASS, "class_state", {"limit_clock": bench.now})
    assert bench.send().tstamp == 2**64 - 1
    second = bench.send()
    assert (second.dropped, second.tstamp) == (False, FRAME * 80 - 1)


def test_a_rate_of_zero_lets_nothing_pass(bench: Bench) -> None:
    bench.set_waterline(waterline=RATE, low=0, high=10 * RATE)
    bench.set_class(role="offline")
    assert not bench.send().dropped
    bench.put("pool_states", 0, "pool_state", {"state": 1, "window_start": START})
    assert bench.send().dropped


def test_what_no_class_claims_is_counted_and_never_held_up(bench: Bench) -> None:
    bench.set_pool(low=1, high=1)
    for _ in range(100):
        sent = bench.send(ingress_ifindex=0)
        assert (sent.dropped, sent.tstamp) == (False, 0)
    assert bench.stats(0)["packets"] == 100


def test_an_exempt_class_is_never_held_up(bench: Bench) -> None:
    bench.set_class(role="exempt", limit=1)
    assert [bench.send().tstamp for _ in range(10)] == [0] * 10


def test_a_device_that_is_not_listed_is_left_alone(bench: Bench) -> None:
    bench.set_class(limit=1)
    assert not bench.send().dropped
    assert bench.send().dropped
    bpf.delete(bench.loaded.maps["devices"], struct.pack("<I", LOOPBACK << 1))
    assert [bench.send().tstamp for _ in range(10)] == [0] * 10
    assert bench.stats()["packets"] == 2


def test_what_is_not_ip_is_left_alone(bench: Bench) -> None:
    bench.set_class(limit=1)
    arp = ethernet(0x0806, b"\0" * 46)
    assert [bench.send(arp).tstamp for _ in range(10)] == [0] * 10
    assert bench.stats()["packets"] == 0


def test_configuration_changes_as_a_whole_with_the_generation(bench: Bench) -> None:
    bench.set_class(limit=RATE)
    bench.set_class(limit=RATE // 2, generations=(1,))
    bench.set_pool(accounting="payload", generations=(1,))
    assert left(bench) == FRAME * 80
    bench.now += SECOND
    bench.set_meta(generation=1)
    assert left(bench) == 1448 * 160
    bench.now += SECOND
    bench.set_meta(generation=0)
    assert left(bench) == FRAME * 80
