# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes of units and programs, on a /proc and with a systemctl of the test's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cgroup_members
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import Group

LAYOUT = cgroup.Layout(
    "v1", (cgroup.Hierarchy("/cg/cpu", 1, ("cpu", "cpuacct")), cgroup.Hierarchy("/cg/memory", 1, ("memory",)))
)
ROOT = "colocation-testbed/a"


class Systemctl:
    """Answers like systemctl show: one block for each unit, in the order of the arguments."""

    def __init__(self, **units: str) -> None:
        self.units = units
        self.argv: list[str] = []

    def __call__(self, argv: list[str], **_more: Any) -> commands.Result:
        self.argv = argv
        blocks = []
        for unit in argv[argv.index("--") + 1 :]:
            path = self.units.get(unit.split(".")[0])
            state = "not-found" if path is None else "loaded"
            blocks.append(f"LoadState={state}\nControlGroup={path or ''}\n")
        return commands.Result(tuple(argv), 0, "\n".join(blocks), "")


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    processes = {
        10: ("nginx", "name=systemd:/system.slice/nginx.service", "/"),
        11: ("nginx", "name=systemd:/system.slice/nginx.service/sub", f"/{ROOT}/service"),
        12: ("nginx", "name=systemd:/user.slice", "/colocation-testbed/other/service"),
        13: ("ffmpeg", "name=systemd:/system.slice/nginx.service2", f"/{ROOT}"),
        14: ("a b) c", "name=systemd:/x.scope", f"/{ROOT}x"),
    }
    for pid, (name, systemd, cpu) in processes.items():
        (tmp_path / str(pid)).mkdir()
        (tmp_path / f"{pid}/stat").write_text(f"{pid} ({name}) S 1 {pid} {pid} " + "0 " * 46)
        (tmp_path / f"{pid}/cgroup").write_text(f"3:cpu,cpuacct:{cpu}\n2:memory:/\n1:{systemd}\n0::/\n")
    (tmp_path / "15").mkdir()
    (tmp_path / "self").mkdir()
    return tmp_path


def _found(proc: Path, *groups: Group, run: Any = None) -> list[tuple[int, ...]]:
    return [item.found for item in cgroup_members.resolve(groups, LAYOUT, ROOT, str(proc), run or Systemctl())]


def test_a_units_processes_are_those_in_its_group_and_below(proc: Path) -> None:
    run = Systemctl(nginx="/system.slice/nginx.service", idle="")
    groups = Group("a", units=("nginx.service",)), Group("b", units=("idle.service",)), Group("c")
    assert _found(proc, *groups, run=run) == [(10, 11), (), ()]
    assert run.argv[:2] == ["systemctl", "show"]
    assert run.argv[-3:] == ["--", "nginx.service", "idle.service"]


def test_on_v2_a_units_group_is_in_the_one_hierarchy(proc: Path) -> None:
    (proc / "10/cgroup").write_text("0::/system.slice/nginx.service\n")
    run = Systemctl(nginx="/system.slice/nginx.service")
    assert _found(proc, Group("a", units=("nginx.service",)), run=run) == [(10, 11)]


def test_the_root_of_all_groups_is_no_unit(proc: Path) -> None:
    assert _found(proc, Group("a", units=("init.scope",)), run=Systemctl(init="/")) == [()]


def test_programs_are_found_in_this_hosts_scope_alone(proc: Path) -> None:
    groups = Group("service", process_names=("nginx",)), Group("batch", process_names=("ffmpeg", "a b) c"))
    assert _found(proc, *groups) == [(11,), (13,)]


def test_without_units_and_names_nothing_is_read() -> None:
    assert _found(Path("/nonexistent"), Group("a", pids=(1,))) == [()]


@pytest.mark.parametrize(
    ("group", "words"),
    [
        (Group("a", units=("nginx",)), "is not the full name of a unit; write one such as nginx.service"),
        (Group("a", units=("--help.service",)), "is not the full name"),
        (Group("a", units=("a b.service",)), "is not the full name"),
        (Group("a", units=("x.service\n",)), "is not the full name"),
        (Group("a", units=("nosuch.service",)), "unit nosuch.service: is not-found here; correct its name"),
        (Group("a", process_names=("",)), "is not what the kernel keeps"),
        (Group("a", process_names=("sixteen-letters-",)), "the first 15 bytes"),
        (Group("a", process_names=("/usr/sbin/nginx",)), "write what /proc/<pid>/comm says"),
    ],
)
def test_names_that_cannot_be(proc: Path, group: Group, words: str) -> None:
    with pytest.raises(cgroup.CgroupError, match=words):
        _found(proc, group)


def test_without_systemd_it_is_said(proc: Path) -> None:
    def run(argv: list[str], **_more: Any) -> commands.Result:
        raise commands.CommandError("systemctl: not booted with systemd")

    with pytest.raises(cgroup.CgroupError, match="on a host without systemd give pids instead"):
        _found(proc, Group("a", units=("x.service",)), run=run)


def test_an_answer_that_does_not_fit_is_not_believed(proc: Path) -> None:
    def run(argv: list[str], **_more: Any) -> commands.Result:
        return commands.Result(tuple(argv), 0, "LoadState=loaded\nControlGroup=/a\n", "")

    with pytest.raises(cgroup.CgroupError, match="answered for 1 of them"):
        _found(proc, Group("a", units=("x.service", "y.service")), run=run)
