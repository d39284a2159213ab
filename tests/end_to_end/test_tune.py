"""The playbook tune: a policy and settings on the node itself, twice, and back."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import snapshot
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
from tests.end_to_end.bench_lab import CGROUP_ROOT, NETNS_PREFIX, Lab

GROUP = f"{CGROUP_ROOT}/e2e-tested"
WANTED: dict[str, Any] = {
    "cgroup_policy_policy": {
        "resource-qos-config": {
            "clusterStrategy": {
                "beClass": {
                    "cpuQOS": {"enable": True, "schedIdle": 1},
                    "resctrlQOS": {"enable": True, "catRangeStartPercent": 0, "catRangeEndPercent": 30},
                }
            }
        }
    },
    "cgroup_policy_groups": [{"path": GROUP, "qos": "BE"}],
    "host_tuning_settings": [{"kind": "sysctl", "name": "net.core.somaxconn", "value": 5000}],
}


def idle() -> str:
    """Return cpu.idle of the tested node's group."""
    hierarchy = cgroup.detect().find("cpu")
    assert hierarchy is not None
    return Path(cgroup.join_path(hierarchy.mount, GROUP), "cpu.idle").read_text().strip()


def somaxconn() -> str:
    """Return the sysctl as the tested node's namespace has it."""
    argv = ["nsenter", f"--net=/run/netns/{NETNS_PREFIX}e2e-tested", "cat", "/proc/sys/net/core/somaxconn"]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=20).stdout.strip()


@pytest.fixture(scope="module")
def before(lab: Lab) -> dict[str, dict[str, str]]:
    """Return what the machine looks like without the lab, and make the lab."""
    lab.good("playbooks/provision.yml")
    lab.good("playbooks/reset.yml")
    picture = lab.picture()
    lab.good("playbooks/provision.yml")
    return picture


def test_check_mode_predicts_and_changes_nothing(lab, before):
    provisioned = lab.picture()
    done = lab.good("playbooks/tune.yml", "--check", "--diff", **WANTED)
    assert done.recap("changed") > 0
    assert snapshot.differences(provisioned, lab.picture()) == []


def test_policy_and_settings_are_in_effect_and_a_second_run_changes_nothing(lab, before):
    done = lab.good("playbooks/tune.yml", **WANTED)
    assert (idle(), somaxconn()) == ("1", "5000")
    if "resctrl" not in Path("/proc/filesystems").read_text():
        # What a host lacks is shown, as a table whose lines are whole.
        heads = [line for line in done.output.splitlines() if line.split()[:2] == ["missing", "seen"]]
        assert len(heads) == 1
        assert "what to do" in heads[0]
    assert lab.good("playbooks/tune.yml", **WANTED).recap("changed") == 0


def test_a_policy_with_a_mistake_is_refused_before_anything_changes(lab, before):
    tuned = lab.picture()
    policy = {"resource-qos-config": {"clusterStrategy": {"beClass": {"cpuQOS": {"enable": True, "shedIdle": 1}}}}}
    done = lab.play("playbooks/tune.yml", **{**WANTED, "cgroup_policy_policy": policy})
    assert done.status != 0
    assert "schedIdle" in done.output
    assert snapshot.differences(tuned, lab.picture()) == []


def test_an_emptied_policy_leaves_nothing_of_the_earlier_one(lab, before):
    emptied = {**WANTED, "cgroup_policy_policy": {}}
    assert lab.good("playbooks/tune.yml", **emptied).recap("changed") > 0
    assert idle() == "0"
    assert lab.good("playbooks/tune.yml", **emptied).recap("changed") == 0


def test_reset_puts_the_machine_back(lab, before):
    lab.good("playbooks/reset.yml")
    assert snapshot.differences(before, lab.picture()) == []
