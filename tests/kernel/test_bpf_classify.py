"""Which class a packet belongs to, by what the kernel's test runs can carry; cgroups are tested with real sockets."""

from __future__ import annotations

import itertools
import socket
import struct

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import tables, values
from tools.bandwidth.single_packets import START, Bench, ethernet, ipv4, ipv6

HERE, THERE = socket.inet_pton(socket.AF_INET6, "fd00:1::7"), socket.inet_pton(socket.AF_INET6, "fd00:2::9")
MASK, SHIFT = 0x0FF0_0000, 20
CLASSES = {"stamp": 101, "device": 102, "prefix": 103}


def prefix4(text: str) -> bytes:
    address, length = text.split("/")
    return struct.pack("<I", int(length)) + socket.inet_aton(address)


def prefix6(text: str) -> bytes:
    address, length = text.split("/")
    return struct.pack("<I", int(length)) + socket.inet_pton(socket.AF_INET6, address)


def seen(bench: Bench, *numbers: int) -> list[int]:
    """Return how many packets each class has had."""
    return [bench.stats(number)["packets"] for number in numbers]


@pytest.mark.parametrize("order", list(itertools.permutations(CLASSES)))
def test_the_first_source_that_knows_a_packet_wins(bench: Bench, order: tuple[str, ...]) -> None:
    for number in CLASSES.values():
        bench.set_class(number)
    bench.set_meta(carrier=bench.constant("CARRIER_MARK"), mark_mask=MASK, mark_shift=SHIFT)
    bench.set_member("device", struct.pack("<I", Bench.FROM), egress=CLASSES["device"])
    bench.set_member("prefix4", prefix4("10.0.0.0/8"), egress=CLASSES["prefix"])
    bench.set_order(*order)
    bench.send(mark=CLASSES["stamp"] << SHIFT | 0xABCD)
    assert seen(bench, CLASSES[order[0]], CLASSES[order[1]], CLASSES[order[2]]) == [1, 0, 0]


def test_a_source_that_does_not_know_a_packet_leaves_it_to_the_next(bench: Bench) -> None:
    bench.set_class(103)
    bench.set_member("prefix4", prefix4("10.0.0.0/8"), egress=103)
    bench.set_order("stamp", "cgroup", "classid", "device", "prefix")
    bench.send(ingress_ifindex=5)
    bench.send()
    assert seen(bench, 103, Bench.CLASS) == [1, 1]


def test_a_member_of_the_other_direction_only_is_not_known(bench: Bench) -> None:
    bench.set_class(103)
    bench.set_member("device", struct.pack("<I", Bench.FROM), ingress=Bench.CLASS)
    bench.set_member("prefix4", prefix4("10.0.0.0/8"), egress=103)
    bench.set_order("device", "prefix")
    bench.send()
    assert seen(bench, 103, Bench.CLASS) == [1, 0]


@pytest.mark.parametrize("tags", [(), (0x8100,), (0x88A8, 0x8100)])
@pytest.mark.parametrize("direction", ["egress", "ingress"])
@pytest.mark.parametrize("family", [4, 6])
def test_longest_prefix_of_the_own_side(bench: Bench, tags: tuple[int, ...], direction: str, family: int) -> None:
    bench.set_device(direction=direction)
    bench.set_order("prefix")
    for number in (1, 2, 3, 4):
        bench.set_class(100 + number)
    bench.set_member("prefix4", prefix4("10.0.0.0/8"), egress=101)
    bench.set_member("prefix4", prefix4("10.0.0.0/24"), egress=102)
    bench.set_member("prefix4", prefix4("10.0.0.2/32"), ingress=103)
    bench.set_member("prefix6", prefix6("fd00:1::/32"), egress=101)
    bench.set_member("prefix6", prefix6("fd00:1::/64"), egress=102)
    bench.set_member("prefix6", prefix6("fd00:2::9/128"), ingress=103)
    packet = ethernet(0x0800, ipv4(), tags) if family == 4 else ethernet(0x86DD, ipv6(100, HERE, THERE), tags)
    bench.send(packet)
    assert seen(bench, 101, 102, 103) == ([0, 1, 0] if direction == "egress" else [0, 0, 1])


@pytest.mark.parametrize("direction", ["egress", "ingress"])
def test_a_network_of_the_other_direction_hides_nothing_of_the_one_around_it(bench: Bench, direction: str) -> None:
    """HERE and 10.0.0.1 lie in networks of both directions, the smaller of which is the other direction's."""
    other = next(item for item in values.DIRECTIONS if item != direction)
    bench.set_device(direction=direction)
    bench.set_order("prefix")
    for number in (101, 102, 103, 104):
        bench.set_class(number)
    for table, key_of, wide, narrow in (
        ("prefix4", prefix4, "10.0.0.0/8", "10.0.0.0/24"),
        ("prefix6", prefix6, "fd00::/16", "fd00:1::/32" if direction == "egress" else "fd00:2::/32"),
    ):
        numbers = (101, 102) if table == "prefix4" else (103, 104)
        members = tables.inherited({key_of(wide): {direction: numbers[0]}, key_of(narrow): {other: numbers[1]}})
        for key, member in members.items():
            bench.set_member(table, key, **member)
    bench.send(ethernet(0x0800, ipv4()))
    bench.send(ethernet(0x86DD, ipv6(100, HERE, THERE)))
    assert seen(bench, 101, 102, 103, 104) == [1, 0, 1, 0]


