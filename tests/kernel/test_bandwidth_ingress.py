"""What arrives is held back at a device of ours: by class, as a waiting line and not by dropping, and undone again."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands, undo
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import instance, reconcile, values
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import shaping_abilities
from tests.kernel.test_bandwidth_traffic import LIMIT, Pod, assert_limited, group, host, member, pool
from tools.bandwidth.host import Host
from tools.bandwidth.namespaces import Pair
from tools.bandwidth.traffic import NS, Received, Transfer

pytestmark = pytest.mark.measures

__all__ = ["group", "host"]
INGRESS = (("left/ingress", "link", "auto"),)
POD = {"name": "pod", "pool": "link", "limit": "40Mbit/s", "prefixes": ["10.99.0.1/32", "fd99::1/128"]}


def receive(host: Host, port: int, **options: Any) -> Received:
    return Transfer(host.pair.reversed(), port, 3, **{"to": "10.99.0.1", **options}).wait()


def links(host: Host) -> list[str]:
    return [name for name in host.pair.indexes() if name.startswith("ctb")]


@pytest.fixture
def diverting(host: Host) -> Host:
    if not shaping_abilities.Abilities(host.pair.run).diverts:
        pytest.skip("this kernel has no ifb or act_mirred")
    return host


def test_undone_to_an_equal_host(diverting: Host) -> None:
    host = diverting
    Path(host.place.state_dir).mkdir()
    before = host.picture(), host.pair.indexes()
    predicted = host.apply((pool("ingress"),), (POD,), INGRESS, check=True)
    assert (host.picture(), host.pair.indexes()) == before
    done = host.apply((pool("ingress"),), (POD,), INGRESS)
    name = f"ctb{host.pair.indexes()['left']}"
    assert links(host) == [name]
    assert (done.lines, done.after) == (predicted.lines, predicted.after)
    assert done.after["devices"]["left/ingress"]["intermediate"] == name
    again = host.apply((pool("ingress"),), (POD,), INGRESS)
    assert (again.changed, again.lines) == (False, ())
    assert not host.apply((pool("ingress"),), (POD,)).changed
    handlers = {**undo.Undo().handlers(), "bandwidth": lambda entry, check: reconcile.undo(entry, check, host.host)}
    assert all(item.outcome.result == "undone" for item in host.book.undo(handlers))
    assert (host.picture(), host.pair.indexes()) == before


@pytest.mark.parametrize("address", ["10.99.0.1", "fd99::1"])
def test_what_arrives_waits_and_is_not_dropped(diverting: Host, address: str) -> None:
    diverting.apply((pool("ingress"),), (POD,), INGRESS)
    assert_limited(receive(diverting, 5201, to=address))
    counted = diverting.figures()["classes"]["pod"]
    assert counted["packets"] > 100
    assert counted["dropped"] == 0


def test_a_class_by_the_device_that_packets_arrive_at(diverting: Host) -> None:
    limited = {"name": "all", "pool": "link", "limit": "40Mbit/s", "devices": ["left"]}
    diverting.apply((pool("ingress"),), (limited,), INGRESS)
    assert_limited(receive(diverting, 5202))


@pytest.mark.parametrize("below", ["", "inside"])
def test_a_control_group_is_known_by_its_sockets(diverting: Host, group: Path, below: str) -> None:
    limited = {"name": "batch", "pool": "link", "limit": "40Mbit/s", "cgroups": [group.name]}
    done = diverting.apply((pool("ingress"),), (limited,), INGRESS)
    assert not done.warnings
    assert_limited(receive(diverting, 5203, in_receiver=member(group / below)))
    if not below:
        assert receive(diverting, 5204).rate(0.5, 2.75) > 3 * LIMIT


# Two programs: one that answers nothing and is only known once it has sent something, and one that sends datagrams.
_SERVER = """
import socket, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("0.0.0.0", int(sys.argv[1])))
for to in sys.argv[2:]:
    server.sendto(b"hello", (to, 9))
print("ready", flush=True)
server.recv(10)
while server.recv(2000) != b"end":
    pass
print("ended", flush=True)
"""
_CLIENT = """
import socket, sys
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(50):
    client.sendto(b"x" * 500, (sys.argv[1], int(sys.argv[2])))
