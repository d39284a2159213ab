# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning resctrl groups: steps that the kernel's rules take, a second plan without steps, and all that is refused."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import resctrl, resctrl_plan
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl import ResctrlError
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl_check import check_mask
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl_model import Model
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl_steps import (
    Plan,
    WantedGroup,
    WantedMonitor,
    made,
)
from tests.support.resctrl_dump import BOOT_ID, Dumped

CPUS = range(4)


def plan(host: Dumped, *wanted: WantedGroup, recorded=None) -> Plan:
    return resctrl_plan.plan(host.state(), wanted, recorded or {}, str(host.proc))


def masks() -> st.SearchStrategy[int]:
    return st.tuples(st.integers(0, 10), st.integers(1, 11)).map(lambda pair: ((1 << pair[1]) - 1) << pair[0] & 0x7FF)


@st.composite
def batches(draw: st.DrawFn) -> list[WantedGroup]:
    """Draw groups whose CPUs don't overlap; the root group is never among those that get CPUs."""
    owners = draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=len(CPUS), max_size=len(CPUS)))
    groups = []
    for name in draw(st.lists(st.sampled_from(["a", "b", "c", ""]), unique=True)):
        values = draw(st.fixed_dictionaries({}, optional={"L3": masks().filter(bool), "MB": st.integers(10, 100)}))
        cpus = frozenset(cpu for cpu in CPUS if owners[cpu] == name) if name and draw(st.booleans()) else None
        monitors = tuple(WantedMonitor(item) for item in draw(st.lists(st.sampled_from("xy"), unique=True)))
        groups.append(WantedGroup(name, values=values, cpus=cpus, monitors=monitors))
    return groups


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(batches(), min_size=1, max_size=3))
def test_any_batches_are_taken_predicted_and_need_no_second_time(rounds: list[list[WantedGroup]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        host = Dumped(Path(directory), cpus=frozenset(CPUS), cache_ids=(0, 2))
        for wanted in rounds:
            found = plan(host, *wanted)
            for step in found.steps:
                host.carry_out(step)
            state = host.state()
            assert {group.name: Model(state).shown(group.name) for group in wanted} == found.after
            assert plan(host, *wanted).steps == ()
            for group in wanted:
                for name, value in group.values.items():
                    settled = resctrl_plan.settled(state, name, value)
                    assert state.groups[group.name].values(name) == {0: settled, 2: settled}


def test_the_order_of_steps(tmp_path: Path) -> None:
    host = Dumped(tmp_path, num_closids=2, processes={7: [7, 8]})
    host.tree.mkdir("/old")
    found = plan(
        host,
        WantedGroup("new", values={"L3": 1, "MB": 11}, cpus=frozenset({1}), pids=(7,), monitors=(WantedMonitor("m"),)),
        WantedGroup("old", state="absent"),
        recorded={f"{host.point}/old": made(BOOT_ID)},
    )
    assert [step.kind for step in found.steps] == ["remove", "make", "make", "schemata", "cpus", "move"]
    assert found.steps[3].text == "L3:0=1\nMB:0=20\n"
    assert [move.tid for move in found.steps[5].moves] == [7, 8]
    assert found.before["old"]["L3"] == "L3:0=7ff"
    assert "old" not in found.after
    assert found.forget == {f"{host.point}/old"}


def test_cpus_of_others_are_remembered(tmp_path: Path) -> None:
    host = Dumped(tmp_path, cpus=frozenset(CPUS))
    for path in ("/a", "/b", "/b/mon_groups/m"):
        host.tree.mkdir(path)
    host.tree.write("/b/cpus_list", b"1-2\n", 1)
    host.tree.write("/b/mon_groups/m/cpus_list", b"2\n", 1)
    (step,) = plan(host, WantedGroup("a", cpus=frozenset({0, 2}))).steps
    assert [(Path(item.directory).name, item.cpus, dict(item.monitors)) for item in step.saved] == [
        ("b", "1-2", {"m": "2"}),
        ("a", "", {}),
        ("resctrl", "0,3", {}),
    ]


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ([WantedGroup("a"), WantedGroup("a")], "resctrl group a: is there twice"),
        ([WantedGroup("a", pids=(7,)), WantedGroup("b", pids=(7,))], "process 7: is wanted in two"),
        ([WantedGroup("a", cpus=frozenset({1})), WantedGroup("b", cpus=frozenset({1}))], "CPU 1: wanted by"),
        ([WantedGroup("a", monitors=(WantedMonitor("x"), WantedMonitor("x")))], "monitoring group x: is there twice"),
        ([WantedGroup("a", monitors=(WantedMonitor("mon_data"),))], "monitoring group 'mon_data': not allowed"),
        ([WantedGroup(f"g{n}") for n in range(4)], "this host can tell 4 groups apart .* no group of others is there"),
        ([WantedGroup("a", monitors=tuple(WantedMonitor(f"m{n}") for n in range(9)))], r"can monitor 8 \(RMIDs\)"),
        ([WantedGroup("a", values={"MB": 101})], "choose 10 to 100"),
    ],
)
def test_what_is_refused(tmp_path: Path, wanted: list[WantedGroup], words: str) -> None:
    host = Dumped(tmp_path, num_closids=4, num_rmids=8, processes={7: [7]})
    with pytest.raises(ResctrlError, match=words):
        plan(host, *wanted)


def test_a_pseudo_locked_group_is_left_alone(tmp_path: Path) -> None:
    host = Dumped(tmp_path)
    host.tree.mkdir("/a")
    host.state()
    (host.point / "a/mode").write_text("pseudo-locked\n")
    state = resctrl.read_state(str(host.point), str(host.proc))
    assert state is not None
    with pytest.raises(ResctrlError, match="mode pseudo-locked, which allows no change"):
        resctrl_plan.plan(state, [WantedGroup("a")], {}, str(host.proc))


def test_monitoring_groups_without_monitoring(tmp_path: Path) -> None:
    with pytest.raises(ResctrlError, match="no cache monitoring"):
        plan(Dumped(tmp_path, monitoring=False), WantedGroup("a", monitors=(WantedMonitor("m"),)))


def test_bandwidth_of_amd_and_of_the_software_controller(tmp_path: Path) -> None:
    host = Dumped(tmp_path, absolute_bandwidth=True)
    assert plan(host, WantedGroup("a", values={"MB": 81})).steps[1].text == "MB:0=81\n"
    with pytest.raises(ResctrlError, match="choose 1 to 2048"):
        plan(host, WantedGroup("a", values={"MB": 4096}))
    host = Dumped(tmp_path, mba_mbps=True)
    assert plan(host, WantedGroup("a", values={"MB": 7})).steps[1].text == "MB:0=7\n"


def test_damaged_records(tmp_path: Path) -> None:
    host = Dumped(tmp_path)
    recorded = {str(host.point): {"boot_id": BOOT_ID, "lines": {"L3": 5}}}
    with pytest.raises(ResctrlError, match="its recorded state is damaged"):
        plan(host, WantedGroup("", state="absent"), recorded=recorded)


def test_masks_are_checked_as_the_kernel_does() -> None:
    cache = resctrl.Cache(0x7FF, 2, 16, 0, sparse_masks=False)
    for mask in range(0x1000):
        run = bin(mask)[2:].strip("0")
        taken = mask <= 0x7FF and len(run) >= 2 and "0" not in run
        try:
            check_mask(cache, mask, "group")
        except ResctrlError:
            assert not taken, hex(mask)
        else:
            assert taken, hex(mask)
