# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a policy to kernel values, on both versions of control groups, by Koordinator's figures."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup_keys, cgroup_values
from ansible_collections.colocation.testbed.plugins.module_utils.policy import (
    applications,
    blkio,
    burst,
    cpu,
    effects,
    kernel_values,
    memory,
    node,
    system,
    vocabulary,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import (
    BE,
    CONTAINER,
    HOST,
    LS,
    POD,
    TIER,
    Cache,
    NodeFacts,
    Requests,
    Workload,
)

GIB = 2**30
MAINLINE = {
    name: "needs an Alibaba kernel"
    for name in (
        "cpu_bvt_warp_ns",
        "memory_wmark_ratio",
        "memory_wmark_scale_factor",
        "memory_wmark_min_adj",
        "memory_priority",
        "memory_use_priority_oom",
    )
}
NODE = NodeFacts(32, 128 * GIB, lacking=MAINLINE)
FFMPEG = """
limits:
  kubernetes.io/batch-cpu: 70k
  kubernetes.io/batch-memory: 22Gi
requests:
  kubernetes.io/batch-cpu: 70k
  kubernetes.io/batch-memory: 22Gi
"""


def _options(policy: dict[str, Any], workload: Workload, facts: NodeFacts = NODE) -> dict[str, Any]:
    return dict(kernel_values.wanted(policy, facts, [workload]).cgroups[0]["options"])


def _states(policy: dict[str, Any], *workloads: Workload, facts: NodeFacts = NODE) -> dict[str, tuple[str, str]]:
    return {key: (state, reason) for key, state, reason in kernel_values.wanted(policy, facts, workloads).states}


def _qos(name: str, **blocks: Any) -> dict[str, Any]:
    return {"resource-qos-config": {"clusterStrategy": {name: blocks}}}


def _text(option: str, value: Any, version: int) -> str:
    file = cgroup_keys.BY_NAME[option].file(version)
    assert file is not None
    return f"{file.name}={file.render(value, file.initial)}"


def test_the_ffmpeg_pod_gets_what_koordinator_writes_on_both_versions() -> None:
    asked = node.requests_of(yaml.safe_load(FFMPEG), BE, "ffmpeg")
    policy = {"resource-threshold-config": {"clusterStrategy": {"enable": True}}}
    for level, requests in ((CONTAINER, asked), (POD, node.summed([asked]))):
        options = _options(policy, Workload("be-ffmpeg", BE, level, requests))
        assert options == {"cpu_shares": 71_680, "cpu_quota_us": 7_000_000, "memory_max_bytes": 22 * GIB}
        assert [_text(name, value, 1) for name, value in options.items()] == [
            "cpu.shares=71680",
            "cpu.cfs_quota_us=7000000",
            "memory.limit_in_bytes=23622320128",
        ]
        assert [_text(name, value, 2) for name, value in options.items()] == [
            "cpu.weight=2735",
            "cpu.max=7000000 100000",
            "memory.max=23622320128",
        ]


# Requests and limits in milli-cores; shares, v2 weight, quota.
@pytest.mark.parametrize(
    ("request_milli", "limit_milli", "shares", "weight", "quota"),
    [
        (1500, 3000, 1536, 59, 300_000),
        (500, 500, 512, 20, 50_000),
        (70_000, 70_000, 71_680, 2735, 7_000_000),
        (0, 5, 2, 1, 1000),
        (0, None, 2, 1, -1),
        (0, 0, 2, 1, -1),
    ],
)
def test_batch_requests(
    request_milli: int | None, limit_milli: int | None, shares: int, weight: int, quota: int
) -> None:
    options = _options({}, Workload("pod", BE, POD, Requests(request_milli, limit_milli)))
    assert options == {"cpu_shares": shares, "cpu_quota_us": quota, "memory_max_bytes": -1}
    assert cgroup_values.shares_to_weight(shares) == weight


@pytest.mark.parametrize("level", [POD, CONTAINER])
def test_what_nothing_is_said_of_is_left_as_it_is(level: str) -> None:
    ceiling = {"resource-threshold-config": {"clusterStrategy": {"enable": True, "cpuSuppressPolicy": "cfsQuota"}}}
    assert _options(ceiling, Workload("x", BE, level)) == {}
    assert _options(ceiling, Workload("x", LS, HOST)) == {}


@given(st.integers(2, 262144), st.integers(2, 262144))
def test_a_larger_share_is_never_a_smaller_weight(one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert cgroup_values.shares_to_weight(low) <= cgroup_values.shares_to_weight(high)
    weights = [cgroup_values.shares_to_weight(value) for value in (low, high)]
    assert cgroup_values.weight_to_shares(weights[0]) <= cgroup_values.weight_to_shares(weights[1])


def test_a_pod_with_an_unlimited_container_has_no_limit() -> None:
    found = node.summed([Requests(500, 1000, 10, 20), Requests(500, None, 10, None)])
    assert found == Requests(1000, None, 20, None)


def test_under_a_quota_ceiling_the_root_limits_and_pods_are_lifted() -> None:
    policy = {"resource-threshold-config": {"clusterStrategy": {"enable": True, "cpuSuppressPolicy": "cfsQuota"}}}
    root, pod, host = (Workload("x", BE, level, Requests(500, 1000)) for level in (TIER, POD, HOST))
    assert _options(policy, root) == {"cpu_quota_us": 2_080_000}
    assert _options(policy, pod)["cpu_quota_us"] == -1
    assert _options(policy, host)["cpu_quota_us"] == 2_080_000
    assert "cpu_quota_us" not in _options(policy, Workload("x", LS, POD))
    states = _states(policy, root)
    key = "resource-threshold-config.clusterStrategy.cpuSuppressThresholdPercent"
    assert states[key][0] == "degraded"


@pytest.mark.parametrize(
    ("levels", "state", "words"),
    [
        ((TIER, POD), "supported", "quotas of pods and containers are lifted (-1), as in Koordinator"),
        ((HOST, CONTAINER), "supported", "lifted (-1)"),
        ((CONTAINER,), "degraded", "no group of class BE with level tier or host is among the groups"),
        ((TIER,), "supported", ""),
    ],
)
def test_quotas_that_a_ceiling_takes_the_place_of_are_told(levels: tuple[str, ...], state: str, words: str) -> None:
    policy = {"resource-threshold-config": {"clusterStrategy": {"enable": True, "cpuSuppressPolicy": "cfsQuota"}}}
    groups = [Workload(f"g{level}", BE, level, Requests(500, 1000)) for level in levels]
    row = _states(policy, *groups)["resource-threshold-config.clusterStrategy.cpuSuppressPolicy"]
    assert row[0] == state
    assert words in row[1]


def test_a_set_of_cpus_needs_readings() -> None:
    policy = {"resource-threshold-config": {"clusterStrategy": {"enable": True, "cpuSuppressPolicy": "cpuset"}}}
    assert _options(policy, Workload("x", BE, TIER)) == {}
    state, reason = _states(policy)["resource-threshold-config.clusterStrategy.cpuSuppressPolicy"]
    assert state == "unsupported"
    assert "needs readings at run time" in reason


def test_group_identity_comes_with_the_class_and_needs_its_kernel() -> None:
    policy = _qos("beClass", cpuQOS={"enable": True})
    assert _options(policy, Workload("x", BE, TIER), NodeFacts(1, GIB)) == {"cpu_bvt_warp_ns": -1}
    assert _options(policy, Workload("x", BE, TIER)) == {}
    key = "resource-qos-config.clusterStrategy.beClass.cpuQOS.groupIdentity"
    assert _states(policy)[key] == ("unsupported", "needs an Alibaba kernel")


@pytest.mark.parametrize(("level", "wanted"), [(HOST, True), (POD, True), (TIER, None), (CONTAINER, None)])
def test_idle_is_set_on_pods_and_never_on_the_root_of_a_class(level: str, wanted: bool | None) -> None:
    policy = _qos("beClass", cpuQOS={"enable": True, "schedIdle": 1})
    assert _options(policy, Workload("x", BE, level)).get("cpu_idle") == wanted
    state, _reason = _states(policy, Workload("x", BE, TIER))[
        "resource-qos-config.clusterStrategy.beClass.cpuQOS.schedIdle"
    ]
    assert state == "degraded"


def test_core_scheduling_takes_the_place_of_group_identity() -> None:
    policy = _qos("beClass", cpuQOS={"enable": True, "coreExpeller": True})
    policy["resource-qos-config"]["clusterStrategy"]["policies"] = {"cpuPolicy": "coreSched"}
    facts = NodeFacts(1, GIB)
    assert "cpu_bvt_warp_ns" not in _options(policy, Workload("x", BE, TIER), facts)
    states = _states(policy, Workload("x", BE, TIER), facts=facts)
    assert states["resource-qos-config.clusterStrategy.beClass.cpuQOS.coreExpeller"][0] == "unsupported"
    assert states["resource-qos-config.clusterStrategy.beClass.cpuQOS.groupIdentity"] == (
        "unsupported",
        "cpuPolicy is coreSched",
    )


def test_memory_high_is_in_pages() -> None:
    assert memory.high_bytes(GIB, 2 * GIB, 80, 128 * GIB, 4096) == 1_932_734_464
    assert memory.high_bytes(GIB, None, 50, 3 * GIB, 4096) == 2 * GIB
    assert memory.high_bytes(GIB, 2 * GIB, 0, 128 * GIB, 4096) == -1


def test_memory_of_a_class() -> None:
    block = {"enable": True, "minLimitPercent": 50, "lowLimitPercent": 20, "throttlingPercent": 80, "oomKillGroup": 1}
    policy = _qos("lsClass", memoryQOS=block)
    asked = Requests(memory_request_bytes=GIB, memory_limit_bytes=2 * GIB)
    container = _options(policy, Workload("x", LS, CONTAINER, asked))
    assert container == {
        "memory_min_bytes": GIB // 2,
        "memory_low_bytes": GIB // 2,
        "memory_high_bytes": 1_932_734_464,
        "memory_oom_group": True,
    }
    pod = _options(policy, Workload("x", LS, POD, asked))
    assert pod == {name: value for name, value in container.items() if name != "memory_high_bytes"}
    assert _options(policy, Workload("x", LS, TIER, asked)) == {"memory_oom_group": True}


def test_memory_protection_is_not_to_be_had_on_v1() -> None:
    lacking = {**MAINLINE, "memory_min_bytes": "needs cgroup v2"}
    policy = _qos("lsClass", memoryQOS={"enable": True, "minLimitPercent": 50})
    facts = NodeFacts(1, GIB, lacking=lacking)
    assert "memory_min_bytes" not in _options(policy, Workload("x", LS, POD, Requests()), facts)
    key = "resource-qos-config.clusterStrategy.lsClass.memoryQOS.minLimitPercent"
    assert _states(policy, facts=facts)[key] == ("unsupported", "needs cgroup v2")


@pytest.mark.parametrize(("limit", "percent", "wanted"), [(4000, 1000, 4_000_000), (4000, 100, 400_000)])
def test_burst(limit: int, percent: int, wanted: int) -> None:
    assert burst.burst_us(limit, percent) == wanted


def test_a_burst_above_the_quota_is_clamped_on_mainline_and_said() -> None:
    policy = {"cpu-burst-config": {"clusterStrategy": {"policy": "auto"}}}
    pod = Workload("x", LS, POD, Requests(cpu_limit_milli=4000))
    assert _options(policy, pod) == {"cpu_burst_us": 400_000}
    assert _states(policy, pod)["cpu-burst-config.clusterStrategy.cpuBurstPercent"][0] == "degraded"
    assert _options(policy, pod, NodeFacts(1, GIB, burst_above_quota=True)) == {"cpu_burst_us": 4_000_000}
    for qos, limit in (("LSR", 4000), (BE, 4000), (LS, None)):
        found = _options(policy, Workload("x", qos, POD, Requests(cpu_limit_milli=limit)))
        assert "cpu_burst_us" not in found


def test_a_throttled_quota_grows_by_a_fifth_to_its_ceiling() -> None:
    seen = [400_000]
    for _tick in range(7):
        seen.append(burst.next_quota_us(400_000, 300, seen[-1], burst.UP))
    assert seen[1:] == [480_000, 576_000, 691_200, 829_440, 995_328, 1_194_393, 1_200_000]
    assert burst.next_quota_us(400_000, 300, 480_000, burst.DOWN) == 400_000
    assert burst.next_quota_us(400_000, 300, 480_000, burst.KEEP) == 480_000
    assert burst.next_quota_us(400_000, 300, 900_000, burst.RESET) == 400_000


@pytest.mark.parametrize(
    ("used", "throttled", "allowed", "action"),
    [
        (20, True, True, burst.UP),
        (20, False, True, burst.KEEP),
        (20, True, False, burst.DOWN),
        (45, True, True, burst.KEEP),
        (None, True, True, burst.KEEP),
        (50, True, True, burst.DOWN),
        (50, False, True, burst.DOWN),
    ],
)
def test_the_load_of_the_pool_rules_the_quota(used: int | None, throttled: bool, allowed: bool, action: str) -> None:
    assert burst.operation(throttled, allowed, burst.share_pool_state(used, 50)) == action


def test_settings_of_the_host() -> None:
    assert system.min_free_kib(128 * GIB, 100) == 1_342_177
    policy = {"system-config": {"clusterStrategy": {"minFreeKbytesFactor": 100, "watermarkScaleFactor": 5}}}
    found = kernel_values.wanted(policy, NODE, [])
    assert found.host == ({"kind": "sysctl", "name": "vm.min_free_kbytes", "value": "1342177", "persist": False},)
    assert [state for _key, state, _reason in found.states] == ["supported", "unsupported"]


def test_too_small_a_reserve_is_left_out() -> None:
    policy = {"system-config": {"clusterStrategy": {"minFreeKbytesFactor": 1}}}
    found = kernel_values.wanted(policy, NodeFacts(1, GIB), [])
    assert found.host == ()
    assert "comes to 104 KiB" in found.states[0][2]


def test_disks_of_best_effort() -> None:
    block = {"name": "/dev/vda", "type": "device", "ioCfg": {"readBPS": 1048576, "writeIOPS": 0, "ioWeightPercent": 60}}
    lvm = {"name": "vg0", "type": "volumegroup", "ioCfg": {"readBPS": 1}}
    policy = _qos("beClass", blkioQOS={"enable": True, "blocks": [block, lvm]})
    limits = {"device": "/dev/vda", "rbps": 1048576, "wbps": -1, "riops": -1, "wiops": -1}
    assert _options(policy, Workload("x", BE, TIER)) == {"io_max": [limits], "io_weight": 6000}
    assert "io_max" not in _options(policy, Workload("x", BE, POD))
    states = _states(policy)
    start = "resource-qos-config.clusterStrategy.beClass.blkioQOS.blocks"
    assert states[f"{start}[0].ioCfg.readBPS"] == ("supported", "")
    assert states[f"{start}[1].type"][0] == "unsupported"
    assert blkio.weight(100) == cgroup_values.WEIGHT_HIGH


def test_the_cost_model_of_a_disk_is_not_a_groups() -> None:
    block = {"name": "/dev/vda", "ioCfg": {"readLatency": 3000}}
    states = _states(_qos("cgroupRoot", blkioQOS={"enable": True, "blocks": [block]}))
    key = "resource-qos-config.clusterStrategy.cgroupRoot.blkioQOS.blocks[0].ioCfg.readLatency"
    assert states[key] == ("unsupported", effects.COST)


def test_cache_and_bandwidth_become_groups() -> None:
    policy = _qos("beClass", resctrlQOS={"enable": True, "mbaPercent": 55})
    intel = NodeFacts(1, GIB, cache=Cache(0xFFF, 1, "intel", 100))
    found = kernel_values.wanted(policy, intel, [])
    group = {"name": "BE", "l3_cat_range_start_percent": 0, "l3_cat_range_end_percent": 30, "mba_percent": 55}
    assert found.resctrl == (group,)
    states = {key.rpartition(".")[2]: (state, reason) for key, state, reason in found.states}
    assert states["mbaPercent"] == ("degraded", "55 % becomes 60 %, which is what the hardware can do")
    assert states["catRangeEndPercent"] == ("supported", "")
    assert _states(policy)["resource-qos-config.clusterStrategy.beClass.resctrlQOS.mbaPercent"][0] == "unsupported"


def test_what_is_switched_off_has_no_effect_and_is_said() -> None:
    policy = _qos("beClass", cpuQOS={"enable": False, "schedIdle": 1})
    assert "cpu_idle" not in _options(policy, Workload("x", BE, POD))
    key = "resource-qos-config.clusterStrategy.beClass.cpuQOS.schedIdle"
    assert _states(policy)[key] == ("supported", "without effect: it is switched off")


@pytest.mark.parametrize(
    ("application", "group"),
    [
        ({"name": "db", "qos": "LS"}, "host-latency-sensitive/db"),
        ({"name": "job", "qos": "BE"}, "host-best-effort/job"),
        ({"name": "x", "qos": "LS", "cgroupPath": {"base": "CgroupRoot", "relativePath": "system/x"}}, "system/x"),
        (
            {
                "name": "x",
                "qos": "BE",
                "cgroupPath": {"base": "KubepodsBesteffort", "parentDir": "p", "relativePath": "x"},
            },
            "kubepods.slice/kubepods-besteffort.slice/p/x",
        ),
    ],
)
def test_groups_of_host_applications(application: dict[str, Any], group: str) -> None:
    assert applications.group(application, "kubepods.slice") == group


def test_host_applications_get_their_class_and_nothing_else() -> None:
    policy = {
        **_qos("beClass", cpuQOS={"enable": True}, memoryQOS={"enable": True}),
        "host-application-config": {"applications": [{"name": "job", "qos": "BE"}]},
    }
    found = kernel_values.wanted(policy, NodeFacts(1, GIB), [])
    options = {"cpu_bvt_warp_ns": -1, "cpu_idle": False}
    assert found.cgroups == ({"group": "host-best-effort/job", "options": options},)


def test_every_key_of_the_vocabulary_has_an_effect_and_options_that_exist() -> None:
    known = {*cgroup_keys.BY_NAME, "io_max", "io_latency"}
    for section in vocabulary.SECTIONS:
        for names in effects.keys(section):
            effect = effects.find(section, names)
            assert effect.text or effect.kind == effects.SWITCH
            if effect.kind == effects.CGROUP:
                assert set(effect.names) <= known
    with pytest.raises(effects.EffectError, match="add it to the table"):
        effects.find("system-config", ("new",))


@pytest.mark.parametrize(
    ("qos", "resources", "words"),
    [
        (BE, {"limits": {"kubernetes.io/batch-cpu": "0.5"}}, "x.limits.kubernetes.io/batch-cpu: '0.5'"),
        (BE, {"limits": {"memory": "1Gi"}}, "x.limits.memory: is not read for class BE; write kubernetes.io/batch-cpu"),
        (LS, {"requests": {"kubernetes.io/batch-cpu": 1}}, "is not read for class LS; write cpu or memory"),
        (LS, {"limit": {}}, "x.limit: is not known"),
        (LS, {"limits": 3}, "x.limits: is not known"),
    ],
)
def test_requests_that_cannot_be_understood(qos: str, resources: dict[str, Any], words: str) -> None:
    with pytest.raises(node.RequestsError, match=re.escape(words)):
        node.requests_of(resources, qos, "x")


def test_limits_of_host_groups() -> None:
    found = _options({}, Workload("x", LS, HOST, Requests(500, 1000, 10, 20 * 4096)))
    assert found == {"cpu_shares": 512, "cpu_quota_us": 100_000, "memory_max_bytes": 20 * 4096}
    assert cpu.limit_quota_us(5) == 1000
