# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import (
    commands,
    files,
    recorded_process,
    undo,
    undo_places,
)
from ansible_collections.colocation.testbed.plugins.module_utils.journal import Entry, Journal, Outcome, Undone
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import processes


def _entry(kind: str, target: str, previous: Any = None, note: str = "") -> Entry:
    return Entry(1, "", "test", kind, target, previous, note)


class FakeRun:
    """Stands for programs: remembers argv, answers by the beginning of the command."""

    def __init__(self, answers: Mapping[str, tuple[int, str]] | None = None) -> None:
        self.calls: list[str] = []
        self.answers = answers or {}

    def __call__(self, argv: list[str], **_more: Any) -> commands.Result:
        line = " ".join(argv)
        self.calls.append(line)
        status, out = next((answer for start, answer in self.answers.items() if line.startswith(start)), (0, ""))
        return commands.Result(tuple(argv), status, out, "")


@pytest.fixture
def call() -> Callable[..., tuple[str, str]]:
    def run(entry: Entry, check: bool = False, **options: Any) -> tuple[str, str]:
        outcome = undo.Undo(term_deadline_s=0.5, **options).handlers()[entry.kind](entry, check)
        return outcome.result, outcome.text

    return run


def test_files(tmp_path: Path, call: Any) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    before = files.capture(str(path))
    path.write_text("new")
    assert call(_entry("file", str(path), before), check=True)[0] == "undone"
    assert path.read_text() == "new"
    assert call(_entry("file", str(path), before)) == ("undone", f"{path}: put back")
    assert path.read_text() == "old"
    assert "is as it was" in call(_entry("file", str(path), before))[1]
    assert call(_entry("file", str(path), None)) == ("undone", f"{path}: removed")
    assert call(_entry("file", str(path), None))[0] == "undone"


def test_values(tmp_path: Path, call: Any) -> None:
    path = tmp_path / "v"
    assert "is gone" in call(_entry("value", str(path), "1"))[1]
    path.write_text("2\n")
    assert call(_entry("value", str(path), "1", "2"))[1].endswith("2 put back to 1")
    assert path.read_text() == "1"
    path.write_text("7")
    assert "someone else had set it to 7" in call(_entry("value", str(path), "1", "2"))[1]
    assert call(_entry("value", str(path), None))[0] == "failed"


def test_a_value_that_the_kernel_refuses_is_a_failure(call: Any, tmp_path: Path) -> None:
    path = tmp_path / "v"
    path.write_text("2")
    path.chmod(0o400)
    result = call(_entry("value", "/proc/version", "1"))
    assert result[0] == "failed"
    assert "/proc/version" in result[1]


def test_directories(tmp_path: Path, call: Any) -> None:
    path = tmp_path / "d"
    assert call(_entry("directory", str(path)))[0] == "undone"
    path.mkdir()
    (path / "foreign").write_text("x")
    result = call(_entry("directory", str(path)))
    assert result[0] == "failed"
    assert "holds foreign" in result[1]
    assert call(_entry("directory", str(path), {"tree": True}), check=True)[0] == "undone"
    assert path.exists()
    assert call(_entry("directory", str(path), {"tree": True}))[0] == "undone"
    assert not path.exists()


def test_a_tree_does_not_follow_links(tmp_path: Path, call: Any) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").write_text("x")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "link").symlink_to(tmp_path / "outside")
    call(_entry("directory", str(tmp_path / "d"), {"tree": True}))
    assert (tmp_path / "outside" / "kept").exists()


WITH_CHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal,time; signal.signal(15, signal.SIG_IGN); print(1,flush=True); time.sleep(600)",
]


@pytest.fixture
def start() -> Iterator[Callable[..., processes.Identity]]:
    started: list[subprocess.Popen[bytes]] = []

    def run(argv: list[str], wait_for_line: bool = False) -> processes.Identity:
        child = subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True)
        started.append(child)
        if wait_for_line and child.stdout:
            child.stdout.readline()
        found = processes.identify(child.pid)
        if found is None:
            raise RuntimeError("ended at once")
        return found

    yield run
    for child in started:
        child.kill()
        child.wait()


def _pid_file(path: Path, child: processes.Identity | None, supervisor: processes.Identity | None = None) -> str:
    content: dict[str, Any] = {"boot_id": (child or supervisor).boot_id}  # type: ignore[union-attr]
    for prefix, identity in (("", child), ("supervisor_", supervisor)):
        content[f"{prefix}pid"] = identity.pid if identity else None
        content[f"{prefix}start_ticks"] = identity.start_ticks if identity else None
    files.write_json(str(path), content)
    return str(path)


