# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices of this network namespace and what they stand on (rtnetlink(7); linux/if_link.h).

A packet that leaves by a VLAN on a bond of two cards is counted by three of them: only some devices tell the traffic of
a host. /proc/net/dev, which has the figures, does not say which, and /sys may be that of another namespace.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Callable

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import netlink

_GET_LINK, _LINK = 18, 16
_MESSAGE = struct.Struct("=BxHiII")
_NAME, _LOWER, _MASTER, _INFO, _LOWER_NETNS, _KIND = 3, 5, 10, 18, 37, 1
_NUMBER = struct.Struct("=I")
_LOOPBACK = 772
# What arrives is sent through one of these a second time, to be shaped.
_DETOUR = "ifb"
_BUFFER_BYTES = 1 << 18


class LinksError(Exception):
    """The kernel does not tell about its devices; the text says why."""


@dataclass(frozen=True)
class Link:
    """A device: its kind is empty for hardware; ``lower`` is the device of this namespace that it stands on."""

    name: str
    index: int
    kind: str = ""
    master: int | None = None
    lower: int | None = None
    loopback: bool = False


def read() -> list[Link]:
    """Return the devices of this network namespace. Raises LinksError."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as link:
            link.settimeout(5.0)
            link.send(netlink.request(_GET_LINK, _MESSAGE.pack(0, 0, 0, 0, 0)))
            found: list[Link] = []
            while take(link.recv(_BUFFER_BYTES), found):
                continue
            return found
    except OSError as exc:
        raise LinksError(f"rtnetlink: {exc}; devices can't be listed") from exc


def take(data: bytes, found: list[Link]) -> bool:
    """Add the devices of one answer; tells whether more follow. Raises LinksError."""
    try:
        parts, more = netlink.part(data)
    except netlink.NetlinkError as exc:
        raise LinksError(f"rtnetlink: {exc}; devices can't be listed") from exc
    found += [_link(body) for kind, body in parts if kind == _LINK and len(body) >= _MESSAGE.size]
    return more and bool(parts)


def _link(body: bytes) -> Link:
    _family, hardware, index, _flags, _change = _MESSAGE.unpack_from(body)
    fields = netlink.attributes(body, _MESSAGE.size)
    kind = _text(netlink.attributes(fields.get(_INFO, b"")).get(_KIND, b""))
    lower = _number(fields.get(_LOWER))
    # The other end of a veth is not below it, nor is a device of another namespace.
    stands = kind != "veth" and _LOWER_NETNS not in fields and lower not in (None, 0, index)
    return Link(
        _text(fields.get(_NAME, b"")),
        index,
        kind,
        _number(fields.get(_MASTER)),
        lower if stands else None,
        hardware == _LOOPBACK,
    )


def _text(raw: bytes) -> str:
    return raw.split(b"\0")[0].decode("utf-8", "replace")


def _number(raw: bytes | None) -> int | None:
    return None if raw is None or len(raw) < _NUMBER.size else int(_NUMBER.unpack_from(raw)[0])


def outermost(links: Sequence[Link]) -> frozenset[str]:
    """Return the devices whose figures together are a host's traffic with others, each packet once.

    Where there are cards, these; a bond, a bridge, a VLAN and the ends of containers pass on what cards count. Without
    cards, as in a container or a namespace: what stands on nothing and is no port of a bridge.
    """
    masters = {link.master for link in links}
    own = [link for link in links if not link.loopback and link.kind != _DETOUR and link.index not in masters]
    cards = [link for link in own if not link.kind]
    if not cards:
        indexes = {link.index for link in links}
        cards = [link for link in own if link.lower not in indexes and link.master is None]
    return frozenset(link.name for link in cards)


class Outermost:
    """Keeps the answer until devices come or go."""

    def __init__(self, read_links: Callable[[], Sequence[Link]] = read) -> None:
        """Nothing is asked yet."""
        self._read = read_links
        self._names: frozenset[str] = frozenset()
        self._found: frozenset[str] = frozenset()

    def among(self, names: Collection[str]) -> frozenset[str]:
        """Return the outermost of the devices that are there; all but the loopback where the kernel does not tell."""
        there = frozenset(names)
        if there != self._names:
            try:
                self._found = outermost(self._read())
            except LinksError:
                self._found = frozenset()
            self._names = there
        return self._found & there or there - {"lo"}
