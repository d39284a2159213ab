"""CPU time that shaping costs at equal bitrate: ours, HTB, TBF and no shaper, interleaved in blocks in random order."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.bandwidth.host import Host
from tools.bandwidth.traffic import Transfer

PORT = 5501
SETTLE_S = 0.3
# Ethernet, IPv4, TCP with time stamps.
HEADER_BYTES = 66
TIMESTAMP_BYTES = 12
FULL_BYTES = 1448
BURST_S, MIN_BURST_BYTES = 0.002, 80_000
QUEUE_S, MIN_QUEUE_BYTES = 0.05, 262_144
VARIANTS = ("none", "ours", "htb", "tbf")
Meter = Callable[[], float]


@dataclass(frozen=True)
class Load:
    """What is sent in every variant: Mbit/s of payload, bytes of payload in a segment, flows, and ours' plane.

    ``pieces``: TCP may hand over several segments in one piece, as it does with segmentation offload.
    """

    name: str
    mbit: float
    segment_bytes: int
    flows: int
    plane: str
    pieces: bool = False

    @property
    def wire_bit(self) -> int:
        """Return bits a second of frames that carry the payload, in whole kilobits."""
        return 1000 * round(self.mbit * 1000 * (self.segment_bytes + HEADER_BYTES) / self.segment_bytes)

    def socket_options(self) -> dict[str, Any]:
        """Return what the sender sets on its sockets."""
        return {"segment_bytes": self.segment_bytes + TIMESTAMP_BYTES} if self.segment_bytes < FULL_BYTES else {}


def idle_s(timer_list: str) -> float:
    """Return the seconds that all CPUs together were idle, in nanoseconds' resolution, from /proc/timer_list."""
    return sum(int(ns) for ns in re.findall(r"^\s*\.(?:idle|iowait)_sleeptime\s*: (\d+) nsecs", timer_list, re.M)) / 1e9


def idle_ticks_s(stat: str) -> float:
    """Return the same in ticks from /proc/stat, for kernels whose list of timers does not have it."""
    fields = stat.splitlines()[0].split()
    return (int(fields[4]) + int(fields[5])) / 100


def wake() -> None:
    """Run on each CPU once: the kernel adds up what a CPU was idle only when it stops to be."""
    allowed = os.sched_getaffinity(0)
    try:
        for cpu in sorted(allowed):
            os.sched_setaffinity(0, {cpu})
    finally:
        os.sched_setaffinity(0, allowed)


def machine_meter() -> float:
    """Return minus the idle seconds of this machine: over a window, what isn't idle is busy."""
    wake()
    found = idle_s(Path("/proc/timer_list").read_text(encoding="utf-8"))
    return -(found or idle_ticks_s(Path("/proc/stat").read_text(encoding="utf-8")))


def peer_lines(variant: str, load: Load) -> list[str]:
    """Return the lines for tc of a peer, with what suits it.

    TBF's bucket holds the largest packet that is sent in one piece, or it would have to cut it; HTB's is as large, and
    neither needs a filter.
    """
    rate = load.wire_bit
    burst = max(MIN_BURST_BYTES, int(rate / 8 * BURST_S))
    if variant == "htb":
        rates = f"rate {rate}bit ceil {rate}bit burst {burst} cburst {burst} quantum 60000"
        return [
            "qdisc add dev left root handle 1: htb default 10",
            f"class add dev left parent 1: classid 1:10 htb {rates}",
        ]
    if variant == "tbf":
        limit = max(MIN_QUEUE_BYTES, int(rate / 8 * QUEUE_S))
        return [f"qdisc add dev left root tbf rate {rate}bit burst {burst} limit {limit}"]
    return []


@contextlib.contextmanager
def single_segments(host: Host, load: Load) -> Iterator[None]:
    """Keep TCP from handing over several segments in one piece, unless it may.

    Else they are shaped in one piece too, and cut only behind the shaper.
    """
    limit = ["ip", "link", "set", "dev", "left", "gso_max_segs"]
    if not load.pieces:
        host.pair.run([*limit, "1"])
    yield
    if not load.pieces:
        host.pair.run([*limit, "65535"])


