"""Send for some seconds and count at the receiver: what passed, not what a sender believes."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from types import FrameType
from typing import Any

from tools.bandwidth.namespaces import Pair

SENDER, RECEIVER = (Path(__file__).with_name(f"{name}.py") for name in ("sender", "receiver"))
NS = 1_000_000_000
MERGE_NS = 1_000_000
# Without what start-up would look for; the programs need the standard library only.
PYTHON = (sys.executable, "-S", "-E")
Reads = list[tuple[int, int]]


class TrafficError(Exception):
    """A transfer did not take place; the text has what its programs showed."""


def rate(reads: Iterable[tuple[int, int]], start_ns: int, end_ns: int) -> float:
    """Return bits a second between two times: how bytes so far grow from the first to the last tenth of the arrivals.

    Packets are large and late by whole packets at low rates, so times are those of arrivals, not of the ends that were
    asked for. Means over a tenth keep a pause of the machine at one end from deciding. Fewer than two arrivals: by the
    time that was asked for.
    """
    found = sorted(item for item in reads if start_ns <= item[0] < end_ns)
    so_far = list(itertools.accumulate(size for _ns, size in found))
    tenth = max(len(found) // 10, 1)
    if len(found) < 2 or found[-1][0] == found[0][0]:
        return sum(so_far[-1:]) * 8 * NS / (end_ns - start_ns)
    grown = fmean(so_far[-tenth:]) - fmean(so_far[:tenth])
    elapsed_ns = fmean(ns for ns, _size in found[-tenth:]) - fmean(ns for ns, _size in found[:tenth])
    return grown * 8 * NS / elapsed_ns


def expect_line(program: subprocess.Popen[str], line: str, otherwise: str) -> None:
    """Wait for the first line of a program. Raises TrafficError when it prints something else or ends."""
    first = program.stdout.readline() if program.stdout else ""
    if first.rstrip("\n") != line:
        program.kill()
        rest, _ = program.communicate()
        raise TrafficError(f"{otherwise}: {first}{rest}")


@dataclass(frozen=True)
class Received:
    """Times and sizes of reads of each flow, and when the first connection was made (ns of the monotonic clock)."""

    begin_ns: int
    flows: Mapping[int, Reads]

    @property
    def begin_s(self) -> float:
        """Return when the first connection was made."""
        return self.begin_ns / NS

    def reads(self) -> Reads:
        """Return the reads of all flows together, in the order of time."""
        return sorted(item for reads in self.flows.values() for item in reads)

    def rate(self, start_s: float, end_s: float) -> float:
        """Return bits a second of payload of all flows in a part of the transfer."""
        return rate(self.reads(), self.begin_ns + round(start_s * NS), self.begin_ns + round(end_s * NS))

    def rates(self, start_s: float, end_s: float) -> dict[int, float]:
        """Return bits a second of payload of each flow in a part of the transfer."""
        start_ns, end_ns = self.begin_ns + round(start_s * NS), self.begin_ns + round(end_s * NS)
        return {number: rate(reads, start_ns, end_ns) for number, reads in self.flows.items()}


class Transfer:
    """A transfer from the pair's ``here`` to its ``there``, running since it was made; sender.py has the options."""

    def __init__(
        self,
        pair: Pair,
        port: int,
        seconds: float,
        *,
        to: str = "10.99.0.2",
        wait_s: float = 0,
        flows: int = 1,
        in_child: Callable[[], None] | None = None,
        in_receiver: Callable[[], None] | None = None,
        **options: Any,
    ) -> None:
        """Start both ends. Raises TrafficError."""
        expected = {"family": 6 if ":" in to else 4, "port": port, "flows": flows, "merge_ns": MERGE_NS}
        self.receiver = pair.start([*PYTHON, str(RECEIVER), json.dumps(expected)], pair.there, preexec_fn=in_receiver)
        self.timeout_s = seconds + wait_s + 60
        expect_line(self.receiver, "ready", f"the receiver could not listen on port {port}")
        spec = {"to": to, "port": port, "seconds": seconds, "wait_s": wait_s, "flows": flows, **options}
        self.sender = pair.start([*PYTHON, str(SENDER), json.dumps(spec)], preexec_fn=in_child)

    def begun(self) -> None:
        """Wait until all flows are connected and data is sent. Raises TrafficError."""
        expect_line(self.sender, "sending", "the sender could not connect")

    def wait(self) -> Received:
        """Wait for the end and return what came through. Raises TrafficError."""
        try:
            shown, _ = self.sender.communicate(timeout=self.timeout_s)
            if self.sender.returncode != 0:
                raise TrafficError(f"the sender failed: {shown}")
            self.receiver.terminate()
            text, _ = self.receiver.communicate(timeout=60)
        except subprocess.TimeoutExpired as exc:
            raise TrafficError(f"the transfer did not end within {exc.timeout:g} s") from exc
        finally:
            self.stop()
        try:
            found = json.loads(text)
        except ValueError as exc:
            raise TrafficError(f"the receiver failed: {text}") from exc
        flows = {int(number): [(ns, size) for ns, size in reads] for number, reads in found["flows"].items()}
        return Received(found["begin_ns"], flows)

    def stop(self) -> None:
        """End both programs, if they still run."""
        for program in (self.sender, self.receiver):
            if program.poll() is None:
                program.kill()
                program.communicate()

    def __enter__(self) -> Transfer:
        """Return the transfer, which must not outlive the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End both programs."""
        self.stop()


def terminate(_number: int, _frame: FrameType | None) -> None:
    """Handle SIGTERM as Ctrl-C, so that everything is taken back then too."""
    raise KeyboardInterrupt


def take_back_on_termination() -> None:
    """Let SIGTERM end this program as Ctrl-C does."""
    signal.signal(signal.SIGTERM, terminate)
