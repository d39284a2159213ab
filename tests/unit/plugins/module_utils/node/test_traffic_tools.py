"""Sending, receiving, counting, asking and answering: the commands of the node tool, against each other on loopback."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import net_drops, sock_diag
from ansible_collections.colocation.testbed.plugins.module_utils.node import count_received, probe, send, send_spec
from ansible_collections.colocation.testbed.plugins.module_utils.node.send_spec import Bursts, SendError
from ansible_collections.colocation.testbed.plugins.module_utils.recorded_process import wait

LOOPBACK = "127.0.0.1"
DEADLINE_S = 10.0


def free_port(kind: int = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as found:
        found.bind((LOOPBACK, 0))
        return int(found.getsockname()[1])


class Tools:
    """Commands of the node tool that run for a test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[subprocess.Popen[str]] = []

    def start(self, command: str, **spec: Any) -> Path:
        """Start a command, wait until it is ready, and return its output."""
        output = self.folder / f"{command}.json"
        path = self.folder / f"{command}.spec.json"
        path.write_text(json.dumps({**spec, "output": str(output)}))
        argv = [sys.executable, str(ROOT / "files/node"), command, "--spec", str(path)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "collections")}
        started = subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE, text=True)
        self.running.append(started)
        ready = wait(lambda: output.exists() or started.poll() is not None, DEADLINE_S)
        assert ready, f"{command} did not become ready"
        assert started.poll() is None, started.communicate()[1]
        return output

    def stop(self) -> None:
        """End everything, the last one first, and wait for it."""
        for process in self.running[::-1]:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.communicate(timeout=DEADLINE_S)
        self.running = []


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Tools]:
    made = Tools(tmp_path)
    yield made
    made.stop()


def flow(port: int, **more: Any) -> dict[str, Any]:
    return {"name": "bulk", "address": LOOPBACK, "port": port, **more}


def test_what_was_sent_at_a_held_rate_is_what_the_kernel_says_was_received(tools: Tools) -> None:
    port = free_port()
    tools.start("receive", address=LOOPBACK, ports=[port])
    counted = tools.start("count-received", ports={"bulk": [port]}, interval_s=0.05, max_duration_s=20)
    sent = tools.start("send", flows=[flow(port, rate_bps=16_000_000, connections=4)], max_duration_s=20)
    time.sleep(1.5)  # the length of what is measured
    tools.stop()
    received = json.loads(counted.read_text())
    moments, values = received["mono_s"], received["bytes"]["bulk"]
    begin_s = json.loads(sent.read_text())["start_mono_s"]
    # What fits into the first windows leaves at once, on loopback in pieces of 64 KiB.
    inside = [number for number, moment in enumerate(moments) if 0.6 <= moment - begin_s <= 1.4]
    assert all(values[number] <= values[number + 1] for number in inside[:-1])
    grown_bits = 8 * (values[inside[-1]] - values[inside[0]])
    rate_bps = grown_bits / (moments[inside[-1]] - moments[inside[0]])
    # A machine without a free processor may send less.
    assert 0.3 * 16e6 < rate_bps < 1.4 * 16e6
    # The sender ends before the counter, and its connections' counters with it.
    total = max(values)
    assert total <= json.loads(sent.read_text())["sent_bytes"]["bulk"]
    assert received["flows"]["bulk"][-1][1] == 4 or received["flows"]["bulk"][-2][1] == 4
    assert received["stack_drops"] >= 0


def test_a_class_with_bursts_is_silent_in_its_pauses(tools: Tools) -> None:
    port = free_port()
    tools.start("receive", address=LOOPBACK, ports=[port])
    counted = tools.start("count-received", ports={"bulk": [port]}, interval_s=0.01, max_duration_s=20)
    bursts = {"on_s": 0.2, "off_s": 0.3}
    sent = tools.start("send", flows=[flow(port, rate_bps=40_000_000, bursts=bursts)], max_duration_s=20)
    time.sleep(1.2)  # the length of what is measured
    tools.stop()
    turns = json.loads(sent.read_text())["switches"]
    assert [turn["on"] for turn in turns[:4]] == [True, False, True, False]
    assert turns[1]["mono_s"] - turns[0]["mono_s"] == pytest.approx(0.2, abs=0.1)
    received = json.loads(counted.read_text())
    # What was handed to the kernel before the pause still leaves, at its rate: a few ms.
    quiet = [
        value for moment, value in zip(received["mono_s"], received["bytes"]["bulk"], strict=True)
        if turns[1]["mono_s"] + 0.1 < moment < turns[2]["mono_s"] - 0.01
    ]  # fmt: skip
    assert len(set(quiet)) == 1
    assert quiet[0] > 0


