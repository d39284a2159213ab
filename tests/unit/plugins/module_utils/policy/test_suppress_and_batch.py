# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU suppress and the offer to batch work, by Koordinator's figures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.policy import batch, suppress
from ansible_collections.colocation.testbed.plugins.module_utils.policy.suppress import Cpu


def topology(sockets: int, cores: int, threads: int) -> list[Cpu]:
    """Siblings are k and k + all cores; each socket is a memory node."""
    return [
        Cpu(thread * sockets * cores + socket * cores + core, socket * cores + core, socket, socket)
        for thread in range(threads)
        for socket in range(sockets)
        for core in range(cores)
    ]


TWO_NODES = [
    Cpu(0, 0),
    Cpu(4, 0),
    Cpu(1, 1),
    Cpu(5, 1),
    *(Cpu(c, k, 1, 1) for c, k in ((2, 2), (6, 2), (3, 3), (7, 3))),
]
FOUR_SOCKETS = [Cpu(cpu, cpu // 2, cpu // 4, cpu // 8) for cpu in range(16)]


@pytest.mark.parametrize(
    ("cpus", "count", "order"),
    [
        (topology(2, 8, 2), 2, (0, 16)),
        (topology(2, 8, 2), 6, (0, 16, 8, 24, 1, 17)),
        (topology(2, 8, 2), 11, (0, 16, 8, 24, 1, 17, 9, 25, 2, 18, 10)),
        (topology(1, 4, 2), 5, (0, 4, 1, 5, 2)),
        (topology(1, 4, 1), 3, (0, 1, 2)),
        (topology(2, 4, 1), 3, (0, 4, 1)),
        (TWO_NODES, 3, (0, 4, 2)),
        (FOUR_SOCKETS, 5, (0, 1, 4, 5, 8)),
        (topology(1, 4, 1), 5, ()),
        ([], 1, ()),
    ],
)
def test_cpus_are_picked_as_koordinator_does(cpus: list[Cpu], count: int, order: tuple[int, ...]) -> None:
    assert suppress.pick(cpus, count) == order


@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 2), st.data())
def test_as_many_cpus_as_asked_for_each_once(sockets: int, cores: int, threads: int, data: st.DataObject) -> None:
    cpus = topology(sockets, cores, threads)
    offline = data.draw(st.sets(st.sampled_from(range(len(cpus)))))
    online = [item for item in cpus if item.cpu not in offline]
    count = data.draw(st.integers(0, len(cpus)))
    picked = suppress.pick(online, count)
    assert len(picked) == (count if count <= len(online) else 0)
    assert len(set(picked)) == len(picked)
    assert set(picked) <= {item.cpu for item in online}


@pytest.mark.parametrize(
    ("cpus", "start", "target", "ticks"),
    [(32, 2, 20_000, (6, 10, 14, 18, 20, 20)), (16, 2, 10_800, (4, 6, 8, 10, 11)), (32, 20, -3000, (2, 2))],
)
def test_the_set_grows_by_a_tenth_and_shrinks_at_once(
    cpus: int, start: int, target: int, ticks: tuple[int, ...]
) -> None:
    seen = [start]
    for _tick in ticks:
        seen.append(suppress.next_cpu_count(target, seen[-1], cpus))
    assert tuple(seen[1:]) == ticks


@pytest.mark.parametrize(
    ("target", "current", "written"),
    [
        (10_800, -1, 1_080_000),
        (10_800, 500_000, 820_000),
        (10_800, 820_000, 1_080_000),
        (10_800, 1_070_000, None),
        (20_000, 1_080_000, 1_400_000),
        (5, 500_000, 2_000),
        (-4_000, 500_000, 2_000),
        (5, 2_000, None),
    ],
)
def test_the_quota_on_32_cpus(target: int, current: int, written: int | None) -> None:
    assert suppress.next_quota_us(target, current, 32) == written


def test_the_target_is_what_the_others_leave() -> None:
    system = suppress.system_used_milli(20_000, 18_000, reserved=500)
    assert system == 2000
    assert suppress.target_milli(32_000, 65, others_used=8_000, system_used=system) == 10_800
    assert suppress.target_milli(32_000, 65, 30_000, system, min_percent=10) == 3_200
    assert suppress.system_used_milli(1000, 5000, reserved=700) == 700


def test_cpus_that_lsr_owns_count_by_their_share() -> None:
    assert suppress.split_count(11, 8, 24) == (2, 9)
    assert suppress.split_count(3, 0, 0) == (0, 3)


@pytest.mark.parametrize(
    ("percent", "policy", "system", "used", "requested", "offered"),
    [
        (60, batch.USAGE, 1, 6, 16, 11_200),
        (60, batch.MAX_USAGE_REQUEST, 1, 6, 16, 1_200),
        (100, batch.USAGE, 3, 6, 16, 23_000),
        (40, batch.USAGE, 2, 20, 24, 0),
        (120, batch.USAGE, 2, 6, 16, 30_400),
    ],
)
def test_the_offer_to_batch_work(
    percent: int, policy: str, system: int, used: int, requested: int, offered: int
) -> None:
    node = batch.Node(32_000, reserved=2_000, system_used=system * 1000)
    above = batch.above(((used * 1000, requested * 1000),))
    assert batch.offered(node, above, policy, percent) == offered


def test_pods_without_a_reading_count_as_using_their_request() -> None:
    assert batch.above(((None, 4000), (6000, 5000))) == batch.Above(10_000, 9_000, 10_000)


def test_thresholds_and_third_parties_take_from_the_offer() -> None:
    node = batch.Node(32_000, third_party=1_000)
    assert batch.offered(node, batch.Above(), batch.USAGE, 100, threshold_percent=50) == 15_000
    with pytest.raises(batch.BatchError, match="allowed: usage, request, maxUsageRequest"):
        batch.offered(node, batch.Above(), "all", 60)


@given(st.integers(0, 10**9), st.integers(0, 200), st.integers(0, 10**9), st.integers(0, 10**9))
def test_more_use_never_means_a_larger_offer(capacity: int, percent: int, one: int, other: int) -> None:
    low, high = sorted((one, other))
    offers = [batch.offered(batch.Node(capacity), batch.Above(used), batch.USAGE, percent) for used in (low, high)]
    assert offers[0] >= offers[1] >= 0
