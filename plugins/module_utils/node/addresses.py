# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of both families as sockets want them."""

from __future__ import annotations

import socket
from typing import Any


def family(address: str) -> socket.AddressFamily:
    """Return the family of an address: one with a colon is IPv6."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def place(address: str, port: int) -> tuple[socket.AddressFamily, Any]:
    """Return family and socket address; one of IPv6 may name its device (fe80::1%ct0). Raises OSError."""
    found = socket.getaddrinfo(address, port, family(address), socket.SOCK_DGRAM, 0, socket.AI_NUMERICHOST)
    return found[0][0], found[0][4]
