"""Real load: wrk built from source, against a tiny server on loopback. Every run is short and light."""

from __future__ import annotations

import itertools
import json
import math
import os
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.module_utils import apt
from ansible_collections.colocation.testbed.plugins.module_utils.node import load
from ansible_collections.colocation.testbed.plugins.module_utils.wrk import build
from ansible_collections.colocation.testbed.plugins.module_utils.wrk.record import Request, Store

pytestmark = pytest.mark.measures

SCRIPTS = ROOT / "files" / "load"
SEED = 20261


class Server(socketserver.ThreadingTCPServer):
    """Answers requests at once, but holds the answers that `hold` asks for."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = "200 OK"
        self.count = 0
        self.hold_from, self.hold_until, self.hold_s = 0, 0, 0.0
        self.lock = threading.Lock()
        self.never = threading.Event()

    def hold(self, first: int, answers: int, seconds: float) -> None:
        """Answer the requests first, first + 1, … that much later."""
        self.hold_from, self.hold_until, self.hold_s = first, first + answers, seconds

    def number(self) -> int:
        with self.lock:
            self.count += 1
            return self.count


class Handler(socketserver.StreamRequestHandler):
    """One connection with keep-alive."""

    server: Server

    def handle(self) -> None:
        while self.rfile.readline():
            while self.rfile.readline() not in (b"\r\n", b""):
                pass
            if self.server.hold_from <= self.server.number() < self.server.hold_until:
                self.server.never.wait(self.server.hold_s)
            try:
                self.wfile.write(f"HTTP/1.1 {self.server.status}\r\nContent-Length: 2\r\n\r\nok".encode())
            except OSError:
                return


@pytest.fixture(scope="session")
def wrk(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A wrk built as role load_generator does it without a way to upstream."""
    variables = yaml.safe_load((ROOT / "roles/load_generator/vars/main.yml").read_text(encoding="utf-8"))
    names = {*variables["__load_generator_build_packages"], "dpkg-dev"}
    tool = apt.Apt(lock_timeout_s=300, advice="install them by hand")
    missing = sorted(names - tool.installed())
    if missing:
        tool.update()
        tool.install(missing)
    store = Store(str(tmp_path_factory.mktemp("wrk")))
    made, _ = build.build(Request("debian_source", "4.2.0"), store)
    assert made.version.startswith("4.1.0")
    return store.program


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture
def spec(wrk: str, server: Server, tmp_path: Path) -> dict[str, Any]:
    return {
        "kind": "open_loop",
        "wrk": wrk,
        "script": str(SCRIPTS / "open_loop.lua"),
        "url": f"http://127.0.0.1:{server.server_address[1]}/",
        "threads": 1,
        "connections": 20,
        "rate_rps": 400,
        "seed": SEED,
        "warmup_s": 0,
        "duration_s": 2,
        "timeout_s": 2,
        "headers": {"x-test": "1"},
        "output": str(tmp_path / "load.json"),
        "trace": str(tmp_path / "trace"),
    }


def send(spec: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
    """Send load as the node tool does, in a process of its own; returns load.json."""
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec))
    code = f"import sys; from {load.__name__} import run; sys.exit(run({str(path)!r}))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], env=environment, timeout=60, check=False)
    return json.loads(Path(spec["output"]).read_text())


def traced(spec: dict[str, Any]) -> list[tuple[float, float]]:
    """Return (due, sent) of every request of all threads in microseconds, by due time."""
    found = []
    for thread in range(spec["threads"]):
        for line in Path(f"{spec['trace']}.{thread}").read_text().splitlines():
            due_us, sent_us = line.split()
            found.append((float(due_us), float(sent_us)))
    return sorted(found)


