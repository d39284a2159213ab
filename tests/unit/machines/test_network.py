# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Routes and devices of other machines, as iproute2 5.9, 6.1, 6.15 and 7.3 print them alike (tried on Linux 6.1)."""

from __future__ import annotations

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import devices
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.values import BandwidthError

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
