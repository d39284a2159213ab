"""The module cgroup_policy, run in this process: arguments, all problems at once, and hosts without our groups."""

from __future__ import annotations

import json
import os

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
from ansible_collections.colocation.testbed.plugins.module_utils.node_policy import groups
from ansible_collections.colocation.testbed.plugins.modules import cgroup_policy

V2 = "1 1 0:1 / {root} rw - cgroup2 cgroup2 rw\n"
FILES = {
    "cpu.weight": "100",
    "cpu.idle": "0",
    "cpu.max": "max 100000",
    "cpu.max.burst": "0",
    "memory.min": "0",
    "memory.low": "0",
    "memory.high": "max",
    "memory.max": "max",
    "memory.oom.group": "0",
    "cgroup.procs": "",
    "cgroup.controllers": "cpu memory",
}
POLICY = {
    "resource-threshold-config": {"clusterStrategy": {"enable": True, "cpuSuppressPolicy": "cfsQuota"}},
    "resource-qos-config": {
        "clusterStrategy": {
            "beClass": {
                "cpuQOS": {"enable": True, "schedIdle": 1},
                "memoryQOS": {"enable": True, "minLimitPercent": 50, "throttlingPercent": 80, "oomKillGroup": 1},
                "resctrlQOS": {"enable": True},
            }
        }
    },
    "system-config": {"clusterStrategy": {"watermarkScaleFactor": 150}},
}
BATCH = [{"limits": {"kubernetes.io/batch-cpu": 1500, "kubernetes.io/batch-memory": "64Mi"}}]
GROUPS = [
    {"path": "kubepods.slice/kubepods-besteffort.slice", "qos": "BE", "level": "tier"},
    {"path": "kubepods.slice/*besteffort*/*pod*.slice", "qos": "BE", "level": "pod", "containers": BATCH},
]


@pytest.fixture
def mount(tmp_path, monkeypatch):
    """A directory with the files of a v2 hierarchy, and in it kubelet's groups with one pod."""
    root = tmp_path / "cgroup"
    pod = root / "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1.slice"
    pod.mkdir(parents=True)
    for place in (pod, *pod.parents):
        if place != tmp_path and tmp_path in place.parents:
            for name, text in FILES.items():
                (place / name).write_text(f"{text}\n")
    layout = cgroup.parse_layout(V2.format(root=root))
    monkeypatch.setattr(cgroup, "detect", lambda: layout)
    return root


@pytest.fixture
def run(capsys, tmp_path, mount):
    """Run the module with arguments, and return its result."""

    def _run(**args):
        with patch_module_args({"state_dir": str(tmp_path / "state"), **args}), pytest.raises(SystemExit):
            cgroup_policy.main()
        return json.loads(capsys.readouterr().out)

    return _run


def values(mount, pattern):
    (place,) = mount.glob(pattern)
    return {name: (place / name).read_text().strip() for name in FILES}


def test_on_v2_a_policy_is_applied_once_and_taken_back(run, mount):
    tier, pod = "kubepods.slice/*besteffort.slice", "kubepods.slice/*/*pod1.slice"
    before = values(mount, tier), values(mount, pod)
    predicted = run(policy=POLICY, groups=GROUPS, cpus="0", _ansible_check_mode=True, _ansible_diff=True)
    assert predicted["changed"] is True
    assert (values(mount, tier), values(mount, pod)) == before
    result = run(policy=POLICY, groups=GROUPS, cpus="0", _ansible_diff=True)
    assert result["diff"] == predicted["diff"]
    assert values(mount, tier)["cpu.max"] == "65000 100000"
    found = values(mount, pod)
    assert (found["cpu.idle"], found["memory.max"], found["memory.oom.group"]) == ("1", str(64 * 2**20), "1")
    assert found["memory.min"] == str(32 * 2**20)
    assert run(policy=POLICY, groups=GROUPS, cpus="0")["changed"] is False
    assert [item["name"] for item in result["resctrl_groups"]] == ["BE"]
    assert result["host_settings"][0]["name"] == "vm.watermark_scale_factor"
    assert run(state="absent", _ansible_check_mode=True)["changed"] is True
    assert run(state="absent")["changed"] is True
    assert (values(mount, tier), values(mount, pod)) == before
    assert run(state="absent")["changed"] is False


