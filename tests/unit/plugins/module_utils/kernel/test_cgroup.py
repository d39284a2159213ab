# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cgroup_keys, cgroup_values

V1 = """\
31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset,clone_children
35 31 0:32 / /mnt/mem\\040ory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
50 31 0:29 / /other/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct
"""


def test_v1_with_joint_controllers_and_escaped_mount_points() -> None:
    layout = cgroup.parse_layout(V1)
    assert layout.version == "v1"
    assert layout.path("cpuacct", "a/b") == "/sys/fs/cgroup/cpu,cpuacct/a/b"
    assert layout.path("memory") == "/mnt/mem ory"
    assert layout.directories("g") == (
        "/sys/fs/cgroup/cpu,cpuacct/g",
        "/sys/fs/cgroup/cpuset/g",
        "/mnt/mem ory/g",
    )


def test_hybrid_prefers_the_hierarchy_that_has_the_controller(tmp_path: Path) -> None:
    unified = tmp_path / "sys/fs/cgroup/unified"
    unified.mkdir(parents=True)
    (unified / "cgroup.controllers").write_text("pids\n")
    layout = cgroup.parse_layout(V1 + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n", str(tmp_path))
    assert layout.version == "hybrid"
    assert layout.hierarchy("pids").version == 2
    assert layout.hierarchy("cpu").version == 1


def test_groups_can_be_made_on_version_2_where_it_has_no_controller(tmp_path: Path) -> None:
    unified = tmp_path / "sys/fs/cgroup/unified"
    unified.mkdir(parents=True)
    (unified / "cgroup.controllers").write_text("\n")
    text = V1 + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    layout = cgroup.parse_layout(text, str(tmp_path))
    assert str(unified / "g") not in layout.directories("g")
    assert layout.with_version_2().directories("g") == (*layout.directories("g"), str(unified / "g"))
    with pytest.raises(cgroup.CgroupError, match="cgroup2: is not mounted"):
        cgroup.parse_layout(V1).with_version_2()


def test_on_version_2_alone_nothing_is_made_twice() -> None:
    layout = cgroup.Layout("v2", (cgroup.Hierarchy("/sys/fs/cgroup", 2, ("cpu", "memory")),))
    assert layout.with_version_2().used() == layout.used()


def test_a_missing_controller_is_named() -> None:
    with pytest.raises(
        cgroup.CgroupError, match="controller pids: not mounted \\(mounted: cpu, cpuacct, cpuset, memory\\)"
    ):
        cgroup.parse_layout(V1).path("pids")


def test_no_cgroups_at_all() -> None:
    with pytest.raises(cgroup.CgroupError, match="controller cpu: not mounted"):
        cgroup.parse_layout("1 1 0:1 / / rw - ext4 /dev/vda rw\n")


@given(st.text(max_size=200))
def test_no_mountinfo_breaks_the_parser(text: str) -> None:
    with contextlib.suppress(cgroup.CgroupError):
        cgroup.parse_layout(text)


@given(st.text(max_size=40))
def test_names_never_leave_the_root(name: str) -> None:
    with contextlib.suppress(cgroup.CgroupError):
        parts = cgroup.check_name(name).split("/")
        assert ".." not in parts
        assert "" not in parts
        assert "\n" not in name


# Koordinator's vectors (weight of cpu.shares on v2).
@pytest.mark.parametrize(
    ("shares", "weight"),
    [(2, 1), (102, 4), (512, 20), (1024, 39), (1536, 59), (2048, 79), (51200, 1953), (71680, 2735), (262144, 10000)],
)
def test_shares_become_weights_as_koordinator_does_it(shares: int, weight: int) -> None:
    assert cgroup_values.shares_to_weight(shares) == weight


@given(st.integers(1, 10000))
def test_weights_survive_the_way_to_v1_within_one(weight: int) -> None:
    assert 0 <= weight - cgroup_values.shares_to_weight(cgroup_values.weight_to_shares(weight)) <= 1


@given(st.integers(2, 262144), st.integers(2, 262144))
def test_more_shares_are_never_less_weight(one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert cgroup_values.shares_to_weight(low) <= cgroup_values.shares_to_weight(high)


@pytest.mark.parametrize("text", ["", "x", "max 1 2 3x", "12 "])
def test_unknown_kernel_texts_are_no_crash(text: str) -> None:
    for key in cgroup_keys.KEYS:
        for file in (key.v1, key.v2):
            if file is not None:
                with contextlib.suppress(cgroup.CgroupError):
                    file.parse(text)


def test_every_key_has_a_file_and_takes_its_initial_value() -> None:
    for key in cgroup_keys.KEYS:
        found = [file for file in (key.v1, key.v2) if file is not None]
        assert found
        translated = {"cpu_shares": key.v2, "cpu_weight": key.v1}.get(key.name)
        for file in found:
            value = file.parse(file.initial)
            assert file is translated or file.parse(file.render(value, file.initial)) == value
