"""What bwmcli users had set, in this collection's words."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.colocation.testbed.plugins.filter.bwmcli_settings import FilterModule, bwmcli_settings
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import values


def test_a_whole_configuration():
    found = FilterModule().filters()["bwmcli_settings"](
        [
            "bwmcli -e eth0 -e eth1",
            "bwmcli -E veth7",
            "/usr/bin/bwmcli -s bandwidth 30mb,2GB",
            "bwmcli -s waterline 40mb",
            "bwmcli -S waterline 50mb",
            "bwmcli -s /sys/fs/cgroup/batch -1",
            "bwmcli -s /sys/fs/cgroup/other -1",
            "bwmcli -s /sys/fs/cgroup/other 0",
            "bwmcli -A 10.0.0.7",
        ]
    )
    egress = {"name": "egress", "direction": "egress", "accounting": "skb", "low": "30MiB/s", "high": "2GiB/s"}
    ingress = {"name": "ingress", "direction": "ingress", "accounting": "skb", "low": "20MiB/s", "high": "1GiB/s"}
    batch = {"name": "offline-egress", "pool": "egress", "role": "offline", "cgroups": ["/sys/fs/cgroup/batch"]}
    remote = {"name": "offline-ingress", "pool": "ingress", "role": "offline", "prefixes": ["10.0.0.7/32"]}
    assert found == {
        "pools": [{**egress, "waterline": "40MiB/s"}, {**ingress, "waterline": "50MiB/s"}],
        "classes": [batch, remote],
        "devices": [
            {"name": "eth0", "pool": "egress"},
            {"name": "eth1", "pool": "egress"},
            {"name": "veth7", "pool": "ingress"},
        ],
    }
    assert values.pool(found["pools"][0]).low == 30 * 2**20
    assert values.traffic_class(found["classes"][0]).role == "offline"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("bwmcli -p stats", "sets nothing that is known here"),
        ("tc qdisc show", "sets nothing that is known here"),
        ("bwmcli -s bandwidth 20mb", "is not understood"),
        ("bwmcli -s bandwidth 20,1gb", "'20' is not a rate"),
        ("bwmcli -s waterline 020mb", "'020mb' is not a rate"),
        ("bwmcli -s waterline 20Mb", "'20Mb' is not a rate"),
        ("bwmcli -S /sys/fs/cgroup/batch -1", "is not understood"),
        # Of openEuler's manual of oncn-bwm, whose hosts have control groups of version 1.
        ("bwmcli -s /sys/fs/cgroup/net_cls/test_online 0", "is a control group of version 1, by which no class"),
        ("bwmcli -s /sys/fs/cgroup/net_cls,net_prio/a -1", "is a control group of version 1, by which no class"),
        ("bwmcli -d eth0", "sets nothing that is known here"),
        ("bwmcli -s '/sys", "No closing quotation; close the quotation mark"),
    ],
)
def test_what_is_not_understood_is_refused(line, text):
    with pytest.raises(AnsibleFilterError, match=text):
        bwmcli_settings([line])


def test_manuals_print_a_dash_for_the_hyphen():
    found = bwmcli_settings(["bwmcli \N{EN DASH}e eth0", "bwmcli \N{EN DASH}s waterline 20mb"])
    assert found["devices"] == [{"name": "eth0", "pool": "egress"}]