def test_all_problems_of_a_policy_are_told(run, tmp_path):
    policy = {"resource-qos-config": {"nodeConfigs": []}, "cpu-burst-config": {"clusterStrategy": {"policy": "on"}}}
    result = run(policy=policy, groups=GROUPS)
    assert result["failed"] is True
    assert len(result["problems"]) == 2
    assert "did you mean nodeStrategies?" in result["msg"]
    assert not (tmp_path / "state").exists()


def test_all_problems_of_groups_are_told(run):
    wrong = [{"limits": {"cpu": 1}}, {"limits": {"kubernetes.io/batch-memory": "1K"}}]
    result = run(policy=POLICY, groups=[{"path": "x", "qos": "BE", "containers": wrong}])
    assert [problem.split(": ")[0] for problem in result["problems"]] == [
        "groups[0].containers[0].limits.cpu",
        "groups[0].containers[1].limits.kubernetes.io/batch-memory",
    ]
    groups = [{"path": "none*", "qos": "BE"}, *GROUPS, {"path": "kubepods.slice/*", "qos": "LS"}]
    result = run(policy=POLICY, groups=groups)
    assert "groups[0].path: none* matches no group" in result["problems"][0]
    assert "is matched by an earlier entry too" in result["problems"][1]
    result = run(policy=POLICY, groups=[{"path": "../x", "qos": "BE"}])
    assert "not allowed; give a path below the hierarchy" in result["msg"]


def test_a_pattern_may_match_nothing_if_told_so(run):
    result = run(policy=POLICY, groups=[{"path": "none*", "qos": "BE", "on_no_match": "skip"}])
    assert (result["changed"], result["unmatched"]) == (False, ["none*"])


def test_what_is_not_supported_can_be_an_error(run, mount):
    before = values(mount, "kubepods.slice")
    result = run(policy=POLICY, groups=GROUPS, on_unsupported="fail")
    assert "beClass.cpuQOS.groupIdentity: needs a kernel of Alibaba" in result["msg"]
    assert "set on_unsupported to report" in result["msg"]
    assert values(mount, "kubepods.slice") == before


def test_a_group_that_is_a_link_is_refused(run, mount):
    os.symlink(mount / "kubepods.slice", mount / "link")
    result = run(policy=POLICY, groups=[{"path": "link", "qos": "BE"}])
    assert "matches no group" in result["msg"]


def test_a_policy_is_needed_unless_absent(run):
    assert "policy" in run()["msg"]
    assert run(policy={})["problems"][0].startswith("policy: has no section")
    assert run(state="absent")["changed"] is False


def test_cpus_that_are_not_there_are_refused(run):
    assert "cpus: CPU 8000 asked for" in run(policy=POLICY, groups=GROUPS, cpus="8000")["msg"]


def test_groups_that_systemd_gives_their_values_again_are_told(run, tmp_path, monkeypatch):
    monkeypatch.setattr(groups, "SYSTEMD", str(tmp_path))
    warnings = str(run(policy=POLICY, groups=GROUPS, cpus="0")["warnings"])
    assert "groups of systemd (kubepods.slice/kubepods-besteffort.slice and 1 more)" in warnings


@pytest.mark.parametrize(
    ("names", "booted", "count"),
    [(["a.slice/b.scope", "x"], True, 1), (["a.slice"], False, 0), (["kubepods/pod1"], True, 0), ([], True, 0)],
)
def test_only_groups_of_units_on_a_host_that_systemd_manages_are_told(tmp_path, monkeypatch, names, booted, count):
    monkeypatch.setattr(groups, "SYSTEMD", str(tmp_path if booted else tmp_path / "none"))
    found = groups.overwritten(names)
    assert len(found) == count
    assert all("(a.slice/b.scope)" in text and "apply the policy again" in text for text in found)


def test_a_policy_without_groups_would_do_nothing_and_is_refused(run, mount):
    policy = {"resource-threshold-config": POLICY["resource-threshold-config"]}
    assert run(policy=policy)["msg"].startswith("groups is empty, and the policy has neither host applications nor")
    assert run(policy=policy, groups=[{"path": "none*", "qos": "BE", "on_no_match": "skip"}])["changed"] is False
    assert "msg" not in run(policy={"system-config": POLICY["system-config"]})


def test_a_relative_state_directory_is_refused(run):
    assert (
        "state_dir 'rel/dir': is not an absolute path" in run(policy=POLICY, groups=GROUPS, state_dir="rel/dir")["msg"]
    )
