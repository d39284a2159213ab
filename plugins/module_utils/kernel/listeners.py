# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find who listens on a TCP port of the own network namespace (Documentation/networking/proc_net_tcp.rst)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import procfs

_LISTEN = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]\Z")


@dataclass(frozen=True)
class Listener:
    """Who listens on a TCP port; pid is None where the owner is in another process namespace or hidden from us."""

    port: int
    pid: int | None
    command: str


def parse_listeners(text: str) -> dict[int, int]:
    """Return {port: socket inode} of listening sockets in /proc/net/tcp or tcp6 (proc_net_tcp.rst)."""
    result: dict[int, int] = {}
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == _LISTEN:
            try:
                result[int(fields[1].rpartition(":")[2], 16)] = int(fields[9])
            except ValueError:
                continue
    return result


def listening_ports(proc_root: str = procfs.PROC_ROOT) -> dict[int, int]:
    """Return {TCP port: socket inode} of every listening socket in the reader's own network namespace."""
    result: dict[int, int] = {}
    for name in ("tcp6", "tcp"):
        result.update(parse_listeners(procfs.read_text(f"{proc_root}/self/net/{name}") or ""))
    return result


def find_listener(port: int, proc_root: str = procfs.PROC_ROOT) -> Listener | None:
    """Return who listens on a TCP port in the reader's network namespace, or None."""
    inode = listening_ports(proc_root).get(port)
    if inode is None:
        return None
    for name in os.listdir(proc_root):
        if name.isdigit() and _holds_socket(f"{proc_root}/{name}/fd", inode):
            stat = procfs.read_stat(int(name), proc_root)
            return Listener(port, int(name), stat.comm if stat else "?")
    return Listener(port, None, "?")


def _holds_socket(directory: str, inode: int) -> bool:
    try:
        names = os.listdir(directory)
    except OSError:
        return False
    for name in names:
        try:
            found = _SOCKET.match(os.readlink(f"{directory}/{name}"))
        except OSError:
            continue
        if found and int(found.group(1)) == inode:
            return True
    return False
