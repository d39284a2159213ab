# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Count what a host has received for each class of traffic, by the kernel's own counters of the connections.

Runs as `node.pyz count-received --spec FILE`. Headers and what was sent again do not count, and nothing depends on the
program that reads. Datagrams are an exception: no socket counts them, so `receive` does that. What was counted is
written when it is told to stop.
"""

from __future__ import annotations

import math
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import net_drops, sock_diag
from ansible_collections.colocation.testbed.plugins.module_utils.node import datagrams
from ansible_collections.colocation.testbed.plugins.module_utils.node.sample import ticks

_STOP = frozenset({signal.SIGTERM, signal.SIGINT})

_FAMILIES = {"ipv4": socket.AF_INET, "ipv6": socket.AF_INET6}

Read = Callable[[], Sequence[sock_diag.Connection]]
Taken = Callable[[], Mapping[int, "tuple[int, int]"]]
"""Returns bytes and senders of each port that takes datagrams."""


class CountError(Exception):
    """The specification is damaged; the text says how."""


@dataclass(frozen=True)
class CountSpec:
    """Where the counts go, seconds between readings, and which local ports each class has, of TCP or for datagrams.

    :ivar tally: where `receive` counts datagrams, of ``tally_ports`` in their order.
    """

    output: str
    interval_s: float
    ports: Mapping[str, tuple[int, ...]]
    max_duration_s: float
    family: str = "ipv4"
    datagram_ports: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    tally: str = ""
    tally_ports: tuple[int, ...] = ()


def parse_spec(raw: Any) -> CountSpec:
    """Build the specification from its JSON object. Raises CountError."""
    try:
        spec = CountSpec(
            str(raw["output"]),
            float(raw["interval_s"]),
            _ports(raw["ports"]),
            float(raw["max_duration_s"]),
            str(raw.get("family", "ipv4")),
            _ports(raw.get("datagram_ports", {})),
            str(raw.get("tally", "")),
            tuple(int(port) for port in raw.get("tally_ports", ())),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise CountError(f"count-received: not a specification ({exc!r}); see docs/node-tool.md for its keys") from exc
    if not math.isfinite(spec.interval_s) or spec.interval_s <= 0:
        raise CountError(f"count-received: interval_s is {spec.interval_s}; give seconds above 0")
    if spec.family not in _FAMILIES:
        raise CountError(f"count-received: family is {spec.family!r}; give one of {', '.join(_FAMILIES)}")
    lacking = {port for found in spec.datagram_ports.values() for port in found} - set(spec.tally_ports)
    if lacking:
        raise CountError(f"count-received: port {min(lacking)} is not in tally_ports; name those of receive")
    return spec


def _ports(raw: Any) -> dict[str, tuple[int, ...]]:
    return {str(name): tuple(int(port) for port in found) for name, found in raw.items()}


def nothing_taken() -> Mapping[int, tuple[int, int]]:
    """Return what is taken where no class has datagrams."""
    return {}


class Counter:
    """Keeps one reading after the other."""

    def __init__(self, spec: CountSpec, read: Read, taken: Taken = nothing_taken) -> None:
        """Take what is to be counted. Raises FilesError where the kernel does not tell what it drops."""
        self._owner = {port: name for name, ports in spec.ports.items() for port in ports}
        self._datagrams = {port: name for name, ports in spec.datagram_ports.items() for port in ports}
        self._spec, self._read, self._taken = spec, read, taken
        self._drops = self._dropped()
        self._mono_s: list[float] = []
        self._bytes: dict[str, list[int]] = {name: [] for name in (*spec.ports, *spec.datagram_ports)}
        self._flows: dict[str, list[int]] = {name: [] for name in self._bytes}

    def _dropped(self) -> int:
        return net_drops.read() + (net_drops.read_datagrams() if self._datagrams else 0)

    def take(self) -> None:
        """Read once. Raises SockDiagError."""
        counted, flows = dict.fromkeys(self._bytes, 0), dict.fromkeys(self._bytes, 0)
        before_s = time.monotonic()
        for connection in self._read():
            name = self._owner.get(connection.local_port)
            if name is not None:
                counted[name] += connection.received_bytes
                flows[name] += 1
        found = self._taken()
        for port, name in self._datagrams.items():
            counted[name] += found[port][0]
            flows[name] += found[port][1]
        # The kernel walks its sockets somewhere between question and answer.
        self._mono_s.append((before_s + time.monotonic()) / 2)
        for name, number in counted.items():
            self._bytes[name].append(number)
            self._flows[name].append(flows[name])

    def result(self) -> dict[str, Any]:
        """Return all readings; flow counts are kept only where they change, as [reading, count]."""
        return {
            "interval_s": self._spec.interval_s,
            "wall_minus_mono_s": time.time() - time.monotonic(),
            "stack_drops": self._dropped() - self._drops,
            "mono_s": [round(moment, 6) for moment in self._mono_s],
            "bytes": self._bytes,
            "flows": {name: changes(found) for name, found in self._flows.items()},
        }


def changes(values: Sequence[int]) -> list[list[int]]:
    """Return [index, value] of each value that differs from the one before, beginning with the first."""
    return [[index, value] for index, value in enumerate(values) if index == 0 or values[index - 1] != value]


def loop(counter: Counter, spec: CountSpec) -> None:
    """Read on absolute deadlines until told to stop, or until the longest duration is over."""
    start_s = time.monotonic()
    end_s = start_s + spec.max_duration_s
    stopped = False
    while True:
        counter.take()
        now_s = time.monotonic()
        if stopped or now_s >= end_s:
            return
        due_s = min(ticks(start_s, spec.interval_s, now_s), end_s)
        stopped = signal.sigtimedwait(_STOP, max(0.0, due_s - now_s)) is not None


def run(spec_path: str) -> int:
    """Count as a specification file says. Returns the tool's exit status."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)
    try:
        spec = parse_spec(files.read_json(spec_path))
        reader = sock_diag.Reader(_FAMILIES[spec.family])
        tally = datagrams.Tally(spec.tally, spec.tally_ports, make=False) if spec.datagram_ports else None
        counter = Counter(spec, reader.read, tally.read if tally else nothing_taken)
        counter.take()
        files.write_json(spec.output, {})
        loop(counter, spec)
        files.write_json(spec.output, counter.result())
    except (CountError, files.FilesError, sock_diag.SockDiagError) as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    except (OSError, ValueError) as exc:
        sys.stderr.write(f"count-received: {spec_path}: the tally cannot be read ({exc}); does receive run?\n")
        return 1
    return 0
