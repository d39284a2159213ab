# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a started process counts as ready, and whether the port that it wants is free."""

from __future__ import annotations

import http.client
import os
import shlex
import socket
import ssl
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import listeners

_ATTEMPT_TIMEOUT_S = 2.0
_COMMAND_TIMEOUT_S = 10.0
_HTTP_OK = range(200, 400)
_PORTS = {"http": 80, "https": 443}


class ReadyError(Exception):
    """The port is taken by another process, or the condition cannot be checked."""


@dataclass(frozen=True)
class Ready:
    """Conditions that must all hold: a TCP port listens, a URL answers, a file exists, a program ends with 0."""

    tcp_port: int | None = None
    address: str = "127.0.0.1"
    http_url: str = ""
    file: str = ""
    command: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return the condition in words."""
        if self.http_url:
            return f"{self.http_url} answers"
        if self.tcp_port is not None:
            return f"TCP port {self.tcp_port} on {self.address} accepts connections"
        if self.command:
            return f"{shlex.join(self.command)} ends with status 0"
        return f"{self.file} exists" if self.file else "nothing to wait for"

    def holds(self) -> bool:
        """Tell whether the condition holds now."""
        if self.file and not os.path.exists(self.file):
            return False
        if self.tcp_port is not None and not _accepts(self.address, self.tcp_port):
            return False
        if self.http_url and not _answers(self.http_url):
            return False
        return not self.command or _succeeds(self.command)


def from_params(value: Mapping[str, Any] | None) -> Ready:
    """Build the condition from module parameters. Raises ReadyError for a URL that is neither http nor https."""
    given = {key: item for key, item in (value or {}).items() if item is not None}
    url = str(given.get("http_url", ""))
    if url and urllib.parse.urlsplit(url).scheme not in _PORTS:
        raise ReadyError(
            f"ready.http_url {url!r}: only http:// and https:// can be checked; use ready.tcp_port for others"
        )
    return Ready(**{**given, "command": tuple(given.get("command", ()))})


def _accepts(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=_ATTEMPT_TIMEOUT_S):
            return True
    except OSError:
        return False


def _answers(url: str) -> bool:
    parts = urllib.parse.urlsplit(url)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    if parts.scheme == "https":
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            host, port, timeout=_ATTEMPT_TIMEOUT_S, context=_unverified()
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=_ATTEMPT_TIMEOUT_S)
    try:
        connection.request("GET", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
        return connection.getresponse().status in _HTTP_OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _unverified() -> ssl.SSLContext:
    """Return a context that takes any certificate: the process was started here and is only asked whether it is up."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _succeeds(argv: tuple[str, ...]) -> bool:
    try:
        return commands.run(argv, check=False, timeout_s=_COMMAND_TIMEOUT_S).status == 0
    except commands.CommandError:
        return False


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
