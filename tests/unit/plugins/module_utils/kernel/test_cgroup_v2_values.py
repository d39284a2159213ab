# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Partitions, memory limits, limits of disks and refusals on a stand-in for cgroup v2."""

from __future__ import annotations

import errno
import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cgroup_apply, cgroup_report
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import Group

_SPEC = importlib.util.spec_from_file_location("fake_cgroup2", Path(__file__).with_name("fake_cgroup2.py"))
fake_cgroup2: Any = importlib.util.module_from_spec(_SPEC)  # type: ignore[arg-type]
_SPEC.loader.exec_module(fake_cgroup2)  # type: ignore[union-attr]

ROOT = fake_cgroup2.ROOT
DISK, OTHER = "8:0", "8:16"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_cgroup2.Host(tmp_path, monkeypatch)


def _writes(host: Any, *names: str) -> list[str]:
    return [line for line in host.tree.writes if os.path.basename(line.split()[0]) in names]


@pytest.mark.parametrize(
    ("option", "value", "file", "text"),
    [
        ("cpu_shares", 1536, "cpu.weight", "59"),
        ("cpu_weight", 77, "cpu.weight", "77"),
        ("memory_swap_max_bytes", 2**20 + 1, "memory.swap.max", str(2**20)),
        ("memory_swap_max_bytes", 0, "memory.swap.max", "0"),
        ("memory_oom_group", 1, "memory.oom.group", "1"),
        ("memory_high_bytes", 1_932_735_283, "memory.high", "1932734464"),
        ("io_weight", 200, "io.weight", "default 200"),
        ("io_max", [{"device": "/dev/sda", "rbps": 5}], "io.max", "8:0 rbps=5 wbps=max riops=max wiops=max"),
        ("io_latency", [{"device": OTHER, "target_us": 75000}], "io.latency", "8:16 target=75000"),
    ],
)
def test_each_value_arrives_and_stays(host: Any, option: str, value: Any, file: str, text: str) -> None:
    assert host.apply(Group("a", values={option: value})) > 0
    assert host.get(f"a/{file}") == text
    assert host.plan(Group("a", values={option: value})).steps == ()


def test_a_limit_that_is_not_given_stays(host: Any) -> None:
    host.apply(Group("a", values={"io_max": [{"device": DISK, "rbps": 5, "wiops": 7}]}))
    host.apply(Group("a", values={"io_max": [{"device": DISK, "rbps": -1}, {"device": OTHER, "wbps": 9}]}))
    assert cgroup_report.values(host.layout, f"{ROOT}/a")["io_max"] == [
        {"device": DISK, "wiops": 7},
        {"device": OTHER, "wbps": 9},
    ]
    host.apply(Group("a", values={"io_max": [{"device": DISK, "wiops": -1}, {"device": OTHER, "wbps": -1}]}))
    assert host.get("a/io.max") == ""


def test_prediction_is_in_the_words_of_the_options(host: Any) -> None:
    found = host.plan(Group("a", values={"io_max": [{"device": DISK, "rbps": 5, "wbps": -1}], "io_weight": 5}))
    assert found.after["a"] == {"io_max": [{"device": DISK, "rbps": 5, "wbps": -1}], "io_weight": 5}


def test_undo_brings_back_lines_of_a_foreign_group_and_leaves_those_of_others(host: Any) -> None:
    host.foreign(Group("a", values={"io_max": [{"device": DISK, "rbps": 5, "wiops": 7}], "io_weight": 50}))
    before = host.get("a/io.max"), host.get("a/io.weight")
    host.apply(Group("a", values={"io_max": [{"device": DISK, "rbps": -1, "wbps": 6}], "io_weight": 300}))
    host.apply(
        Group("a", values={"io_max": [{"device": DISK, "rbps": 99}], "io_latency": [{"device": DISK, "target_us": 5}]})
    )
    assert {entry.kind for entry in host.book.entries()} == {"line"}
    assert set(host.undo()) == {"undone"}
    assert (host.get("a/io.max"), host.get("a/io.weight"), host.get("a/io.latency")) == (*before, "")

    host.apply(Group("a", values={"io_max": [{"device": DISK, "rbps": 8}]}))
    host.tree.write(str(host.tree.mount / ROOT / "a/io.max"), f"{OTHER} rbps=33")
    assert set(host.undo()) == {"undone"}
    assert f"{OTHER} rbps=33" in host.get("a/io.max")
    assert "8:0 rbps=5 " in host.get("a/io.max")


