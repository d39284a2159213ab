# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guests that cannot boot, with the real kernel program. That guests do boot is shown by the molecule scenarios."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tooling
from ansible.module_utils.testing import patch_module_args

from ansible_collections.colocation.testbed.plugins.module_utils import undo
from ansible_collections.colocation.testbed.plugins.module_utils.journal import Journal
from ansible_collections.colocation.testbed.plugins.module_utils.lab import guests
from ansible_collections.colocation.testbed.plugins.modules import lab_guests

pytestmark = pytest.mark.kernel

PREFIX = "ctboot-"


@pytest.fixture(scope="module", autouse=True)
def programs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Install what makes guests."""
    names = ["iproute2", "netcat-openbsd", "openssh-client", "user-mode-linux", "util-linux"]
    given = json.dumps({"names": names, "state_dir": str(tmp_path_factory.mktemp("packages"))})
    tooling.run(["ansible", "localhost", "-m", "colocation.testbed.packages", "-a", given])


class Lab:
    """Runs the module with an image that holds no system."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.state_dir = folder / "state"
        self.journal = Journal(f"{self.state_dir}/journal.json")
        self._image = folder / "empty.img"
        self._image.write_bytes(bytes(1 << 20))
        self._capsys = capsys

    def run(self, **args: Any) -> dict[str, Any]:
        given = {
            "hosts": [{"name": "a", "address": "198.18.78.1"}],
            "image": str(self._image),
            "memory_mib": 128,
            "subnet": "198.18.78.0/24",
            "namespace_prefix": PREFIX,
            "state_dir": str(self.state_dir),
            **args,
        }
        with patch_module_args(given), pytest.raises(SystemExit):
            lab_guests.main()
        result: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return result

    def processes(self) -> list[str]:
        shown = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True, timeout=20).stdout
        return [line for line in shown.splitlines() if f"{self.state_dir}/" in line]

    def pids(self) -> list[int]:
        return [int(line.split()[0]) for line in self.processes()]


@pytest.fixture
def lab(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Lab]:
    made = Lab(tmp_path, capsys)
    yield made
    assert "msg" not in made.run(state="absent")
    made.journal.undo(undo.Undo().handlers())
    assert made.processes() == []
    assert not made.state_dir.exists()
    assert PREFIX not in subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True, timeout=20).stdout


def test_a_kernel_that_finds_no_system_is_told_with_its_console(lab: Lab) -> None:
    message = lab.run(boot_timeout_s=60)["msg"]
    assert message.startswith("guest a: its kernel has ended; its console says:\n")
    assert "Unable to mount root fs" in message


def test_check_mode_predicts_and_makes_nothing(lab: Lab) -> None:
    predicted = lab.run(_ansible_check_mode=True, _ansible_diff=True)
    assert predicted["changes"][0] == f"add network namespace {PREFIX}switch"
    assert predicted["changes"][-1] == "make guest a"
    assert not lab.state_dir.exists()


def test_a_run_that_is_killed_after_the_start_is_undone_by_the_journal(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = guests.start

    def killed(*args: Any) -> None:
        start(*args)
        # A kernel without a system would end by itself, sooner or later than it is looked at.
        for pid in lab.pids():
            os.kill(pid, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        monkeypatch.setattr(guests, "start", killed)
        lab.run(boot_timeout_s=60)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert lab.processes()
    done = lab.journal.undo(undo.Undo().handlers())
    assert [item.outcome.text for item in done if item.outcome.result == "failed"] == []
    assert lab.processes() == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"program": "/no/such/linux"}, "/no/such/linux: is not there; install package user-mode-linux"),
        ({"image": "/no/such.img"}, "/no/such.img: is not there; make it with module lab_image"),
        (
            {"driver": "qemu", "program": "/no/such/qemu"},
            "/no/such/qemu: is not there; install package qemu-system-x86",
        ),
        (
            {"driver": "qemu", "program": "/bin/true"},
            "empty.img.vmlinuz: is not there; make it with module lab_image and driver qemu",
        ),
        ({"driver": "qemu", "cpu_count": 0}, "lab_cpu_count 0: must be from 1 to 64"),
        ({"hosts": [{"name": "a", "address": "198.18.78.1", "cpus": "4095"}]}, "in the inventory: CPU 4095 asked for"),
        ({"hosts": [{"name": "a", "address": "10.0.0.1"}]}, "is not a host address of lab_subnet"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(lab: Lab, args: dict[str, Any], message: str) -> None:
    assert message in lab.run(**args)["msg"]
    assert not lab.state_dir.exists()
