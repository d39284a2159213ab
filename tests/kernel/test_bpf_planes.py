"""What else than a departure time may come out: a priority for HTB, a drop by the policer, a share by level."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Mapping

import pytest

from tools.bandwidth.single_packets import MS, SECOND, START, Bench, ethernet, ipv4

FRAME = 1514
RATE = 12_500_000
ONLINE, HIGH, LOW = 0x10010, 0x10020, 0x10021
TOTAL = 125_000_000
SIZE = 15_000


@pytest.mark.parametrize("sender", [0, 6, 0x10020, 0x10021, 0xFFFF_FFFF])
def test_priority_is_assigned_and_never_believed(bench: Bench, sender: int) -> None:
    bench.set_device(plane="htb", htb_default=ONLINE)
    bench.set_waterline(RATE, RATE // 4, RATE)
    bench.set_class(role="offline", htb_high=HIGH, htb_low=LOW, limit=1)
    tos = ethernet(0x0800, ipv4(tos=0x10))
    assert bench.send(tos, priority=sender, ingress_ifindex=0).priority == ONLINE
    sent = bench.send(tos, priority=sender)
    assert (sent.priority, sent.tstamp, sent.dropped) == (HIGH, 0, False)
    bench.put("pool_states", 0, "pool_state", {"state": 1, "window_start": START})
    assert bench.send(tos, priority=sender).priority == LOW


def test_the_waterline_steers_the_whole_pool(bench: Bench) -> None:
    bench.set_device(plane="htb", htb_default=ONLINE)
    bench.set_waterline(RATE, RATE // 4, RATE)
    bench.set_class(role="offline", htb_high=HIGH, htb_low=LOW)
    bench.send()
    for _ in range(3):
        bench.send(ingress_ifindex=0, wire_len=60_000)
    assert bench.send().priority == LOW
    bench.now += 50 * MS
    assert bench.send().priority == HIGH


def test_a_class_without_a_place_in_the_tree_gets_the_default(bench: Bench) -> None:
    bench.set_device(plane="htb", htb_default=ONLINE)
    assert bench.send(priority=HIGH).priority == ONLINE


@pytest.mark.parametrize("hook", ["shape", "police"])
def test_the_policer_lets_its_burst_pass_and_then_the_rate(bench: Bench, hook: str) -> None:
    bench.set_device(plane="police", hook=int(hook == "police"), direction="ingress")
    bench.set_member("device", struct.pack("<I", 1), ingress=Bench.CLASS)
    bench.set_class(limit=RATE, burst_ns=MS)
    policer = Bench(bench.loaded, hook=hook, meta=bench.meta)
    passed = 0
    while not (sent := policer.send()).dropped:
        assert sent.tstamp == 0
        passed += 1
        assert passed < 100
    # The burst, and one packet that overdraws it.
    assert passed == MS // (FRAME * 80) + 1
    cost, start = FRAME * 80, policer.now
    for step in range(1, 1001):
        policer.now = start + step * cost // 10
        passed += not policer.send().dropped
    assert passed == pytest.approx(1 + MS // cost + 100, abs=1)


def test_a_flood_at_the_policer_does_not_hold_up_what_comes_after(bench: Bench) -> None:
    bench.set_device(plane="police")
    bench.set_class(limit=RATE, burst_ns=MS)
    for _ in range(1000):
        bench.send()
    bench.now += 2 * MS
    assert not bench.send().dropped


class Greedy:
    """Senders that always keep some packets on their way: each sends when its oldest one has left.

    Many leave at one moment; as in fq, the sender that had least goes first then.
    """

    DEPTH = 8

    def __init__(self, bench: Bench, classes: Mapping[int, tuple[int, int]], flags: int = 0, **pool: int) -> None:
        self.bench = bench
        bench.set_pool(flags=bench.constant("POOL_LEVELS") | flags, total=TOTAL, floor=TOTAL // 100, **pool)
        self.leave: dict[int, deque[int]] = {}
        for number, (level, request) in classes.items():
            bench.set_class(number, level=level, request=request, burst_ns=MS, horizon_ns=SECOND)
            bench.set_member("device", struct.pack("<I", number), egress=number)
            self.leave[number] = deque([START] * self.DEPTH)

    def rates(self, ms: int, active: set[int] | None = None) -> dict[int, float]:
        """Let them send for some time; return the share of the total that each got in the second half of it, in %."""
        begin = self.bench.now
        sent, turns = dict.fromkeys(self.leave, 0), dict.fromkeys(self.leave, 0)
        while True:
            number = min(active or self.leave, key=lambda item: (self.leave[item][0], turns[item]))
            turns[number] += 1
            self.bench.now = max(self.leave[number].popleft(), self.bench.now)
            if self.bench.now >= begin + ms * MS:
                return {key: 100 * value / (TOTAL * ms / 2000) for key, value in sent.items()}
            departure = self.bench.send(ingress_ifindex=number, wire_len=SIZE).tstamp or self.bench.now
            assert departure >= max(self.leave[number], default=0), "a packet overtakes another of its class"
            self.leave[number].append(departure)
            if self.bench.now > begin + ms * MS / 2:
                sent[number] += SIZE


CASE = {100: (2, TOTAL // 2), 101: (1, TOTAL // 5), 102: (1, TOTAL // 5), 103: (0, TOTAL // 100)}


def test_all_get_their_request_and_the_rest_goes_by_weight(bench: Bench) -> None:
    rates = Greedy(bench, CASE).rates(400)
    assert sum(rates.values()) == pytest.approx(100, abs=3)
    for number, request in ((100, 50), (101, 20), (102, 20), (103, 1)):
        assert rates[number] >= request * 0.98
    # 9 % are left for the levels: 70, 20 and 10 parts of them.
    assert rates[100] - 50 == pytest.approx(6.3, abs=1.5)


def test_what_an_idle_class_leaves_goes_to_the_others(bench: Bench) -> None:
    senders = Greedy(bench, CASE)
    senders.rates(200)
    rates = senders.rates(400, active={101, 102, 103})
    assert sum(rates.values()) == pytest.approx(100, abs=4)
    assert rates[101] == pytest.approx(rates[102], rel=0.05)
    alone = senders.rates(400, active={103})
    assert alone[103] == pytest.approx(100, abs=4)


def test_strict_order_leaves_a_floor_to_those_below(bench: Bench) -> None:
    classes = {100: (2, 0), 101: (1, 0), 103: (0, 0)}
    rates = Greedy(bench, classes, flags=bench.constant("POOL_STRICT")).rates(400)
    assert rates[100] == pytest.approx(98, abs=3)
    assert 0.5 < rates[101] < 3
    assert 0.5 < rates[103] < 3


def test_a_limit_holds_whatever_is_left(bench: Bench) -> None:
    senders = Greedy(bench, {100: (2, TOTAL // 2)})
    bench.set_class(100, level=2, request=TOTAL // 2, limit=TOTAL * 6 // 10, burst_ns=MS, horizon_ns=SECOND)
    assert senders.rates(400)[100] == pytest.approx(60, abs=1)
