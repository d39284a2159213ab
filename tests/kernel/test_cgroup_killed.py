# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module cgroup killed in the middle of a batch: what the journal says brings the kernel back, value by value."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import Group
from tests.support.cgroup_host import Host

pytestmark = pytest.mark.kernel
COUNT = 60
VALUES = {"cpu_shares": 7, "cpu_quota_us": 50_000, "cpu_burst_us": 1000, "memory_max_bytes": 2**30, "pids_max": 50}
FOREIGN = {"cpu_shares": 77, "cpu_quota_us": 40_000, "memory_max_bytes": 2**29, "io_weight": 30}


def _start(host: Host) -> subprocess.Popen[bytes]:
    groups: list[dict[str, Any]] = [{"name": f"g{number:02d}", **VALUES} for number in range(COUNT)]
    groups.append({"name": "foreign", "cpu_idle": True, "io_weight": 300, **VALUES})
    arguments = {"root": host.root, "state_dir": host.state, "groups": groups}
    orders, output = Path(f"{host.state}.orders"), Path(f"{host.state}.output")
    orders.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": arguments}))
    argv = [sys.executable, "-m", "ansible_collections.colocation.testbed.plugins.modules.cgroup", str(orders)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "collections"), "LC_ALL": "C.UTF-8"}
    # To a file: a module that waits for its reader would live on after its last change.
    with output.open("w") as stream:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=environment)


def _output(host: Host) -> str:
    return Path(f"{host.state}.output").read_text()


def _made(host: Host, controller: str, count: int) -> Callable[[], bool]:
    """Tell whether so many groups are there for a controller."""
    top = host.layout.path(controller, host.root)
    return lambda: len([item for item in os.scandir(top) if item.is_dir()]) > count


def _limited(host: Host, number: int) -> Callable[[], bool]:
    """Tell whether the memory of a group is limited already."""
    path = Path(host.layout.path("memory", f"{host.root}/g{number:02d}"), "memory.limit_in_bytes")
    return lambda: path.exists() and path.read_text().strip() == str(2**30)


def _kill_when(host: Host, reached: Callable[[], bool]) -> bool:
    """Start the module and kill it once a point is reached; tells whether it was still at work."""
    child = _start(host)
    deadline = time.monotonic() + 60
    while child.poll() is None and not reached() and time.monotonic() < deadline:
        pass
    child.kill()
    child.wait()
    assert child.returncode in (0, -9), _output(host)
    assert time.monotonic() < deadline, _output(host)
    return child.returncode == -9


POINTS: dict[str, Callable[[Host], Callable[[], bool]]] = {
    "half of the cpu groups": lambda host: _made(host, "cpu", COUNT // 2),
    "first memory groups": lambda host: _made(host, "memory", 5),
    "first values": lambda host: _limited(host, 3),
    "half of the values": lambda host: _limited(host, COUNT // 2),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_batch_is_taken_back(host: Host, point: str) -> None:
    host.foreign(Group("foreign", values=FOREIGN))
    before = host.picture()
    killed = _kill_when(host, POINTS[point](host))
    between = host.picture()
    assert {item.outcome.result for item in host.undo()} == {"undone"}
    assert host.picture() == before
    assert host.book.entries() == ()
    assert killed, "the module was quicker than the kill: nothing was shown"
    assert between != before


def test_a_batch_killed_before_its_first_change_is_taken_back(host: Host) -> None:
    host.foreign(Group("foreign", values=FOREIGN))
    before = host.picture()
    journal = Path(host.state, "journal.json")
    empty = journal.stat().st_size
    assert _kill_when(host, lambda: journal.stat().st_size > empty)
    assert {item.outcome.result for item in host.undo()} == {"undone"}
    assert host.picture() == before


def test_a_batch_killed_twice_is_carried_out_by_the_third_run(host: Host) -> None:
    host.foreign(Group("foreign", values=FOREIGN))
    before = host.picture()
    assert _kill_when(host, _made(host, "cpuset", 10))
    assert _kill_when(host, _limited(host, 10))
    assert _start(host).wait(timeout=120) == 0
    assert json.loads(_output(host))["changed"] is True
    assert host.read("memory", f"g{COUNT - 1:02d}", "memory.limit_in_bytes") == str(2**30)
    assert {item.outcome.result for item in host.undo()} == {"undone"}
    assert host.picture() == before
