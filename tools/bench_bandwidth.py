"""Exactness, speed and cost of the bandwidth programs, on this machine and in a guest whose kernel has sch_fq.

Everything happens in namespaces and guests of the benchmark's own, which go with it, also after Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import reconcile
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
from tools import bench_node
from tools.bandwidth import boot, cpu_cost, figures, guest, inside, program_cost, single_packets
from tools.bandwidth.host import NoInstanceError
from tools.bandwidth.quiet import Watch
from tools.bandwidth.traffic import TrafficError, take_back_on_termination
from tools.bench_figures import BenchError, Figure

ROWS = Path(__file__).resolve().parents[1] / "results" / "bench" / "bandwidth"
SEED = 20_261_201
GUEST_TIMEOUT_S = 420
SMALL, FULL = 512, 1448
EXPECTED = (
    *reconcile.ERRORS, cgroup.CgroupError, guest.GuestError, TrafficError, NoInstanceError, single_packets.PacketError,
)  # fmt: skip
BURST_COUNT = 80
BURSTS: Mapping[str, Any] = {
    "rates": {"total": "1Gbit/s", "waterline": "20MiB/s", "low": "160Mbit/s", "high": "800Mbit/s"},
    "online": "400Mbit/s", "flows": 4, "count": BURST_COUNT, "seed": SEED, "on_s": 0.15, "off_s": 0.2,
}  # fmt: skip
Part = Callable[[], list[Figure]]


def keep_rows(name: str, found: Any) -> None:
    """Write what a part found beside the figures, so that whoever doubts them can look."""
    ROWS.mkdir(parents=True, exist_ok=True)
    (ROWS / f"{name}.json").write_text(json.dumps(found) + "\n", encoding="utf-8")


def _kept_as(part: str, options: Mapping[str, Any]) -> str:
    hook = options.get("hook", "")
    return f"{part}-{hook}" if hook else part


def here(part: str, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Take a part on this machine; returns what it found and where."""
    watch = Watch()
    found = inside.take(part, options)
    keep_rows(f"{_kept_as(part, options)}-machine", found)
    return found, {**bench_node.machine(), **watch.end()}


def there(part: str, options: Mapping[str, Any]) -> tuple[boot.Found, dict[str, Any]]:
    """Take a part in a guest on this machine; returns what it found and where."""
    watch = Watch()
    found = boot.take(part, options, GUEST_TIMEOUT_S)
    keep_rows(f"{_kept_as(part, options)}-guest", {"rows": found.rows, "cpu_s": found.cpu_s})
    where = {
        **bench_node.machine(),
        **watch.end(),
        "guest": f"User-Mode Linux {found.kernel}, one CPU, no JIT compiler",
    }
    return found, where


def accuracy() -> list[Figure]:
    """Measure one class with 16 flows at four rates, by each plane."""
    options = {"mbits": [50, 100, 200, 500], "flows": 16, "seconds": 3.0, "seed": SEED}
    inner, where = there("one_class", {**options, "plane": "edt", "accounting": "payload", "repeats": 5})
    method = "16 flows of TCP, growth of the receiver's count in 3 s, 5 shuffled repeats, plane edt with payload"
    found = figures.one_class(inner.rows, "", True, method, where)
    rows, where = here("one_class", {**options, "plane": "htb", "accounting": "wire", "repeats": 3})
    method = "the same with plane htb, 3 repeats; ideal is 1448/1514 of the rate, since HTB counts frames"
    return found + figures.one_class(rows, "_htb", False, method, where)


def ingress() -> list[Figure]:
    """Measure one class that is received, with 16 flows at three rates, by each plane."""
    # Senders learn of a queue that is not theirs by losses, so a longer window is needed than for what is sent.
    options = {"mbits": [50, 200, 500], "flows": 16, "seconds": 5.0, "seed": SEED, "hook": "ingress"}
    inner, where = there("one_class", {**options, "plane": "edt", "accounting": "payload", "repeats": 5})
    method = (
        "received: 16 flows of TCP through an intermediate device, growth of the receiver's count in 5 s, 5 shuffled"
        " repeats, plane edt with payload"
    )
    found = figures.one_class(inner.rows, "_ingress", True, method, where, figures.INGRESS_GOAL_PCT)
    rows, where = here("one_class", {**options, "plane": "htb", "accounting": "wire", "repeats": 3})
    method = "the same with plane htb, 3 repeats; ideal is 1448/1514 of the rate"
    return found + figures.one_class(rows, "_ingress_htb", False, method, where)


def classes() -> list[Figure]:
    """Measure 200 classes under traffic at once, by each plane."""
    options = {"classes": 200, "mbit": 1, "seconds": 6.0, "settle_s": 2.0}
    inner, where = there("many_classes", {**options, "repeats": 5, "plane": "edt", "accounting": "payload"})
    method = "control groups of 1 Mbit/s with one TCP flow each, all at once for 6 s"
    found = figures.many_classes(inner.rows, "", True, f"{method}, 5 repeats, plane edt with payload", where)
    rows, where = here("many_classes", {**options, "repeats": 3, "plane": "htb", "accounting": "wire"})
    text = f"{method}, 3 repeats, plane htb, 1448/1514 of the rate"
    return found + figures.many_classes(rows, "_htb", False, text, where)


