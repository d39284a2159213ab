"""The kernel's values after converge, on whatever version of control groups this host has."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cgroup_report, cpu_list

ROOT = "colocation-testbed-molecule-policy"
RESULT = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "result.json"
LIMITS = {"cpu_quota_us": -1, "memory_max_bytes": 64 * 2**20}


@pytest.fixture(scope="module")
def result():
    return json.loads(RESULT.read_text())


def values(name):
    return cgroup_report.values(cgroup.detect(), f"{ROOT}/{name}")


def test_best_effort_has_a_ceiling_and_is_not_idle_as_a_whole():
    found = values("besteffort")
    assert found["cpu_quota_us"] == 60 * 1000 * len(cpu_list.online())
    assert found["cpu_idle"] == 0


@pytest.mark.parametrize("pod", ["besteffort/pod1", "besteffort/pod2"])
def test_pods_of_best_effort_run_when_nothing_else_does(pod):
    found = values(pod)
    assert found["cpu_idle"] == 1
    assert {name: found[name] for name in LIMITS} == LIMITS


def test_containers_have_their_weight():
    found = values("besteffort/pod1/container")
    assert found["memory_max_bytes"] == 64 * 2**20
    assert found.get("cpu_shares", 1536) == 1536
    assert found.get("cpu_weight", 59) == 59


def test_the_burst_is_half_of_the_limit():
    found = values("burstable/pod3")
    assert (found["cpu_quota_us"], found["cpu_burst_us"]) == (200_000, 100_000)


def test_every_key_has_a_state_and_node_entries_are_told_apart(result):
    states = {item["key"]: item["state"] for item in result["states"]}
    assert states["resource-threshold-config.nodeStrategies[0].cpuSuppressThresholdPercent"] == "degraded"
    assert states["resource-qos-config.clusterStrategy.beClass.resctrlQOS.catRangeEndPercent"] in (
        "supported",
        "unsupported",
    )
    assert all(item["reason"] for item in result["states"] if item["state"] != "supported")


def test_caches_and_the_host_are_left_to_their_roles(result):
    (group,) = result["resctrl_groups"]
    assert (group["name"], group["l3_cat_range_end_percent"]) == ("BE", 30)
    assert [item["name"] for item in result["host_settings"]] == ["vm.watermark_scale_factor"]
    assert result["unmatched"] == [f"{ROOT}/guaranteed/pod*"]
