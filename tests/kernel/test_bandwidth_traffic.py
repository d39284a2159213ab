"""Real traffic through shaped devices: who is recognised, what passes, and that senders cannot talk their way out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bounds
import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import values
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
from tools.bandwidth.host import Host
from tools.bandwidth.namespaces import Pair
from tools.bandwidth.traffic import Received, Transfer

pytestmark = pytest.mark.measures

MBIT = 1_000_000
# 1448 bytes of payload in a frame of 1514.
GOODPUT = 1448 / 1514
POOL = {"name": "link", "total": "1Gbit/s", "waterline": "200Mbit/s", "low": "20Mbit/s", "high": "80Mbit/s"}
LIMIT = 40 * MBIT


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with Pair("traffic", ipv6=Path("/proc/net/if_inet6").exists()) as pair:
        made = Host(pair, tmp_path)
        yield made
        made.clear()


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of this test's own, with one in it."""
    mounts = [item.mount for item in cgroup.detect().hierarchies if item.version == 2]
    if not mounts:
        pytest.skip("needs cgroup2 mounted")
    made = Path(mounts[0], f"colocation-testbed-test-{os.getpid()}-traffic")
    (made / "inside").mkdir(parents=True)
    yield made
    for place in (made / "inside", made):
        place.rmdir()


def member(group: Path) -> Callable[[], None]:
    """Return what a child process does before it becomes the sender."""

    def join() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))

    return join


def pool(direction: str = "egress", **more: Any) -> dict[str, Any]:
    return {**POOL, "direction": direction, **more}


def send(host: Host, port: int, **options: Any) -> Received:
    return Transfer(host.pair, port, 3, **options).wait()


def assert_limited(received: Received) -> None:
    rate = received.rate(0.5, 2.75)
    assert bounds.kept(rate, LIMIT * GOODPUT), rate


@pytest.mark.parametrize("below", ["", "inside"])
@pytest.mark.parametrize(("tos", "priority"), [(0, 0), (0x10, 0), (0, 6)])
def test_a_control_groups_limit_holds_for_all_in_it_and_nobody_else(
    host: Host, group: Path, below: str, tos: int, priority: int
) -> None:
    limited = {"name": "batch", "pool": "link", "limit": "40Mbit/s", "cgroups": [group.name]}
    host.apply((pool(),), (limited,), (("left", "link", "htb"),))
    assert_limited(send(host, 5101, tos=tos, priority=priority, in_child=member(group / below)))
    if not below and not tos and not priority:
        assert send(host, 5102).rate(0.5, 2.75) > 3 * LIMIT
    counted = host.figures()["classes"]["batch"]
    assert counted["packets"] > 100


def test_a_pod_in_the_hosts_network_is_found_by_its_uid(host: Host, group: Path) -> None:
    uid = "0f5a1b2c-3d4e-5f60-7182-93a4b5c6d7e8"
    limited = {"name": "pod", "pool": "link", "limit": "40Mbit/s", "pods": [uid]}
    host.apply((pool(),), (), (("left", "link", "htb"),))
    with pytest.raises(values.BandwidthError, match=f"classid of pod {uid} does not exist; correct it, or make it f"):
        host.apply(classes=(limited,))
    place = group / "kubepods.slice" / f"kubepods-pod{uid.replace('-', '_')}.slice" / "container"
    place.mkdir(parents=True)
    try:
        host.apply(classes=(limited,))
        assert_limited(send(host, 5112, in_child=member(place)))
    finally:
        for directory in (place, place.parent, place.parent.parent):
            directory.rmdir()
    assert "is gone; it is left out" in host.apply().warnings[0]


@pytest.mark.parametrize("address", ["10.99.0.2", "fd99::2"])
@pytest.mark.parametrize("direction", ["egress", "ingress"])
def test_addresses_of_both_families_and_directions(host: Host, address: str, direction: str) -> None:
    own = {"egress": ["10.99.0.1/32", "fd99::1/128"], "ingress": ["10.99.0.2/32", "fd99::2/128"]}[direction]
    limited = {"name": "pod", "pool": "link", "limit": "40Mbit/s", "prefixes": own}
    host.apply((pool(direction),), (limited,), (("left", "link", "htb"),))
    # The other family's header is longer by less than the tolerance.
    assert_limited(send(host, 5103, to=address))