def test_a_recorded_process_is_ended(tmp_path: Path, call: Any, start: Any) -> None:
    identity = start(SLEEP)
    target = _pid_file(tmp_path / "x.pid", identity)
    assert call(_entry("process", target), check=True) == ("undone", f"process {target}: ended {identity.pid}")
    assert processes.is_running(identity)
    assert call(_entry("process", target))[0] == "undone"
    assert not processes.is_running(identity)
    assert "has ended already" in call(_entry("process", target))[1]


def test_a_stubborn_process_is_killed(tmp_path: Path, call: Any, start: Any) -> None:
    identity = start(STUBBORN, wait_for_line=True)
    began_s = time.monotonic()
    assert call(_entry("process", _pid_file(tmp_path / "x.pid", identity)))[0] == "undone"
    assert not processes.is_running(identity)
    assert time.monotonic() - began_s >= 0.5


def test_what_a_dead_process_left_in_its_session_is_ended(tmp_path: Path, call: Any, start: Any) -> None:
    identity = start([sys.executable, "-c", WITH_CHILD], wait_for_line=True)
    child = processes.descendants(identity.pid)[0]
    os.kill(identity.pid, 9)
    recorded_process.wait(lambda: not processes.is_running(identity), 5)
    assert processes.is_running(child)
    assert call(_entry("process", _pid_file(tmp_path / "x.pid", identity)))[0] == "undone"
    assert not processes.is_running(child)


@pytest.mark.parametrize("change", [{"start_ticks": 1}, {"boot_id": "another"}])
def test_another_process_with_the_number_is_left_alone(
    tmp_path: Path, call: Any, start: Any, change: dict[str, Any]
) -> None:
    identity = start(SLEEP)
    target = _pid_file(tmp_path / "x.pid", identity)
    files.write_json(target, {**files.read_json(target), **change})
    assert "has ended already" in call(_entry("process", target))[1]
    assert processes.is_running(identity)


def test_a_supervisor_without_child_is_ended(tmp_path: Path, call: Any, start: Any) -> None:
    supervisor = start(SLEEP)
    assert call(_entry("process", _pid_file(tmp_path / "x.pid", None, supervisor)))[0] == "undone"
    assert not processes.is_running(supervisor)


def test_no_pid_file_means_that_nothing_started(tmp_path: Path, call: Any) -> None:
    assert "has ended already" in call(_entry("process", str(tmp_path / "x.pid")))[1]


@pytest.mark.parametrize("content", ["{}x", "[]", '{"pid": "x", "start_ticks": 1, "boot_id": ""}', '{"pid": 1}'])
def test_a_damaged_pid_file_is_a_failure(tmp_path: Path, call: Any, content: str) -> None:
    (tmp_path / "x.pid").write_text(content)
    assert call(_entry("process", str(tmp_path / "x.pid")))[0] == "failed"


def test_packages_are_kept_unless_asked(call: Any) -> None:
    assert call(_entry("package", "nginx"))[0] == "kept"
    run = FakeRun({"dpkg-query": (1, "nginx ii \nwrk ii \ngone un \n")})
    result = call(_entry("package", "nginx"), remove_packages=True, packages=("nginx", "wrk", "gone"), run=run)
    assert result == ("undone", "packages nginx: removed")
    assert run.calls[-1] == "apt-get purge -y -q nginx wrk"


def test_links_and_namespaces(tmp_path: Path, call: Any) -> None:
    (tmp_path / "lab").touch()
    run = FakeRun()
    assert call(_entry("netns", "gone"), netns_root=str(tmp_path), run=run)[0] == "undone"
    assert call(_entry("link", "gone/v0"), netns_root=str(tmp_path), run=run)[0] == "undone"
    assert run.calls == []
    call(_entry("link", "lab/v0"), netns_root=str(tmp_path), run=run)
    call(_entry("netns", "lab"), netns_root=str(tmp_path), run=run)
    assert run.calls == [
        "ip -n lab link show dev v0",
        "ip -n lab link delete dev v0",
        "ip netns delete lab",
    ]
    missing = FakeRun({"ip link show": (1, "")})
    assert "not there" in call(_entry("link", "v0"), run=missing)[1]


def test_units(call: Any) -> None:
    run = FakeRun({"systemctl show": (0, "loaded\n")})
    call(_entry("unit", "x.service"), run=run)
    assert run.calls[1:] == ["systemctl disable x.service", "systemctl stop x.service"]
    run = FakeRun({"systemctl show": (0, "loaded\n")})
    call(_entry("unit", "x.service", {"enabled": True, "active": False}), run=run)
    assert run.calls[1:] == ["systemctl enable x.service", "systemctl stop x.service"]
    run = FakeRun({"systemctl show": (0, "not-found\n")})
    assert "not there" in call(_entry("unit", "x.service"), run=run)[1]


