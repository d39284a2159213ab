# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages of netlink(7) and the attributes in them, as bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator

HEADER = struct.Struct("=IHHII")
ERROR, DONE = 2, 3
REQUEST_DUMP = 0x301
_ATTRIBUTE = struct.Struct("=HH")
_KIND_MASK = 0x3FFF


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield type and body of each message; what is cut short ends it."""
    place = 0
    while place + HEADER.size <= len(data):
        size, kind, _flags, _sequence, _port = HEADER.unpack_from(data, place)
        if size < HEADER.size or place + size > len(data):
            return
        yield kind, data[place + HEADER.size : place + size]
        place += size + 3 & ~3


class NetlinkError(Exception):
    """The kernel refuses to list something; the text has the number of the error."""


def part(data: bytes) -> tuple[list[tuple[int, bytes]], bool]:
    """Return type and body of the messages in one part of an answer, and whether more parts follow.

    Raises NetlinkError where the kernel refuses.
    """
    found: list[tuple[int, bytes]] = []
    for kind, body in messages(data):
        if kind == DONE:
            return found, False
        if kind == ERROR:
            raise NetlinkError(f"error {-struct.unpack_from('=i', body)[0]}")
        found.append((kind, body))
    return found, True


def attributes(data: bytes, start: int = 0) -> dict[int, bytes]:
    """Return the attributes from a place on, by number; what is cut short ends it."""
    found, place = {}, start
    while place + _ATTRIBUTE.size <= len(data):
        size, kind = _ATTRIBUTE.unpack_from(data, place)
        if size < _ATTRIBUTE.size or place + size > len(data):
            break
        found[kind & _KIND_MASK] = data[place + _ATTRIBUTE.size : place + size]
        place += size + 3 & ~3
    return found


def request(kind: int, payload: bytes) -> bytes:
    """Return a question for all there is of a kind."""
    return HEADER.pack(HEADER.size + len(payload), kind, REQUEST_DUMP, 1, 0) + payload