def test_the_smallest_prefix_counts(host: Host) -> None:
    wide = {"name": "wide", "pool": "link", "limit": "200Mbit/s", "prefixes": ["10.0.0.0/8"]}
    narrow = {"name": "narrow", "pool": "link", "limit": "40Mbit/s", "prefixes": ["10.99.0.0/24"]}
    host.apply((pool(),), (wide, narrow), (("left", "link", "htb"),))
    assert_limited(send(host, 5111))
    assert host.figures()["classes"]["wide"]["packets"] == 0


def test_a_tagged_packet_is_the_same_packet(host: Host) -> None:
    made = host.pair.run(
        ["ip", "link", "add", "link", "left", "name", "left.7", "type", "vlan", "id", "7"], check=False
    )
    if made.status:
        pytest.skip("this kernel has no VLAN devices; tags are tested in test_bpf_classify.py")
    limited = {"name": "pod", "pool": "link", "limit": "40Mbit/s", "prefixes": ["10.98.0.1/32"]}
    host.apply((pool(),), (limited,), (("left", "link", "htb"),))
    for space, device, number in ((host.pair.here, "left", 1), (host.pair.there, "right", 2)):
        if number == 2:
            host.pair.run(
                ["ip", "-n", space, "link", "add", "link", device, "name", f"{device}.7", "type", "vlan", "id", "7"]
            )
        host.pair.run(["ip", "-n", space, "link", "set", f"{device}.7", "up"])
        host.pair.run(["ip", "-n", space, "addr", "add", f"10.98.0.{number}/24", "dev", f"{device}.7"])
    assert_limited(send(host, 5104, to="10.98.0.2"))


def test_the_policer_keeps_below_its_limit(host: Host) -> None:
    limited = {"name": "pod", "pool": "link", "limit": "40Mbit/s", "burst": "20ms", "prefixes": ["10.99.0.1/32"]}
    host.apply((pool(),), (limited,), (("left", "link", "police"),))
    rate = send(host, 5105).rate(0.5, 2.75)
    # TCP backs off when packets are dropped, so only the upper end is exact.
    assert 0 < rate <= LIMIT * 1.01
    assert host.figures()["classes"]["pod"]["dropped"] > 0


def test_the_waterline_switches_once_each_way(host: Host) -> None:
    offline = {"name": "batch", "pool": "link", "role": "offline", "prefixes": ["10.99.0.1/32"]}
    host.apply((pool(),), (offline,), (("left", "link", "htb"),))
    batch = Transfer(host.pair, 5106, 6)
    # The other family is nobody's: it counts as online.
    service = Transfer(host.pair, 5107, 2, to="fd99::2", wait_s=2)
    online, slow = service.wait(), batch.wait()
    start = online.begin_s - slow.begin_s
    before, throttled = slow.rate(0.5, start - 0.1), slow.rate(start + 0.3, start + 1.8)
    assert 1.5 * 20 * MBIT < before < 1.06 * 80 * MBIT * GOODPUT
    assert throttled < 1.1 * 20 * MBIT * GOODPUT
    figures = host.figures()["pools"]["link"]
    assert [event["to"] for event in figures["events"]] == ["low", "high"]
    # From the connection, whose first packets are few, to the decision; how soon is what the benchmark tells.
    assert figures["events"][0]["time_ns"] / 1e9 - online.begin_s < 1


