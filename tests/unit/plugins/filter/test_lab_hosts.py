"""Inventory hosts become the lab's hosts."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.colocation.testbed.plugins.filter.lab_hosts import FilterModule, lab_hosts

HOSTVARS = {
    "a": {"ansible_host": "198.18.0.1", "node_cpus": 0},
    "b": {"ansible_host": "198.18.0.2"},
    "c": {},
}


def test_reads_address_and_cpus():
    assert FilterModule().filters()["lab_hosts"](["b", "a"], HOSTVARS) == [
        {"name": "b", "address": "198.18.0.2", "cpus": ""},
        {"name": "a", "address": "198.18.0.1", "cpus": "0"},
    ]


@pytest.mark.parametrize(("variables", "cpus"), [({"lab_cpus": 0, "node_cpus": "1"}, "0"), ({"lab_cpus": ""}, "")])
def test_cpus_that_carry_a_guest_may_differ_from_those_that_it_sees(variables, cpus):
    assert lab_hosts(["a"], {"a": {"ansible_host": "198.18.0.1", **variables}})[0]["cpus"] == cpus


def test_a_host_without_an_address_is_named():
    with pytest.raises(AnsibleFilterError, match="lab host c has no address: give it ansible_host"):
        lab_hosts(["c"], HOSTVARS)
