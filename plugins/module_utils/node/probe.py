# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure round trips of small datagrams at a held rate: `node.pyz probe --spec FILE`, answered by `echo`.

Datagrams leave on a schedule, whatever becomes of those before, so that a slow moment is met by as many of them as a
quick one. Send and receive times are this host's monotonic clock.
"""

from __future__ import annotations

import select
import signal
import socket
import struct
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.node import addresses

_STOP = frozenset({signal.SIGTERM, signal.SIGINT})
_PACKET = struct.Struct("!QQ")
_LONGEST = 2048
_LAST_ANSWERS_S = 0.2


class ProbeError(Exception):
    """The specification is damaged, or there is nobody to ask."""


@dataclass(frozen=True)
class ProbeSpec:
    """Whom to ask, how often in a second, for how many seconds at most, and where the result goes."""

    address: str
    port: int
    output: str
    rate_hz: float
    max_duration_s: float
    payload_bytes: int = 64


@dataclass
class Trips:
    """What was sent (ns after the start) and how long each took in ns, -1 for those that did not come back."""

    start_ns: int
    sent_ns: list[int] = field(default_factory=list)
    took_ns: list[int] = field(default_factory=list)

    def send(self, sock: socket.socket, padding: bytes) -> None:
        """Send the next one."""
        now_ns = time.monotonic_ns()
        sock.send(_PACKET.pack(len(self.sent_ns), now_ns) + padding)
        self.sent_ns.append(now_ns - self.start_ns)
        self.took_ns.append(-1)

    def receive(self, sock: socket.socket) -> None:
        """Take one answer."""
        data = sock.recv(_LONGEST)
        now_ns = time.monotonic_ns()
        number, sent_ns = _PACKET.unpack_from(data)
        if number < len(self.took_ns) and self.took_ns[number] < 0:
            self.took_ns[number] = now_ns - sent_ns

    def result(self, rate_hz: float) -> dict[str, Any]:
        """Return the trips as they are stored: times in microseconds."""
        return {
            "rate_hz": rate_hz,
            "start_mono_s": self.start_ns / 1e9,
            "wall_minus_mono_s": time.time() - time.monotonic(),
            "sent_us": [value // 1000 for value in self.sent_ns],
            "took_us": [-1 if value < 0 else value // 1000 for value in self.took_ns],
        }


def parse_spec(raw: Any) -> ProbeSpec:
    """Build the specification from its JSON object. Raises ProbeError."""
    try:
        spec = ProbeSpec(**raw)
        problem = not 0 < spec.rate_hz <= 100_000 or not _PACKET.size <= spec.payload_bytes <= _LONGEST
    except TypeError as exc:
        raise ProbeError(f"probe: not a specification ({exc}); see docs/node-tool.md for its keys") from exc
    if problem:
        raise ProbeError(f"probe: rate_hz must be from 0 to 100000, payload_bytes from {_PACKET.size} to {_LONGEST}")
    return spec


def loop(sock: socket.socket, spec: ProbeSpec) -> Trips:
    """Send and receive until told to stop, then wait a moment for the last answers. Raises OSError."""
    period_ns = round(1e9 / spec.rate_hz)
    trips = Trips(time.monotonic_ns())
    padding = bytes(spec.payload_bytes - _PACKET.size)
    due_ns = trips.start_ns
    end_ns = trips.start_ns + round(spec.max_duration_s * 1e9)
    while due_ns < end_ns and signal.sigtimedwait(_STOP, 0) is None:
        _answers(sock, trips, due_ns)
        trips.send(sock, padding)
        # After a stall of this process what it missed is left out, and the schedule stands.
        due_ns += period_ns * max(1, -(-(time.monotonic_ns() - due_ns) // period_ns))
    _answers(sock, trips, time.monotonic_ns() + round(_LAST_ANSWERS_S * 1e9))
    return trips


def _answers(sock: socket.socket, trips: Trips, until_ns: int) -> None:
    while (left_ns := until_ns - time.monotonic_ns()) > 0:
        # poll() waits whole milliseconds, select() microseconds.
        if select.select([sock], [], [], left_ns / 1e9)[0]:
            trips.receive(sock)


def run(spec_path: str) -> int:
    """Probe as a specification file says. Returns the tool's exit status."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)
    try:
        spec = parse_spec(files.read_json(spec_path))
        family, place = addresses.place(spec.address, spec.port)
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect(place)
            files.write_json(spec.output, {})
            trips = loop(sock, spec)
        files.write_json(spec.output, trips.result(spec.rate_hz))
    except (ProbeError, files.FilesError) as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    except OSError as exc:
        sys.stderr.write(f"probe: {exc.strerror}; does echo run there, and is the address right?\n")
        return 1
    return 0