def test_a_refusal_takes_lines_back(host: Any) -> None:
    host.foreign(Group("a", values={"io_max": [{"device": DISK, "rbps": 5}]}))
    host.tree.refuse[f"{ROOT}/a/memory.oom.group"] = errno.EINVAL
    with pytest.raises(cgroup.CgroupError, match="taken back"):
        host.apply(Group("a", values={"io_max": [{"device": DISK, "rbps": 6}], "memory_oom_group": 1, "io_weight": 3}))
    assert host.get("a/io.max") == "8:0 rbps=5 wbps=max riops=max wiops=max"
    assert host.get("a/io.weight") == "default 100"
    assert host.book.entries() == ()


def test_removal_that_fails_later_brings_lines_back(host: Any) -> None:
    values = {"io_max": [{"device": DISK, "rbps": 5}, {"device": OTHER, "wbps": 6}], "io_weight": 7}
    host.apply(Group("a", values=values), Group("b"))
    before = host.get("a/io.max"), host.get("a/io.weight")
    steps = host.plan(Group("a", state="absent"), Group("b", state="absent")).steps
    (host.tree.mount / ROOT / "b/cgroup.procs").write_text("1\n")
    with pytest.raises(cgroup.CgroupError, match="taken back"):
        cgroup_apply.apply(steps, host.book, "test", host.ours())
    assert (host.get("a/io.max"), host.get("a/io.weight")) == before


