# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the running kernel refuses, and limits of disks; loop0 stands for a disk, since nothing is behind it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cgroup_apply, cgroup_plan
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import (
    ENABLE,
    MAKE,
    MOVE,
    Group,
    Step,
)
from tests.support.cgroup_host import Host

pytestmark = pytest.mark.kernel
DISK, OTHER = "7:0", "7:1"
READ = "blkio.throttle.read_bps_device"


@pytest.fixture
def disks(host: Host) -> Host:
    if not all(os.path.exists(f"/sys/dev/block/{disk}") for disk in (DISK, OTHER)):
        pytest.skip("needs the loop devices 0 and 1")
    if not Path(host.layout.path("io"), READ).exists():
        pytest.skip("needs blkio with CONFIG_BLK_DEV_THROTTLING")
    return host


def _limit(host: Host, name: str, file: str) -> list[str]:
    return sorted(host.read("io", name, file).splitlines())


def test_limits_of_disks_arrive_and_go(disks: Host) -> None:
    first = {"io_max": [{"device": "/dev/loop0", "rbps": 1 << 20, "wiops": 50}, {"device": OTHER, "rbps": 7}]}
    assert disks.apply(Group("a", values=first)) > 0
    assert _limit(disks, "a", READ) == ["7:0 1048576", "7:1 7"]
    assert _limit(disks, "a", "blkio.throttle.write_iops_device") == ["7:0 50"]
    assert disks.plan(Group("a", values=first)).steps == ()
    disks.apply(Group("a", values={"io_max": [{"device": DISK, "rbps": -1}]}))
    assert _limit(disks, "a", READ) == ["7:1 7"]
    assert _limit(disks, "a", "blkio.throttle.write_iops_device") == ["7:0 50"]


def test_undo_of_limits_in_a_foreign_group_leaves_those_of_others(disks: Host) -> None:
    disks.foreign(Group("a", values={"io_max": [{"device": DISK, "rbps": 5}], "io_weight": 50}))
    before = disks.picture()
    disks.apply(Group("a", values={"io_max": [{"device": DISK, "rbps": 6, "wbps": 9}], "io_weight": 500}))
    disks.apply(Group("a", values={"io_max": [{"device": OTHER, "rbps": 8}], "memory_max_bytes": 2**20}))
    assert all(item.outcome.result == "undone" for item in disks.undo())
    assert disks.picture() == before
    disks.apply(Group("a", values={"io_max": [{"device": DISK, "rbps": 6}]}))
    Path(disks.layout.path("io", f"{disks.root}/a"), READ).write_text(f"{OTHER} 33")
    assert all(item.outcome.result == "undone" for item in disks.undo())
    assert _limit(disks, "a", READ) == ["7:0 5", "7:1 33"]


def test_weight_of_io_is_translated_to_bfq(disks: Host) -> None:
    if not Path(disks.layout.path("io"), "blkio.bfq.io_service_bytes").exists():
        pytest.skip("needs CONFIG_BFQ_GROUP_IOSCHED")
    found = disks.plan(Group("a", values={"io_weight": 200}))
    assert [(item.wanted, item.text) for item in found.translated] == [(200, "109")]
    disks.apply(Group("a", values={"io_weight": 200}))
    assert disks.read("io", "a", "blkio.bfq.weight") == "109"
    assert disks.plan(Group("a", values={"io_weight": 200})).steps == ()


def test_a_disk_that_is_not_there_changes_nothing(disks: Host) -> None:
    with pytest.raises(cgroup.CgroupError, match=r"io_max\[0\]: device 7:4095: there is no block device 7:4095"):
        disks.apply(Group("a", values={"io_max": [{"device": "7:4095", "rbps": 5}]}))
    assert disks.directories() == []


def test_a_disk_that_goes_in_the_middle_is_named(disks: Host) -> None:
    def resolve(_device: str) -> str:
        return "7:4095"

    group = Group("a", values={"io_max": [{"device": DISK, "rbps": 5}]})
    steps = cgroup_plan.plan(disks.layout, disks.root, [group], resolve=resolve).steps
    with pytest.raises(cgroup.CgroupError, match=r"writing '7:4095 5' failed: No such device \(there is no such disk"):
        cgroup_apply.apply(steps, disks.book, "test", frozenset())
    assert disks.directories() == []