def waterline() -> list[Figure]:
    """Send bursts of online traffic against saturating offline traffic, by each plane."""
    method = (
        "from a burst's first ms over the line to the ms from which on offline traffic keeps within 15 % of its low"
        " rate over 20 ms, by counters in the receiving kernel; online 400 Mbit/s over a waterline of 20 MiB/s, offline"
        " 4 flows with high 800 and low 160 Mbit/s; interval by order statistics"
    )
    planes = {}
    inner, where = there("bursts", {**BURSTS, "plane": "edt"})
    planes["edt"] = figures.switch(inner.rows, BURSTS, f"plane edt; {method}", where)
    rows, where = here("bursts", {**BURSTS, "plane": "htb"})
    planes["htb"] = figures.switch(rows, BURSTS, f"plane htb; {method}", where)
    return figures.switches(planes, BURST_COUNT)


def loads(plane: str, full: float, small: float, pieces: float) -> list[dict[str, Any]]:
    """Return what is sent to measure costs, by rates in Mbit/s that leave CPU time over."""
    return [
        {"name": "", "mbit": full, "segment_bytes": FULL, "flows": 4, "plane": plane},
        {"name": "_512_b", "mbit": small, "segment_bytes": SMALL, "flows": 4, "plane": plane},
        # One flow: several disturb each other's pieces, whose number is what costs.
        {"name": "_gso", "mbit": pieces, "segment_bytes": FULL, "flows": 1, "plane": plane, "pieces": True},
    ]


def cpu() -> list[Figure]:
    """Compare CPU time at equal bitrate with HTB, TBF and no shaper, by each plane."""
    method = (
        "variants in shuffled order in each block, windows of 1 s; TBF and HTB with a bucket that holds the largest"
        " piece, no filter; without a shaper the sender sends 65,160 B now and then at the same rate"
    )
    options = {"blocks": 6, "window_s": 1.0, "seed": SEED}
    inner, where = there("cpu", {**options, "loads": loads("edt", 50, 20, 500)})
    rows, text = cpu_cost.with_cpu(inner.rows, 0, inner.cpu_s), f"plane edt, CPU time of the guest; {method}"
    found = [figure for load in figures.LOADS for figure in figures.cpu(rows, load, load, text, where)]
    bare, where = here("cpu", {**options, "loads": loads("htb", 100, 50, 500)})
    rows = cpu_cost.with_cpu(bare, os.cpu_count() or 1)
    text = f"plane htb, time in which the machine's CPUs were not idle; {method}"
    return found + [
        figure for load in figures.LOADS for figure in figures.cpu(rows, load, f"_steered{load}", text, where)
    ]


def program() -> list[Figure]:
    """Measure the run time of the program for a packet."""
    rows, where = here("per_packet", {"repeats": 5, "window_s": 1.0, "loads": loads("htb", 100, 50, 500)})
    method = "plane htb, a class with a limit, found by its prefix, run_time_ns / run_cnt with bpf_stats_enabled"
    return figures.per_packet(rows, method, where)


def memory() -> list[Figure]:
    """Measure the memory of the maps with 200 classes."""
    found, where = here("memory", {"classes": 200, "plane": "htb"})
    return figures.memory(found, "memlock of each by fdinfo, with 200 classes", where)


def resident() -> list[Figure]:
    """Count the processes that are left."""
    found, where = here("resident", {"plane": "htb"})
    return figures.resident(found, "left in a process namespace in which the modules ran, with a device shaped", where)


def apply() -> list[Figure]:
    """Time 200 classes in one task."""
    planes = ["police", "htb"]
    rows, where = here("apply", {"classes": 200, "planes": planes, "rounds": 7})
    return figures.applying(rows, planes, "time inside module bandwidth_class, each class with a prefix", where)


def two_cpus() -> list[Figure]:
    """Count updates that are lost when CPUs use one class at once."""
    watch = Watch()
    found = {variant: program_cost.lost_updates(variant) for variant in single_packets.VARIANTS}
    method = f"{program_cost.PACKETS} test runs each, bytes counted and the class's clock against what was sent"
    return figures.two_cpus(found, method, {**bench_node.machine(), **watch.end()})


PARTS: Mapping[str, Part] = {
    "two_cpus": two_cpus,
    "memory": memory,
    "resident": resident,
    "apply": apply,
    "program": program,
    "accuracy": accuracy,
    "ingress": ingress,
    "classes": classes,
    "waterline": waterline,
    "cpu": cpu,
}


def chosen(only: str | None) -> list[str]:
    """Return the parts that are wanted, separated by commas; all without a choice. Raises BenchError."""
    names = only.split(",") if only else list(PARTS)
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        raise BenchError(f"--only {','.join(unknown)}: no such part; choose from {', '.join(PARTS)}")
    return [name for name in PARTS if name in names]


def bench(options: argparse.Namespace) -> list[Figure]:
    """Take the wanted parts one after the other."""
    names = chosen(options.only)
    if os.geteuid() != 0:
        raise BenchError("loading programs and making namespaces needs root; no figure is given")
    if not guest.is_there():
        raise BenchError(f"{guest.PROGRAM} is not there: install Debian's package user-mode-linux; no figure is given")
    take_back_on_termination()
    found: list[Figure] = []
    for name in names:
        started_s = time.monotonic()
        try:
            found += PARTS[name]()
        except EXPECTED as exc:
            raise BenchError(f"part {name}: {exc}; no figure is given") from exc
        sys.stdout.write(f"part {name}: {time.monotonic() - started_s:.0f} s\n")
        sys.stdout.flush()
    return found
