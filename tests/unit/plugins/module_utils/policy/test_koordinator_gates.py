# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates, what a policy needs of them, and the sum of what is offered to batch work."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.policy import koordinator_batch as offer
from ansible_collections.colocation.testbed.plugins.module_utils.policy import koordinator_gates as gates
from ansible_collections.colocation.testbed.plugins.module_utils.policy import overlay

LAB = "BECPUEvict=false,BEMemoryEvict=false,CgroupReconcile=false,Accelerators=false,RdtResctrl=false"
HOST = gates.Host(cpus=2, cgroup_v2=True, group_identity=False, burst_above_quota=False)


def test_gates_lie_over_the_defaults() -> None:
    found = gates.parse(f" {LAB}, BEMemoryEvict=true,")
    assert (found["BECPUSuppress"], found["RdtResctrl"], found["BEMemoryEvict"]) == (True, False, True)
    assert gates.parse("") == gates.GATES


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("BECPUSupress=true", "did you mean BECPUSuppress?"),
        ("BECPUEvict", "says neither true nor false"),
        ("AllAlpha=true", "name the gates that you want"),
        ({"BECPUEvict": True}, "is not text; write 'NAME=true,OTHER=false'"),
    ],
)
def test_wrong_gates_are_refused(text: Any, words: str) -> None:
    with pytest.raises(gates.GatesError, match="features: "):
        gates.parse(text)
    with pytest.raises(gates.GatesError) as caught:
        gates.parse(text)
    assert words in str(caught.value)


def _cluster(section: str, **values: Any) -> dict[str, Any]:
    return {section: {"clusterStrategy": values}}


def _qos(**block: Any) -> dict[str, Any]:
    return {"resource-qos-config": {"clusterStrategy": {"beClass": block}}}


NETWORK = {"lsClass": {"networkQOS": {"enable": True, "egressRequest": 50}}}
CORE = {"policies": {"cpuPolicy": "coreSched"}, "beClass": {"cpuQOS": {"enable": True, "schedIdle": 1}}}


@pytest.mark.parametrize(
    ("policy", "features", "kind", "words"),
    [
        (
            _cluster("resource-threshold-config", enable=True),
            "",
            "fail",
            "never leaves best effort fewer than 2",
        ),
        (
            _cluster("resource-threshold-config", enable=True, cpuSuppressPolicy="cfsQuota"),
            "BECPUSuppress=false",
            "fail",
            "feature gate BECPUSuppress is off; add BECPUSuppress=true",
        ),
        (
            _cluster("resource-threshold-config", enable=True, cpuSuppressPolicy="cfsQuota"),
            "BECPUManager=true",
            "fail",
            "BECPUManager; switch that off",
        ),
        (
            _cluster(
                "resource-threshold-config",
                enable=True,
                cpuSuppressPolicy="cfsQuota",
                memoryEvictThresholdPercent=70,
                memoryEvictLowerPercent=65,
            ),
            "",
            "fail",
            "feature gate BEMemoryEvict is off",
        ),
        (
            _cluster(
                "resource-threshold-config",
                enable=True,
                cpuSuppressPolicy="cfsQuota",
                memoryEvictThresholdPercent=70,
            ),
            "MemoryEvict=true",
            "fail",
            "memoryEvictThresholdPercent: the agent evicts nothing by it without evictEnabledPriorityThreshold; add",
        ),
        (
            _cluster(
                "resource-threshold-config", enable=True, cpuSuppressPolicy="cfsQuota", cpuEvictThresholdPercent=80
            ),
            "CPUEvict=true",
            "fail",
            "cpuEvictThresholdPercent: the agent evicts nothing by it without evictEnabledPriorityThreshold; add",
        ),
        (
            _cluster(
                "resource-threshold-config",
                enable=True,
                cpuSuppressPolicy="cfsQuota",
                memoryAllocatableEvictThresholdPercent=110,
                memoryAllocatableEvictLowerPercent=100,
            ),
            "MemoryAllocatableEvict=true",
            "fail",
            "evicts nothing by it without allocatableEvictPriorityThreshold",
        ),
        (
            _cluster(
                "resource-threshold-config",
                enable=True,
                cpuSuppressPolicy="cfsQuota",
                cpuEvictPolicy="evictByAllocatable",
            ),
            "",
            "warn",
            "evictByRealLimit looks at",
        ),
        (
            _cluster("resource-threshold-config", enable=True, cpuSuppressPolicy="cfsQuota"),
            "BECPUEvict=true",
            "warn",
            "logs a warning a second",
        ),
        (_cluster("cpu-burst-config", policy="auto"), "", "fail", "1000 asks for more than the quota"),
        (_cluster("cpu-burst-config", policy="auto", cpuBurstPercent=100), "CPUBurst=false", "fail", "CPUBurst is off"),
        (_qos(blkioQOS={"enable": True}), "BlkIOReconcile=true", "fail", "limits disks on cgroup v1 only"),
        (_qos(memoryQOS={"enable": True}), "", "fail", "CgroupReconcile is off"),
        (_qos(resctrlQOS={"enable": True}), LAB, "fail", "RdtResctrl is off"),
        (_qos(cpuQOS={"enable": True}), "", "warn", "no cpu.bvt_warp_ns"),
        (_qos(cpuQOS={"enable": True, "schedIdle": 1}), "", "warn", "cpuPolicy coreSched only"),
        ({"resource-qos-config": {"clusterStrategy": CORE}}, "CoreSched=true", "fail", "kubelet then can't write"),
        ({"resource-qos-config": {"clusterStrategy": CORE}}, "", "fail", "CoreSched is off"),
        (_cluster("system-config", watermarkScaleFactor=150), "", "fail", "SystemConfig is off"),
        (_qos(networkQOS={"enable": True, "egressRequest": 50}), "", "fail", "TCNetworkQoS is off"),
        (
            {"resource-qos-config": {"clusterStrategy": {"policies": {"netQOSPolicy": "terway-qos"}, **NETWORK}}},
            "TCNetworkQoS=true",
            "fail",
            "TerwayQoS is off",
        ),
        ({"cpu-normalization-config": {"enable": True, "defaultRatio": 1.1}}, "", "fail", "CPUNormalization is off"),
        (
            {"colocation-config": {"enable": True, "metricMemoryCollectPolicy": "usageWithHotPageCache"}},
            "",
            "fail",
            "ColdPageCollector is off",
        ),
    ],
)
def test_what_would_have_no_effect_is_found(policy: dict[str, Any], features: str, kind: str, words: str) -> None:
    found = gates.findings(policy, {}, gates.parse(features), HOST)
    assert [item for item in found if item.kind == kind and words in item.text], found


