# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The queue of a switch's port: a token bucket (tc-tbf(8)) that sends at the link's rate and keeps so many bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KIND = "tbf"
HANDLE = "c000:"
# A real port has no burst. The kernel hands packets of 64 KiB over whole, with a header for each frame in them; a
# bucket that holds one of them and no more lets it pass without cutting it into frames.
BURST_BYTES = 73728
# tc shows the bucket and the wait in ticks and microseconds: what is shown differs from what was asked by less.
_TOLERANCE = 0.005


class PortQueueError(Exception):
    """tc did not answer as expected; the text says what it printed and what is needed."""


@dataclass(frozen=True)
class PortQueue:
    """Rate in bytes a second, and how many bytes wait at most."""

    rate_bytes_s: int
    buffer_bytes: int

    @property
    def argv(self) -> tuple[str, ...]:
        """Return the words that describe it to tc, after the handle."""
        rate, size = f"{8 * self.rate_bytes_s}bit", f"{self.buffer_bytes}b"
        return (KIND, "rate", rate, "burst", f"{BURST_BYTES}b", "limit", size)

    @property
    def text(self) -> str:
        """Return what people read."""
        return f"{8 * self.rate_bytes_s / 1e6:g} Mbit/s and {self.buffer_bytes / 1024:g} KiB"

    @property
    def wait_us(self) -> float:
        """Return how long a byte waits that finds the queue full and the bucket full, as tc tells the size."""
        return 1e6 * (self.buffer_bytes - BURST_BYTES) / self.rate_bytes_s


@dataclass(frozen=True)
class RootQdisc:
    """A device's root queueing discipline as tc shows it: kind, handle, options."""

    kind: str
    handle: str
    options: Mapping[str, Any]

    @property
    def is_ours(self) -> bool:
        """Tell whether it has the handle that queues of ports have."""
        return self.handle == HANDLE

    def is_like(self, wanted: PortQueue) -> bool:
        """Tell whether it is that queue, as exactly as tc tells."""
        pairs = (("rate", wanted.rate_bytes_s), ("burst", BURST_BYTES), ("lat", wanted.wait_us))
        return (
            self.kind == KIND
            and self.is_ours
            and all(abs(self.options.get(name, 0) - value) <= max(2, _TOLERANCE * value) for name, value in pairs)
        )


def parse(text: str) -> dict[str, RootQdisc]:
    """Return the root queueing disciplines by device in the output of ``tc -j qdisc show``. Raises PortQueueError."""
    try:
        roots = [item for item in json.loads(text or "[]") if item.get("root")]
        return {item["dev"]: RootQdisc(item["kind"], item["handle"], item.get("options", {})) for item in roots}
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise PortQueueError(
            f"tc -j qdisc show: unexpected output ({exc!r}); iproute2 of Debian 12 or later is needed"
        ) from exc
