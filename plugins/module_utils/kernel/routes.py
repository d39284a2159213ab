# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which device packets to an address leave by, as the kernel's routing table says (ip-route(8))."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from typing import Callable

Run = Callable[[Sequence[str]], str]


class RouteError(Exception):
    """There is no device towards an address; the text says why and what to do."""


def resolve(name: str) -> str:
    """Return the first address of a name, or the address itself. Raises RouteError."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        raise RouteError(f"route to {name!r}: has no address here ({exc}); give one, or make the name known") from exc
    return str(found[0][4][0])


def device_to(address: str, run: Run) -> str:
    """Return the device of the route to an address. Raises RouteError, also for an address of this host itself."""
    try:
        text = run(["ip", "-j", "route", "get", address])
        device = str(json.loads(text)[0]["dev"])
    except (ValueError, LookupError, TypeError) as exc:
        raise RouteError(
            f"route to {address}: ip printed no device ({exc!r}); iproute2 of Debian 12 or later is needed"
        ) from exc
    if device == "lo":
        raise RouteError(f"route to {address}: is an address of this host itself, which no link leads to; give another")
    return device
