# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counters of a group from files as v1 and v2 have them."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import group_counters
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import Hierarchy, Layout
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.group_counters import GroupReader, TaskTimes


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def v1(tmp_path):
    """A host with two tasks in group r/service of cgroup v1."""
    for tid, run_ns, wait_ns in ((10, 1_000_000_000, 500_000_000), (11, 2_000_000_000, 0)):
        write(tmp_path / "proc" / str(tid) / "schedstat", f"{run_ns} {wait_ns} 3\n")
    write(tmp_path / "cpu/r/service/cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 2500000000\n")
    write(tmp_path / "cpu/r/service/tasks", "10\n11\n")
    write(tmp_path / "cpuacct/r/service/cpuacct.usage", "3500000000\n")
    write(tmp_path / "memory/r/service/memory.usage_in_bytes", "4096\n")
    layout = Layout("v1", tuple(Hierarchy(str(tmp_path / name), 1, (name,)) for name in ("cpu", "cpuacct", "memory")))
    return tmp_path, GroupReader(layout, "r/service", str(tmp_path / "proc"))


def test_v1(v1):
    assert v1[1].read() == {
        "cpu_s": 3.5,
        "throttled_s": 2.5,
        "throttled_periods": 4,
        "memory_bytes": 4096,
        "tasks": 2,
        "run_s": 3.0,
        "wait_s": 0.5,
    }


def test_v2(tmp_path):
    place = tmp_path / "r/service"
    write(place / "cpu.stat", "usage_usec 3500000\nuser_usec 1\nnr_throttled 4\nthrottled_usec 2500000\n")
    write(place / "memory.current", "4096\n")
    write(place / "cgroup.threads", "")
    layout = Layout("v2", (Hierarchy(str(tmp_path), 2, ("cpu", "memory")),))
    found = GroupReader(layout, "r/service", str(tmp_path)).read()
    assert found == {
        "cpu_s": 3.5,
        "throttled_s": 2.5,
        "throttled_periods": 4,
        "memory_bytes": 4096,
        "tasks": 0,
        "run_s": 0.0,
        "wait_s": 0.0,
    }


def test_a_group_that_is_not_there_is_none_in_every_field(tmp_path):
    layout = Layout("v2", (Hierarchy(str(tmp_path), 2, ("cpu", "memory")),))
    found = GroupReader(layout, "r/none", str(tmp_path)).read()
    assert tuple(found) == group_counters.FIELDS
    assert set(found.values()) == {None}


def test_sums_never_fall_when_tasks_end(v1):
    root, reader = v1
    assert reader.read()["run_s"] == 3.0
    write(root / "proc/10/schedstat", "1500000000 600000000 4\n")
    assert reader.read()["run_s"] == 3.5
    shutil.rmtree(root / "proc/10")
    write(root / "cpu/r/service/tasks", "11\n12\n")
    write(root / "proc/12/schedstat", "250000000 0 1\n")
    after = reader.read()
    assert (after["tasks"], after["run_s"], after["wait_s"]) == (2, 3.75, 0.6)


def test_a_task_number_that_is_given_away_again_counts_from_its_own_start(tmp_path):
    times = TaskTimes(str(tmp_path))
    write(tmp_path / "7/schedstat", "1000000000 0 1\n")
    assert times.update([7]) == (1.0, 0.0)
    assert times.update([]) == (1.0, 0.0)
    write(tmp_path / "7/schedstat", "250000000 0 1\n")
    assert times.update([7]) == (1.25, 0.0)


@given(st.binary(max_size=200))
def test_flat_files_of_any_content(content):
    assert all(value >= 0 for value in group_counters.parse_flat(content).values())


@given(st.lists(st.integers(1, 2**22), max_size=50))
def test_tids(tids):
    assert group_counters.parse_tids("".join(f"{tid}\n" for tid in tids).encode()) == tids
    assert group_counters.parse_tids(None) is None
