# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From any legal state of three nested groups to any other: the kernel must accept every write in between."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup_report
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import Group
from tests.support.cgroup_host import Host

pytestmark = pytest.mark.kernel
NAMES = ("", "a", "a/b")
PERIODS = (10_000, 50_000, 100_000, 1_000_000)


def _state(source: random.Random) -> dict[str, dict[str, Any]]:
    """Return values that are legal together: each group has no more than its parent."""
    percent, cpus = 200, list(range(min(2, os.cpu_count() or 1)))
    found: dict[str, dict[str, Any]] = {}
    for name in NAMES:
        limited = source.random() < 0.8
        percent = source.randint(10, percent) if limited else percent
        cpus = sorted(source.sample(cpus, source.randint(1, len(cpus))))
        period = source.choice(PERIODS)
        quota = period * percent // 100 if limited else -1
        burst = source.randint(0, quota) if limited else 0
        found[name] = {
            "cpu_quota_us": quota,
            "cpu_period_us": period,
            "cpu_burst_us": burst,
            "cpuset_cpus": ",".join(map(str, cpus)),
            "cpu_idle": source.randint(0, 1),
            "memory_max_bytes": source.choice([-1, 2**30, 2**29]),
        }
    return found


@pytest.mark.parametrize("seed", range(5))
def test_every_way_is_legal_at_every_moment(host: Host, seed: int) -> None:
    source = random.Random(seed)
    for _turn in range(8):
        state = _state(source)
        groups = [Group(name, values=values) for name, values in state.items()]
        source.shuffle(groups)
        host.apply(*groups)
        assert host.plan(*groups).steps == ()
        for name, values in state.items():
            found = cgroup_report.values(host.layout, f"{host.root}/{name}".rstrip("/"))
            wanted = {**values, "cpuset_cpus": values["cpuset_cpus"].replace("0,1", "0-1")}
            assert {key: found[key] for key in wanted} == wanted
    assert {item.outcome.result for item in host.undo()} == {"undone"}
    assert host.directories() == []


@pytest.mark.parametrize("seed", range(6))
def test_every_way_back_is_legal_too(host: Host, seed: int) -> None:
    source = random.Random(100 + seed)
    host.foreign(*(Group(name, values=values) for name, values in _state(source).items()))
    before = host.picture()
    for _turn in range(4):
        host.apply(*(Group(name, values=values) for name, values in _state(source).items()))
    assert {item.outcome.result for item in host.undo()} == {"undone"}
    assert host.picture() == before


def test_a_cpuset_that_was_empty_is_empty_again(host: Host) -> None:
    host.foreign(Group(""))
    directory = host.layout.path("cpuset", host.root)
    os.mkdir(f"{directory}/a")
    before = host.picture()
    assert before[f"{directory}/a/cpuset.cpus"] == ""
    host.apply(Group("a", values={"cpu_shares": 5}))
    assert host.read("cpuset", "a", "cpuset.cpus") != ""
    assert {item.outcome.result for item in host.undo()} == {"undone"}
    assert host.picture() == before
