"""The `load` command with programs that pretend to be wrk: what becomes of their output, failures and delays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.node import load

FOUND = {
    "requests": 12,
    "bytes": 1200,
    "recorded": 11,
    "errors": {"connect": 0, "read": 0, "write": 0, "status": 0, "timeout": 1},
    "scheduled": 12.0,
    "sent": 12.0,
    "late": 2.0,
    "late_max_ms": 3.25,
    "start_wall_us": 1_700_000_000_000_000.0,
    "start_mono_us": 5_000_000.0,
    "window_us": 2_000_000.0,
    "latency_us": [[100, 4], [250, 7]],
}
LINE = load.MARKER + json.dumps(FOUND)
KEYS = set(
    [
        *("kind", "tool", "url", "threads", "connections", "seed", "rate_rps", "warmup_s", "duration_s"),
        *("start_wall_s", "end_wall_s", "start_mono_s", "end_mono_s", "scheduled", "requests", "bytes", "errors"),
        *("late", "late_max_ms", "generator_cpu_s", "latency_us"),
    ]
)


@pytest.fixture
def spec(tmp_path: Path) -> dict[str, Any]:
    """A specification whose wrk is still to be written by `pretend`."""
    script = tmp_path / "open_loop.lua"
    script.write_text("")
    return {
        "kind": "open_loop",
        "wrk": str(tmp_path / "wrk"),
        "script": str(script),
        "url": "http://127.0.0.1:8000/",
        "threads": 1,
        "connections": 4,
        "rate_rps": 6,
        "seed": 1,
        "warmup_s": 1,
        "duration_s": 2,
        "timeout_s": 1,
        "headers": {},
        "output": str(tmp_path / "load.json"),
    }


def pretend(spec: dict[str, Any], body: str) -> None:
    """Write a program that prints wrk's version, and otherwise notes its arguments and does `body`."""
    path = Path(spec["wrk"])
    path.write_text(
        '#!/bin/sh\nif [ "$1" = -v ]; then echo "wrk 4.2.0 [epoll] Copyright"; exit 1; fi\n'
        f'echo "$@" >> {path}.calls\n{body}\n'
    )
    path.chmod(0o755)


def execute(spec: dict[str, Any], tmp_path: Path) -> tuple[int, dict[str, Any]]:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec))
    previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        status = load.run(str(path))
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    return status, json.loads(Path(spec["output"]).read_text())


def test_result_has_the_keys_of_the_contract(spec: dict[str, Any], tmp_path: Path) -> None:
    pretend(spec, f"echo 'Running'; echo '{LINE}'")
    status, found = execute(spec, tmp_path)
    assert status == 0
    assert set(found) == KEYS
    assert found["tool"] == "wrk 4.2.0"
    assert (found["start_wall_s"], found["end_wall_s"]) == (1_700_000_000.0, 1_700_000_002.0)
    assert (found["start_mono_s"], found["end_mono_s"]) == (5.0, 7.0)
    assert (found["scheduled"], found["late"], found["late_max_ms"]) == (12, 2, 3.25)
    assert found["latency_us"] == [[100, 4], [250, 7]]


def test_warmup_comes_first_with_another_seed(spec: dict[str, Any], tmp_path: Path) -> None:
    pretend(spec, f"echo '{LINE}'")
    execute(spec, tmp_path)
    warmup, window = Path(spec["wrk"] + ".calls").read_text().splitlines()
    assert "-d 1s " in warmup
    assert "-d 3s " in window, "the window gets a second more for the last answers"
    assert "seed=1 " in window
    assert "seed=1 " not in warmup


def test_no_warmup(spec: dict[str, Any], tmp_path: Path) -> None:
    pretend(spec, f"echo '{LINE}'")
    execute({**spec, "warmup_s": 0}, tmp_path)
    assert len(Path(spec["wrk"] + ".calls").read_text().splitlines()) == 1


def test_cpu_of_the_generator_is_that_of_the_window(spec: dict[str, Any], tmp_path: Path) -> None:
    burn = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"
    pretend(spec, f"case \"$*\" in *'-d 3s'*) {burn};; esac; echo '{LINE}'")
    _, found = execute(spec, tmp_path)
    assert 0 < found["generator_cpu_s"] < 5


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("echo 'unable to connect to 127.0.0.1:8000 Connection refused' >&2; exit 1", "Connection refused"),
        ("echo 'PANIC: not that of wrk 4.1.0' >&2; exit 1", "use wrk 4.1.0 or 4.2.0"),
        ("echo 'Running'", "printed no result but"),
        ("exit 3", "status 3"),
        (f"echo '{load.MARKER}{{'", "damaged"),
        (f"echo '{load.MARKER}{json.dumps({**FOUND, 'requests': 99})}'", "holds 11 requests of 98"),
        (f"echo '{load.MARKER}{json.dumps({**FOUND, 'latency_us': [[1, 12], [2, -1]]})}'", "counts otherwise"),
    ],
)
def test_failures_become_a_sentence(spec: dict[str, Any], tmp_path: Path, body: str, said: str) -> None:
    pretend(spec, body)
    status, found = execute(spec, tmp_path)
    assert status == 1
    assert set(found) == {"error"}
    assert said in found["error"]


def test_a_program_that_is_not_wrk(spec: dict[str, Any], tmp_path: Path) -> None:
    path = Path(spec["wrk"])
    path.write_text("#!/bin/sh\necho ab version 2\n")
    path.chmod(0o755)
    assert "does not print a version of wrk" in execute(spec, tmp_path)[1]["error"]


def test_result_of_before_does_not_survive(spec: dict[str, Any], tmp_path: Path) -> None:
    Path(spec["output"]).write_text('{"requests": 1}')
    pretend(spec, "exit 1")
    assert "error" in execute(spec, tmp_path)[1]


def test_deadline_kills_only_wrk(spec: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "DEADLINE_SLACK_S", -2.9)
    pretend(spec, f"echo $$ > {spec['wrk']}.pid; exec sleep 600")
    began = time.monotonic()
    _, found = execute({**spec, "warmup_s": 0}, tmp_path)
    assert "did not end within 0.1 s" in found["error"]
    assert time.monotonic() - began < 300, "wrk sleeps for ten minutes"
    assert not Path(f"/proc/{Path(spec['wrk'] + '.pid').read_text().strip()}").exists()


def test_wrk_does_not_outlive_us(spec: dict[str, Any], tmp_path: Path) -> None:
    pid_path = Path(spec["wrk"] + ".pid")
    pretend(spec, f"echo $$ > {pid_path}.new; mv {pid_path}.new {pid_path}; exec sleep 600")
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec))
    code = f"import sys; from {load.__name__} import run; sys.exit(run({str(path)!r}))"
    child = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    try:
        deadline = time.monotonic() + 20
        while not pid_path.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        child.terminate()
        assert child.wait(20) == 1
    finally:
        child.kill()
    assert not Path(f"/proc/{pid_path.read_text().strip()}").exists()
    assert "ended by signal SIGTERM" in json.loads(Path(spec["output"]).read_text())["error"]


def test_a_specification_that_is_not_there(tmp_path: Path) -> None:
    assert load.run(str(tmp_path / "none.json")) == 1


@given(st.text())
def test_any_output_is_a_result_or_a_sentence(text: str) -> None:
    with pytest.raises(load.LoadError, match=r"^load: "):
        load.parse_output(load.MARKER + text)