def test_memory_grows_from_the_top_and_shrinks_from_the_bottom(host: Any) -> None:
    big = {"memory_min_bytes": 4096, "memory_low_bytes": 8192, "memory_high_bytes": 12288, "memory_max_bytes": 16384}
    host.apply(Group("", values=big), Group("a", values=big))
    host.tree.writes.clear()
    small = {name: value // 2 // 4096 * 4096 for name, value in big.items()}
    host.apply(Group("", values=small), Group("a", values=small))
    order = [line.split()[0] for line in host.tree.writes]
    inner = [f"{ROOT}/a/memory.{name}" for name in ("min", "low", "high", "max")]
    assert order == inner + [line.replace("/a/", "/") for line in inner]
    host.tree.writes.clear()
    host.apply(Group("", values=big), Group("a", values=big))
    assert [line.split()[0] for line in host.tree.writes] == order[::-1]


def test_a_partition_gets_its_cpus_first_and_parents_come_first(host: Any) -> None:
    whole = Group("", values={"cpuset_cpus": "1-2", "cpuset_partition": "root"})
    part = Group("a", values={"cpuset_cpus": "1", "cpuset_partition": "isolated"})
    with pytest.raises(
        cgroup.CgroupError, match=r"wrote 'root', read 'root invalid \(Parent is not a partition root\)'"
    ):
        host.apply(whole, part)
    host.tree.mkdir(str(host.tree.mount / "colocation-testbed"))
    host.tree.write(str(host.tree.mount / "cgroup.subtree_control"), "+cpuset")
    host.tree.write(str(host.tree.mount / "colocation-testbed/cpuset.cpus"), "1-3")
    host.tree.write(str(host.tree.mount / "colocation-testbed/cpuset.cpus.partition"), "root")
    host.apply(part, whole)
    wanted = [f"{ROOT}/cpuset.cpus.partition root", f"{ROOT}/a/cpuset.cpus.partition isolated"]
    assert _writes(host, "cpuset.cpus.partition")[-2:] == wanted
    assert host.plan(part, whole).steps == ()
    host.apply(Group("a", values={"cpuset_partition": "member"}))
    assert host.get("a/cpuset.cpus.partition") == "member"
    assert set(host.undo()) == {"undone"}


def test_what_the_root_has_handed_over_to_a_partition_is_still_its_own(host: Any) -> None:
    host.tree.mkdir(str(host.tree.mount / "colocation-testbed"))
    host.tree.write(str(host.tree.mount / "cgroup.subtree_control"), "+cpuset")
    host.tree.write(str(host.tree.mount / "colocation-testbed/cpuset.cpus"), "2-3")
    host.tree.write(str(host.tree.mount / "colocation-testbed/cpuset.cpus.partition"), "root")
    assert host.tree.get("cpuset.cpus.effective") == "0-1"
    host.apply(Group("", values={"cpuset_cpus": "3"}))
    assert host.plan(Group("", values={"cpuset_cpus": "3"})).steps == ()
    with pytest.raises(cgroup.CgroupError, match="cpuset_cpus 1 is not within its parent's 2-3"):
        host.plan(Group("", values={"cpuset_cpus": "1"}))


def test_cpus_of_a_partition_of_others_are_refused(host: Any) -> None:
    host.tree.mkdir(str(host.tree.mount / "theirs"))
    host.tree.write(str(host.tree.mount / "cgroup.subtree_control"), "+cpuset")
    host.tree.write(str(host.tree.mount / "theirs/cpuset.cpus"), "3")
    host.tree.write(str(host.tree.mount / "theirs/cpuset.cpus.partition"), "root")
    with pytest.raises(cgroup.CgroupError, match="cpuset_cpus 3 is not within its parent's 0-2"):
        host.plan(Group("", values={"cpuset_cpus": "3"}))


def test_a_partition_that_was_invalid_before_is_put_back_as_it_was(host: Any) -> None:
    host.foreign(Group("a"))
    path = host.tree.mount / ROOT / "a/cpuset.cpus.partition"
    host.tree.write(str(path), "root")
    before = path.read_text()
    assert "invalid" in before
    host.apply(Group("a", values={"cpuset_partition": "member"}))
    assert set(host.undo()) == {"undone"}
    assert path.read_text() == before


def test_what_alibabas_kernels_have_is_skipped_elsewhere_and_set_there(host: Any) -> None:
    values = {"cpu_bvt_warp_ns": -1, "memory_wmark_ratio": 95, "memory_priority": 0}
    found = host.plan(Group("a", values=values))
    assert [(item.key, "Alibaba Cloud Linux" in item.why) for item in found.skipped] == [
        ("cpu_bvt_warp_ns", True),
        ("memory_wmark_ratio", True),
    ]
    host.apply(Group("a"))
    for name, text in (("cpu.bvt_warp_ns", "0"), ("memory.wmark_ratio", "0")):
        (host.tree.mount / ROOT / "a" / name).write_text(text)
    host.apply(Group("a", values=values))
    assert (host.get("a/cpu.bvt_warp_ns"), host.get("a/memory.wmark_ratio")) == ("-1", "95")


def test_bfq_takes_the_place_of_iocost(host: Any) -> None:
    host.apply(Group("a"))
    directory = host.tree.mount / ROOT / "a"
    (directory / "io.weight").unlink()
    (directory / "io.bfq.weight").write_text("default 100\n8:0 300\n")
    found = host.plan(Group("a", values={"io_weight": 10000}))
    assert [(step.path.rsplit("/", 1)[1], step.text) for step in found.steps] == [("io.bfq.weight", "default 1000")]
    assert [(item.key, item.text) for item in found.translated] == [("io_weight", "default 1000")]


def test_a_file_that_turns_out_to_be_missing_is_skipped_or_an_error(host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fake_cgroup2.FILES["io"], "io.latency", "")
    monkeypatch.delitem(fake_cgroup2.FILES["io"], "io.latency")
    group = Group("a", values={"io_latency": [{"device": DISK, "target_us": 5}], "io_weight": 5})
    steps = host.plan(group).steps
    with pytest.raises(cgroup.CgroupError, match=r"this kernel has no io\.latency in its groups.*taken back"):
        cgroup_apply.apply(steps, host.book, "test", frozenset(), lenient=False)
    assert host.tree.groups() == ["."]
    lacking = cgroup_apply.apply(steps, host.book, "test", frozenset())
    assert [os.path.basename(step.path) for step in lacking] == ["io.latency"]
    assert cgroup_report.lacking(host.layout, ROOT, lacking)[0]["group"] == "a"
    assert host.get("a/io.weight") == "default 5"


@pytest.mark.parametrize(
    ("number", "file", "words"),
    [
        (errno.EINVAL, "cpu.max", "quota below 1000"),
        (errno.EBUSY, "memory.max", "more is in use"),
        (errno.EROFS, "cpu.weight", "mounted read-only"),
        (errno.EACCES, "pids.max", "run as root"),
        (errno.EPERM, "memory.high", "delegated to this user"),
        (errno.ENODEV, "io.max", "no such disk"),
        (errno.ERANGE, "io.weight", "outside of what this kernel allows"),
        (errno.EINVAL, "cpuset.cpus", "offline"),
        (errno.EIO, "cpu.max.burst", "see the kernel log"),
    ],
)
def test_each_refusal_names_file_wrote_and_read_and_is_rolled_back(
    host: Any, number: int, file: str, words: str
) -> None:
    values = {
        "cpu_shares": 2,
        "cpu_quota_us": 5000,
        "cpu_burst_us": 100,
        "memory_max_bytes": 4096,
        "memory_high_bytes": 4096,
        "pids_max": 5,
        "io_weight": 5,
        "cpuset_cpus": "1",
        "io_max": [{"device": DISK, "rbps": 5}],
    }
    host.foreign(Group("a"))
    directory = host.tree.mount / ROOT / "a"
    before = {path.name: path.read_text() for path in directory.iterdir()}
    host.tree.refuse[f"{ROOT}/a/{file}"] = number
    with pytest.raises(cgroup.CgroupError) as caught:
        host.apply(Group("a", values=values), Group("b", values={"pids_max": 7}))
    text = str(caught.value)
    assert f"{directory}/{file}: writing " in text
    assert "it still reads " in text
    assert words in text
    assert "what came before it was taken back" in text
    assert "\n" not in text
    assert {path.name: path.read_text() for path in directory.iterdir()} == before
    assert not (host.tree.mount / ROOT / "b").exists()
    assert host.book.entries() == ()


def test_a_value_that_does_not_stay_is_an_error(host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host.tree, "_pids_max", lambda place, text: "4", raising=False)
    with pytest.raises(cgroup.CgroupError, match=r"pids\.max: wrote '5', read '4'; the kernel did not take the value"):
        host.apply(Group("a", values={"pids_max": 5}))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EOPNOTSUPP, "the group is threaded"),
        (errno.ENOENT, "not enabled above"),
        (errno.EROFS, "read-only"),
        # cgroup-v2.rst, "CPU": kernels with CONFIG_RT_GROUP_SCHED, such as openEuler's.
        (errno.EINVAL, "realtime process outside the hierarchy's root"),
    ],
)
def test_controllers_that_cannot_be_enabled(host: Any, number: int, words: str) -> None:
    host.tree.refuse[f"{ROOT}/cgroup.subtree_control"] = number
    with pytest.raises(cgroup.CgroupError, match=words):
        host.apply(Group("a"))
    assert host.tree.groups() == ["."]


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EOPNOTSUPP, "the group is threaded"),
        (errno.ENOSPC, "cpuset is empty"),
        # containers/podman issue 7004: a process of a realtime slice on RHEL 7.
        (errno.EINVAL, "kernel threads cannot be moved, and .* a realtime process only where cpu.rt_runtime_us is"),
        (errno.EAGAIN, "pids.max"),
    ],
)
def test_moves_that_are_refused(host: Any, number: int, words: str) -> None:
    _process(host, 77)
    host.tree.refuse[f"{ROOT}/a/cgroup.procs"] = number
    with pytest.raises(cgroup.CgroupError, match=words):
        host.apply(Group("a", pids=(77,)))
    assert host.tree.groups() == ["."]