def test_round_trips_are_timed_and_answered(tools: Tools) -> None:
    port = free_port(socket.SOCK_DGRAM)
    tools.start("echo", address=LOOPBACK, port=port)
    asked = tools.start("probe", address=LOOPBACK, port=port, rate_hz=500, max_duration_s=20)
    time.sleep(0.6)  # the length of what is measured
    tools.stop()
    found = json.loads(asked.read_text())
    assert len(found["sent_us"]) == len(found["took_us"]) > 50
    assert sum(took >= 0 for took in found["took_us"]) > 0.9 * len(found["took_us"])
    assert 1 <= sorted(found["took_us"])[len(found["took_us"]) // 2] < 20_000
    assert found["sent_us"] == sorted(found["sent_us"])


def test_a_probe_without_answers_says_so(tools: Tools) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf:
        deaf.bind((LOOPBACK, 0))
        asked = tools.start("probe", address=LOOPBACK, port=deaf.getsockname()[1], rate_hz=100, max_duration_s=20)
        time.sleep(0.3)  # the length of what is measured
        tools.stop()
    assert set(json.loads(asked.read_text())["took_us"]) == {-1}


@pytest.mark.parametrize(
    ("command", "spec", "sentence"),
    [
        ("send", {"flows": [], "max_duration_s": 1}, "flows is empty; name at least one class"),
        ("send", {"flows": [{"name": "a"}], "max_duration_s": 1}, "not a specification"),
        ("send", {"flows": [{"name": "a", "address": LOOPBACK, "port": 9, "connections": 0}], "max_duration_s": 1},
         "must be at least 1"),
        ("send", {"flows": [{"name": "a", "address": LOOPBACK, "port": 1}], "max_duration_s": 1},
         "Connection refused; does receive run there?"),
        ("count-received", {"ports": {}, "interval_s": 0, "max_duration_s": 1}, "interval_s is 0.0"),
        ("probe", {"address": LOOPBACK, "port": 9, "rate_hz": 0, "max_duration_s": 1}, "rate_hz must be from 0"),
        ("receive", {"address": "192.0.2.77", "ports": [5]}, "is the address this host's"),
        ("echo", {"address": LOOPBACK}, "see docs/node-tool.md"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_sentence(tmp_path: Path, command: str, spec: dict[str, Any], sentence: str) -> None:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps({**spec, "output": str(tmp_path / "out.json")}))
    argv = [sys.executable, str(ROOT / "files/node"), command, "--spec", str(path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "collections")}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_turns_come_in_their_order_and_none_is_lost() -> None:
    table = send.Timetable({"a": Bursts(1.0, 2.0), "b": Bursts(0.5, 0.5, start_s=0.25)}, 100.0)
    seen = []
    for step in range(40):
        seen += [(step / 10, name, on) for name, on in table.due(100 + step / 10)]
    assert [(at, on) for at, name, on in seen if name == "a"] == [(0.0, True), (1.0, False), (3.0, True)]
    assert [on for _at, name, on in seen if name == "b"] == [True, False, True, False, True, False, True, False]
    assert table.left_s(103.99) == pytest.approx(0.01)


def test_without_bursts_there_is_only_looking_round() -> None:
    assert send.Timetable({}, 0.0).left_s(1.0) == pytest.approx(0.05)


def test_a_specification_of_flows_is_checked_before_anything_is_opened() -> None:
    with pytest.raises(SendError, match="on_s and off_s of bursts must be above 0"):
        send_spec.parse({"flows": [flow(1, bursts={"on_s": 0, "off_s": 1})], "output": "x", "max_duration_s": 1})


def test_flow_counts_are_kept_where_they_change() -> None:
    assert count_received.changes([0, 0, 3, 3, 2]) == [[0, 0], [2, 3], [4, 2]]
    assert count_received.changes([]) == []


def test_an_answer_counts_once_and_for_its_own_datagram() -> None:
    trips = probe.Trips(0, [10, 20], [-1, -1])

    class Answer:
        def recv(self, _size: int) -> bytes:
            return probe._PACKET.pack(1, time.monotonic_ns()) + b"padding"

    trips.receive(Answer())  # type: ignore[arg-type]
    first = trips.took_ns[1]
    trips.receive(Answer())  # type: ignore[arg-type]
    assert trips.took_ns == [-1, first]
    assert first >= 0


def test_connections_of_this_process_are_told_with_their_bytes() -> None:
    with socket.create_server((LOOPBACK, 0)) as server, socket.create_connection(server.getsockname()) as client:
        accepted, _peer = server.accept()
        with accepted:
            client.sendall(b"x" * 12_345)
            accepted.settimeout(DEADLINE_S)
            assert len(accepted.recv(12_345, socket.MSG_WAITALL | socket.MSG_PEEK)) == 12_345
            reader = sock_diag.Reader()
            try:
                mine = [item for item in reader.read() if item.local_port == server.getsockname()[1]]
            finally:
                reader.close()
            found = [(item.received_bytes, item.remote_port) for item in mine]
            assert found == [(12_345, client.getsockname()[1])]


@pytest.mark.parametrize("body", [b"", b"\0" * 72, b"\0" * 72 + b"\x02\0\0\0", b"\0" * 72 + b"\x08\0\x02\0abcd"])
def test_a_message_without_counters_is_none(body: bytes) -> None:
    assert sock_diag.parse(body) is None


def test_drops_are_summed_over_devices_without_the_loopback() -> None:
    text = (
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls\n"
        "    lo: 1 1 0 9 0 0 0 0 1 1 0 9 0 0 0 0\n"
        "   ct0: 1 1 0 3 0 0 0 0 1 1 0 4 0 0 0 0\n"
        "eth1.7: 1 1 0 1 0 0 0 0 1 1 0 0 0 0 0 0\n"
    )
    assert net_drops.parse_devices(text) == 8
    assert net_drops.parse_softnet("0000000a 00000002 0 0\n0000000b 00000010 0 0\n") == 18
