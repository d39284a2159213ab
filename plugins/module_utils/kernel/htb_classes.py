# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Classes of HTB on a device of this network namespace (rtnetlink(7); linux/pkt_sched.h), without starting a program.

For two hundred classes tc(8) takes longer to start and to print than the kernel to answer.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import netlink

_GET_CLASS, _CLASS = 42, 40
_MESSAGE = struct.Struct("=BxxxiIII")
_KIND, _OPTIONS = 1, 2
_PARAMETERS, _RATE64, _CEIL64 = 1, 6, 7
# Two rates of 12 bytes, the rate itself in the last four of each; two buckets, quantum, level, priority.
_OPTION = struct.Struct("=8xI8xIIIIII")
_WIDE = struct.Struct("=Q")
_ROOT = 0xFFFFFFFF
_BUFFER_BYTES = 1 << 18


class HtbClassesError(Exception):
    """The kernel does not tell about its classes; the text says why."""


@dataclass(frozen=True)
class HtbClass:
    """A class: handle, parent's handle (None for the root), bytes a second, and whether it has a queue."""

    handle: int
    parent: int | None
    rate: int
    ceiling: int
    quantum: int
    priority: int
    leaf: bool


def read(index: int) -> list[HtbClass]:
    """Return the classes of a device by its index; none where it has no HTB. Raises HtbClassesError."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as link:
            link.settimeout(5.0)
            link.send(netlink.request(_GET_CLASS, _MESSAGE.pack(0, index, 0, 0, 0)))
            found: list[HtbClass] = []
            while take(link.recv(_BUFFER_BYTES), found):
                continue
            return found
    except OSError as exc:
        raise HtbClassesError(f"rtnetlink: {exc}; classes of device {index} can't be read") from exc


def take(data: bytes, found: list[HtbClass]) -> bool:
    """Add the classes of one answer; tells whether more follow. Raises HtbClassesError."""
    try:
        answers, goes_on = netlink.part(data)
    except netlink.NetlinkError as exc:
        raise HtbClassesError(f"rtnetlink: the kernel refuses to list classes ({exc}); run as root") from exc
    parsed = (parse(body) for kind, body in answers if kind == _CLASS)
    found += [item for item in parsed if item is not None]
    return goes_on


def parse(body: bytes) -> HtbClass | None:
    """Return the class in the body of a message, None where it is of another discipline or damaged."""
    if len(body) < _MESSAGE.size:
        return None
    _family, _index, handle, parent, _info = _MESSAGE.unpack_from(body)
    outer = netlink.attributes(body, _MESSAGE.size)
    inner = netlink.attributes(outer.get(_OPTIONS, b""))
    if outer.get(_KIND, b"").rstrip(b"\0") != b"htb" or len(inner.get(_PARAMETERS, b"")) < _OPTION.size:
        return None
    rate, ceiling, _bucket, _ceiling_bucket, quantum, level, priority = _OPTION.unpack_from(inner[_PARAMETERS])
    # What does not fit into 32 bits is told apart.
    wide = [_WIDE.unpack(inner[name])[0] if len(inner.get(name, b"")) == 8 else 0 for name in (_RATE64, _CEIL64)]
    return HtbClass(
        handle=handle,
        parent=None if parent == _ROOT else parent,
        rate=max(rate, wide[0]),
        ceiling=max(ceiling, wide[1]),
        quantum=quantum,
        priority=priority,
        leaf=level == 0,
    )
