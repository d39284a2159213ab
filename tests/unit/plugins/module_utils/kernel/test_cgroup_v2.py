# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cgroup,
    cgroup_apply,
    cgroup_plan,
    cgroup_report,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import Group

_SPEC = importlib.util.spec_from_file_location("fake_cgroup2", Path(__file__).with_name("fake_cgroup2.py"))
fake_cgroup2: Any = importlib.util.module_from_spec(_SPEC)  # type: ignore[arg-type]
_SPEC.loader.exec_module(fake_cgroup2)  # type: ignore[union-attr]

ROOT = fake_cgroup2.ROOT
SLO = {"cpu_idle": 1, "cpu_shares": 2, "cpu_quota_us": 95_000, "memory_max_bytes": 2**30 + 5}
NEUTRAL = {"cpu_idle": 0, "cpu_shares": 1024, "cpu_quota_us": -1, "cpu_period_us": 100_000, "memory_max_bytes": -1}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_cgroup2.Host(tmp_path, monkeypatch)


def test_detects_v2(host: Any) -> None:
    assert host.layout.version == "v2"
    assert host.layout.path("cpuacct", "a") == str(host.tree.mount / "a")
    assert host.layout.directories("a") == (str(host.tree.mount / "a"),)


def test_controllers_are_enabled_from_the_top_and_values_arrive(host: Any) -> None:
    groups = (Group("", values={"cpuset_cpus": "0-1"}), Group("service", values=NEUTRAL), Group("batch", values=SLO))
    host.apply(*groups)
    for place in ("", "colocation-testbed/", f"{ROOT}/"):
        assert set(host.tree.get(f"{place}cgroup.subtree_control").split()) == {"cpu", "cpuset", "io", "memory", "pids"}
    assert host.get("service/cpu.weight") == "39"
    assert host.get("batch/cpu.idle") == "1"
    assert host.get("batch/cpu.max") == "95000 100000"
    assert host.get("batch/memory.max") == str(2**30)
    assert host.tree.get(f"{ROOT}/cpuset.cpus") == "0-1"
    assert host.plan(*groups).steps == ()


def test_changing_modes_there_and_back_leaves_nothing(host: Any) -> None:
    host.apply(Group("batch", values=NEUTRAL))
    first = cgroup_report.values(host.layout, f"{ROOT}/batch")
    host.apply(Group("batch", values=SLO))
    host.apply(Group("batch", values=NEUTRAL))
    assert cgroup_report.values(host.layout, f"{ROOT}/batch") == first
    assert host.get("batch/cpu.weight") == "39"


def test_quota_and_period_are_one_write(host: Any) -> None:
    host.apply(Group("batch"))
    host.tree.writes.clear()
    host.apply(Group("batch", values={"cpu_quota_us": 20_000, "cpu_period_us": 50_000, "cpu_burst_us": 10_000}))
    assert [line for line in host.tree.writes if "cpu.max" in line] == [
        f"{ROOT}/batch/cpu.max 20000 50000",
        f"{ROOT}/batch/cpu.max.burst 10000",
    ]
    host.apply(Group("batch", values={"cpu_quota_us": 5_000, "cpu_burst_us": 1_000}))
    assert host.get("batch/cpu.max") == "5000 50000"


def test_the_empty_cpuset_is_the_parents(host: Any) -> None:
    host.apply(Group("", values={"cpuset_cpus": "1"}), Group("a", values={"cpuset_cpus": ""}))
    assert host.get("a/cpuset.cpus") == ""
    with pytest.raises(cgroup.CgroupError, match="is not within its parent's 1;"):
        host.plan(Group("a", values={"cpuset_cpus": "0"}))


def test_protection_of_memory_exists_on_v2(host: Any) -> None:
    host.apply(Group("a", values={"memory_min_bytes": 8192, "memory_low_bytes": 8192, "memory_high_bytes": -1}))
    assert host.get("a/memory.min") == "8192"


def test_undo_disables_only_what_was_enabled(host: Any) -> None:
    host.tree.write(str(host.tree.mount / "cgroup.subtree_control"), "+memory")
    host.apply(Group("batch", values=SLO))
    assert set(host.undo()) == {"undone"}
    assert host.tree.get("cgroup.subtree_control") == "memory"
    assert host.tree.groups() == ["."]


def test_values_of_foreign_groups_are_put_back(host: Any) -> None:
    host.tree.write(str(host.tree.mount / "cgroup.subtree_control"), "+cpu +memory")
    for name in ("colocation-testbed", ROOT):
        host.tree.mkdir(str(host.tree.mount / name))
    host.tree.write(str(host.tree.mount / "colocation-testbed/cgroup.subtree_control"), "+cpu +memory")
    host.tree.write(str(host.tree.mount / ROOT / "cpu.weight"), "77")
    host.apply(Group("", values={"cpu_idle": 1, "memory_max_bytes": 2**20}), Group("batch"))
    assert set(host.undo()) == {"undone"}
    assert host.tree.get(f"{ROOT}/cpu.weight") == "77"
    assert host.tree.get(f"{ROOT}/memory.max") == "max"
    assert not (host.tree.mount / ROOT / "batch").exists()


def test_a_refusal_takes_everything_back(host: Any) -> None:
    host.tree.refuse[f"{ROOT}/batch/memory.max"] = errno.EBUSY
    with pytest.raises(
        cgroup.CgroupError, match=r"memory.max: writing .* failed: .*; what came before it was taken back"
    ):
        host.apply(Group("batch", values=SLO))
    assert host.tree.groups() == ["."]
    assert host.tree.get("cgroup.subtree_control") == ""
    assert [entry.by for entry in host.book.entries()] == ["journal"]