def arrivals(seed: int, rate_rps: float, window_s: float) -> list[float]:
    """Return the schedule in microseconds, by an independent implementation with whole numbers."""
    m31, m1, m2 = 2**31 - 1, 4294967087, 4294944443

    def lehmer(state: int) -> Iterator[int]:
        state = state % (m31 - 1) + 1
        while True:
            state = state * 16807 % m31
            yield state

    low, high = lehmer(seed % (m31 - 1)), lehmer(seed // (m31 - 1))
    first = [next(low), next(low), next(low)]
    second = [next(high), next(low), next(high)]
    total = math.floor(rate_rps * window_s + 0.5)
    elapsed, times = 0.0, []
    for _ in range(total + 1):
        first.append((1403580 * first[-2] - 810728 * first[-3]) % m1)
        second.append((527612 * second[-1] - 1370589 * second[-3]) % m2)
        difference = (first[-1] - second[-1]) % m1 or m1
        elapsed -= math.log(difference / (m1 + 1))
        times.append(elapsed)
    scale = window_s * 1e6 / times[-1]
    return [time * scale for time in times[:-1]]


def ks_of_exponential(gaps: list[float]) -> float:
    """Return Kolmogorov's and Smirnov's distance to the exponential distribution, times the root of the count.

    1.63 is exceeded by chance in 1 % of samples; with the mean taken from the sample much more rarely.
    """
    mean, ordered = sum(gaps) / len(gaps), sorted(gaps)
    size = len(ordered)
    worst = 0.0
    for rank, gap in enumerate(ordered):
        expected = 1 - math.exp(-gap / mean)
        worst = max(worst, abs(expected - rank / size), abs(expected - (rank + 1) / size))
    return worst * math.sqrt(size)


def differences(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in itertools.pairwise(times)]


@pytest.mark.parametrize("seed", [0, 1, 2, SEED, 2**53 - 1])
def test_planned_gaps_are_exponential(wrk: str, seed: int) -> None:
    program = f"for _, t in ipairs(dofile('{SCRIPTS}/schedule.lua').arrivals({seed}, 1000, 20, 0, 1)) do print(t) end"
    done = subprocess.run(["luajit", "-e", program], check=True, capture_output=True, text=True, timeout=30)
    planned = [float(line) for line in done.stdout.split()]
    assert len(planned) == 20_000
    assert planned == pytest.approx(arrivals(seed, 1000, 20), rel=1e-9)
    gaps = differences(planned)
    assert ks_of_exponential(gaps) < 1.63
    mean = sum(gaps) / len(gaps)
    neighbours = sum((a - mean) * (b - mean) for a, b in itertools.pairwise(gaps))
    assert abs(neighbours / sum((gap - mean) ** 2 for gap in gaps)) < 3 / math.sqrt(len(gaps))


def test_the_same_seed_gives_the_same_arrivals(spec: dict[str, Any], server: Server, tmp_path: Path) -> None:
    first = send(spec, tmp_path)
    planned = [due for due, _ in traced(spec)]
    server.hold(1, 10_000, 0.005)
    second = send({**spec, "threads": 2, "connections": 60}, tmp_path)
    assert first["scheduled"] == second["scheduled"] == 800
    assert first["requests"] == second["requests"] == 800
    assert second["latency_us"][0][0] >= 5_000 > first["latency_us"][0][0], "the server was slower the second time"
    assert [due for due, _ in traced({**spec, "threads": 2})] == pytest.approx(planned, abs=0.01)
    assert planned == pytest.approx(arrivals(SEED, 400, 2), abs=0.01)


def test_requests_leave_when_they_are_due(spec: dict[str, Any], tmp_path: Path) -> None:
    """wrk's own timers count milliseconds: then 27 % of the gaps would be below 0.1 ms instead of 6 %.

    Gaps are compared where both requests left within 0.5 ms, so that a busy machine does not decide the outcome.
    """
    found = send({**spec, "rate_rps": 600, "duration_s": 3}, tmp_path)
    assert found["requests"] / found["scheduled"] >= 0.99
    both = traced(spec)
    late_ms = sorted((sent - due) / 1000 for due, sent in both)
    gaps = [(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(both) if max(a[1] - a[0], b[1] - b[0]) < 500]
    planned, real = (sum(pair[kind] < 100 for pair in gaps) / len(gaps) for kind in (0, 1))
    shown = ", ".join(f"P{share} {late_ms[len(late_ms) * share // 100]:.3f} ms" for share in (50, 90, 99))
    print(f"\nleft after they were due: {shown}, at most {late_ms[-1]:.3f} ms")
    print(f"gaps below 0.1 ms: {100 * planned:.1f} % planned, {100 * real:.1f} % sent, of {len(gaps)} gaps")
    assert late_ms[0] >= 0, "nothing leaves early"
    assert late_ms[len(late_ms) // 2] < 0.4
    assert planned == pytest.approx(0.06, abs=0.02)
    assert real < 0.12


def test_result_describes_the_window(spec: dict[str, Any], tmp_path: Path) -> None:
    found = send({**spec, "warmup_s": 1}, tmp_path)
    assert (found["kind"], found["rate_rps"], found["seed"]) == ("open_loop", 400, SEED)
    assert found["end_mono_s"] - found["start_mono_s"] == pytest.approx(2)
    assert found["end_wall_s"] - found["start_wall_s"] == pytest.approx(2)
    assert sum(count for _, count in found["latency_us"]) == found["requests"] == 800
    assert found["errors"] == {"connect": 0, "read": 0, "write": 0, "status": 0, "timeout": 0}
    assert 0 < found["generator_cpu_s"] < 2
    assert found["bytes"] == 800 * len("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def test_a_stall_is_seen_as_it_was(spec: dict[str, Any], server: Server, tmp_path: Path) -> None:
    """Four requests are held: wrk's own correction adds a hundred that never were. What had to wait is late."""
    server.hold(200, 4, 0.5)
    found = send({**spec, "connections": 4}, tmp_path)
    slow = {value: count for value, count in found["latency_us"] if value >= 400_000}
    assert sum(slow.values()) == 4
    assert sum(count for value, count in found["latency_us"] if 100_000 <= value < 400_000) == 0
    assert sum(count for _, count in found["latency_us"]) == found["requests"] == 800
    assert found["late"] > 100
    assert 300 < found["late_max_ms"] < 1000


def test_answers_after_the_timeout_are_errors(spec: dict[str, Any], server: Server, tmp_path: Path) -> None:
    server.hold(100, 2, 1.4)
    found = send({**spec, "timeout_s": 1}, tmp_path)
    assert found["errors"]["timeout"] == 2
    assert sum(count for _, count in found["latency_us"]) == found["requests"] - 2


def test_refusals_are_counted(spec: dict[str, Any], server: Server, tmp_path: Path) -> None:
    server.status = "503 Service Unavailable"
    found = send(spec, tmp_path)
    assert found["errors"]["status"] == found["requests"] == 800


def test_closed_loop(spec: dict[str, Any], tmp_path: Path) -> None:
    script = str(SCRIPTS / "closed_loop.lua")
    found = send({**spec, "kind": "closed_loop", "rate_rps": None, "script": script, "connections": 4}, tmp_path)
    assert (found["kind"], found["rate_rps"], found["late"]) == ("closed_loop", None, 0)
    assert sum(count for _, count in found["latency_us"]) == found["requests"] == found["scheduled"] > 100
    assert found["end_mono_s"] - found["start_mono_s"] == pytest.approx(2, abs=0.5)


def test_no_service(spec: dict[str, Any], server: Server, tmp_path: Path) -> None:
    server.shutdown()
    server.server_close()
    assert "Connection refused" in send(spec, tmp_path)["error"]


def test_a_wrk_with_another_event_loop_is_refused(spec: dict[str, Any], tmp_path: Path) -> None:
    """The check that keeps the scripts from writing into memory that they misunderstand."""
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    for path in SCRIPTS.glob("*.lua"):
        text = path.read_text(encoding="utf-8").replace("local wanted = 10 + 3 *", "local wanted = 11 + 3 *")
        (scripts / path.name).write_text(text, encoding="utf-8")
    found = send({**spec, "script": str(scripts / "open_loop.lua")}, tmp_path)
    assert "event loop is not that of wrk 4.1.0 or 4.2.0" in found["error"]
