"""Datagrams: sent when they are due and never more, counted once, each sender answered once, of both families."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import net_drops
from ansible_collections.colocation.testbed.plugins.module_utils.node import addresses, count_received, datagrams
from ansible_collections.colocation.testbed.plugins.module_utils.node.datagrams import Pacer, Taker, Tally
from ansible_collections.colocation.testbed.plugins.module_utils.node.send_spec import Flow

MESSAGE_BYTES = 1000


class Outlet:
    """A socket that takes so many datagrams, or refuses."""

    def __init__(self, room: int = 10**6, refuses: bool = False) -> None:
        self.room, self.refuses, self.sent = room, refuses, 0

    def send(self, message: bytes) -> int:
        if self.refuses:
            raise ConnectionRefusedError
        if self.sent >= self.room:
            raise BlockingIOError
        self.sent += 1
        return len(message)


def pacer(outlets: list[Any], rate_bps: int | None) -> Pacer:
    return Pacer(Flow("a", "192.0.2.1", 9, message_bytes=MESSAGE_BYTES, rate_bps=rate_bps), outlets)


def test_as_many_leave_as_are_due_over_all_sockets_in_turn() -> None:
    outlets = [Outlet(), Outlet()]
    made = pacer(outlets, rate_bps=8_000_000)  # 1,000 a second
    made.switch(True, 10.0)
    for step in range(1, 1001):
        made.turn(10.0 + step / 1000)
    assert made.sent_bytes == pytest.approx(1000 * MESSAGE_BYTES, abs=MESSAGE_BYTES)
    assert abs(outlets[0].sent - outlets[1].sent) <= 1


def test_nothing_leaves_before_the_beginning_and_in_pauses() -> None:
    made = pacer([Outlet()], rate_bps=8_000_000)
    made.turn(5.0)
    made.switch(True, 10.0)
    made.turn(10.010)
    made.switch(False, 10.010)
    made.turn(11.0)
    assert made.sent_bytes == pytest.approx(10 * MESSAGE_BYTES, abs=MESSAGE_BYTES)


def test_a_long_stall_is_not_made_up_for() -> None:
    made = pacer([Outlet()], rate_bps=8_000_000)
    made.switch(True, 0.0)
    made.turn(100.0)
    assert made.sent_bytes == pytest.approx(20 * MESSAGE_BYTES, abs=MESSAGE_BYTES)


def test_what_one_socket_does_not_take_leaves_by_another_or_later() -> None:
    full, free = Outlet(room=0), Outlet(room=3)
    made = pacer([full, free], rate_bps=8_000_000)
    made.switch(True, 0.0)
    made.turn(0.010)
    assert free.sent == 3
    full.room = 100
    made.turn(0.010)
    assert made.sent_bytes == 10 * MESSAGE_BYTES


def test_without_a_rate_all_that_is_taken_leaves_and_a_refusal_ends_nothing() -> None:
    made = pacer([Outlet(room=5), Outlet(refuses=True)], rate_bps=None)
    made.switch(True, 0.0)
    made.turn(0.001)
    assert made.sent_bytes == 5 * MESSAGE_BYTES


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_what_is_taken_is_counted_and_each_sender_answered_once(tmp_path: Path, address: str) -> None:
    if address == "::1" and not Path("/proc/net/if_inet6").exists():
        pytest.skip("this kernel has no IPv6")
    path = str(tmp_path / "tally")
    with datagrams.bound(*addresses.place(address, 0)) as taking:
        port = taking.getsockname()[1]
        tally = Tally(path, [port, port + 1], make=True)
        reading = Tally(path, [port, port + 1], make=False)
        taker = Taker(port, tally)
        senders = [socket.socket(addresses.family(address), socket.SOCK_DGRAM) for _number in range(2)]
        for sender in senders:
            sender.settimeout(5.0)
            sender.connect(addresses.place(address, port)[1])
            for length in (100, 23):
                sender.send(bytes(length))
        taker.take(taking)
        taker.take(taking)
        assert reading.read() == {port: (246, 2), port + 1: (0, 0)}
        for sender in senders:
            assert sender.recv(10) == b"\0"
            sender.setblocking(False)
            with pytest.raises(BlockingIOError):
                sender.recv(10)
            sender.close()


def test_an_address_of_the_link_may_name_its_device() -> None:
    assert addresses.family("fe80::1%lo") == socket.AF_INET6
    assert addresses.place("fe80::1%lo", 7)[1] == ("fe80::1", 7, 0, 1) or not Path("/proc/net/if_inet6").exists()


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"family": "ipx"}, "family is 'ipx'; give one of ipv4, ipv6"),
        ({"datagram_ports": {"a": [7]}, "tally_ports": [8]}, "port 7 is not in tally_ports; name those of receive"),
    ],
)
def test_a_count_that_cannot_be_is_one_sentence(more: dict[str, Any], sentence: str) -> None:
    raw = {"output": "x", "interval_s": 1, "ports": {}, "max_duration_s": 1}
    with pytest.raises(count_received.CountError, match=sentence):
        count_received.parse_spec({**raw, **more})


def test_datagrams_without_room_are_counted_of_both_families() -> None:
    older = "Ip: Forwarding\nIp: 1\nUdp: InDatagrams NoPorts InErrors RcvbufErrors\nUdp: 5 0 7 7\nUdpLite: 1\n"
    assert net_drops.parse_datagrams(older) == 7
    assert net_drops.parse_datagrams("Ip: Forwarding\nIp: 1\n") == 0
    assert net_drops.parse_datagrams6("Ip6InReceives   \t3\nUdp6RcvbufErrors                \t4\n") == 4
    assert net_drops.read_datagrams() >= 0
