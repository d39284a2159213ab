# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Control groups on the running kernel; every group is below one of our own, which the fixture removes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cgroup,
    cgroup_apply,
    cgroup_plan,
    cgroup_report,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import MOVE, Group, Step
from tests.support.cgroup_host import Host

pytestmark = pytest.mark.kernel


SLO = {"cpu_idle": 1, "cpu_shares": 2, "cpu_quota_us": 95_000, "memory_max_bytes": 2**30}
NEUTRAL = {"cpu_idle": 0, "cpu_shares": 1024, "cpu_quota_us": -1, "memory_max_bytes": -1, "pids_max": -1}


def test_groups_get_their_values_and_a_second_run_changes_nothing(host: Host) -> None:
    groups = (
        Group("", values={"cpuset_cpus": "0"}),
        Group("service", values={"cpu_shares": 512}),
        Group("batch", values=SLO),
    )
    assert host.apply(*groups) > 0
    assert host.read("cpu", "batch", "cpu.idle") == "1"
    assert host.read("cpu", "batch", "cpu.cfs_quota_us") == "95000"
    assert host.read("cpu", "service", "cpu.shares") == "512"
    assert host.read("memory", "batch", "memory.limit_in_bytes") == str(2**30)
    assert host.read("cpuset", "batch", "cpuset.cpus") == "0"
    assert host.plan(*groups).steps == ()


def test_changing_modes_leaves_nothing_behind(host: Host) -> None:
    host.apply(Group("batch", values=NEUTRAL))
    first = cgroup_report.values(host.layout, f"{host.root}/batch")
    host.apply(Group("batch", values=SLO))
    assert cgroup_report.values(host.layout, f"{host.root}/batch") != first
    host.apply(Group("batch", values=NEUTRAL))
    assert cgroup_report.values(host.layout, f"{host.root}/batch") == first


def test_weight_is_translated_and_pinned_while_idle(host: Host) -> None:
    host.apply(Group("batch", values={"cpu_weight": 39}))
    assert host.read("cpu", "batch", "cpu.shares") == "998"
    found = host.plan(Group("batch", values={"cpu_weight": 1, "cpu_idle": 1}))
    assert [item.why for item in found.skipped] == [cgroup_plan.PINNED]


def test_cpusets_of_parent_and_child_swap_without_an_illegal_moment(host: Host) -> None:
    if os.sysconf("SC_NPROCESSORS_ONLN") < 2:
        pytest.skip("needs two CPUs")
    for first, second in (("0", "1"), ("0-1", "1"), ("1", "0-1")):
        host.apply(Group("", values={"cpuset_cpus": first}), Group("a", values={"cpuset_cpus": first}))
        host.apply(Group("", values={"cpuset_cpus": second}), Group("a", values={"cpuset_cpus": second}))
        assert host.read("cpuset", "", "cpuset.cpus") == second
        assert host.read("cpuset", "a", "cpuset.cpus") == second


def test_quotas_of_parent_and_child_rise_and_fall_together(host: Host) -> None:
    for quota in (50_000, 20_000, 90_000, -1, 10_000):
        values = {"cpu_quota_us": quota, "cpu_period_us": 50_000 if quota == 20_000 else 100_000}
        host.apply(Group("a", values=values), Group("a/b", values=values))
        assert host.read("cpu", "a/b", "cpu.cfs_quota_us") == str(quota)


def test_burst_follows_the_quota_both_ways(host: Host) -> None:
    host.apply(Group("a", values={"cpu_quota_us": 80_000, "cpu_burst_us": 80_000}))
    host.apply(Group("a", values={"cpu_quota_us": 20_000, "cpu_burst_us": 10_000}))
    host.apply(Group("a", values={"cpu_quota_us": 90_000, "cpu_burst_us": 90_000}))
    assert host.read("cpu", "a", "cpu.cfs_burst_us") == "90000"
    with pytest.raises(cgroup.CgroupError, match="is above cpu_quota_us"):
        host.plan(Group("a", values={"cpu_quota_us": 20_000}))