client.sendto(b"end", (sys.argv[1], int(sys.argv[2])))
"""


def datagrams(pair: Pair, to: str, port: int, hello: tuple[str, ...], **options: Any) -> None:
    """Send 51 datagrams from ``there`` to a server in ``here``, which has sent one to each address of ``hello``."""
    with pair.start([sys.executable, "-c", _SERVER, str(port), *hello], **options) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            pair.start([sys.executable, "-c", _CLIENT, to, str(port)], pair.there).communicate(timeout=60)
            assert server.stdout.readline() == "ended\n"
        finally:
            server.kill()


def test_datagrams_are_known_by_a_socket_that_has_sent_something(diverting: Host, group: Path) -> None:
    limited = {"name": "batch", "pool": "link", "limit": "40Mbit/s", "cgroups": [group.name]}
    diverting.apply((pool("ingress"),), (limited,), INGRESS)
    counted = []
    for hello in ((), ("10.99.0.2",)):
        datagrams(diverting.pair, "10.99.0.1", 5211, hello, preexec_fn=member(group))
        counted.append(diverting.figures()["classes"]["batch"]["packets"])
    assert counted == [0, 51]


def test_a_socket_for_all_addresses_does_not_claim_what_passes_through(diverting: Host, group: Path) -> None:
    """The host's server and the pod's have the same port; only the pod is sent anything."""
    limited = {"name": "batch", "pool": "link", "limit": "40Mbit/s", "cgroups": [group.name]}
    diverting.apply((pool("ingress"),), (limited,), INGRESS)
    argv = [sys.executable, "-c", _SERVER, "5212", "10.99.0.2"]
    with Pod(diverting.pair) as pod, diverting.pair.start(argv, preexec_fn=member(group)) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            datagrams(pod, "10.97.0.2", 5212, ())
        finally:
            server.kill()
    figures = diverting.figures()
    assert figures["classes"]["batch"]["packets"] == 0
    assert figures["pools"]["link"]["unclassified"]["packets"] >= 51


def test_sockets_learn_what_changes(diverting: Host, group: Path) -> None:
    """A connection that was nobody's becomes the class's, without a new packet of its opening."""
    other = {"name": "other", "pool": "link", "prefixes": ["10.1.0.0/16"]}
    diverting.apply((pool("ingress"),), (other,), INGRESS)
    transfer = Transfer(diverting.pair.reversed(), 5205, 4, to="10.99.0.1", in_receiver=member(group))
    limited = {"name": "batch", "pool": "link", "limit": "40Mbit/s", "cgroups": [group.name]}
    diverting.apply((pool("ingress"),), (other, limited))
    received = transfer.wait()
    later_ns = received.begin_ns + 2 * NS
    assert_limited(Received(later_ns, received.flows))


def test_both_directions_at_once(diverting: Host) -> None:
    out = {"name": "out", "pool": "up", "limit": "40Mbit/s", "prefixes": ["10.99.0.1/32"]}
    both = (*INGRESS, ("left", "up", "auto"))
    diverting.apply((pool("ingress"), {"name": "up", "direction": "egress"}), (POD, out), both)
    assert not diverting.apply(shaped=both).changed
    arriving = Transfer(diverting.pair.reversed(), 5206, 3, to="10.99.0.1")
    leaving = Transfer(diverting.pair, 5207, 3)
    assert_limited(arriving.wait())
    assert_limited(leaving.wait())
    diverting.apply(shaped=both[1:])
    assert links(diverting) == []
    assert not diverting.apply(shaped=both[1:]).changed


def test_from_waiting_to_dropping_and_back(diverting: Host) -> None:
    diverting.apply((pool("ingress"),), (POD,), INGRESS)
    diverting.apply(shaped=(("left/ingress", "link", "police"),))
    assert links(diverting) == []
    rate = receive(diverting, 5208).rate(0.5, 2.75)
    assert 0 < rate <= LIMIT * 1.01
    assert not diverting.apply(shaped=(("left/ingress", "link", "police"),)).changed
    diverting.apply(shaped=(("left/ingress", "link", "htb"),))
    assert_limited(receive(diverting, 5209))


def test_what_somebody_deleted_is_made_again(diverting: Host) -> None:
    diverting.apply((pool("ingress"),), (POD,), INGRESS)
    diverting.pair.run(["ip", "link", "delete", links(diverting)[0]])
    assert diverting.apply((pool("ingress"),), (POD,), INGRESS, check=True).changed
    assert diverting.apply((pool("ingress"),), (POD,), INGRESS).changed
    assert not diverting.apply((pool("ingress"),), (POD,), INGRESS).changed
    assert_limited(receive(diverting, 5210))


def test_a_device_that_comes_back_gets_another_one(diverting: Host) -> None:
    pair = diverting.pair
    pair.run(["ip", "link", "add", "pod", "type", "veth", "peer", "inside"])
    shaped = (("pod/ingress", "link", "auto"),)
    diverting.apply((pool("ingress"),), (POD,), shaped)
    (first,) = links(diverting)
    pair.run(["ip", "link", "delete", "pod"])
    gone = diverting.apply((pool("ingress"),), (POD,))
    assert links(diverting) == []
    assert any("device pod: is gone" in text for text in gone.warnings)
    pair.run(["ip", "link", "add", "pod", "type", "veth", "peer", "inside"])
    diverting.apply(shaped=shaped)
    (second,) = links(diverting)
    assert second != first


def test_a_foreign_device_of_that_name_is_refused_and_kept(diverting: Host) -> None:
    name = f"ctb{diverting.pair.indexes()['left']}"
    diverting.pair.run(["ip", "link", "add", name, "type", "ifb"])
    with pytest.raises(values.BandwidthError, match=f"device {name}: is there already and isn't this instance's"):
        diverting.apply((pool("ingress"),), (POD,), INGRESS)
    assert links(diverting) == [name]


def test_marks_of_two_meanings_are_refused(host: Host) -> None:
    with pytest.raises(values.BandwidthError, match="device left: has hook pod, so what arrives there is a pod's eg"):
        host.apply((pool("ingress"),), (POD,), (("left/pod", "link", "auto"), ("left/ingress", "link", "auto")))


def without(host: Host, *names: str) -> Callable[..., commands.Result]:
    """Return how programs are run on a kernel that lacks some things."""
    real = host.pair.run

    def run(argv: Any, **options: Any) -> commands.Result:
        if argv[0] == "unshare" and any(re.search(name, options.get("input_text", "")) for name in names):
            return commands.Result(tuple(argv), 2, "", "Error: Specified qdisc kind is unknown.\n")
        return real(argv, **options)

    return run


@pytest.mark.parametrize("lacks", ["type ifb", "action mirred"])
def test_without_intermediate_devices_packets_are_dropped(host: Host, lacks: str) -> None:
    host.host = replace(host.host, run=without(host, lacks))
    done = host.apply((pool("ingress"),), (POD,), INGRESS)
    assert done.after["devices"]["left/ingress"]["chosen"] == "police"
    assert links(host) == []
    with pytest.raises(values.BandwidthError, match="plane htb at hook ingress needs an intermediate device"):
        host.apply(shaped=(("left/ingress", "link", "htb"),))
    assert not host.apply().changed


def test_without_clsact_one_sentence_says_so(host: Host) -> None:
    host.host = replace(host.host, run=without(host, "clsact"))
    Path(host.place.state_dir).mkdir()
    before = host.picture()
    with pytest.raises(
        values.BandwidthError, match="device left: the kernel has no clsact, or takes no programs"
    ) as caught:
        host.apply((pool(),), (), (("left", "link", "htb"),))
    assert "\n" not in str(caught.value)
    assert host.picture() == before


def test_without_a_bpf_file_system_one_sentence_says_so(host: Host, tmp_path: Path) -> None:
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "mountinfo").write_text("")
    (tmp_path / "proc" / "filesystems").write_text("nodev\ttmpfs\n\text4\n")
    host.host = replace(host.host, proc_root=str(tmp_path / "proc"))
    Path(host.place.state_dir).mkdir()
    before = host.picture()
    with pytest.raises(values.BandwidthError, match="this kernel has no BPF file system; use one with CONF"):
        host.apply((pool(),))
    assert host.picture() == before
    host.host = replace(host.host, proc_root="/proc")


def test_a_failure_half_way_leaves_no_device(diverting: Host) -> None:
    diverting.apply((pool("ingress"),), (POD,))
    before = diverting.picture(), diverting.pair.indexes()
    real = diverting.pair.run

    def run(argv: Any, **options: Any) -> commands.Result:
        text = options.get("input_text", "")
        if argv[0] == "tc" and "mirred" in text:
            return real(argv, **{**options, "input_text": text + "nonsense\n"})
        return real(argv, **options)

    diverting.host = replace(diverting.host, run=run)
    with pytest.raises(commands.CommandError):
        diverting.apply(shaped=INGRESS)
    diverting.host = replace(diverting.host, run=real)
    assert (diverting.picture(), diverting.pair.indexes()) == before
    assert instance.read_state(diverting.place) is not None


def test_pairs_can_be_turned_round() -> None:
    pair = Pair(f"turned-{os.getpid()}")
    assert (pair.reversed().here, pair.reversed().there) == (pair.there, pair.here)
