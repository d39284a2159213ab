# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `send` is told: connections by class, their rates and pauses. Parsed and checked before anything is opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PROTOCOLS = ("tcp", "udp")


class SendError(Exception):
    """The specification is damaged, or what it asks for cannot be done; the text says what and why."""


@dataclass(frozen=True)
class Bursts:
    """When a class sends: ``on_s`` seconds, then a pause of ``off_s``; the first turn begins after ``start_s``."""

    on_s: float
    off_s: float
    start_s: float = 0.0


@dataclass(frozen=True)
class Flow:
    """The connections of one class.

    :ivar group: control group of version 2, below its mount point, in which its sockets are made; '' for the process's.
    :ivar rate_bps: bits of payload a second of all its connections together, None for as fast as they take it.
    :ivar protocol: tcp, or udp: then a connection is a socket, and a message a datagram.
    """

    name: str
    address: str
    port: int
    connections: int = 1
    message_bytes: int = 131072
    group: str = ""
    rate_bps: int | None = None
    bursts: Bursts | None = None
    protocol: str = "tcp"


@dataclass(frozen=True)
class SendSpec:
    """All classes, where the result goes, seconds after which it ends by itself, TCP's congestion control or ''."""

    flows: tuple[Flow, ...]
    output: str
    max_duration_s: float
    congestion: str = ""


def parse(raw: Any) -> SendSpec:
    """Build the specification from its JSON object. Raises SendError."""
    try:
        flows = tuple(_flow(item) for item in raw["flows"])
        spec = SendSpec(flows, str(raw["output"]), float(raw["max_duration_s"]), str(raw.get("congestion", "")))
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise SendError(f"send: not a specification ({exc!r}); see docs/node-tool.md for its keys") from exc
    for flow in flows:
        if flow.connections < 1 or flow.message_bytes < 1 or (flow.rate_bps is not None and flow.rate_bps < 1):
            raise SendError(f"send: {flow.name}: connections, message_bytes and rate_bps must be at least 1")
        if flow.protocol not in PROTOCOLS:
            raise SendError(f"send: {flow.name}: protocol is {flow.protocol!r}; give one of {', '.join(PROTOCOLS)}")
        if flow.bursts is not None and not (flow.bursts.on_s > 0 and flow.bursts.off_s > 0):
            raise SendError(f"send: {flow.name}: on_s and off_s of bursts must be above 0")
    if not flows:
        raise SendError("send: flows is empty; name at least one class")
    return spec


def _flow(raw: Any) -> Flow:
    bursts = raw.get("bursts")
    return Flow(**{**raw, "bursts": None if bursts is None else Bursts(**bursts)})
