# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that is wrong with wanted groups is said in one go."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import block, cgroup, cgroup_check
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import Group


def disk(name: str) -> str:
    if name != "/dev/vda":
        raise block.BlockError(f"{name}: is not a disk")
    return "254:0"


def problems(root: str, *groups: Group) -> list[str]:
    with pytest.raises(cgroup.CgroupError) as caught:
        cgroup_check.check(root, groups, disk)
    return str(caught.value).split("; cgroup ")


def test_every_name_and_value_is_told() -> None:
    found = problems(
        "root",
        Group("a", values={"cpu_shares": 1, "cpu_quota_us": 5, "pids_max": 10}),
        Group("../b", values={"memory_max_bytes": -5}),
        Group("c", values={"io_max": [{"device": "/dev/vda", "rbps": 0}, {"device": "/dev/sdz", "rbps": 1}]}),
        Group("d", values={"speed": 1}),
        Group("", values={"cpu_weight": 0}),
        Group("a"),
    )
    starts = [
        "cgroup 'a': is given twice",
        "root/a: cpu_shares: 1 is not allowed",
        "root/a: cpu_quota_us: 5 is not allowed",
        "name '../b': not allowed",
        "root/../b: memory_max_bytes: -5 is not allowed",
        "root/c: io_max[0].rbps: 0 is not allowed",
        "root/c: io_max[1]: /dev/sdz: is not a disk",
        "root/d: speed: is not known",
        "root: cpu_weight: 0 is not allowed",
    ]
    assert len(found) == len(starts)
    assert [text for text, start in zip(found, starts, strict=True) if not text.startswith(start)] == []


@pytest.mark.parametrize(("root", "text"), [("", "is empty"), ("../x", "not allowed")])
def test_the_root_comes_first(root: str, text: str) -> None:
    (found,) = problems(root, Group("a", values={"cpu_shares": 1}))
    assert text in found


def test_what_can_be_is_not_refused() -> None:
    values = {"cpu_shares": 2, "io_max": [{"device": "/dev/vda", "rbps": 1}]}
    cgroup_check.check("root", [Group("a", values=values), Group("b", state="absent")], disk)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            Group("b", state="absent", values={"cpu_shares": 1}),
            "root/b: state is absent, so cpu_shares would do",
        ),
        (Group("", state="absent", pids=(4711,)), "root: state is absent, so pids would do nothing"),
        (
            Group("c", state="absent", units=("x.service",), process_names=("x",)),
            "units, process_names would do nothing",
        ),
    ],
)
def test_nothing_is_asked_of_a_group_that_shall_not_exist(asked: Group, words: str) -> None:
    (found,) = problems("root", asked)
    assert words in found


def hierarchy(tmp_path: Path, version: int) -> cgroup.Hierarchy:
    (tmp_path / "tasks").write_text("")
    (tmp_path / "there").mkdir()
    return cgroup.Hierarchy(str(tmp_path), version, ("cpu",))


@pytest.mark.parametrize(
    ("version", "full"),
    [(1, "tasks"), (1, "new/tasks"), (1, "there/cpu.shares"), (2, "new/cpu.max"), (1, "cpu.shares/inside")],
)
def test_a_group_is_not_called_like_a_file_of_the_kernel(tmp_path: Path, version: int, full: str) -> None:
    with pytest.raises(cgroup.CgroupError, match=r"the kernel has a file called .* choose another name"):
        cgroup_check.refuse_files(hierarchy(tmp_path, version), full)


@pytest.mark.parametrize("full", ["there", "there/new", "new/cpu.max"])
def test_other_names_are_taken(tmp_path: Path, full: str) -> None:
    cgroup_check.refuse_files(hierarchy(tmp_path, 1), full)
