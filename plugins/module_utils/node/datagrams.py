# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Datagrams of the traffic tools: sent at a held rate, and counted by who takes them.

The kernel counts what a connection has received, but no datagrams of a socket. So `receive` counts what it takes in a
file in shared memory, which `count-received` reads.
"""

from __future__ import annotations

import mmap
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.node.send_spec import Flow

# How often due datagrams are sent.
TICK_S = 0.001
# How many leave in one turn at most, so that none of the classes starves.
_MOST_EACH_TURN = 512
# What a stall of this process made it miss for longer than this is not made up for.
_CATCH_UP_S = 0.02
_BUFFER_BYTES = 4 << 20
# Of socket(7), as root beyond what sysctl allows; Python has no name for it.
_SO_RCVBUFFORCE = 33
_LONGEST = 1 << 16
_MOST_EACH_LOOK = 64
_VALUE_BYTES = 8


class Pacer:
    """Sends the datagrams of one class when they are due, over its sockets in turn."""

    def __init__(self, flow: Flow, sockets: Sequence[socket.socket]) -> None:
        """Take connected sockets that do not block."""
        self._sockets, self._message = sockets, bytes(flow.message_bytes)
        self._bytes_each_s = None if flow.rate_bps is None else flow.rate_bps / 8
        self._since_s: float | None = None
        self._next = 0
        self.sent_bytes = 0

    def switch(self, on: bool, now_s: float) -> None:
        """Begin to send, or pause."""
        self._since_s = now_s if on else None

    def turn(self, now_s: float) -> None:
        """Send what is due; what the sockets don't take is due again."""
        if self._since_s is None:
            return
        due = _MOST_EACH_TURN
        if self._bytes_each_s is not None:
            self._since_s = max(self._since_s, now_s - _CATCH_UP_S)
            due = min(due, int((now_s - self._since_s) * self._bytes_each_s / len(self._message)))
        sent = 0
        while sent < due and self._send():
            sent += 1
        self.sent_bytes += sent * len(self._message)
        if self._bytes_each_s is not None:
            self._since_s += sent * len(self._message) / self._bytes_each_s

    def _send(self) -> bool:
        """Send one by the next socket that takes it; tells whether there was one."""
        for _try in self._sockets:
            self._next = (self._next + 1) % len(self._sockets)
            try:
                self._sockets[self._next].send(self._message)
            except ConnectionRefusedError:
                # What became of an earlier one: the receiver may have ended first.
                continue
            except BlockingIOError:
                continue
            return True
        return False


def bound(family: int, address: Any) -> socket.socket:
    """Return a socket that takes datagrams at an address. Raises OSError."""
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
    sock.bind(address)
    sock.setblocking(False)
    return sock


class Tally:
    """Bytes and senders of each port, in a file that other processes read; two numbers of 64 bits for each port."""

    def __init__(self, path: str, ports: Sequence[int], make: bool) -> None:
        """Map the file; one side makes it. Raises OSError."""
        size = 2 * _VALUE_BYTES * len(ports)
        handle = os.open(path, os.O_RDWR | (os.O_CREAT | os.O_TRUNC if make else 0), 0o600)
        try:
            if make:
                os.truncate(handle, size)
            self._map = mmap.mmap(handle, size)
        finally:
            os.close(handle)
        # Stored as a whole, so that a reader never sees half of a number.
        self._values = memoryview(self._map).cast("Q")
        self._places = {port: 2 * number for number, port in enumerate(ports)}

    def add(self, port: int, received_bytes: int, new_senders: int) -> None:
        """Count what came."""
        place = self._places[port]
        self._values[place] += received_bytes
        self._values[place + 1] += new_senders

    def read(self) -> Mapping[int, tuple[int, int]]:
        """Return bytes and number of senders of each port so far."""
        return {port: (self._values[place], self._values[place + 1]) for port, place in self._places.items()}


class Taker:
    """Takes what comes to one port, and answers each sender once.

    The answer is what makes a receiving socket's class known where packets are classified by sockets: only what leaves
    tells of its socket.
    """

    def __init__(self, port: int, tally: Tally) -> None:
        """Take the port's number and where to count."""
        self._port, self._tally = port, tally
        self._senders: set[Any] = set()
        self._buffer = bytearray(_LONGEST)

    def take(self, sock: socket.socket) -> None:
        """Take what lies there, up to a bound. Raises OSError."""
        received, known = 0, len(self._senders)
        for _number in range(_MOST_EACH_LOOK):
            try:
                size, sender = sock.recvfrom_into(self._buffer)
            except (BlockingIOError, ConnectionRefusedError):
                break
            received += size
            if sender not in self._senders:
                self._senders.add(sender)
                _answer(sock, sender)
        self._tally.add(self._port, received, len(self._senders) - known)


def _answer(sock: socket.socket, sender: Any) -> None:
    try:
        sock.sendto(b"\0", sender)
    except OSError:
        # Its sender may be gone already; nothing depends on the answer there.
        return