def test_a_quota_beside_systemd_is_remarked() -> None:
    policy = _cluster("resource-threshold-config", enable=True, cpuSuppressPolicy="cfsQuota")
    (found,) = gates.findings(policy, {}, gates.parse(""), gates.Host(cgroup_driver="systemd"))
    assert found.kind == "warn"
    assert "cpuSuppressPolicy: kubelet's cgroup driver is systemd, which lifts the quota" in found.text
    assert gates.findings(policy, {}, gates.parse(""), gates.Host(cgroup_driver="cgroupfs")) == ()


def test_eviction_by_memory_has_two_gates() -> None:
    policy = _cluster(
        "resource-threshold-config",
        enable=True,
        cpuSuppressPolicy="cfsQuota",
        memoryEvictThresholdPercent=70,
        evictEnabledPriorityThreshold=5999,
    )
    assert gates.findings(policy, {}, gates.parse("MemoryEvict=true"), HOST) == ()
    assert gates.findings(policy, {}, gates.parse("BEMemoryEvict=true"), HOST) == ()


def test_what_works_is_left_alone() -> None:
    policy = {
        **_cluster("resource-threshold-config", enable=True, cpuSuppressPolicy="cfsQuota"),
        **_cluster("cpu-burst-config", policy="auto", cpuBurstPercent=100),
    }
    assert gates.findings(policy, {}, gates.parse(LAB), HOST) == ()
    assert gates.findings({}, {}, gates.parse(""), HOST) == ()
    big = _cluster("resource-threshold-config", enable=True)
    assert gates.findings(big, {}, gates.parse(""), gates.Host(cpus=32)) == ()
    assert gates.findings(big, {}, gates.parse(""), gates.Host()) == ()


def _node(cpu: int, reserved: int) -> dict[str, Any]:
    memory = {"memory": "64Gi"}
    return {"status": {"capacity": {"cpu": str(cpu), **memory}, "allocatable": {"cpu": str(cpu - reserved), **memory}}}


def _metric(system: str, **pods: str) -> dict[str, Any]:
    return {
        "status": {
            "nodeMetric": {"systemUsage": {"resources": {"cpu": system}}},
            "podsMetric": [
                {"namespace": "n", "name": name, "podUsage": {"resources": {"cpu": cpu}}} for name, cpu in pods.items()
            ],
        }
    }


def _pod(name: str, cpu: str, phase: str = "Running", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "n", "name": name},
        "spec": {"containers": [{"resources": {"requests": {"cpu": cpu}}}], **spec},
        "status": {"phase": phase},
    }


def _offered(percent: int, policy: str, system: str, used: str, request: str) -> int:
    colocation = {
        "colocation-config": {
            "enable": True,
            "cpuReclaimThresholdPercent": percent,
            "cpuCalculatePolicy": policy,
        }
    }
    strategy = overlay.strategy(colocation, "colocation-config", {})
    batch = _pod("be", "9", priorityClassName="koord-batch")
    pods = [_pod("ls", request), batch, _pod("done", "5", "Succeeded")]
    return offer.terms(_node(32, 2), _metric(system, ls=used, be="7"), pods, strategy, "cpu").offered


@pytest.mark.parametrize(
    ("percent", "policy", "system", "used", "request_", "wanted"),
    [
        (60, "usage", "1", "6", "16", 11200),
        (60, "maxUsageRequest", "1", "6", "16", 1200),
        (100, "usage", "3", "6", "16", 23000),
        (40, "usage", "2", "20", "24", 0),
        (120, "usage", "2", "6", "16", 30400),
    ],
)
def test_upstreams_vectors(percent: int, policy: str, system: str, used: str, request_: str, wanted: int) -> None:
    assert _offered(percent, policy, system, used, request_) == wanted


def test_a_pod_without_reading_counts_as_its_request_and_a_gone_one_as_its_reading() -> None:
    strategy = overlay.strategy({}, "colocation-config", {})
    found = offer.terms(_node(32, 2), _metric("0", gone="3500m"), [_pod("new", "4")], strategy, "cpu")
    assert found.above.used == 7500
    assert found.text() == "32000 capacity - 12800 margin - 2000 system - 7500 of pods above batch (usage) = 9700"


@pytest.mark.parametrize(
    ("labels", "spec", "wanted"),
    [
        ({"koordinator.sh/priority-class": "koord-mid"}, {"priority": 5500}, "koord-mid"),
        ({}, {"priorityClassName": "koord-free", "priority": 3000}, "koord-free"),
        ({}, {"priority": 5500}, "koord-batch"),
        ({}, {"priority": 2000000000}, ""),
        ({}, {}, ""),
    ],
)
def test_priority_classes(labels: dict[str, str], spec: dict[str, Any], wanted: str) -> None:
    assert offer.priority_class({"metadata": {"labels": labels}, "spec": spec}) == wanted