def test_a_failing_program_is_an_outcome(call: Any) -> None:
    def fail(*_args: Any, **_more: Any) -> commands.Result:
        raise commands.CommandError("systemctl: is not there; install it")

    assert call(_entry("unit", "x.service"), run=fail) == ("failed", "systemctl: is not there; install it")


def test_a_line_is_put_back_and_others_stay(tmp_path: Path, call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "io.max"
    path.write_text("8:0 rbps=9 wbps=max\n8:16 rbps=33\n")
    written: list[str] = []

    def write(target: str, text: str) -> None:
        written.append(text)
        Path(target).write_text("8:0 rbps=5 wbps=max\n8:16 rbps=33\n")

    monkeypatch.setattr(files, "write_kernel", write)
    entry = _entry("line", f"{path}#8:0 rbps", "8:0 rbps=5", "8:0 rbps=7")
    assert call(entry, check=True)[0] == "undone"
    assert written == []
    assert call(entry) == ("undone", f"{path}: 8:0 rbps 9 put back to 5, although someone else had set it")
    assert written == ["8:0 rbps=5"]
    assert "is 5 as it was" in call(entry)[1]
    assert call(_entry("line", f"{path}#8:32 rbps", "8:32 rbps=max"))[1].endswith("8:32 rbps is max as it was")
    assert call(_entry("line", f"{path}#8:0 rbps", "8:0 rbps=6"))[0] == "failed"
    assert call(_entry("line", f"{path}#8:0 rbps"))[0] == "failed"
    assert "is gone" in call(_entry("line", f"{tmp_path}/none#8:0", "8:0 5"))[1]


def _group(path: Path, *pids: int) -> Path:
    path.mkdir(parents=True)
    (path / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))
    return path


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.fixture
def book(tmp_path: Path, child: subprocess.Popen[bytes]) -> Journal:
    """Return a journal of two hierarchies with a group in a group, a living process in the inner one."""
    journal = Journal(str(tmp_path / "state/journal.json"))
    for hierarchy in ("cpu", "memory"):
        journal.record("cgroup", str(_group(tmp_path / hierarchy / "a")), None, "test")
        journal.record("cgroup", str(_group(tmp_path / hierarchy / "a/b", child.pid)), None, "test")
    return journal


def test_a_group_that_somebody_is_in_is_foreseen_to_stay(tmp_path: Path, book: Journal) -> None:
    done = book.undo(undo.Undo().handlers(), check=True)
    texts = {item.entry.target: (item.outcome.result, item.outcome.text) for item in done}
    assert {result for result, _text in texts.values()} == {"failed"}
    assert "which we did not make" in texts[f"{tmp_path}/cpu/a/b"][1]
    assert texts[f"{tmp_path}/cpu/a"][1] == f"{tmp_path}/cpu/a: stays, since group b in it does"


def test_the_same_fact_is_said_once(tmp_path: Path, book: Journal, child: subprocess.Popen[bytes]) -> None:
    done = book.undo(undo.Undo().handlers(), check=True)
    (text,) = undo_places.condensed(done)
    assert text.startswith(f"{tmp_path}/memory/a/b (and in 1 other hierarchy): holds process {child.pid} (")
    other = Undone(_entry("value", "/x"), Outcome("failed", "/x: set it by hand"))
    assert undo_places.condensed([*done, other])[0] == "/x: set it by hand"


def test_what_is_ended_before_is_not_in_the_way(tmp_path: Path, book: Journal, child: subprocess.Popen[bytes]) -> None:
    found = processes.identify(child.pid)
    assert found is not None
    recorded = {"pid": found.pid, "start_ticks": found.start_ticks, "boot_id": found.boot_id}
    book.record("process", "batch", recorded, "test")
    done = book.undo(undo.Undo().handlers(), check=True)
    assert {item.outcome.result for item in done} == {"undone"}
    assert child.poll() is None


def test_a_file_of_somebody_else_in_a_directory_is_foreseen(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "state/journal.json"))
    folder = tmp_path / "d"
    journal.record("directory", str(folder), None, "test")
    journal.record("file", str(folder / "ours"), None, "test")
    folder.mkdir()
    (folder / "ours").write_text("")
    assert {item.outcome.result for item in journal.undo(undo.Undo().handlers(), check=True)} == {"undone"}
    (folder / "theirs").write_text("")
    failed = [item for item in journal.undo(undo.Undo().handlers(), check=True) if item.outcome.result == "failed"]
    assert [item.outcome.text for item in failed] == [
        f"{folder}: holds theirs, which we did not put there; move it away"
    ]