def test_what_cannot_be_taken_back_stays_in_the_journal(host: Any) -> None:
    host.apply(Group("batch"))
    host.tree.refuse |= {f"{ROOT}/batch/cpu.weight": errno.EIO, f"{ROOT}/batch/memory.max": errno.EBUSY}
    host.tree.refuse_after[f"{ROOT}/batch/cpu.weight"] = 1
    host.book.forget_many((entry.kind, entry.target) for entry in host.book.entries())
    with pytest.raises(cgroup.CgroupError, match=r"could not be taken back: .*cpu\.weight.*; run reset"):
        host.apply(Group("batch", values={"cpu_shares": 2, "memory_max_bytes": 4096}))
    host.tree.refuse.clear()
    assert host.get("batch/cpu.weight") == "1"
    assert set(host.undo()) == {"undone"}
    assert host.get("batch/cpu.weight") == "100"


def test_a_process_in_an_inner_group_is_explained(host: Any) -> None:
    host.apply(Group(""))
    host.tree.write(str(host.tree.mount / ROOT / "cgroup.procs"), "77")
    with pytest.raises(cgroup.CgroupError, match="a group with child groups holds no processes"):
        host.apply(Group("batch"))


def test_a_group_that_vanishes_is_explained(host: Any) -> None:
    host.apply(Group("batch"))
    found = host.plan(Group("batch", values=SLO))
    host.tree.vanish(f"{ROOT}/batch")
    with pytest.raises(cgroup.CgroupError, match="the group or this file is gone"):
        cgroup_apply.apply(found.steps, host.book, "test", host.ours())


def test_a_controller_that_is_not_there_is_explained(host: Any, tmp_path: Path) -> None:
    (host.tree.mount / "cgroup.controllers").write_text("cpu\n")
    host.layout = cgroup.parse_layout(host.tree.mountinfo(), str(tmp_path))
    found = host.plan(Group("a", values={"memory_max_bytes": 4096, "pids_max": -1, "cpu_shares": 5}))
    assert [(item.key, item.why) for item in found.skipped] == [
        ("memory_max_bytes", "needs the memory controller; this host has no memory controller")
    ]


def test_a_kernel_without_a_file_skips_only_what_differs_from_its_behaviour(host: Any) -> None:
    host.apply(Group("old"))
    (host.tree.mount / ROOT / "old/cpu.idle").unlink()
    assert host.plan(Group("old", values={"cpu_idle": 0})).skipped == ()
    assert "Linux 5.15" in host.plan(Group("old", values={"cpu_idle": 1})).skipped[0].why


def test_processes_are_moved(host: Any) -> None:
    (host.proc / "77").mkdir()
    (host.proc / "77/stat").write_text("77 (x) S 1 77 77 " + "0 " * 46)
    (host.proc / "77/cgroup").write_text("0::/\n")
    host.apply(Group("a", pids=(77,)))
    assert host.get("a/cgroup.procs") == "77"
    with pytest.raises(cgroup.CgroupError, match="process 78 does not exist"):
        host.plan(Group("a", pids=(78,)))
    (host.proc / "77/cgroup").write_text(f"0::/{ROOT}/a\n")
    assert host.plan(Group("a", pids=(77,))).steps == ()


@pytest.mark.parametrize("name", ["..", "../x", "/abs", "a//b", "a\nb", "a/", "ä", "a/../b", " ", "x" * 300, "."])
def test_dangerous_names_are_refused(host: Any, name: str) -> None:
    with pytest.raises(cgroup.CgroupError, match="not allowed"):
        host.plan(Group(name))


def test_symbolic_links_are_refused(host: Any) -> None:
    (host.tree.mount / "colocation-testbed").symlink_to("/tmp")
    with pytest.raises(cgroup.CgroupError, match="is a symbolic link"):
        host.plan(Group("a"))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"cpu_shares": 1}, "cpu_shares: 1 is not allowed; write a number from 2 to 262144"),
        ({"cpu_weight": 10_001}, "from 1 to 10000"),
        ({"cpu_quota_us": 999}, "from 1000 .*or -1 for no limit"),
        ({"cpu_period_us": 10**7}, "to 1000000"),
        ({"cpu_burst_us": -1}, "from 0"),
        ({"cpu_quota_us": 5000, "cpu_burst_us": 6000}, "above cpu_quota_us 5000"),
        ({"cpuset_cpus": "0-"}, "is not a CPU list"),
        ({"cpuset_cpus": "7"}, "is not within its parent's 0-3"),
        ({"memory_max_bytes": -2}, "or -1 for no limit"),
        ({"memory_max_bytes": True}, "is not a whole number"),
        ({"cpu_idle": 2}, "from 0 to 1"),
        ({"nonsense": 1}, "nonsense: is not known; write one of cpu_burst_us"),
    ],
)
def test_bad_values_are_explained_before_anything_changes(host: Any, values: dict[str, Any], words: str) -> None:
    with pytest.raises(cgroup.CgroupError, match=words):
        host.apply(Group("a", values=values))
    assert host.tree.groups() == ["."]
    assert not host.book.exists()


def test_a_group_given_twice_and_an_empty_root_are_refused(host: Any) -> None:
    with pytest.raises(cgroup.CgroupError, match="is given twice"):
        host.plan(Group("a"), Group("a"))
    with pytest.raises(cgroup.CgroupError, match="give a path below the hierarchy"):
        cgroup_plan.plan(host.layout, "", [Group("a")])
