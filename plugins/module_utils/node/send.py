# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Send traffic of many classes from one process: `node.pyz send --spec FILE`; `receive` takes it.

A socket belongs to the control group in which its process is when it makes it. So one process moves from group to group
while it opens connections, and two hundred classes need no two hundred programs.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
from ansible_collections.colocation.testbed.plugins.module_utils.node import addresses, datagrams, own_group, send_spec
from ansible_collections.colocation.testbed.plugins.module_utils.node.send_spec import Bursts, Flow, SendError

_STOP = frozenset({signal.SIGTERM, signal.SIGINT})
# Of socket(7) and tcp(7); Python has no names for the first of them.
_SO_MAX_PACING_RATE = 47
_TCP_NOTSENT_LOWAT = 25
# How much of a held rate may wait unsent in a socket: what is there when a pause begins still leaves.
_UNSENT_S = 0.002
_UNSENT_BYTES = (4096, 131072)
_CONNECT_TIMEOUT_S = 10.0
_LOOK_S = 0.05


class Timetable:
    """When classes with bursts begin and stop, in their order."""

    def __init__(self, bursts: Mapping[str, Bursts], start_s: float) -> None:
        """Take the bursts of each class; times are seconds of the monotonic clock."""
        self._turns = {name: self._times(item, start_s) for name, item in bursts.items()}
        self._next = {name: next(turns) for name, turns in self._turns.items()}

    @staticmethod
    def _times(bursts: Bursts, start_s: float) -> Iterator[tuple[float, bool]]:
        moment_s = start_s + bursts.start_s
        while True:
            yield moment_s, True
            yield moment_s + bursts.on_s, False
            moment_s += bursts.on_s + bursts.off_s

    def left_s(self, now_s: float) -> float:
        """Return the seconds until the next turn."""
        return max(0.0, min((moment_s for moment_s, _on in self._next.values()), default=now_s + _LOOK_S) - now_s)

    def due(self, now_s: float) -> Iterator[tuple[str, bool]]:
        """Yield class and whether it sends from now on, for each turn whose time has come."""
        for name, (moment_s, on) in list(self._next.items()):
            if moment_s <= now_s:
                following = next(self._turns[name], None)
                if following is None:
                    del self._next[name]
                else:
                    self._next[name] = following
                yield name, on


class Sender:
    """All connections of one process."""

    def __init__(self, spec: send_spec.SendSpec) -> None:
        """Open the connections, each in the group of its class.

        Raises SendError, OwnGroupError, CgroupError, OSError.
        """
        self._selector = selectors.DefaultSelector()
        self._messages = {flow.name: bytes(flow.message_bytes) for flow in spec.flows}
        self._sockets: dict[str, list[socket.socket]] = {}
        self._pacers: dict[str, datagrams.Pacer] = {}
        self._sent_bytes = dict.fromkeys(self._messages, 0)
        grouped = any(flow.group for flow in spec.flows)
        mount, home = own_group.find() if grouped else ("", "")
        for flow in spec.flows:
            if flow.group:
                cgroup.move(cgroup.join_path(mount, flow.group), os.getpid())
            self._sockets[flow.name] = [_connected(flow, spec.congestion) for _number in range(flow.connections)]
            if flow.protocol == "udp":
                self._pacers[flow.name] = datagrams.Pacer(flow, self._sockets[flow.name])
        if grouped:
            cgroup.move(home, os.getpid())

    @property
    def sent_bytes(self) -> dict[str, int]:
        """Return the bytes of each class that the kernel took."""
        return {**self._sent_bytes, **{name: pacer.sent_bytes for name, pacer in self._pacers.items()}}

    def switch(self, name: str, on: bool) -> None:
        """Let a class send, or pause."""
        if name in self._pacers:
            self._pacers[name].switch(on, time.monotonic())
            return
        for sock in self._sockets[name]:
            if on:
                self._selector.register(sock, selectors.EVENT_WRITE, name)
            else:
                self._selector.unregister(sock)

    def turn(self, timeout_s: float) -> None:
        """Fill the sockets that take more, after waiting at most this long for one that does. Raises SendError."""
        for pacer in self._pacers.values():
            pacer.turn(time.monotonic())
        for key, _events in self._selector.select(min(timeout_s, datagrams.TICK_S) if self._pacers else timeout_s):
            sock: Any = key.fileobj
            try:
                self._sent_bytes[key.data] += sock.send(self._messages[key.data])
            except BlockingIOError:
                continue
            except OSError as exc:
                raise SendError(f"send: {key.data}: {exc.strerror}; the receiver has ended") from exc


def _connected(flow: Flow, congestion: str) -> socket.socket:
    kind = socket.SOCK_STREAM if flow.protocol == "tcp" else socket.SOCK_DGRAM
    sock = socket.socket(addresses.family(flow.address), kind)
    if flow.protocol == "tcp":
        _tune(sock, flow, congestion)
    sock.settimeout(_CONNECT_TIMEOUT_S)
    try:
        sock.connect(addresses.place(flow.address, flow.port)[1])
    except OSError as exc:
        why = exc.strerror or str(exc)
        raise SendError(f"send: {flow.name}: {flow.address} port {flow.port}: {why}; does receive run there?") from exc
    sock.setblocking(False)
    return sock


def _tune(sock: socket.socket, flow: Flow, congestion: str) -> None:
    """Set congestion control and rate of a connection of TCP. Raises OSError."""
    if congestion:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
    if flow.rate_bps is not None:
        each = max(1, flow.rate_bps // 8 // flow.connections)
        unsent = min(max(round(each * _UNSENT_S), _UNSENT_BYTES[0]), _UNSENT_BYTES[1])
        sock.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, each)
        sock.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, unsent)


def loop(sender: Sender, spec: send_spec.SendSpec) -> dict[str, Any]:
    """Send until told to stop or the longest duration is over; return what was done. Raises SendError."""
    start_s = time.monotonic()
    end_s = start_s + spec.max_duration_s
    table = Timetable({flow.name: flow.bursts for flow in spec.flows if flow.bursts is not None}, start_s)
    for flow in spec.flows:
        if flow.bursts is None:
            sender.switch(flow.name, True)
    switches: list[dict[str, Any]] = []
    while (now_s := time.monotonic()) < end_s and signal.sigtimedwait(_STOP, 0) is None:
        for name, on in table.due(now_s):
            sender.switch(name, on)
            switches.append({"class": name, "on": on, "mono_s": time.monotonic()})
        sender.turn(min(_LOOK_S, table.left_s(now_s)))
    return {
        "start_mono_s": start_s,
        "end_mono_s": time.monotonic(),
        "wall_minus_mono_s": time.time() - time.monotonic(),
        "switches": switches,
        "sent_bytes": sender.sent_bytes,
    }


def run(spec_path: str) -> int:
    """Send as a specification file says. Returns the tool's exit status."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)
    try:
        spec = send_spec.parse(files.read_json(spec_path))
        sender = Sender(spec)
        files.write_json(spec.output, {})
        files.write_json(spec.output, loop(sender, spec))
    except (SendError, own_group.OwnGroupError, files.FilesError, cgroup.CgroupError) as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    except OSError as exc:
        sys.stderr.write(f"send: {exc.strerror}; is the congestion control one of this kernel's?\n")
        return 1
    return 0
