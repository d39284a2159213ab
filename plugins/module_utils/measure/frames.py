# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a counted bit is payload: the yardstick for accuracy, from the lengths of headers alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Ethernet II header without VLAN tag (IEEE 802.3, clause 3.1.1); the kernel counts it, the checksum it does not.
ETHERNET_BYTES = 14
#: Preamble and start delimiter 8, frame check sequence 4, gap between packets 12 (IEEE 802.3, clauses 3.1.1 and 4.4.2).
LINE_BYTES = 24
IPV4_BYTES, IPV6_BYTES = 20, 40
IP_BYTES = {"ipv4": IPV4_BYTES, "ipv6": IPV6_BYTES}
UDP_BYTES = 8
#: 20 bytes of header (RFC 9293) and 12 of the timestamps option with padding (RFC 7323, appendix A), which Linux sends.
TCP_BYTES = 32
MTU_BYTES = 1500
#: Most bytes that one IPv4 packet can have, and so what the stack hands down in one piece by default.
GSO_BYTES = 65_535
ACCOUNTINGS = ("wire", "l1", "skb", "payload")


class FramesError(Exception):
    """Frames cannot be counted so; the text says which value and what is allowed."""


def segment_bytes(protocol: str = "tcp", mtu_bytes: int = MTU_BYTES, ip_bytes: int = IPV4_BYTES) -> int:
    """Return the payload bytes of a full packet: 1448 for TCP at an MTU of 1500. Raises FramesError."""
    if protocol not in ("tcp", "udp"):
        raise FramesError(f"protocol {protocol!r}: must be tcp or udp")
    payload = mtu_bytes - ip_bytes - (TCP_BYTES if protocol == "tcp" else UDP_BYTES)
    if payload <= 0:
        raise FramesError(f"MTU {mtu_bytes}: leaves no room for payload; must be more than {mtu_bytes - payload} bytes")
    return payload


def class_share(
    accounting: str, item: Mapping[str, Any], family: str = "ipv4", mtu_bytes: int = MTU_BYTES, segments: int = 1
) -> float:
    """Return payload bits of a class (``protocol``, ``message_bytes``) for each bit that an accounting mode counts.

    A datagram is as long as its message, and packets of TCP are full. Raises FramesError.
    """
    ip_bytes = IP_BYTES[family]
    if item.get("protocol") == "udp":
        return _share(accounting, int(item["message_bytes"]), ETHERNET_BYTES + ip_bytes + UDP_BYTES, 1)
    return payload_share(accounting, mtu_bytes=mtu_bytes, ip_bytes=ip_bytes, segments=segments)


def payload_share(
    accounting: str,
    protocol: str = "tcp",
    mtu_bytes: int = MTU_BYTES,
    ip_bytes: int = IPV4_BYTES,
    segments: int = 1,
) -> float:
    """Return payload bits for each bit that an accounting mode counts, for full packets.

    ``wire`` counts frames: 1448/1514 = 0.9564 for TCP over IPv4 at an MTU of 1500. ``l1`` adds what the line carries
    between frames: 1448/1538 = 0.9415, so 941.5 Mbit/s is the most that a receiver can count on a link of 1 Gbit/s.
    ``skb`` counts the headers once for each piece of ``segments`` packets: n·1448/(n·1448+66). ``payload`` is 1.

    Raises FramesError.
    """
    payload = segment_bytes(protocol, mtu_bytes, ip_bytes)
    headers = ETHERNET_BYTES + mtu_bytes - payload
    return _share(accounting, payload, headers, segments)


def _share(accounting: str, payload: int, headers: int, segments: int) -> float:
    if segments < 1:
        raise FramesError(f"segments {segments}: must be 1 or more")
    if accounting == "payload":
        return 1.0
    if accounting == "wire":
        return payload / (payload + headers)
    if accounting == "l1":
        return payload / (payload + headers + LINE_BYTES)
    if accounting == "skb":
        return segments * payload / (segments * payload + headers)
    raise FramesError(f"accounting {accounting!r}: must be one of {', '.join(ACCOUNTINGS)}")


def most_goodput_bps(link_bps: float, protocol: str = "tcp", mtu_bytes: int = MTU_BYTES) -> float:
    """Return the most payload bit/s that a link of ``link_bps`` can carry: everything above is impossible."""
    return link_bps * payload_share("l1", protocol, mtu_bytes)