def prepare(host: Host, load: Load) -> None:
    """Make pool and class of ours; no device is shaped yet."""
    payload = load.plane == "edt"
    limit = load.mbit * 1e6 if payload else load.wire_bit
    pool = {"name": "link", "accounting": "payload" if payload else "wire"}
    limited = {"name": "pod", "pool": "link", "limit": f"{round(limit)}bit/s", "prefixes": ["10.99.0.1/32"]}
    host.apply((pool,), (limited,), ())


def sent(host: Host) -> tuple[int, int]:
    """Return packets and bytes that the device has sent, several segments in one piece counted as one packet."""
    shown = json.loads(host.pair.run(["ip", "-j", "-s", "link", "show", "dev", "left"]).stdout)
    found = shown[0]["stats64"]["tx"]
    return int(found["packets"]), int(found["bytes"])


def measure(host: Host, variant: str, load: Load, window_s: float, meter: Meter) -> dict[str, Any]:
    """Send with one variant and return the meter at both ends of a window, and what arrived in it (bits a second)."""
    options = load.socket_options()
    if variant == "none":
        # Not by TCP's pacing, which would make its pieces smaller than the others'.
        options["rate_bytes_s"] = round(load.mbit * 1e6 / 8)
    lines = peer_lines(variant, load)
    if variant == "ours":
        host.apply(shaped=(("left", "link", load.plane),))
    for line in lines:
        host.tc(line)
    packets, size = sent(host)
    try:
        with Transfer(host.pair, PORT, SETTLE_S + window_s + 0.1, flows=load.flows, **options) as transfer:
            transfer.begun()
            time.sleep(SETTLE_S)
            start_s, before = time.monotonic(), meter()
            time.sleep(window_s)
            end_s, after = time.monotonic(), meter()
            received = transfer.wait()
        more_packets, more = sent(host)
    finally:
        if lines:
            host.tc("qdisc delete dev left root")
        if variant == "ours":
            host.apply(shaped=())
    arrived = received.rate(start_s - received.begin_s, end_s - received.begin_s)
    # What was sent in one piece: costs scale with the number of pieces, so they must be alike.
    piece = (more - size) / max(more_packets - packets, 1)
    return {"variant": variant, "window_s": end_s - start_s, "arrived_bit": arrived, "meter": [before, after],
            "piece_bytes": piece}  # fmt: skip


def blocks(host: Host, options: Mapping[str, Any], meter: Meter = machine_meter) -> list[dict[str, Any]]:
    """Measure every variant once in each block, for each load, in an order of the block's own.

    Options: `loads` (of Load's fields), `blocks`, `window_s`, `seed`.
    """
    rows = []
    source = random.Random(options["seed"])
    for raw in options["loads"]:
        load = Load(**raw)
        prepare(host, load)
        with single_segments(host, load):
            for block in range(options["blocks"]):
                for variant in source.sample(VARIANTS, len(VARIANTS)):
                    found = measure(host, variant, load, options["window_s"], meter)
                    rows.append({"load": load.name, "mbit": load.mbit, "block": block, **found})
    return rows


def with_cpu(rows: list[dict[str, Any]], cpus: int, readings: list[float] | None = None) -> list[dict[str, Any]]:
    """Return rows with `cpu_pct`: busy share of one CPU at the wanted bitrate.

    ``cpus``: those whose idle time the meter counted, 0 for a meter of busy time. ``readings``: what was read at the
    marks that a guest printed, whose numbers stand in the rows. A row that got 1 % more bits did 1 % more work.
    """
    found = []
    for row in rows:
        before, after = (readings[int(mark)] if readings is not None else mark for mark in row["meter"])
        busy_s = cpus * row["window_s"] + after - before
        cpu_pct = 100 * busy_s / row["window_s"] * row["mbit"] * 1e6 / row["arrived_bit"]
        found.append({**row, "cpu_pct": cpu_pct})
    return found


def by_variant(rows: list[dict[str, Any]], load: str, key: str = "cpu_pct") -> dict[str, list[float]]:
    """Return {variant: value in each block} of one load, in the order of blocks."""
    chosen = sorted((row for row in rows if row["load"] == load), key=lambda row: int(row["block"]))
    return {name: [row[key] for row in chosen if row["variant"] == name] for name in VARIANTS}