def _process(host: Any, pid: int, group: str = "/") -> None:
    (host.proc / str(pid)).mkdir(exist_ok=True)
    (host.proc / f"{pid}/stat").write_text(f"{pid} (x) S 1 77 77 " + "0 " * 46)
    (host.proc / f"{pid}/cgroup").write_text(f"0::{group}\n")


def test_a_found_process_that_ended_is_no_error_but_a_named_one_is(host: Any) -> None:
    gone = 4_194_304 + 7
    _process(host, gone)
    host.tree.ended = [str(gone)]
    host.apply(Group("a", found=(gone,)))
    assert host.get("a/cgroup.procs") == ""
    with pytest.raises(cgroup.CgroupError, match="the process has ended"):
        host.apply(Group("a", pids=(gone,)))


def test_a_process_in_two_lists_is_refused(host: Any) -> None:
    _process(host, 77)
    with pytest.raises(cgroup.CgroupError, match=r"process 77 is also in the list of .*/a; name it"):
        host.plan(Group("a", pids=(77,)), Group("b", found=(77,)))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"cpuset_partition": "exclusive"}, "write one of member, root, isolated"),
        ({"io_weight": 0}, "from 1 to 10000"),
        ({"io_max": [{"device": DISK, "rbps": 0}]}, r"io_max\[0\]\.rbps: 0 is not allowed; .* or -1 for no limit"),
        ({"io_max": [{"device": DISK, "riops": 2**32}]}, "to 4294967294"),
        ({"io_max": [{"rbps": 5}]}, "is not a limit of a device; write it as"),
        ({"io_max": "8:0"}, "is not a limit of a device"),
        ({"io_max": [{"device": DISK, "speed": 5}]}, "is not a limit of a device"),
        ({"io_max": [{"device": DISK}]}, r"io_max\[0\]: device 8:0 has no limit; give one of rbps, wbps, riops, wiops"),
        (
            {"io_max": [{"device": DISK, "rbps": 1}, {"device": "/dev/sda", "rbps": 1}]},
            r"io_max\[1\]: device 8:0 is given twice",
        ),
        ({"io_latency": [{"device": DISK, "target_us": -2}]}, "or -1 for no limit"),
        ({"memory_max_bytes": 0}, "memory_max_bytes: 0 is not allowed; write a number from 4096 .*or -1 for no limit"),
        ({"memory_high_bytes": 4095}, "memory_high_bytes: 4095 is not allowed"),
        ({"memory_swap_max_bytes": -2}, "or -1 for no limit"),
        ({"cpu_bvt_warp_ns": 3}, "from -1 to 2"),
        ({"memory_wmark_min_adj": -26}, "from -25 to 50"),
        ({"memory_oom_group": 2}, "from 0 to 1"),
    ],
)
def test_bad_values_change_nothing(host: Any, values: dict[str, Any], words: str) -> None:
    with pytest.raises(cgroup.CgroupError, match=words):
        host.apply(Group("a", values=values))
    assert host.tree.groups() == ["."]
    assert not host.book.exists()
