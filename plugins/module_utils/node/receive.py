# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take traffic on many ports and throw it away: `node.pyz receive --spec FILE`, the end of `send`.

A socket belongs to the control group in which its process is when it makes it, and a connection to that of the socket
that listened. So one process moves from group to group where classes are told apart by the group that receives.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
from ansible_collections.colocation.testbed.plugins.module_utils.node import addresses, datagrams, own_group

_CHUNK_BYTES = 1 << 18
_BACKLOG = 256


@dataclass(frozen=True)
class ReceiveSpec:
    """Address and ports; control groups (below the mount point) of ports; where datagrams are counted."""

    address: str
    ports: tuple[int, ...]
    output: str
    datagram_ports: tuple[int, ...] = ()
    tally: str = ""
    groups: Mapping[int, str] = field(default_factory=dict)


def parse(raw: Any) -> ReceiveSpec:
    """Build the specification from its JSON object. Raises KeyError, TypeError, ValueError."""
    return ReceiveSpec(
        str(raw["address"]),
        tuple(int(port) for port in raw["ports"]),
        str(raw["output"]),
        tuple(int(port) for port in raw.get("datagram_ports", ())),
        str(raw.get("tally", "")),
        {int(port): str(group) for port, group in raw.get("groups", {}).items()},
    )


def _listening(address: str, port: int) -> socket.socket:
    family, place = addresses.place(address, port)
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(place)
    sock.listen(_BACKLOG)
    sock.setblocking(False)
    return sock


def _bound(address: str, port: int) -> socket.socket:
    return datagrams.bound(*addresses.place(address, port))


def opened(spec: ReceiveSpec) -> dict[int, socket.socket]:
    """Return a socket for each port, made in the port's group. Raises OSError, CgroupError, OwnGroupError."""
    mount, home = own_group.find() if spec.groups else ("", "")
    made: dict[int, socket.socket] = {}
    ways: Sequence[tuple[tuple[int, ...], Callable[[str, int], socket.socket]]] = (
        (spec.ports, _listening),
        (spec.datagram_ports, _bound),
    )
    for ports, way in ways:
        for port in ports:
            if port in spec.groups:
                cgroup.move(cgroup.join_path(mount, spec.groups[port]), os.getpid())
            made[port] = way(spec.address, port)
    if spec.groups:
        cgroup.move(home, os.getpid())
    return made


class Sink:
    """All sockets of one process."""

    def __init__(self, spec: ReceiveSpec) -> None:
        """Open and watch the sockets. Raises OSError, CgroupError, OwnGroupError."""
        self._selector = selectors.DefaultSelector()
        made = opened(spec)
        for port in spec.ports:
            self._selector.register(made[port], selectors.EVENT_READ, self._accept)
        if spec.datagram_ports:
            tally = datagrams.Tally(spec.tally, spec.datagram_ports, make=True)
            for port in spec.datagram_ports:
                self._selector.register(made[port], selectors.EVENT_READ, datagrams.Taker(port, tally).take)

    def turn(self, timeout_s: float | None = None) -> None:
        """Handle what has come, after waiting at most this long for something to come."""
        for key, _events in self._selector.select(timeout_s):
            key.data(key.fileobj)

    def _accept(self, sock: socket.socket) -> None:
        connection, _peer = sock.accept()
        connection.setblocking(False)
        self._selector.register(connection, selectors.EVENT_READ, self._discard)

    def _discard(self, sock: socket.socket) -> None:
        if not _discarded(sock):
            self._selector.unregister(sock)
            sock.close()


def _discarded(sock: socket.socket) -> bool:
    """Throw away what a connection holds; tells whether it is still open."""
    try:
        # With MSG_TRUNC the kernel throws bytes of a TCP connection away without copying them (tcp(7)).
        return bool(sock.recv(_CHUNK_BYTES, socket.MSG_TRUNC))
    except BlockingIOError:
        return True
    except OSError:
        # The other end was ended: its connections are reset.
        return False


def run(spec_path: str) -> int:
    """Receive as a specification file says; `output` is written once all ports are open."""
    try:
        spec = parse(files.read_json(spec_path))
        sink = Sink(spec)
        files.write_json(spec.output, {"address": spec.address, "ports": [*spec.ports, *spec.datagram_ports]})
        while True:
            sink.turn()
    except (files.FilesError, KeyError, TypeError, ValueError) as exc:
        sys.stderr.write(f"receive: {exc!r}; see docs/node-tool.md for the keys of its specification\n")
    except (cgroup.CgroupError, own_group.OwnGroupError) as exc:
        sys.stderr.write(f"receive: {exc}\n")
    except OSError as exc:
        sys.stderr.write(f"receive: {exc.strerror}; is the address this host's, and are the ports free?\n")
    return 1
