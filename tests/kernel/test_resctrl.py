# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""resctrl groups on the mounted stand-in (tests/support/resctrl_standin.py): real mkdir, write and rmdir.

No machine of the tests has resctrl; the stand-in follows the kernel's rules and partitions nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import journal, undo
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    resctrl,
    resctrl_apply,
    resctrl_plan,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl_steps import WantedGroup, WantedMonitor
from tests.support.resctrl_mounted import ROOT, standin

pytestmark = pytest.mark.kernel
DEADLINE_S = 20.0


class Host:
    """A mounted stand-in and a journal."""

    def __init__(self, point: Path, state: Path) -> None:
        self.point = point
        self.book = journal.Journal(str(state / "journal.json"))

    def state(self) -> resctrl.State:
        found = resctrl.read_state(str(self.point))
        assert found is not None
        return found

    def plan(self, *groups: WantedGroup):  # type: ignore[no-untyped-def]
        return resctrl_plan.plan(self.state(), groups, resctrl_apply.recorded(self.book))

    def apply(self, *groups: WantedGroup) -> int:
        found = self.plan(*groups)
        resctrl_apply.Apply(str(self.point), self.book, "test").run(found)
        return len(found.steps)

    def undo(self) -> list[str]:
        done = self.book.undo(undo.Undo().handlers())
        return [f"{item.outcome.result}: {item.outcome.text}" for item in done]

    def picture(self) -> dict[str, str]:
        """Return what every group of the stand-in says, without the root group's tasks."""
        found = {}
        for directory, below, names in os.walk(self.point):
            below.sort()
            if directory != str(self.point / "info"):
                keep = [name for name in names if name != "last_cmd_status"]
                if Path(directory) == self.point:
                    keep.remove("tasks")
                found.update({f"{directory}/{name}": Path(directory, name).read_text() for name in keep})
        return found


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Callable[..., Host]]:
    """Return a function that mounts a stand-in with options; it is unmounted after the test."""
    stack = []

    def make(*options: str) -> Host:
        context = standin(tmp_path / "resctrl", "--cpus", "0-3", *options)
        stack.append(context)
        return Host(context.__enter__(), tmp_path / "state")

    yield make
    for context in stack:
        context.__exit__(None, None, None)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process with three threads that does nothing."""
    code = (
        "import threading,time\n"
        "for _n in range(2): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
        "print('up', flush=True)\ntime.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    yield process
    process.kill()
    process.wait(DEADLINE_S)
    process.stdout.close()


def tids(process: subprocess.Popen[bytes]) -> set[int]:
    return {int(name) for name in os.listdir(f"/proc/{process.pid}/task")}


LS = WantedGroup("LS", values={"L3": 0x7FF, "MB": 100})
BE = WantedGroup("BE", values={"L3": 0xF, "MB": 55})


def test_make_once_and_undo_to_an_equal_file_system(mount, sleeper) -> None:
    host = mount()
    before = host.picture()
    wanted = [LS, WantedGroup("BE", values=BE.values, cpus=frozenset({1, 2}), pids=(sleeper.pid,))]
    assert host.apply(*wanted) == 6
    assert (host.point / "BE/schemata").read_text() == "L3:0=f\nMB:0=60\n"
    assert (host.point / "BE/cpus_list").read_text() == "1-2\n"
    assert (host.point / "cpus_list").read_text() == "0,3\n"
    assert resctrl.read_tasks(f"{host.point}/BE") == tids(sleeper)
    assert len(tids(sleeper)) == 3
    assert host.apply(*wanted) == 0
    assert [entry.target for entry in host.book.entries() if entry.kind == "resctrl"] == [
        f"{host.point}/LS",
        f"{host.point}/BE",
        str(host.point),
    ]
    host.undo()
    assert host.picture() == before
    assert not host.book.exists()


def test_a_group_that_was_there_gets_its_values_cpus_and_threads_back(mount, sleeper) -> None:
    host = mount("--closids", "4", "--l2-ways", "8")
    foreign = host.point / "theirs"
    foreign.mkdir()
    (foreign / "mon_groups/watched").mkdir()
    (foreign / "schemata").write_text("L3:0=3\nL2:0=f\n")
    (foreign / "cpus_list").write_text("2-3")
    (foreign / "mon_groups/watched/cpus_list").write_text("3")
    for tid in tids(sleeper):
        (foreign / "tasks").write_text(str(tid))
        (foreign / "mon_groups/watched/tasks").write_text(str(tid))
    before = host.picture()
    host.apply(
        WantedGroup("theirs", values={"L3": 0x700}),
        WantedGroup("", values={"MB": 50}),
        WantedGroup("BE", values=BE.values, cpus=frozenset({3}), pids=(sleeper.pid,)),
    )
    assert (foreign / "schemata").read_text() == "L3:0=700\nL2:0=f\nMB:0=100\n"
    assert (foreign / "mon_groups/watched/cpus_list").read_text() == "\n"
    assert resctrl.read_tasks(f"{host.point}/BE") == tids(sleeper)
    assert host.picture() != before
    host.undo()
    assert host.picture() == before
    assert resctrl.read_tasks(f"{foreign}/mon_groups/watched") == tids(sleeper)


def test_absent_takes_back_what_was_done_and_no_more(mount) -> None:
    host = mount()
    (host.point / "theirs").mkdir()
    before = host.picture()
    host.apply(WantedGroup("theirs", values={"L3": 1}), BE, WantedGroup("", values={"L3": 0x7F0}))
    gone = [WantedGroup(name, state="absent") for name in ("BE", "theirs", "", "never")]
    assert host.apply(*gone) == 3
    assert host.picture() == before
    assert [entry.kind for entry in host.book.entries() if entry.kind == "resctrl"] == []
    assert host.apply(*gone) == 0


def test_monitoring_groups(mount, sleeper) -> None:
    host = mount("--counter", "Unavailable")
    wanted = WantedGroup("LS", values=LS.values, monitors=(WantedMonitor("nginx", (sleeper.pid,)),))
    host.apply(wanted)
    assert resctrl.read_tasks(f"{host.point}/LS/mon_groups/nginx") == tids(sleeper)
    assert resctrl.read_tasks(f"{host.point}/LS") == tids(sleeper)
    assert host.apply(wanted) == 0
    assert host.apply(WantedGroup("LS", pids=(sleeper.pid,))) == 0
    before = resctrl_apply.recorded(host.book)
    host.apply(WantedGroup("", monitors=(WantedMonitor("rest"),)))
    assert set(resctrl_apply.recorded(host.book)) - set(before) == {f"{host.point}/mon_groups/rest"}
    host.undo()
    assert sorted(os.listdir(host.point / "mon_groups")) == []


def test_sparse_cache_ids_and_code_and_data_apart(mount) -> None:
    host = mount("--cache-ids", "0,2,5", "--cdp", "--mba-mbps", "--closids", "8")
    state = host.state()
    assert state.options == ("cdp", "mba_MBps")
    assert state.info.closids == 4
    host.apply(WantedGroup("BE", values={"L3CODE": 3, "L3DATA": 0xC, "MB": 3210}))
    assert (host.point / "BE/schemata").read_text() == (
        "L3CODE:0=3;2=3;5=3\nL3DATA:0=c;2=c;5=c\n    MB:0=3210;2=3210;5=3210\n"
    )
    assert host.apply(WantedGroup("BE", values={"L3CODE": 3, "L3DATA": 0xC, "MB": 3210})) == 0


def test_more_groups_than_closids_is_told_before_anything_is_made(mount) -> None:
    host = mount("--closids", "3")
    (host.point / "pqos").mkdir()
    with pytest.raises(resctrl.ResctrlError, match=r"tell 3 groups apart .* others made pqos; remove groups"):
        host.apply(LS, BE)
    assert sorted(host.state().groups) == ["", "pqos"]
    assert not host.book.exists()


@pytest.mark.parametrize(
    ("group", "words"),
    [
        (WantedGroup("a", values={"L3": 0x505}), "has a gap"),
        (WantedGroup("a", values={"L3": 0x1}), "too few ways; this host takes no fewer than 2"),
        (WantedGroup("a", values={"L3": 0x800}), "not among the ways 7ff"),
        (WantedGroup("a", values={"MB": 5}), "choose 10 to 100"),
        (WantedGroup("a", values={"L3CODE": 3}), "have no line L3CODE"),
        (WantedGroup("a", values={"L3": 0x3}), "overlaps with the exclusive group alone"),
        (WantedGroup("a", cpus=frozenset({9})), "CPU 9 is not online"),
        (WantedGroup("", cpus=frozenset({0})), "CPU 1-3 cannot be taken from it"),
        *(
            (WantedGroup(name), "not allowed as a name")
            for name in ("..", "a/b", "a\n", "info", "mon_groups", "tasks", ".a")
        ),
    ],
)
def test_what_the_kernel_would_refuse_is_one_sentence_and_changes_nothing(mount, group, words) -> None:
    host = mount("--min-cbm-bits", "2")
    (host.point / "alone").mkdir()
    (host.point / "alone/schemata").write_text("L3:0=3\n")
    (host.point / "schemata").write_text("L3:0=7fc\n")
    (host.point / "alone/mode").write_text("exclusive\n")
    before = host.picture()
    with pytest.raises(resctrl.ResctrlError, match=words) as caught:
        host.apply(WantedGroup("first", values={"L3": 0x7F0}), group)
    assert "\n" not in str(caught.value)
    assert host.picture() == before
    assert not host.book.exists()


def test_a_refusal_carries_the_kernels_words_and_takes_the_batch_back(mount, monkeypatch) -> None:
    host = mount()
    monkeypatch.setattr(resctrl_plan.resctrl_check, "check_mask", lambda *_arguments: None)
    before = host.picture()
    with pytest.raises(resctrl.ResctrlError, match=r"schemata: writing 'L3:0=5\\n' failed: .*non-consecutive 1-bits"):
        host.apply(BE, WantedGroup("", values={"L3": 5}))
    assert host.picture() == before
    assert host.book.entries() == () or [entry.kind for entry in host.book.entries()] == ["directory"]


def test_running_out_of_closids_in_the_middle_takes_the_batch_back(mount, monkeypatch) -> None:
    host = mount("--closids", "2")
    monkeypatch.setattr(resctrl_plan.resctrl_check, "check_room", lambda *_arguments: None)
    before = host.picture()
    with pytest.raises(resctrl.ResctrlError, match=r"No space left on device .*Out of CLOSIDs.*was taken back"):
        host.apply(LS, BE)
    assert host.picture() == before
    assert resctrl_apply.recorded(host.book) == {}


def wait(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


def test_a_group_that_vanishes_in_the_middle(mount) -> None:
    host = mount("--delay-s", "0.2")
    before = host.picture()

    def others() -> None:
        wait((host.point / "BE").is_dir)
        (host.point / "BE").rmdir()

    thread = threading.Thread(target=others)
    thread.start()
    with pytest.raises(resctrl.ResctrlError, match=r"BE/schemata: .*; what came before it was taken back"):
        host.apply(BE, LS)
    thread.join()
    assert host.picture() == before
    assert resctrl_apply.recorded(host.book) == {}


def test_kill_in_the_middle_leaves_a_journal_that_undoes_it(mount, tmp_path) -> None:
    host = mount("--delay-s", "0.1")
    before = host.picture()
    code = (
        "import sys\n"
        f"sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'collections')!r}]\n"
        "from pathlib import Path\n"
        "from tests.kernel.test_resctrl import BE, Host, LS, WantedGroup\n"
        f"host = Host(Path({str(host.point)!r}), Path({str(tmp_path / 'state')!r}))\n"
        "host.apply(LS, WantedGroup('', values={'L3': 0x7f0}), BE)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    wait((host.point / "LS").is_dir)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(DEADLINE_S)
    assert host.picture() != before
    host.undo()
    assert host.picture() == before


def test_an_ended_process_is_no_error(mount, sleeper) -> None:
    host = mount()
    sleeper.kill()
    sleeper.wait(DEADLINE_S)
    wanted = WantedGroup("BE", values=BE.values, pids=(sleeper.pid,))
    assert host.plan(wanted).gone == (sleeper.pid,)
    host.apply(wanted)
    assert resctrl.read_tasks(f"{host.point}/BE") == set()


def test_a_removed_group_comes_back_with_everything_when_a_later_step_fails(mount, sleeper, monkeypatch) -> None:
    host = mount()
    monitors = (WantedMonitor("nginx", (sleeper.pid,)),)
    host.apply(WantedGroup("BE", values=BE.values, cpus=frozenset({1}), monitors=monitors))
    before = host.picture()
    monkeypatch.setattr(resctrl_plan.resctrl_check, "check_mask", lambda *_arguments: None)
    with pytest.raises(resctrl.ResctrlError, match="taken back"):
        host.apply(WantedGroup("BE", state="absent"), WantedGroup("LS", values={"L3": 5}))
    assert host.picture() == before


def test_entries_of_an_earlier_boot_are_not_ours(mount) -> None:
    host = mount()
    target = f"{host.point}/BE"
    host.book.record("resctrl", target, {"boot_id": "earlier", "made": True}, "test")
    Path(target).mkdir()
    assert host.apply(WantedGroup("BE", state="absent")) == 0
    assert Path(target).is_dir()
    host.apply(BE)
    assert resctrl_apply.recorded(host.book)[target]["boot_id"] != "earlier"
    host.undo()
    assert Path(target, "schemata").read_text() == "L3:0=7ff\nMB:0=100\n"