def test_a_refused_value_rolls_everything_back(host: Host) -> None:
    host.apply(Group("a", values={"cpu_quota_us": 20_000}))
    before = (host.directories(), host.book.entries())
    with pytest.raises(cgroup.CgroupError, match=r"cpu.cfs_quota_us: writing .* failed.*taken back"):
        host.apply(
            Group("b", values={"cpu_shares": 7}),
            Group("a", values={"cpu_shares": 9}),
            Group("c", values={"cpu_quota_us": 2**60}),
        )
    assert (host.directories(), host.book.entries()) == before
    assert host.read("cpu", "a", "cpu.shares") == "1024"


@pytest.mark.parametrize(
    ("there", "asked", "words"),
    [
        (
            {},
            {"a": 5000, "a/b": 9000},
            r"a/b: cpu_quota_us 9000 in 100000 us is a larger share .* than 5000 .* of \S+/a,",
        ),
        ({"a": 5000}, {"a/b/c": 9000}, r"a/b/c: cpu_quota_us 9000 .* of \S+/a, which v1 does not allow"),
        ({"a/b": 9000}, {"a": 5000}, r"a/b: cpu_quota_us 9000 .* of \S+/a, which v1 does not allow"),
    ],
)
def test_a_quota_above_that_of_a_group_above_names_both(
    host: Host, there: dict[str, int], asked: dict[str, int], words: str
) -> None:
    host.apply(Group(""), *(Group(name, values={"cpu_quota_us": quota}) for name, quota in there.items()))
    before = (host.directories(), host.book.entries())
    with pytest.raises(cgroup.CgroupError, match=words):
        host.plan(*(Group(name, values={"cpu_quota_us": quota}) for name, quota in asked.items()))
    assert (host.directories(), host.book.entries()) == before


def test_what_the_kernel_takes_is_not_refused_beforehand(host: Host) -> None:
    host.apply(Group("a", values={"cpu_quota_us": 5000}), Group("a/b", values={"cpu_quota_us": 5000}))
    half = {"cpu_quota_us": 10_000, "cpu_period_us": 200_000}
    host.apply(Group("a/b", values=half), Group("a/b/c", values={"cpu_quota_us": -1}))
    host.apply(Group("a", values={"cpu_quota_us": 2000}), Group("a/b", values={"cpu_quota_us": 4000}))
    host.apply(Group("a", values={"cpu_quota_us": -1}), Group("a/b", values={"cpu_quota_us": 90_000}))
    assert host.read("cpu", "a/b", "cpu.cfs_quota_us") == "90000"


def test_a_thread_of_the_kernel_is_refused_before_anything_is_made(host: Host) -> None:
    with pytest.raises(cgroup.CgroupError, match=r"process 2 is a thread of the kernel \(kthreadd\), which cannot be"):
        host.apply(Group("a", pids=(2,)))
    assert host.directories() == []
    assert not host.book.exists()


def test_a_process_that_the_kernel_refuses_needs_nothing_taken_back(host: Host) -> None:
    host.apply(Group("a"))
    place = host.layout.path("cpu", f"{host.root}/a")
    steps = [Step(MOVE, place, "2", host.layout.path("cpu", ""))]
    with pytest.raises(cgroup.CgroupError, match=r"kernel threads cannot be moved.*what came before it was taken back"):
        cgroup_apply.apply(steps, host.book, "test", host.ours())


@pytest.mark.parametrize("name", ["tasks", "cpu.shares", "cgroup.procs", "a/cpu.cfs_quota_us"])
def test_a_group_called_like_a_file_of_the_kernel_is_refused(host: Host, name: str) -> None:
    with pytest.raises(cgroup.CgroupError, match="the kernel has a file called"):
        host.apply(Group(name))
    assert host.directories() == []


def test_undo_leaves_the_kernel_as_it_was(host: Host) -> None:
    host.apply(Group("", values={"cpuset_cpus": "0"}), Group("batch", values=SLO), Group("service"))
    assert all(item.outcome.result == "undone" for item in host.undo())
    assert host.directories() == []
    assert not host.book.exists()
    assert not os.path.exists(host.book.directory)


