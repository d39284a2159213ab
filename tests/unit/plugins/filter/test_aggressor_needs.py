"""What aggressors need on the hosts, from their definitions."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.colocation.testbed.plugins.filter.aggressor_needs import FilterModule, aggressor_needs

OWN = {
    "description": "spins",
    "resource": "cpu",
    "packages": ["busybox"],
    "argv": ["busybox", "yes"],
    "work": {"kind": "cpu_time", "unit": "CPU seconds"},
}


@pytest.mark.parametrize(
    ("names", "needs"),
    [
        (["ffmpeg"], {"packages": ["ffmpeg"], "peer_packages": [], "clip": True}),
        (["stress_ng_cpu", "stress_ng_disk"], {"packages": ["stress-ng"], "peer_packages": [], "clip": False}),
        (["iperf3", "ffmpeg"], {"packages": ["ffmpeg", "iperf3"], "peer_packages": ["iperf3"], "clip": True}),
        (["own"], {"packages": ["busybox"], "peer_packages": [], "clip": False}),
        ([], {"packages": [], "peer_packages": [], "clip": False}),
    ],
)
def test_needs(names, needs):
    assert FilterModule().filters()["aggressor_needs"](names, {"own": OWN}) == needs


def test_an_unknown_name_is_refused_with_a_sentence():
    with pytest.raises(AnsibleFilterError, match="matrix_aggressors: 'ffmpg' is not a defined aggressor"):
        aggressor_needs(["ffmpg"], {})


def test_a_definition_that_is_wrong_is_refused_with_its_path():
    with pytest.raises(AnsibleFilterError, match=r"matrix_aggressor_definitions.own.resource"):
        aggressor_needs(["own"], {"own": {**OWN, "resource": "gpu"}})
