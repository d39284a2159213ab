"""What the programs cost by the kernel's own statistics, what their maps hold, and whether two CPUs lose an update."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import bpf
from tools.bandwidth import cpu_cost, single_packets
from tools.bandwidth.host import Host
from tools.bandwidth.traffic import Transfer

PORT = 5601
SETTLE_S = 0.5
PACKETS = 200_000
FRAME, RATE = 1514, 12_500_000


def per_packet(host: Host, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Read the run time of the program that shapes, in windows of traffic, while the kernel counts it.

    Options: `loads` (of cpu_cost.Load's fields), `repeats`, `window_s`.
    """
    rows = []
    for raw in options["loads"]:
        load = cpu_cost.Load(**raw)
        cpu_cost.prepare(host, load)
        host.apply(shaped=(("left", "link", load.plane),))
        program = bpf.get(os.path.join(host.place.pins, "programs", "shape"))
        seconds = SETTLE_S + options["repeats"] * options["window_s"] + 0.2
        with (
            cpu_cost.single_segments(host, load),
            Transfer(host.pair, PORT, seconds, flows=load.flows, **load.socket_options()) as transfer,
        ):
            transfer.begun()
            time.sleep(SETTLE_S)
            # Until this is closed: then the kernel stops counting, unless somebody else has asked for it too.
            statistics = bpf.enable_statistics()
            try:
                for repeat in range(options["repeats"]):
                    before = bpf.program_info(program)
                    time.sleep(options["window_s"])
                    after = bpf.program_info(program)
                    packets = after.run_count - before.run_count
                    ns = (after.run_time_ns - before.run_time_ns) / max(packets, 1)
                    rows.append({"load": load.name, "repeat": repeat, "packets": packets, "ns": ns})
            finally:
                os.close(statistics)
                os.close(program)
    return rows


def locked_bytes(fd: int) -> int:
    """Return the memory that the kernel says an object holds."""
    found = re.search(r"^memlock:\s*(\d+)", Path(f"/proc/self/fdinfo/{fd}").read_text(encoding="ascii"), re.M)
    return int(found[1]) if found else 0


def memory(host: Host, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the memory of each map and program of an instance with many classes. Options: `classes`, `plane`."""
    classes = many_prefixes(options["classes"])
    host.apply(({"name": "link"},), classes, (("left", "link", options["plane"]),))
    programs = {}
    for path in sorted(Path(host.place.pins, "programs").iterdir()):
        fd = bpf.get(str(path))
        programs[path.name] = locked_bytes(fd)
        os.close(fd)
    with host.opened() as opened:
        return {"maps": {name: locked_bytes(item.fd) for name, item in opened.maps.items()}, "programs": programs}


def many_prefixes(count: int, limit: str = "1Mbit/s") -> tuple[dict[str, Any], ...]:
    """Return options of so many classes, each with an address of its own."""
    places = [f"10.98.{number // 250}.{number % 250 + 1}/32" for number in range(count)]
    return tuple(
        {"name": f"pod{number:03d}", "pool": "link", "limit": limit, "prefixes": [place]}
        for number, place in enumerate(places)
    )


def lost_updates(variant: str) -> dict[str, float]:
    """Let all CPUs run a program on packets of one class at once; returns what is missing, in percent of what was sent.

    The class's clock must have advanced by exactly the time of all bytes at its rate, and the counters by all bytes.
    """
    loaded = single_packets.load(variant)
    try:
        bench = single_packets.prepare(loaded)
        bench.set_class(limit=RATE, horizon_ns=2**62)
        bench.set_meta(test_clock=single_packets.START)
        packet = {"ingress_ifindex": bench.FROM, "ifindex": single_packets.LOOPBACK, "wire_len": FRAME}
        data = single_packets.ethernet(0x0800, single_packets.ipv4())
        cpus = single_packets.on_each_cpu(lambda: void(bench.run(data, packet, PACKETS)))
        total = cpus * PACKETS * FRAME
        clock_ns = bench.class_state()["limit_clock"] - single_packets.START
        cost_ns = total * single_packets.SECOND // RATE
        return {
            "cpus": cpus,
            "bytes_lost_pct": 100 * (1 - bench.stats()["bytes"] / total),
            "time_lost_pct": 100 * (1 - clock_ns / cost_ns),
        }
    finally:
        loaded.close()


def void(_value: object) -> None:
    """Take a result that nobody needs."""