def test_mainline_v1_lacks_what_v2_has(host: Host) -> None:
    values: dict[str, Any] = {"memory_swap_max_bytes": 0, "memory_oom_group": 1, "cpuset_partition": "root"}
    values["io_latency"] = [{"device": DISK, "target_us": 5}]
    found = host.plan(Group("a", values={**values, "cpu_bvt_warp_ns": 2}))
    assert {item.key for item in found.skipped} == {*values, "cpu_bvt_warp_ns"}
    swap = next(item.why for item in found.skipped if item.key == "memory_swap_max_bytes")
    assert "memory.memsw.limit_in_bytes" in swap
    neutral = {"memory_swap_max_bytes": -1, "memory_oom_group": 0, "cpuset_partition": "member", "cpu_bvt_warp_ns": 0}
    assert host.plan(Group("a", values=neutral)).skipped == ()


@pytest.fixture
def eater(host: Host) -> Iterator[int]:
    """A process in group a that holds 32 MiB of locked memory, which cannot be reclaimed."""
    code = (
        "import ctypes, mmap, sys; m = mmap.mmap(-1, 1 << 25, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
        "sys.stdin.readline()\n"
        "for i in range(0, 1 << 25, 4096): m[i] = 1\n"
        "a = ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
        "assert ctypes.CDLL(None, use_errno=True).mlock(ctypes.c_void_p(a), ctypes.c_size_t(1 << 25)) == 0\n"
        "print('held', flush=True); sys.stdin.readline()"
    )
    argv = [sys.executable, "-c", code]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        if child.stdin is None or child.stdout is None:
            raise AssertionError("no pipes")
        host.foreign(Group("a", pids=(child.pid,)))
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "held\n"
        yield child.pid
        child.kill()


@pytest.mark.usefixtures("eater")
def test_a_memory_limit_below_what_is_locked_is_refused_and_rolled_back(host: Host) -> None:
    before = host.picture()
    with pytest.raises(cgroup.CgroupError) as caught:
        host.apply(Group("a", values={"cpu_shares": 77, "memory_max_bytes": 2**20}), Group("b"))
    text = str(caught.value)
    assert "memory.limit_in_bytes: writing '1048576' failed: Device or resource busy (more is in use" in text
    assert "it still reads '9223372036854771712'; what came before it was taken back" in text
    assert host.picture() == before
    assert host.book.entries() == ()


def test_an_offline_cpu_is_refused(host: Host) -> None:
    count = os.sysconf("SC_NPROCESSORS_CONF")
    with pytest.raises(cgroup.CgroupError, match="is not within its parent's"):
        host.apply(Group("a", values={"cpuset_cpus": str(count)}))
    host.foreign(Group("a"))
    path = f"{host.layout.path('cpuset', host.root)}/a/cpuset.cpus"
    step = Step("write", path, str(count), "0")
    with pytest.raises(cgroup.CgroupError, match=r"cpuset\.cpus: writing .* failed: .*; it still reads '0"):
        cgroup_apply.apply([step], host.book, "test", frozenset())


def test_an_empty_cpuset_takes_no_process(host: Host, sleeper: int) -> None:
    host.foreign(Group(""))
    directory = Path(host.layout.path("cpuset", host.root), "empty")
    directory.mkdir()
    step = Step(MOVE, str(directory), str(sleeper), host.layout.path("cpuset"))
    with pytest.raises(cgroup.CgroupError, match=r"No space left on device \(the group's cpuset is empty\)"):
        cgroup_apply.apply([step], host.book, "test", frozenset())


def test_a_group_that_vanishes_in_the_middle(host: Host) -> None:
    host.foreign(Group("a"))
    before = host.picture()
    steps = host.plan(Group("a", values={"cpu_shares": 7, "pids_max": 5}), Group("b")).steps
    os.rmdir(host.layout.path("pids", f"{host.root}/a"))
    with pytest.raises(cgroup.CgroupError, match=r"pids\.max: .*someone else removed it, run again.*taken back"):
        cgroup_apply.apply(steps, host.book, "test", frozenset())
    assert host.picture() == {
        key: text for key, text in before.items() if "/pids/" not in key or not key.split(host.root)[1].startswith("/a")
    }
    assert host.book.entries() == ()