def test_undo_of_values_in_a_group_that_was_there_before(host: Host) -> None:
    host.apply(Group("foreign", values={"cpu_shares": 77, "cpu_quota_us": 40_000}))
    host.book.forget_many((entry.kind, entry.target) for entry in host.book.entries())
    host.apply(Group("foreign", values=SLO), Group("foreign/ours"))
    assert host.read("cpu", "foreign", "cpu.idle") == "1"
    assert all(item.outcome.result == "undone" for item in host.undo())
    assert host.read("cpu", "foreign", "cpu.idle") == "0"
    assert host.read("cpu", "foreign", "cpu.shares") == "77"
    assert host.read("cpu", "foreign", "cpu.cfs_quota_us") == "40000"
    assert not any("foreign/ours" in place for place in host.directories())


def test_a_group_in_use_is_not_removed(host: Host, sleeper: int) -> None:
    host.apply(Group("a", pids=(sleeper,)))
    assert cgroup.group_pids(host.layout, f"{host.root}/a") == [sleeper]
    assert host.plan(Group("a", pids=(sleeper,))).steps == ()
    with pytest.raises(cgroup.CgroupError, match=rf"processes {sleeper} are in it"):
        host.apply(Group("a", state="absent"))
    for directory in host.layout.directories(""):
        cgroup.move(directory, sleeper)
    assert host.apply(Group("a", state="absent")) > 0
    assert not any(place.endswith("/a") for place in host.directories())
    assert not any(entry.target.endswith("/a") for entry in host.book.entries())


def test_a_group_that_is_not_ours_is_not_removed(host: Host) -> None:
    foreign = Path(host.layout.path("cpu", host.root))
    foreign.mkdir()
    with pytest.raises(cgroup.CgroupError, match="did not make it"):
        host.apply(Group("", state="absent"))
    assert foreign.is_dir()


def test_a_killed_run_leaves_a_journal_that_undoes_it(host: Host) -> None:
    found = host.plan(Group("", values={"cpuset_cpus": "0"}), Group("batch", values=SLO))
    for count in range(0, len(found.steps), 3):
        host.book.record_many(cgroup_apply.changes(found.steps, frozenset()), "test")
        for step in found.steps[:count]:
            cgroup_apply._do(step)
        assert all(item.outcome.result == "undone" for item in host.undo())
        assert host.directories() == []


def test_a_run_continues_where_a_killed_one_stopped(host: Host) -> None:
    groups = (Group("", values={"cpuset_cpus": "0"}), Group("batch", values=SLO))
    found = host.plan(*groups)
    host.book.record_many(cgroup_apply.changes(found.steps, frozenset()), "test")
    for step in found.steps[: len(found.steps) // 2]:
        cgroup_apply._do(step)
    host.apply(*groups)
    assert host.plan(*groups).steps == ()


def test_policy_files_name_all_ancestors(host: Host) -> None:
    host.apply(Group("batch", values=SLO))
    found = cgroup_report.policy_files(host.layout, host.root, ["batch"])
    values = cgroup_report.policy_values(found)
    assert values["batch/cpu.idle"] == "1"
    assert values["/cpu.shares"] == "1024"
    assert values["../cpu.cfs_quota_us"] == "-1"
    assert found["batch/cpuset.cpus"].endswith(f"{host.root}/batch/cpuset.cpus")
    assert None not in values.values()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"cpuset_cpus": "0-4095"}, "is not within its parent's"),
        ({"cpu_quota_us": 999}, "from 1000"),
        ({"memory_min_bytes": 1}, ""),
    ],
)
def test_bad_values_change_nothing(host: Host, values: dict[str, int | str], words: str) -> None:
    if words:
        with pytest.raises(cgroup.CgroupError, match=words):
            host.apply(Group("a", values=values))
        assert host.directories() == []
    else:
        assert "needs cgroup v2" in host.plan(Group("a", values=values)).skipped[0].why