class Pod:
    """A namespace that reaches ``there`` and other pods through ``here``, by routing or over a bridge."""

    def __init__(self, pair: Pair, bridged: bool = False, device: str = "pod", subnet: str = "10.97.0") -> None:
        self.name, self.pair, self.bridged = f"{pair.here}-{device}", pair, bridged
        self.device, self.subnet = device, subnet

    def __enter__(self) -> Pair:
        pair, subnet = self.pair, self.subnet
        commands.run(["ip", "netns", "add", self.name])
        pair.run(["ip", "link", "add", self.device, "type", "veth", "peer", "eth0", "netns", self.name])
        pair.run(["ip", "link", "set", self.device, "up"])
        pair.run(["sysctl", "-qw", "net.ipv4.ip_forward=1"])
        if self.bridged:
            pair.run(["ip", "link", "add", "bridge", "type", "bridge"])
            pair.run(["ip", "link", "set", self.device, "master", "bridge"])
            pair.run(["ip", "link", "set", "bridge", "up"])
        pair.run(["ip", "addr", "add", f"{subnet}.1/24", "dev", "bridge" if self.bridged else self.device])
        for line in ("link set eth0 up", f"addr add {subnet}.2/24 dev eth0", f"route add default via {subnet}.1"):
            commands.run(["ip", "-n", self.name, *line.split()])
        commands.run(["ip", "-n", pair.there, "route", "add", f"{subnet}.0/24", "via", "10.99.0.1"])
        return pair.between(self.name, pair.there)

    def __exit__(self, *_: object) -> None:
        commands.run(["ip", "netns", "delete", self.name])


def test_pods_behind_a_router_are_known_by_their_links(host: Host) -> None:
    """Their packets have neither socket nor control group any more where they leave the host."""
    with Pod(host.pair) as inside:
        limited = {"name": "pod", "pool": "link", "limit": "40Mbit/s", "devices": ["pod"]}
        host.apply((pool(),), (limited,), (("left", "link", "htb"),))
        assert_limited(Transfer(inside, 5108, 3).wait())


def test_pods_behind_a_bridge_are_known_by_their_marks(host: Host) -> None:
    with Pod(host.pair, bridged=True) as inside:
        limited = {"name": "pod", "pool": "link", "limit": "40Mbit/s", "devices": ["pod"]}
        host.apply((pool(),), (limited,), (("left", "link", "htb"),))
        assert Transfer(inside, 5109, 1).wait().rate(0.25, 0.75) > 2 * LIMIT
        host.apply(shaped=(("left", "link", "htb"), ("pod/pod", "link", "auto")))
        assert_limited(Transfer(inside, 5110, 3).wait())
        assert host.figures()["classes"]["pod"]["packets"] > 100


@pytest.mark.parametrize("side", ["sender", "receiver"])
def test_pods_of_one_host_are_limited_towards_each_other(host: Host, side: str) -> None:
    """Their packets never reach the host's own device, so they are held back at the links of the pods."""
    with (
        Pod(host.pair, device="poda", subnet="10.97.0") as sender,
        Pod(host.pair, device="podb", subnet="10.96.0") as receiver,
    ):
        name = "poda" if side == "sender" else "podb"
        limited = {"name": "pod", "pool": "link", "limit": "40Mbit/s", "devices": [name]}
        # What a pod sends arrives at the host's end of its link; what it receives leaves there.
        shaped = (("poda/ingress", "link", "auto"),) if side == "sender" else (("podb", "link", "htb"),)
        host.apply((pool("egress" if side == "sender" else "ingress"),), (limited,), shaped)
        (device,) = host.apply().after["devices"].values()
        assert device["chosen"] in ("edt", "htb")
        both = host.pair.between(sender.here, receiver.here)
        assert_limited(Transfer(both, 5113, 3, to="10.96.0.2").wait())
        assert host.figures()["classes"]["pod"]["packets"] > 100


def test_two_hooks_of_a_device_share_what_was_made(host: Host) -> None:
    before = host.picture()[:4]
    both = (("left", "link", "police"), ("left/pod", "link", "auto"))
    limited = {"name": "pod", "pool": "link", "limit": "40Mbit/s", "devices": ["left"]}
    host.apply((pool(),), (limited,), both)
    assert not host.apply((pool(),), (limited,), both).changed
    host.apply(shaped=both[1:])
    assert not host.apply(shaped=both[1:]).changed
    assert "clsact" in host.picture()[0]
    host.apply(shaped=())
    assert host.picture()[:3] == before[:3]