def test_a_read_only_hierarchy_is_named(host: Host, tmp_path: Path) -> None:
    mount = tmp_path / "pids"
    mount.mkdir()
    done = subprocess.run(
        ["mount", "--bind", host.layout.path("pids"), mount], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"cannot mount: {done.stderr.strip()}")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", mount], check=True)
        others = tuple(item for item in host.layout.hierarchies if "pids" not in item.controllers)
        host.layout = cgroup.Layout("v1", (*others, cgroup.Hierarchy(str(mount), 1, ("pids",))))
        with pytest.raises(cgroup.CgroupError, match=r"Read-only file system \(the hierarchy is mounted read-only"):
            host.apply(Group("a"))
        assert host.directories() == []
    finally:
        subprocess.run(["umount", mount], check=True)


def test_a_symbolic_link_cannot_be_in_the_way(host: Host, tmp_path: Path) -> None:
    # A cgroup file system has no links, so the hierarchy is a plain directory here.
    (tmp_path / "link").symlink_to("/tmp")
    with pytest.raises(cgroup.CgroupError, match="is a symbolic link"):
        cgroup.refuse_symlinks(str(tmp_path), "link/a")


@pytest.fixture
def unified() -> Iterator[Path]:
    """A group of our own in the v2 hierarchy of a hybrid host, which has no controllers."""
    found = next((item for item in cgroup.detect().hierarchies if item.version == 2), None)
    if found is None or os.geteuid() != 0:
        pytest.skip("needs root and a cgroup2 mount")
    top = Path(found.mount, f"colocation-testbed-test-{os.getpid()}-v2")
    top.mkdir()
    yield top
    for place, _, _ in os.walk(top, topdown=False):
        os.rmdir(place)


def test_a_controller_that_v1_has_cannot_be_enabled_on_v2(host: Host, unified: Path) -> None:
    step = Step(ENABLE, f"{unified}/cgroup.subtree_control", "+pids", "")
    with pytest.raises(cgroup.CgroupError, match=r"writing '\+pids' failed: .*the controller is not enabled above"):
        cgroup_apply.apply([step], host.book, "test", frozenset())


def test_a_group_below_a_threaded_one_takes_no_process(host: Host, unified: Path, sleeper: int) -> None:
    (unified / "cgroup.type").write_text("threaded")
    steps = [Step(MAKE, f"{unified}/a"), Step(MOVE, f"{unified}/a", str(sleeper), str(unified.parent))]
    with pytest.raises(cgroup.CgroupError, match=r"the group is threaded, or below a threaded one.*taken back"):
        cgroup_apply.apply(steps, host.book, "test", frozenset())
    assert not (unified / "a").exists()


def test_processes_move_within_the_v2_hierarchy(host: Host, unified: Path, sleeper: int) -> None:
    steps = [Step(MAKE, f"{unified}/a"), Step(MOVE, f"{unified}/a", str(sleeper), str(unified.parent))]
    cgroup_apply.apply(steps, host.book, "test", frozenset())
    assert cgroup.read_pids(f"{unified}/a") == [sleeper]
    cgroup.move(str(unified.parent), sleeper)


def test_a_process_that_ends_in_the_middle_is_no_obstacle_to_taking_back(host: Host) -> None:
    host.foreign(Group("a"), Group("b"))
    before = host.picture()
    with subprocess.Popen(["sleep", "600"]) as child:
        steps = host.plan(Group("a", pids=(child.pid,)), Group("b", values={"pids_max": 5})).steps
        moves = [step for step in steps if step.kind == MOVE]
        others = [step for step in steps if step.kind != MOVE]
        child.kill()
        child.wait()
        with pytest.raises(cgroup.CgroupError, match=r"the process has ended\).*what came before it was taken back"):
            cgroup_apply.apply([*others, *moves], host.book, "test", frozenset())
    assert host.picture() == before


def test_the_dead_are_not_moved(host: Host) -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    try:
        assert not [step for step in host.plan(Group("a", found=(child.pid,))).steps if step.kind == MOVE]
        with pytest.raises(cgroup.CgroupError, match=f"process {child.pid} does not exist"):
            host.plan(Group("a", pids=(child.pid,)))
    finally:
        child.wait()
