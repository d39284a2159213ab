# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Send each datagram back to where it came from: `node.pyz echo --spec FILE`, the other end of `probe`."""

from __future__ import annotations

import socket
import sys
from typing import Any, NoReturn

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.node import addresses

_LONGEST = 2048


def opened(spec: Any) -> socket.socket:
    """Return a UDP socket bound to `address` and `port` of a specification. Raises OSError, KeyError, ValueError."""
    family, place = addresses.place(str(spec["address"]), int(spec["port"]))
    found = socket.socket(family, socket.SOCK_DGRAM)
    found.bind(place)
    return found


def serve(sock: socket.socket) -> NoReturn:
    """Answer until this process is ended."""
    while True:
        data, sender = sock.recvfrom(_LONGEST)
        sock.sendto(data, sender)


def run(spec_path: str) -> int:
    """Echo as a specification file says: `address`, `port`, and `output`, written once the socket is open."""
    try:
        spec = files.read_json(spec_path)
        sock = opened(spec)
        files.write_json(str(spec["output"]), {"address": spec["address"], "port": spec["port"]})
        serve(sock)
    except (files.FilesError, KeyError, TypeError, ValueError) as exc:
        sys.stderr.write(f"echo: {exc!r}; see docs/node-tool.md for the keys of its specification\n")
    except OSError as exc:
        sys.stderr.write(f"echo: {exc.strerror}; is the address this host's, and the port free?\n")
    return 1
