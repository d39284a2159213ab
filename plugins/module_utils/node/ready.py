# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a started process counts as ready, and whether the port that it wants is free."""

from __future__ import annotations

import http.client
import os
import socket
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import listeners

_ATTEMPT_TIMEOUT_S = 2.0
_HTTP_OK = range(200, 400)


class ReadyError(Exception):
    """The port is taken by another process, or the condition cannot be checked."""


@dataclass(frozen=True)
class Ready:
    """A condition: something listens on a TCP port, answers an HTTP request, or a file exists; none holds at once."""

    tcp_port: int | None = None
    address: str = "127.0.0.1"
    http_url: str = ""
    file: str = ""

    def describe(self) -> str:
        """Return the condition in words."""
        if self.http_url:
            return f"{self.http_url} answers"
        if self.tcp_port is not None:
            return f"TCP port {self.tcp_port} on {self.address} accepts connections"
        return f"{self.file} exists" if self.file else "nothing to wait for"

    def holds(self) -> bool:
        """Tell whether the condition holds now."""
        if self.file and not os.path.exists(self.file):
            return False
        if self.tcp_port is not None and not _accepts(self.address, self.tcp_port):
            return False
        return not self.http_url or _answers(self.http_url)


def from_params(value: Mapping[str, Any] | None) -> Ready:
    """Build the condition from module parameters. Raises ReadyError for a URL that is not http."""
    given = {key: item for key, item in (value or {}).items() if item is not None}
    url = str(given.get("http_url", ""))
    if url and urllib.parse.urlsplit(url).scheme != "http":
        raise ReadyError(f"ready.http_url {url!r}: only http:// can be checked; use ready.tcp_port for others")
    return Ready(**given)


def _accepts(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=_ATTEMPT_TIMEOUT_S):
            return True
    except OSError:
        return False


def _answers(url: str) -> bool:
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=_ATTEMPT_TIMEOUT_S)
    try:
        connection.request("GET", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
        return connection.getresponse().status in _HTTP_OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def check_port(name: str, ready: Ready, setting: str, proc_root: str = "/proc") -> None:
    """Raise ReadyError where another process listens on the port that the process is to open.

    `setting` names the variable with which the user changes the port.
    """
    if ready.tcp_port is None:
        return
    found = listeners.find_listener(ready.tcp_port, proc_root)
    if found is None:
        return
    owner = "a process that is not visible here" if found.pid is None else f"process {found.pid} ({found.command})"
    change = f"set {setting} to a free port" if setting else "choose a free port"
    raise ReadyError(f"process {name}: port {ready.tcp_port} is taken by {owner}; stop that one, or {change}")