def test_ingress_goes_by_the_device_that_the_packet_leaves_by(bench: Bench) -> None:
    bench.set_device(direction="ingress")
    bench.set_member("device", struct.pack("<I", 1), ingress=105)
    bench.set_class(105)
    bench.send()
    assert seen(bench, 105, Bench.CLASS) == [1, 0]


def test_at_a_device_of_ours_the_one_that_packets_arrived_at_counts(bench: Bench) -> None:
    bench.set_device(direction="ingress", flags=bench.constant("DEVICE_INTERMEDIATE"))
    bench.send()
    assert seen(bench, Bench.CLASS) == [1]


@pytest.mark.parametrize(("kind", "moved"), [(0x0800, True), (0x86DD, True), (0x8100, True), (0x0806, False)])
def test_only_ip_is_moved_to_a_device_of_ours(bench: Bench, kind: int, moved: bool) -> None:
    """The values are those of a filter that is not of direct action: 0 is no match."""
    arriving = Bench(bench.loaded, hook="divert", meta=bench.meta)
    for sockets in (0, 7):
        arriving.set_meta(sockets=sockets)
        packet = ethernet(0x0800, ipv4(), (kind,)) if kind == 0x8100 else ethernet(kind, ipv4())
        assert arriving.send(packet).value == (0xFFFFFFFF if moved else 0)


@pytest.mark.parametrize("protocol", [1, 6, 17])
@pytest.mark.parametrize("family", [4, 6])
def test_a_packet_without_a_socket_gets_no_mark(bench: Bench, family: int, protocol: int) -> None:
    arriving = Bench(bench.loaded, hook="divert", meta=bench.meta)
    arriving.set_meta(sockets=7, carrier=bench.constant("CARRIER_MARK"), mark_mask=MASK, mark_shift=SHIFT)
    packet = ethernet(0x0800, ipv4(protocol=protocol)) if family == 4 else ethernet(0x86DD, ipv6(100, HERE, THERE))
    sent = arriving.send(packet, mark=0x1234)
    assert (sent.value, sent.mark) == (0xFFFFFFFF, 0x1234)


def test_learning_lets_every_packet_go_on(bench: Bench) -> None:
    leaving = Bench(bench.loaded, hook="learn", meta=bench.meta)
    for sockets in (0, 7):
        leaving.set_meta(sockets=sockets)
        assert not leaving.send().dropped


def test_no_parser_reads_behind_a_short_packet(bench: Bench) -> None:
    bench.set_order("prefix")
    bench.set_pool(accounting="payload")
    for frame in (
        ethernet(0x0800, b"\x4f" + b"\6" * 19),
        ethernet(0x86DD, b"\6" * 40),
        ethernet(0x0800, b"E", (0x8100,)),
    ):
        sent = bench.send(frame)
        assert (sent.dropped, sent.tstamp) == (False, 0)


def test_stamp_is_set_and_taken_off_again_without_touching_other_bits(bench: Bench) -> None:
    bench.set_meta(carrier=bench.constant("CARRIER_MARK"), mark_mask=MASK, mark_shift=SHIFT)
    bench.set_member("device", struct.pack("<I", 1), egress=101)
    bench.set_class(101, limit=12_500_000)
    bench.set_order("stamp")
    at_the_pod = Bench(bench.loaded, hook="stamp", meta=bench.meta)
    stamped = at_the_pod.send(mark=0xF123_4567)
    assert stamped.mark == 0xF123_4567 & ~MASK | 101 << SHIFT
    sent = bench.send(mark=stamped.mark, ingress_ifindex=5)
    assert (sent.mark, sent.tstamp) == (0xF123_4567 & ~MASK, START + 1514 * 80)
    assert seen(bench, 101) == [1]


def test_a_stamp_that_the_pod_itself_set_is_replaced(bench: Bench) -> None:
    bench.set_meta(carrier=bench.constant("CARRIER_MARK"), mark_mask=MASK, mark_shift=SHIFT)
    at_the_pod = Bench(bench.loaded, hook="stamp", meta=bench.meta)
    assert at_the_pod.send(mark=101 << SHIFT | 1).mark == 1


def test_a_stamp_by_prefix_where_no_device_is_known(bench: Bench) -> None:
    bench.set_meta(carrier=bench.constant("CARRIER_MARK"), mark_mask=MASK, mark_shift=SHIFT)
    bench.set_member("prefix4", prefix4("10.0.0.0/8"), egress=104)
    at_the_pod = Bench(bench.loaded, hook="stamp", meta=bench.meta)
    assert at_the_pod.send().mark == 104 << SHIFT
