# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Control groups as other distributions and containers mount them; each case says where it was seen."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cgroup,
    cgroup_foreign,
    cgroup_state,
    procfs,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_tree import Tree
from ansible_collections.colocation.testbed.plugins.module_utils.node import own_group
from ansible_collections.colocation.testbed.plugins.module_utils.node.process_readers import SupervisedProcess
from ansible_collections.colocation.testbed.plugins.module_utils.node.spec import Paths

# SELinux adds seclabel to every hierarchy (RHEL 7 and 8, openEuler, Anolis), also to the one without a controller.
SELINUX = """\
30 21 0:26 / /sys/fs/cgroup ro,nosuid,nodev,noexec - tmpfs tmpfs ro,seclabel,mode=755
31 30 0:27 / /sys/fs/cgroup/systemd rw,nosuid - cgroup cgroup rw,seclabel,xattr,name=systemd
40 30 0:35 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:12 - cgroup cgroup rw,seclabel,cpu,cpuacct
42 30 0:38 / /sys/fs/cgroup/cpuset rw,nosuid shared:14 - cgroup cgroup rw,seclabel,cpuset,cpuset_v2_mode
43 30 0:42 / /sys/fs/cgroup/memory rw,nosuid shared:15 - cgroup cgroup rw,seclabel,memory
"""
# docker with cgroupns=host, the default on version 1: moby/moby issue 12394.
PART = "/docker/2f7f1f4f"
IN_DOCKER = f"""\
729 567 0:37 {PART} /sys/fs/cgroup/cpu,cpuacct rw,nosuid master:13 - cgroup cgroup rw,cpu,cpuacct
731 567 0:39 {PART} /sys/fs/cgroup/memory rw,nosuid master:15 - cgroup cgroup rw,memory
"""


def test_options_of_selinux_are_no_controllers() -> None:
    layout = cgroup.parse_layout(SELINUX)
    assert layout.version == "v1"
    assert [item.controllers for item in layout.hierarchies] == [("cpu", "cpuacct"), ("cpuset",), ("memory",)]
    paths = procfs.parse_group_paths("4:cpu,cpuacct:/system.slice/a.service\n3:cpuset:/\n1:name=systemd:/a\n")
    assert cgroup.path_in(paths, layout.hierarchy("cpu")) == "/system.slice/a.service"


def test_a_hierarchy_of_a_name_alone_does_not_make_a_host_hybrid(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    text = SELINUX.splitlines()[1] + f"\n32 30 0:28 / {tmp_path} rw - cgroup2 cgroup2 rw,seclabel,nsdelegate\n"
    assert cgroup.parse_layout(text).version == "v2"


def test_paths_in_a_container_begin_where_its_mount_does() -> None:
    layout = cgroup.parse_layout(IN_DOCKER)
    cpu = layout.hierarchy("cpu")
    assert (cpu.mount, cpu.root) == ("/sys/fs/cgroup/cpu,cpuacct", PART)
    for path, below in (
        (PART, "/"),
        (f"{PART}/colocation-testbed/a", "/colocation-testbed/a"),
        ("/docker/2f7f1f4f00", "/docker/2f7f1f4f00"),
    ):
        assert cgroup.path_in(procfs.parse_group_paths(f"4:cpu,cpuacct:{path}\n"), cpu) == below


def test_of_several_mounts_the_whole_hierarchy_serves(tmp_path: Path) -> None:
    for name in ("part", "whole"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cgroup.controllers").write_text("cpu memory\n" if name == "part" else "cpu io memory\n")
    text = (
        f"50 30 0:28 /kubepods/pod1 {tmp_path}/part ro - cgroup2 cgroup rw\n"
        f"51 30 0:28 / {tmp_path}/whole rw - cgroup2 cgroup rw\n"
    )
    layout = cgroup.parse_layout(text)
    assert [item.mount for item in layout.hierarchies] == [f"{tmp_path}/whole"]


@pytest.mark.parametrize("controllers", ["memory pids", ""])
def test_a_container_without_the_cpu_controller_is_told_to_ask_for_it(tmp_path: Path, controllers: str) -> None:
    (tmp_path / "cgroup.controllers").write_text(f"{controllers}\n")
    with pytest.raises(cgroup.CgroupError, match="delegate cpu to this host") as caught:
        cgroup.parse_layout(f"50 30 0:28 / {tmp_path} rw - cgroup2 cgroup rw\n")
    assert (controllers.replace(" ", ", ") or "no controller") in str(caught.value)


def test_a_process_is_found_in_its_group_in_a_container_without_a_namespace_of_groups(tmp_path: Path) -> None:
    proc, state = tmp_path / "proc", tmp_path / "state"
    for name, text in {
        "7/stat": "7 (nginx) S 1 7 7 0 -1 0 0 0 0 0 3 4 0 0 20 0 1 0 99 0 0\n",
        "7/cgroup": f"4:cpu,cpuacct:{PART}/colocation-testbed/service\n",
        "sys/kernel/random/boot_id": "b\n",
    }.items():
        (proc / name).parent.mkdir(parents=True, exist_ok=True)
        (proc / name).write_text(text)
    pid_file = Path(Paths(str(state), "nginx").pid)
    pid_file.parent.mkdir(parents=True)
    entry = {"state": "running", "pid": 7, "start_ticks": 99, "boot_id": "b", "spec_sha256": "", "error": ""}
    pid_file.write_text(json.dumps({**entry, "supervisor_pid": 6, "supervisor_start_ticks": 98}))
    reader = SupervisedProcess(cgroup.parse_layout(IN_DOCKER), str(pid_file), "/colocation-testbed/", str(proc))
    assert reader.read() == {"alive": True, "group": "service"}


def test_the_own_group_in_a_container(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "mount").mkdir()
    (tmp_path / "mount/cgroup.controllers").write_text("cpu\n")
    (tmp_path / "self/mountinfo").write_text(f"50 30 0:28 {PART} {tmp_path}/mount rw - cgroup2 cgroup rw\n")
    (tmp_path / "self/cgroup").write_text(f"0::{PART}/inner\n")
    assert own_group.find(str(tmp_path)) == (f"{tmp_path}/mount", f"{tmp_path}/mount/inner")
    (tmp_path / "self/cgroup").write_text("4:cpu:/\n")
    with pytest.raises(own_group.OwnGroupError, match="no cgroup2 is mounted"):
        own_group.find(str(tmp_path))


# Any systemd host with a serial console has this slice; util-linux calls the disk's service likewise.
def test_names_that_systemd_escapes_are_names_of_groups(tmp_path: Path) -> None:
    name = "system.slice/system-serial\\x2dgetty.slice"
    (tmp_path / name).mkdir(parents=True)
    (tmp_path / "cgroup.controllers").write_text("cpu\n")
    layout = cgroup.parse_layout(f"50 30 0:28 / {tmp_path} rw - cgroup2 cgroup rw\n")
    assert cgroup_foreign.expand(layout, "system.slice/*") == [name]
    assert cgroup_state.matching(layout, ["system.slice/*"]) == [name]
    assert cgroup_state.describe(layout, name, Tree())["exists"]


# libvirt on control groups v2 has a threaded group for each virtual CPU, libvirt/vcpu0 (what it is: cgroup-v2.rst).
def test_a_threaded_group_has_no_processes_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: str) -> str:
        raise files.FilesError(path) from OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(files, "read_text_or_none", refused)
    assert cgroup.read_pids(str(tmp_path)) == []
