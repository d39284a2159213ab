# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A policy on groups of the running kernel that stand in for kubelet's: applied, changed, taken back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import undo
from ansible_collections.colocation.testbed.plugins.module_utils.journal import Journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cgroup_foreign
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import Group
from ansible_collections.colocation.testbed.plugins.module_utils.node_policy import apply, facts, groups, restore
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import (
    BE,
    LS,
    POD,
    TIER,
    NodeFacts,
    Requests,
    Workload,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation import PolicyError

pytestmark = pytest.mark.kernel
UNLIMITED = {"cpu.shares": "1024", "cpu.cfs_quota_us": "-1", "cpu.idle": "0", "cpu.cfs_burst_us": "0"}
ON = {
    "resource-threshold-config": {
        "clusterStrategy": {"enable": True, "cpuSuppressPolicy": "cfsQuota", "cpuSuppressThresholdPercent": 50}
    },
    "resource-qos-config": {"clusterStrategy": {"beClass": {"cpuQOS": {"enable": True, "schedIdle": 1}}}},
    "cpu-burst-config": {"clusterStrategy": {"policy": "auto", "cpuBurstPercent": 50}},
}


class Host:
    """Groups of this test's own in the order of kubelet's, on all v1 hierarchies, and a journal."""

    def __init__(self, directory: Path) -> None:
        self.layout = cgroup.detect()
        self.root = f"colocation-testbed-test-{os.getpid()}-policy"
        self.book = Journal(str(directory / "state" / "journal.json"))
        self.node = facts.collect(self.layout, facts.Given({}))
        for name in ("", "/besteffort", "/besteffort/poda", "/burstable", "/burstable/podb"):
            for item in self.layout.used():
                os.mkdir(cgroup.join_path(item.mount, self.root + name))

    def path(self, name: str) -> Path:
        return Path(self.layout.path("cpu", self.root), name)

    def values(self) -> dict[str, str]:
        names = [*UNLIMITED, "cpu.cfs_period_us"]
        places = ("besteffort", "besteffort/poda", "burstable", "burstable/podb")
        return {f"{place}/{name}": (self.path(place) / name).read_text().strip() for place in places for name in names}

    def workloads(self) -> tuple[Workload, ...]:
        return (
            Workload(f"{self.root}/besteffort", BE, TIER),
            Workload(f"{self.root}/besteffort/poda", BE, POD, Requests(500, 1000, None, 2**26)),
            Workload(f"{self.root}/burstable/podb", LS, POD, Requests(cpu_limit_milli=1000)),
        )

    def run(self, policy: dict[str, Any], check: bool = False) -> apply.Done:
        task = apply.prepare(self.layout, apply.check(policy), self.node, groups.Found(self.workloads(), ()))
        return apply.carry_out(self.layout, task, self.book, check)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    try:
        version = cgroup.detect().version
    except cgroup.CgroupError:
        version = "none"
    if os.geteuid() != 0 or version not in ("v1", "hybrid"):
        pytest.skip("needs root and cgroup v1 hierarchies")
    made = Host(tmp_path)
    # kubelet sets a quota for a pod with a limit; without one the kernel refuses the burst.
    (made.path("burstable/podb") / "cpu.cfs_quota_us").write_text("100000")
    yield made
    for item in made.layout.used():
        for place, _, _ in os.walk(cgroup.join_path(item.mount, made.root), topdown=False):
            os.rmdir(place)


def test_applied_once_then_equal_then_taken_back(host: Host) -> None:
    before = host.values()
    assert host.run(ON, check=True).changed
    assert host.values() == before
    assert host.run(ON).changed
    after = host.values()
    quota = str(50 * 1000 * host.node.cpus)
    assert after["besteffort/cpu.cfs_quota_us"] == quota
    assert after["besteffort/cpu.idle"] == "0"
    assert after["besteffort/poda/cpu.idle"] == "1"
    assert after["besteffort/poda/cpu.cfs_quota_us"] == "-1"
    assert after["burstable/podb/cpu.cfs_burst_us"] == "50000"
    assert not host.run(ON).changed
    assert not host.run(ON, check=True).changed
    assert apply.take_back(host.book, is_check=True)
    assert host.values() == after
    assert apply.take_back(host.book, is_check=False)
    assert host.values() == before
    assert apply.take_back(host.book, is_check=False) == ()


def test_what_the_next_policy_does_not_want_is_put_back(host: Host) -> None:
    before = host.values()
    host.run(ON)
    done = host.run({"cpu-burst-config": {"clusterStrategy": {"policy": "none"}}})
    assert any("cpu.cfs_burst_us: 50000 put back to 0" in line for line in done.restored)
    after = host.values()
    # A pod of best effort keeps the limits that it asks for.
    kept = {"besteffort/poda/cpu.shares": "512", "besteffort/poda/cpu.cfs_quota_us": "100000"}
    assert after == {**before, **kept}
    memory = Path(host.layout.path("memory", f"{host.root}/besteffort/poda"), "memory.limit_in_bytes")
    assert int(memory.read_text()) == 2**26
    apply.take_back(host.book, is_check=False)
    assert host.values() == before
    assert int(memory.read_text()) > 2**60


def test_the_journal_alone_puts_all_back_even_after_a_kill_between_record_and_write(host: Host) -> None:
    before = host.values()
    host.run(ON)
    host.book.record("value", str(host.path("burstable/podb") / "cpu.shares"), "1024", "cgroup_policy", "77")
    host.book.undo(undo.Undo().handlers())
    assert host.values() == before
    assert not host.book.exists()


def test_a_pod_that_is_gone_leaves_nothing_in_the_journal(host: Host) -> None:
    host.run(ON)
    for item in host.layout.used():
        os.rmdir(cgroup.join_path(item.mount, f"{host.root}/burstable/podb"))
    lines = apply.take_back(host.book, is_check=False)
    assert any("podb/cpu.cfs_burst_us: is gone, with its value" in line for line in lines)


def test_groups_are_never_made_and_the_whole_call_is_taken_back(host: Host) -> None:
    before = host.values()
    bad = [Group(f"{host.root}/none", values={"cpu_shares": 7})]
    with pytest.raises(cgroup.CgroupError, match="does not exist; only values of existing groups"):
        cgroup_foreign.plan(host.layout, bad)
    task = apply.prepare(host.layout, ON, host.node, groups.Found(host.workloads(), ()))
    # More than the kernel can count in nanoseconds.
    worse = replace(task.groups[2], values={**task.groups[2].values, "cpu_quota_us": 2**60})
    with pytest.raises(cgroup.CgroupError, match=r"cpu.cfs_quota_us.*what came before it was taken back"):
        apply.carry_out(host.layout, replace(task, groups=(*task.groups[:2], worse)), host.book, False)
    assert host.values() == before
    assert [entry for entry in host.book.entries() if entry.by == "cgroup_policy"] == []


def test_patterns(host: Host) -> None:
    found = cgroup_foreign.expand(host.layout, f"{host.root}/*/pod?")
    assert found == [f"{host.root}/besteffort/poda", f"{host.root}/burstable/podb"]
    assert cgroup_foreign.expand(host.layout, f"{host.root}/none*") == []
    for pattern in ("/x", "x/../y", "", "x//y", "x/\n"):
        with pytest.raises(cgroup.CgroupError, match="not allowed"):
            cgroup_foreign.expand(host.layout, pattern)


def test_a_policy_that_is_wrong_changes_nothing(host: Host) -> None:
    before = host.values()
    with pytest.raises(PolicyError, match="did you mean nodeStrategies"):
        host.run({"cpu-burst-config": {"nodeConfigs": []}})
    assert host.values() == before


def test_what_this_kernel_lacks_is_told_with_the_reason(host: Host) -> None:
    node: NodeFacts = host.node
    if "cpu_bvt_warp_ns" not in node.lacking:
        pytest.skip("this kernel has group identity")
    task = apply.prepare(host.layout, ON, node, groups.Found(host.workloads(), ()))
    states = {key: (state, reason) for key, state, reason in task.wanted.states}
    state, reason = states["resource-qos-config.clusterStrategy.beClass.cpuQOS.groupIdentity"]
    assert state == "unsupported"
    assert "needs a kernel of Alibaba Cloud Linux" in reason
    with pytest.raises(apply.ApplyError, match="groupIdentity: needs a kernel of Alibaba"):
        apply.refuse_unsupported(task)


def test_values_that_constrain_each_other_go_back_together(host: Host) -> None:
    (host.path("besteffort") / "cpu.cfs_quota_us").write_text("300000")
    (host.path("besteffort/poda") / "cpu.cfs_quota_us").write_text("250000")
    before = host.values()
    tier, pod = host.workloads()[:2]
    policy = apply.check({"cpu-burst-config": {"clusterStrategy": {"policy": "none"}}})
    small = replace(pod, requests=Requests(500, 1000, None, None))
    task = apply.prepare(host.layout, policy, host.node, groups.Found((small,), ()))
    apply.carry_out(host.layout, task, host.book, False)
    task = apply.prepare(host.layout, policy, host.node, groups.Found((small, replace(tier, level="host")), ()))
    lower = replace(task.groups[1], values={"cpu_quota_us": 150_000})
    apply.carry_out(host.layout, replace(task, groups=(task.groups[0], lower)), host.book, False)
    assert host.values()["besteffort/cpu.cfs_quota_us"] == "150000"
    # Oldest first, the pod's quota comes before its parent's, which is still too small for it.
    entries = [item for item in host.book.entries() if item.by == "cgroup_policy"]
    found = restore.restore(host.book, entries, check=False)
    assert found.failed == ()
    assert host.values() == before
