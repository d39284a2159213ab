"""How fast the waterline throttles offline classes when a burst of online traffic begins, and how often it changes."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import values
from tools.bandwidth.arrivals import NS_PER_MS, Arrivals, Bins
from tools.bandwidth.host import Host
from tools.bandwidth.traffic import Transfer

# The rate of offline traffic is taken over this long from a moment on: several packets of 64 KiB at the low rate.
MEAN_MS = 20
# Within its low bound: not more than this share above it.
TOLERANCE = 0.15
QUIET_MS = 50
SETTLE_S = 1.0
ONLINE = "10.99.0.4"
OFFLINE_PORT, ONLINE_PORT = 5401, 5402
POLL_S = 1.0


@dataclass(frozen=True)
class Burst:
    """Online traffic between two pauses, in ms of the monotonic clock: the first over the line, the last of all."""

    first: int
    last: int


@dataclass(frozen=True)
class Switch:
    """What became of a burst: decision and offline rate within its bound since its first ms, high since its last."""

    detected_ms: float
    settled_ms: float
    high_again_ms: float


def find_bursts(online: Bins, line_bytes_s: float) -> list[Burst]:
    """Return the bursts: arrivals without a pause, from the first ms on with more than the waterline allows."""
    found: list[list[int]] = []
    for millisecond in sorted(online):
        if not found or millisecond - found[-1][-1] > QUIET_MS:
            found.append([])
        found[-1].append(millisecond)
    over = [[each for each in part if online[each] > line_bytes_s / 1000] for part in found]
    return [Burst(above[0], part[-1]) for part, above in zip(found, over, strict=True) if above]


def settled_after(offline: Bins, from_ms: int, low_bytes_s: float) -> int:
    """Return the first ms from which on offline traffic, over MEAN_MS, is within its low bound."""
    most = low_bytes_s * (1 + TOLERANCE) * MEAN_MS / 1000
    arrived = sum(offline.get(each, 0) for each in range(from_ms, from_ms + MEAN_MS))
    while arrived > most:
        arrived += offline.get(from_ms + MEAN_MS, 0) - offline.get(from_ms, 0)
        from_ms += 1
    return from_ms


def judge(
    bursts: Sequence[Burst], offline: Bins, events: Sequence[tuple[int, str]], low_bytes_s: float
) -> list[Switch]:
    """Return what became of each burst; a burst that was never noticed has infinite times. Events: (ns, new state)."""
    found = []
    for number, burst in enumerate(bursts):
        end_ms = bursts[number + 1].first if number + 1 < len(bursts) else math.inf
        own = [(ns / NS_PER_MS, to) for ns, to in events if burst.first <= ns / NS_PER_MS < end_ms]
        low = next((ms for ms, to in own if to == "low"), math.inf)
        high = next((ms for ms, to in own if to == "high"), math.inf)
        settled: float = settled_after(offline, math.floor(low), low_bytes_s) if low < math.inf else math.inf
        found.append(Switch(low - burst.first, settled - burst.first, high - burst.last))
    return found


def schedule(count: int, seed: int, on_s: float, off_s: float) -> list[tuple[float, float]]:
    """Return (s to wait, s to send) of bursts whose starts fall anywhere in a window of the waterline."""
    source = random.Random(seed)
    return [(off_s + source.random() * 0.05, on_s) for _ in range(count)]


def bursts(host: Host, options: Mapping[str, Any]) -> dict[str, Any]:
    """Send offline traffic all the time and online traffic in bursts; returns arrivals and events.

    Options: `plane`, `rates` (of the pool), `online` (a rate), `count`, `seed`, `on_s`, `off_s`, `flows`.
    """
    offline = {"name": "batch", "pool": "link", "role": "offline", "prefixes": ["10.99.0.1/32"]}
    host.apply(({"name": "link", **options["rates"]},), (offline,), (("left", "link", options["plane"]),))
    plan = schedule(options["count"], options["seed"], options["on_s"], options["off_s"])
    seconds = sum(wait_s + send_s for wait_s, send_s in plan)
    events: dict[int, str] = {}
    # Nobody's: it counts as online. The offline class's address is odd.
    host.pair.run(["ip", "addr", "add", f"{ONLINE}/24", "dev", "left"])
    with (
        Arrivals(host.pair, host.place_of_pins()) as arrivals,
        Transfer(host.pair, OFFLINE_PORT, seconds + 60, flows=options["flows"]) as batch,
    ):
        batch.begun()
        time.sleep(SETTLE_S)
        pace = values.rate(options["online"], "online")
        with Transfer(host.pair, ONLINE_PORT, seconds, source=ONLINE, bursts=plan, pacing_bytes_s=pace) as service:
            # Only the last events are kept.
            while service.sender.poll() is None:
                events.update(_events(host))
                time.sleep(POLL_S)
            service.wait()
        time.sleep(SETTLE_S)
        events.update(_events(host))
        even, odd = arrivals.read()
    transitions = host.figures()["pools"]["link"]["transitions"]
    return {"offline": list(odd.items()), "online": list(even.items()), "events": sorted(events.items()),
            "transitions": transitions}  # fmt: skip


def _events(host: Host) -> dict[int, str]:
    return {event["time_ns"]: event["to"] for event in host.figures()["pools"]["link"]["events"]}
