"""A program beside the tests can be paused, and nothing of it outlives them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from background import BEHIND, Background
from tooling import ROOT

# A leader with a child; both count, and the leader says who they are.
TWO = """
import os, signal, sys, time
if len(sys.argv) > 2:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
me = "child" if child == 0 else "leader"
with open(f"{sys.argv[1]}/{me}.pid", "w") as stream:
    stream.write(str(os.getpid()))
for number in range(10**9):
    with open(f"{sys.argv[1]}/{me}.count", "w") as stream:
        stream.write(str(number))
    time.sleep(0.01)
"""
WAIT_S = 20.0


def until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, "has not come in time"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    """Tell whether a process is no more, or has only not been collected by its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def read(path: Path) -> int:
    return int(path.read_text() or -1) if path.exists() else -1


class Two:
    """What a leader and its child have written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def pids(self) -> list[int]:
        until(lambda: all(read(self.folder / f"{name}.pid") > 0 for name in ("leader", "child")))
        return [read(self.folder / f"{name}.pid") for name in ("leader", "child")]

    def counts(self) -> list[int]:
        return [read(self.folder / f"{name}.count") for name in ("leader", "child")]

    def states(self) -> str:
        return "".join(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in self.pids())


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Background]]:
    started: list[Background] = []

    def _start(code: str, *arguments: str) -> Background:
        argv = [*BEHIND, sys.executable, "-c", code, str(tmp_path), *arguments]
        started.append(Background(argv, tmp_path / "log" / "program.log", os.environ))
        return started[-1]

    yield _start
    for program in started:
        program.stop(0)


def test_the_end_of_a_program_is_waited_for(start: Callable[..., Background]) -> None:
    program = start("print('built')")
    assert program.wait(WAIT_S)
    assert not program.running
    assert program.output() == "built\n"
    assert program.failure() == ""
    program.stop()
    program.stop()
    assert not program.stopped


def test_waiting_ends_with_its_time(start: Callable[..., Background], two: Two) -> None:
    program = start(TWO)
    assert not program.wait(0.05)
    assert not program.wait(-1)
    assert program.running
    assert program.failure() == ""


@pytest.mark.parametrize(("code", "said"), [("print('a\\nthe proxy\\n'); exit(1)", "the proxy"), ("exit(3)", "with 3")])
def test_a_failure_is_the_last_line(start: Callable[..., Background], code: str, said: str) -> None:
    program = start(code)
    assert program.wait(WAIT_S)
    assert said in program.failure()
    program.stop()
    assert said in program.failure()


def test_it_runs_behind_everything_else(start: Callable[..., Background], two: Two) -> None:
    start(TWO)
    assert [os.sched_getscheduler(pid) for pid in two.pids()] == [os.SCHED_IDLE, os.SCHED_IDLE]


def test_a_pause_holds_the_whole_group(start: Callable[..., Background], two: Two) -> None:
    program = start(TWO)
    two.pids()
    program.pause()
    until(lambda: two.states() == "TT")
    before = two.counts()
    program.pause()
    assert program.running
    program.resume()
    until(lambda: all(now > then for now, then in zip(two.counts(), before, strict=True)))


@pytest.mark.parametrize("paused", [False, True])
def test_stopping_ends_leader_and_child(start: Callable[..., Background], two: Two, paused: bool) -> None:
    program = start(TWO)
    pids = two.pids()
    if paused:
        program.pause()
    program.stop()
    until(lambda: all(map(gone, pids)))
    assert program.stopped
    assert program.failure() == ""


def test_who_does_not_listen_is_killed(start: Callable[..., Background], two: Two) -> None:
    program = start(TWO, "deaf")
    pids = two.pids()
    program.stop(0.1)
    until(lambda: all(map(gone, pids)))


def test_a_child_that_outlives_its_leader_is_ended_too(start: Callable[..., Background], two: Two) -> None:
    program = start(TWO.replace("for number", "if child: exit(0)\nfor number"))
    child = two.pids()[1]
    assert program.wait(WAIT_S)
    program.stop()
    until(lambda: gone(child))


@pytest.mark.parametrize("paused", [False, True])
def test_nothing_outlives_a_session_that_is_killed(two: Two, paused: bool) -> None:
    session = f"""
import os, sys, time
from pathlib import Path
from background import Background
code, folder = sys.argv[1:]
program = Background([sys.executable, "-c", code, folder], Path(folder) / "log", os.environ)
while not all((Path(folder) / f"{{name}}.count").exists() for name in ("leader", "child")):
    time.sleep(0.02)
if {paused}:
    program.pause()
print("up", flush=True)
time.sleep(600)
"""
    # As the builder: whoever ends the leader ends all.
    code = "import os, signal\nsignal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))\n" + TWO
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests/lib")}
    argv = [sys.executable, "-c", session, code, str(two.folder)]
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == b"up\n"
        pids = two.pids()
        started.send_signal(signal.SIGKILL)
    until(lambda: all(map(gone, pids)))
