# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counters of TCP connections, as the kernel has them for each socket (netlink, sock_diag(7); linux/inet_diag.h)."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import netlink

_NETLINK_SOCK_DIAG = 4
_BY_FAMILY = 20
_ESTABLISHED = 1 << 1
_INFO = 2
# struct inet_diag_req_v2: family, protocol, wanted extensions, padding, states, then the identity of one socket.
_REQUEST = struct.Struct("=BBBxI48x")
# struct inet_diag_msg up to the ports, which are in network order.
_PORTS = struct.Struct("!HH")
_PORTS_AT = 4
_MESSAGE_BYTES = 72
# struct tcp_info (linux/tcp.h): segments sent again, bytes acknowledged, bytes received in order.
_TOTAL_RETRANS_AT = 100
_BYTES_AT = 120
_COUNTERS = struct.Struct("=QQ")
_BUFFER_BYTES = 1 << 18


class SockDiagError(Exception):
    """The kernel does not tell about its sockets; the text says why and what to do."""


@dataclass(frozen=True)
class Connection:
    """One established connection: ports, bytes acknowledged by the other end, bytes received, segments sent again."""

    local_port: int
    remote_port: int
    acked_bytes: int
    received_bytes: int
    retransmits: int


class Reader:
    """Asks for all established TCP connections of this network namespace, again and again over one socket."""

    def __init__(self, family: int = socket.AF_INET) -> None:
        """Open the netlink socket. Raises SockDiagError."""
        try:
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
        except OSError as exc:
            raise SockDiagError(f"sock_diag: {exc.strerror}; the kernel needs CONFIG_INET_DIAG") from exc
        self._socket.settimeout(5.0)
        payload = _REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (_INFO - 1), _ESTABLISHED)
        self._question = netlink.request(_BY_FAMILY, payload)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def read(self) -> list[Connection]:
        """Return the connections of this moment. Raises SockDiagError."""
        found: list[Connection] = []
        try:
            self._socket.send(self._question)
            while True:
                data = self._socket.recv(_BUFFER_BYTES)
                if not _take(data, found):
                    return found
        except OSError as exc:
            raise SockDiagError(f"sock_diag: {exc}; the kernel needs CONFIG_INET_TCP_DIAG") from exc


def _take(data: bytes, found: list[Connection]) -> bool:
    """Add the connections of one answer; tells whether more follow. Raises SockDiagError."""
    try:
        answers, goes_on = netlink.part(data)
    except netlink.NetlinkError as exc:
        raise SockDiagError(f"sock_diag: the kernel refuses ({exc}); it needs CONFIG_INET_TCP_DIAG") from exc
    parsed = (parse(body) for _kind, body in answers)
    found += [item for item in parsed if item is not None]
    return goes_on


def parse(body: bytes) -> Connection | None:
    """Return the connection in the body of a message, None where the kernel tells no counters for it."""
    if len(body) < _MESSAGE_BYTES:
        return None
    local_port, remote_port = _PORTS.unpack_from(body, _PORTS_AT)
    information = netlink.attributes(body, _MESSAGE_BYTES).get(_INFO, b"")
    if len(information) < _BYTES_AT + _COUNTERS.size:
        return None
    acked, received = _COUNTERS.unpack_from(information, _BYTES_AT)
    (again,) = struct.unpack_from("=I", information, _TOTAL_RETRANS_AT)
    return Connection(local_port, remote_port, acked, received, again)
