"""From hosts to namespaces and cables; what cannot be made is refused before anything is touched."""

from __future__ import annotations

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.lab import topology
from ansible_collections.colocation.testbed.plugins.module_utils.lab.topology import Cable, Endpoint, Host, Names

NAMES = Names("colocation-", "ct")
A, B, C = Host("a", "198.18.0.1"), Host("b", "198.18.0.2"), Host("c", "198.18.0.3")


def build(*hosts, subnet="198.18.0.0/24", names=NAMES, mtu_bytes=1500):
    return topology.build(hosts, subnet, names, mtu_bytes)


def test_two_hosts_are_joined_directly():
    lab = build(A, B)
    near, far = Endpoint("colocation-a", "ct0"), Endpoint("colocation-b", "ct0")
    assert lab.namespaces == ("colocation-a", "colocation-b")
    assert lab.cables == (Cable(near, far),)
    assert lab.bridge is None
    assert lab.addresses == ((near, "198.18.0.1/24"), (far, "198.18.0.2/24"))


def test_more_hosts_hang_on_a_bridge_of_its_own():
    lab = build(A, B, C)
    assert lab.namespaces[-1] == "colocation-switch"
    assert lab.bridge == Endpoint("colocation-switch", "ct-br")
    assert [cable.far for cable in lab.cables] == [Endpoint("colocation-switch", f"ct{n}") for n in (1, 2, 3)]


def test_a_lone_host_keeps_its_address():
    lab = build(A)
    assert lab.cables == ()
    assert lab.addresses == ((Endpoint("colocation-a", "lo"), "198.18.0.1/32"),)


def test_guests_have_taps_and_the_machine_an_address_that_is_free():
    lab = topology.build_for_guests([A, Host("b", "198.18.0.254")], "198.18.0.0/24", NAMES, 1500)
    assert lab.namespaces == ("colocation-switch",)
    assert lab.taps == (Endpoint("colocation-switch", "ct1"), Endpoint("colocation-switch", "ct2"))
    assert lab.addresses == ((Endpoint("colocation-switch", "ct-br"), "198.18.0.253/24"),)


def test_a_subnet_without_an_address_for_the_machine_is_refused():
    with pytest.raises(topology.TopologyError, match="the machine needs one to reach them; give a larger subnet"):
        topology.build_for_guests([A, B], "198.18.0.0/30", NAMES, 1500)


def test_cpus_that_two_hosts_share_are_refused():
    with pytest.raises(topology.TopologyError, match="lab hosts a and b share CPU 0"):
        topology.check_cpus({"a": "0", "b": "0"})
    topology.check_cpus({"a": "0", "b": ""})


@pytest.mark.parametrize(
    ("hosts", "options", "message"),
    [
        ((), {}, "lab_hosts is empty"),
        ((A, A), {}, "lab host 'a' is named twice"),
        ((A, Host("b", "198.18.0.1")), {}, "lab hosts a and b have the same address 198.18.0.1"),
        ((Host("a/b", "198.18.0.1"),), {}, "lab host 'a/b': a name must match"),
        ((Host("switch", "198.18.0.1"),), {}, "lab host 'switch': this name is kept"),
        (
            (Host("a", "198.18.1.1"),),
            {},
            "is not a host address of lab_subnet .*; choose one from 198.18.0.1",
        ),
        ((Host("a", "198.18.0.255"),), {}, "is not a host address"),
        ((Host("a", "198.18.0.0"),), {}, "is not a host address"),
        ((Host("a", "node1"),), {}, "lab host a: address 'node1' is not an IPv4 address; set ansible_host"),
        ((Host("a", "fe80::1"),), {}, "is not an IPv4 address"),
        ((A,), {"subnet": "198.18.0.1/24"}, "lab_subnet '198.18.0.1/24': .* has host bits set"),
        ((A,), {"subnet": "198.18.0.0/31"}, "lab_subnet 198.18.0.0/31: has no room"),
        ((A,), {"names": Names("", "ct")}, "lab_namespace_prefix ''"),
        ((A,), {"names": Names("../", "ct")}, "lab_namespace_prefix"),
        ((A,), {"names": Names("c-", "0123456789ab")}, "lab_link_prefix .* shorten it"),
        ((A,), {"mtu_bytes": 100}, "lab_mtu_bytes 100: an interface takes 576 to 65535"),
    ],
)
def test_refuses_with_a_sentence(hosts, options, message):
    with pytest.raises(topology.TopologyError, match=message):
        build(*hosts, **options)


def test_interface_names_fit_the_kernel():
    names = Names("colocation-", "c" * 11)
    many = [Host(f"h{n}", f"198.18.{n // 250}.{n % 250 + 1}") for n in range(999)]
    lab = topology.build(many, "198.18.0.0/16", names, 1500)
    longest = max(len(end.name) for cable in lab.cables for end in (cable.near, cable.far))
    assert max(longest, len(lab.bridge.name)) <= 15


@pytest.mark.parametrize(
    ("rate", "buffer_kib", "sentence"),
    [
        ("1000", 512, "lab_link_rate: '1000': has no unit that says bits or bytes"),
        ("1Gbps", 512, "lab_link_rate: '1Gbps': has no unit"),
        ("1kbit/s", 512, "lab_link_rate 1kbit/s: a link has 1Mbit/s to 32Gbit/s"),
        ("100Gbit/s", 512, "lab_link_rate 100Gbit/s: a link has"),
        ("1Gbit/s", 64, "lab_link_buffer_kib 64: a port holds 128 to 1048576 KiB"),
    ],
)
def test_links_that_cannot_be_are_refused(rate, buffer_kib, sentence):
    with pytest.raises(topology.TopologyError, match=sentence):
        topology.port_queue(rate, buffer_kib)


def test_no_rate_is_no_queue():
    assert topology.port_queue("", 512) is None
    found = topology.port_queue("1Gbit/s", 512)
    assert (found.rate_bytes_s, found.buffer_bytes) == (125_000_000, 512 * 1024)
