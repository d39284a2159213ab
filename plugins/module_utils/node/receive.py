# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accept TCP connections on many ports and throw away what comes: `node.pyz receive --spec FILE`, the end of `send`."""

from __future__ import annotations

import selectors
import socket
import sys
from collections.abc import Sequence
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import files

_CHUNK_BYTES = 1 << 18
_BACKLOG = 256


def listening(address: str, ports: Sequence[int]) -> list[socket.socket]:
    """Return a socket that listens for each port. Raises OSError."""
    found = []
    for port in ports:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        sock.listen(_BACKLOG)
        sock.setblocking(False)
        found.append(sock)
    return found


class Sink:
    """All connections of one process."""

    def __init__(self, listeners: Sequence[socket.socket]) -> None:
        """Watch the sockets that listen."""
        self._selector = selectors.DefaultSelector()
        for sock in listeners:
            self._selector.register(sock, selectors.EVENT_READ, True)

    def turn(self, timeout_s: float | None = None) -> None:
        """Handle what has come, after waiting at most this long for something to come."""
        for key, _events in self._selector.select(timeout_s):
            sock: Any = key.fileobj
            if key.data:
                connection, _peer = sock.accept()
                connection.setblocking(False)
                self._selector.register(connection, selectors.EVENT_READ, False)
            elif not _discarded(sock):
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
    """Receive as a specification file says: `address`, `ports`, and `output`, written once all ports listen."""
    try:
        spec = files.read_json(spec_path)
        sink = Sink(listening(str(spec["address"]), [int(port) for port in spec["ports"]]))
        files.write_json(str(spec["output"]), {"address": spec["address"], "ports": spec["ports"]})
        while True:
            sink.turn()
    except (files.FilesError, KeyError, TypeError, ValueError) as exc:
        sys.stderr.write(f"receive: {exc!r}; see docs/node-tool.md for the keys of its specification\n")
    except OSError as exc:
        sys.stderr.write(f"receive: {exc.strerror}; is the address this host's, and are the ports free?\n")
    return 1
