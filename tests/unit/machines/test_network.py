# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Routes and devices of other machines, as iproute2 5.9, 6.1, 6.15 and 7.3 print them alike (tried on Linux 6.1)."""

from __future__ import annotations

import struct

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import devices
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.values import BandwidthError
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import links
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.links import Link

SHARED = (
    '[{"dst":"default","flags":[],"nexthops":[{"gateway":"192.0.2.1","dev":"eth0.100","weight":1,"flags":[]},'
    '{"gateway":"198.51.100.1","dev":"bond0","weight":1,"flags":[]}]}]'
)
UNREACHABLE = '[{"type":"unreachable","dst":"default","dev":"lo","metric":500,"flags":[],"pref":"medium"}]'
TWO = (
    '[{"dst":"default","gateway":"192.0.2.1","dev":"eth0","protocol":"dhcp","metric":100,"flags":[]},'
    '{"dst":"default","gateway":"192.0.2.1","dev":"wlan0","protocol":"dhcp","metric":600,"flags":[]}]'
)


def answering(four: str, six: str = "[]"):
    def run(argv, **_options):
        return commands.Result(tuple(argv), 0, four if "-4" in argv else six, "")

    return run


@pytest.mark.parametrize(
    ("four", "six", "found"),
    [
        (SHARED, "[]", ["eth0.100", "bond0"]),
        (TWO, UNREACHABLE, ["eth0", "wlan0"]),
        ("[]", SHARED, ["eth0.100", "bond0"]),
        ("", TWO, ["eth0", "wlan0"]),
    ],
)
def test_all_devices_that_a_default_route_uses(four, six, found):
    assert devices.default_route(answering(four, six)) == found


def test_a_default_route_to_nowhere_is_none():
    with pytest.raises(BandwidthError, match="there is no default route"):
        devices.default_route(answering("[]", UNREACHABLE))


@pytest.mark.parametrize("text", ["default via 192.0.2.1 dev eth0\n", '{"dst": "default"}', "[1]"])
def test_an_answer_that_is_not_understood_is_a_sentence(text):
    with pytest.raises(BandwidthError, match="ip -j route show: unexpected output"):
        devices.default_route(answering(text))


def test_a_name_with_the_signs_of_a_pattern_means_that_device():
    there = ["lan[1]", "lan1", "lo"]
    assert devices.expand("lan[1]", there) == ["lan[1]"]
    assert devices.expand("lan[12]", there) == ["lan1"]


def veth(name: str, index: int, master: int | None = None) -> Link:
    return Link(name, index, "veth", master)


LO = Link("lo", 1, loopback=True)


# ip -d link on a host with two bonded cards and a VLAN, with docker, with Calico; in a container on macvlan; on Azure,
# where the card of the virtual function is a port of the one that the hypervisor emulates.
@pytest.mark.parametrize(
    ("found", "names"),
    [
        (
            [Link("eno1", 2, "", 4), Link("eno2", 3, "", 4), Link("bond0", 4, "bond"), Link("b.7", 5, "vlan", None, 4)],
            {"eno1", "eno2"},
        ),
        ([Link("eth0", 2), Link("docker0", 3, "bridge"), veth("veth1", 9, 3), veth("cali2", 10)], {"eth0"}),
        ([Link("eth0", 2, "", 3), Link("br0", 3, "bridge"), Link("vnet1", 4, "tun", 3)], {"eth0"}),
        ([Link("eth0", 7, "macvlan")], {"eth0"}),
        ([veth("eth0", 7), Link("net1", 8, "vlan", None, 7), Link("ctbwifb0", 9, "ifb")], {"eth0"}),
        ([Link("eth0", 2), Link("enP1s1", 3, "", 2)], {"enP1s1"}),
    ],
)
def test_each_packet_is_counted_once(found, names):
    assert links.outermost([LO, *found]) == names


def test_devices_are_asked_for_again_when_they_change_only():
    asked = []

    def read() -> list[Link]:
        asked.append(1)
        return [LO, Link("eth0", 2)]

    kept = links.Outermost(read)
    assert [kept.among(["lo", "eth0"]), kept.among(["eth0", "lo"])] == [{"eth0"}, {"eth0"}]
    assert len(asked) == 1
    assert kept.among(["lo", "eth0", "veth1"]) == {"eth0"}
    assert len(asked) == 2


def test_without_an_answer_all_devices_count():
    def read() -> list[Link]:
        raise links.LinksError("no")

    assert links.Outermost(read).among(["lo", "eth0", "eth1"]) == {"eth0", "eth1"}
    with pytest.raises(links.LinksError, match="error 1"):
        links.take(struct.pack("=IHHIIi", 20, 2, 0, 1, 0, -1), [])


def test_this_machine_is_read():
    assert [(link.name, link.index, link.kind) for link in links.read() if link.loopback] == [("lo", 1, "")]
