"""Make a whole, plausible run directory of the bandwidth experiment from a seed: no host, no traffic.

    python -m tests.support.synthetic_bandwidth_run results/example --blocks 3
    make_bandwidth_run(tmp_path / "run", Options(blocks=3, faults={("latency", "ebpf", 2): "steal"}))

What it writes goes through the same schedule, guards and run directory as a real run; only the readings are invented.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import (
    frames,
    guards,
    guards_traffic,
    schedule,
    schedule_traffic,
)
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import GuardResult
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import (
    BandwidthCell,
    BandwidthRecord,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_rundir import BandwidthRun
from tests.support.synthetic_bandwidth_scenarios import LINK_BPS, SCENARIOS
from tests.support.synthetic_readings import EPOCH_S, LOAD, TESTED, common_reading, group_reading

#: What a Gbit costs in CPU seconds of the tested host.
COST = {"none": 0.300, "ebpf": 0.330, "tbf": 0.362, "htb": 0.375}
#: How far each shaper is off, in %, and the delay that it adds to a round trip, in µs.
BIAS = {"none": 0.0, "ebpf": -0.02, "tbf": -1.2, "htb": -2.4}
DELAY_US = {"none": 900.0, "ebpf": 240.0, "tbf": 420.0, "htb": 380.0}


@dataclasses.dataclass(frozen=True)
class Options:
    """What the run looks like. ``faults`` maps (scenario, shaper, block) to one of FAULTS, for all cases of these."""

    run_id: str = "synthetic-bandwidth"
    seed: int = 1
    blocks: int = 3
    window_s: float = 3.0
    repeat_cap: int = 1
    scenarios: Mapping[str, Any] = dataclasses.field(default_factory=lambda: dict(SCENARIOS))
    plane: str = "edt"
    accounting: str = "payload"
    bias_pct: Mapping[str, float] = dataclasses.field(default_factory=lambda: dict(BIAS))
    cost_s_per_gbit: Mapping[str, float] = dataclasses.field(default_factory=lambda: dict(COST))
    spread_pct: float = 0.01
    #: what senders do where nothing holds them: the limit times this
    unshaped_times: float = 1.0
    switch_ms: float = 6.5
    switches: int = 20
    flaps: int = 0
    faults: Mapping[tuple[str, str, int], str] = dataclasses.field(default_factory=dict)
    #: stop after so many measurements, as a run that was killed
    stop_after: int | None = None
    limits: Mapping[str, float] = dataclasses.field(default_factory=dict)
    kernel: str = "6.1.0-example"
    created: str = "2026-11-30T20:00:00+00:00"
    clock_offset_s: float = 0.25
    pm_qos_held: bool = True


#: fault: what it does to a measurement; those of FIRST_ATTEMPT are gone when it is repeated
FAULTS = ("steal", "silent_class", "no_packets", "no_readings", "no_probe", "not_in_effect", "foreign_drops",
          "receiver_busy", "never_settles", "no_cpu", "drops_unread")  # fmt: skip
FIRST_ATTEMPT = ("steal", "foreign_drops")


@dataclasses.dataclass(frozen=True)
class Window:
    """One attempt at one cell: everything that the readings are computed from."""

    options: Options
    cell: BandwidthCell
    case: Mapping[str, Any]
    start_wall_s: float
    fault: str | None

    @property
    def start_mono_s(self) -> float:
        return self.start_wall_s - EPOCH_S + 100.0

    @property
    def end_mono_s(self) -> float:
        return self.start_mono_s + self.options.window_s

    def source(self, *parts: object) -> random.Random:
        return random.Random(schedule.derive_seed(self.options.seed, *self.cell.key, self.cell.attempt, *parts))


def window_of(options: Options, cell: BandwidthCell, number: int) -> Window:
    """Return the attempt at a cell as the number-th window of the run."""
    fault = options.faults.get((cell.scenario, cell.shaper, cell.block))
    if fault in FIRST_ATTEMPT and cell.attempt > 1:
        fault = None
    case = options.scenarios[cell.scenario]["cases"][cell.case]
    return Window(options, cell, case, EPOCH_S + 20.0 * number + 0.37, fault)


def manifest(options: Options) -> dict[str, Any]:
    """Return the manifest of the run."""
    host = {
        "kernel": options.kernel,
        "cpu_model": "Example CPU 3.0 GHz",
        "cpus": "0-1",
        "cgroup": "hybrid",
        "memory_bytes": 8 << 30,
        "virtualization": "kvm",
        "service_manager": "none",
        "pm_qos": options.pm_qos_held,
    }
    return {
        "schema": "colocation.testbed/manifest/1",
        "experiment": "bandwidth",
        "run_id": options.run_id,
        "created": options.created,
        "finished": None,
        "fingerprint": f"fingerprint-{options.seed}",
        "command": "ansible-playbook -i inventories/local playbooks/bandwidth.yml",
        "versions": {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.2", "iperf3": "3.12"},
        "hosts": {
            TESTED: {**host, "role": "tested", "measured_cpus": "0", "clock_offset_s": options.clock_offset_s},
            LOAD: {**host, "role": "load", "measured_cpus": "1", "clock_offset_s": 0.0},
        },
        "scenarios": {name: dict(scenario) for name, scenario in options.scenarios.items()},
        "schedule": {
            "blocks": options.blocks,
            "seed": options.seed,
            "window_s": options.window_s,
            "warmup_s": 1.0,
            "repeat_cap": options.repeat_cap,
        },
        "plane": options.plane,
        "planes": {"egress": options.plane, "ingress": "police"},
        "accounting": options.accounting,
        "payload_share": {"wire": frames.payload_share("wire")},
        "link_bps": LINK_BPS,
        "limits": dict(options.limits),
    }


def _accounting(window: Window) -> str:
    return window.options.accounting if window.cell.shaper == "ebpf" else "wire"


def _class(window: Window, name: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a receiver counted of one class: on its limit, or its part of what the link has left."""
    options, shaper, source = window.options, window.cell.shaper, window.source("class", name)
    limited = item["limit_bps"] is not None and shaper != "none"
    expected = item["limit_bps"] * frames.class_share(_accounting(window), item) if limited else None
    floor = None if item["request_bps"] is None or shaper == "none" else 0.9 * item["request_bps"]
    free = (item["limit_bps"] or 0.0) * options.unshaped_times or 0.6 * frames.most_goodput_bps(LINK_BPS)
    usual = expected or 1.02 * (floor or 0.0) or item.get("offered_bps") or free
    off_pct = options.bias_pct[shaper] + source.gauss(0.0, options.spread_pct) if limited else source.gauss(0.0, 1.0)
    rate = 0.0 if window.fault == "no_packets" else usual * (1.0 + off_pct / 100.0)
    readings = 0 if window.fault in ("no_readings", "silent_class") else round(options.window_s * 10)
    intervals = [max(0.0, rate * (1.0 + source.gauss(0.0, 0.02))) for _ in range(readings)]
    if window.case["classes"][name]["role"] == "offline" and window.case.get("pool") and _switches(window):
        pool = window.case["pool"]
        intervals = [float(pool["low_bps"] if (place // 5) % 2 else pool["high_bps"]) for place in range(readings)]
        rate = sum(intervals) / len(intervals) if intervals else 0.0
    received = round(rate * options.window_s / 8.0)
    silent = window.fault == "silent_class"
    return {
        "expected_bps": expected if not _switches(window) else None,
        "floor_bps": floor,
        "offered_bps": item.get("offered_bps"),
        "direction": "egress" if window.cell.direction == "both" else window.cell.direction,
        "received_bytes": None if silent else received,
        "received_bps": None if silent else rate,
        "flows": item["flows"],
        "sent_bytes": received + 65_536,
        "retransmits": 0,
        "intervals_bps": intervals,
    }


def _probe(window: Window, shaper: str) -> list[list[int]]:
    source = window.source("probe")
    counts: dict[int, int] = {}
    for _ in range(round(1000 * window.options.window_s)):
        value = int(60.0 + source.gammavariate(2.0, DELAY_US[shaper] / 4.0))
        counts[value] = counts.get(value, 0) + 1
    return [[value, counts[value]] for value in sorted(counts)]


def _switches(window: Window) -> list[dict[str, Any]]:
    if window.cell.case != "dynamic":
        return []
    options, source = window.options, window.source("switches")
    apart_s = options.window_s / (2 * options.switches + 1)
    made = []
    for place in range(2 * options.switches):
        down = place % 2 == 0
        took_ms = options.switch_ms * math.exp(source.gauss(0.0, 0.1)) if down else 40.0 + source.gauss(0.0, 1.0)
        never = window.fault == "never_settles" and place < 4
        made.append(
            {
                "wanted_mono_s": window.start_mono_s + (place + 0.5) * apart_s,
                "settled_ms": None if never else round(took_ms, 0),
                "direction": "down" if down else "up",
                "class": "bulk",
                "bound_bps": 160e6 if down else 800e6,
            }
        )
    return made


def _events(window: Window, switches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if window.cell.shaper != "ebpf":
        return []
    times = [switch["wanted_mono_s"] + 0.004 for switch in switches]
    times += [times[0] + 0.001 * place for place in range(1, window.options.flaps + 1)] if times else []
    return [
        {"mono_ns": int(time_s * 1e9), "pool": "link", "throttled": place % 2 == 0, "reason": "budget"}
        for place, time_s in enumerate(sorted(times))
    ]


def _cpu(window: Window, received_bits: float) -> dict[str, Any]:
    options, own = window.options, window.source("cpu")
    of_block = random.Random(schedule.derive_seed(options.seed, "cpu", window.cell.block)).gauss(1.0, 0.03)
    busy_s = options.cost_s_per_gbit[window.cell.shaper] * received_bits / 1e9 * of_block * own.gauss(1.0, 0.004)
    busy_s = min(max(busy_s, 0.01), 0.97 * options.window_s)
    received_s = 0.99 * options.window_s if window.fault == "receiver_busy" else 0.4 * options.window_s
    share = {"window_s": options.window_s, "steal_s": 0.0}
    if window.fault == "no_cpu":
        nothing = {"busy_s": None, "system_s": None, "softirq_s": None, "window_s": None, "steal_s": None}
        return {TESTED: nothing, LOAD: nothing}
    return {
        TESTED: {"busy_s": busy_s, "system_s": 0.5 * busy_s, "softirq_s": 0.3 * busy_s, **share},
        LOAD: {"busy_s": received_s, "system_s": 0.4 * received_s, "softirq_s": 0.4 * received_s, **share},
    }


def traffic(window: Window) -> dict[str, Any]:
    """Return traffic.json of a window."""
    options, case = window.options, window.case
    classes = {name: _class(window, name, item) for name, item in case["classes"].items()}
    bits = 8.0 * sum(item["received_bytes"] or 0 for item in classes.values())
    switches = _switches(window)
    probed = [name for name, item in case["classes"].items() if item.get("probe") and window.fault != "no_probe"]
    ours = window.cell.shaper == "ebpf"
    packets = int(bits / 8 / 1448)
    return {
        "start_wall_s": window.start_wall_s,
        "end_wall_s": window.start_wall_s + options.window_s,
        "start_mono_s": window.start_mono_s,
        "end_mono_s": window.end_mono_s,
        "window_s": options.window_s,
        "classes": classes,
        "rr_latency_us": {name: _probe(window, window.cell.shaper) for name in probed},
        "cpu": _cpu(window, bits),
        "events": _events(window, switches),
        "switches": switches,
        "programs": {"egress": {"run_ns": 240 * packets, "runs": packets}} if ours else {},
        "apply_ms": (2.0 + 0.17 * len(classes)) * window.source("apply").gauss(1.0, 0.01) if ours else None,
        "drops": 12,
        "foreign_drops": {"foreign_drops": 7, "drops_unread": None}.get(window.fault or "", 0),
        "ecn_marks": 300 if ours else 0,
    }  # fmt: skip


def samples(window: Window) -> dict[str, list[dict[str, Any]]]:
    """Return the lines of both hosts."""
    options = window.options
    lines: dict[str, list[dict[str, Any]]] = {TESTED: [], LOAD: []}
    for second in range(int(options.window_s) + 4):
        elapsed_s = second - 1.6
        stolen_s = 0.2 if window.fault == "steal" and elapsed_s >= options.window_s / 2 else 0.0
        for host, offset_s, cpu, group in ((TESTED, options.clock_offset_s, "0", "batch"), (LOAD, 0.0, "1", "load")):
            lines[host].append(
                {
                    **common_reading(window, elapsed_s, offset_s, 0.42, cpu, stolen_s if host == TESTED else 0.0),
                    "groups": {group: group_reading(elapsed_s + 2, 0.4, 0.01, 4)},
                    "work": {},
                    "processes": {},
                    "policy": {},
                }
            )
    return lines


def policy_readings(window: Window) -> dict[str, Any]:
    """Return what was asked of the shaper and what was read back."""
    wanted = {"device/eth0/plane": window.options.plane} if window.cell.shaper == "ebpf" else {}
    wanted.update({f"class/{name}/limit_bps": str(item["limit_bps"]) for name, item in window.case["classes"].items()})
    if window.cell.shaper == "none":
        wanted = {}
    applied: dict[str, str | None] = dict(wanted)
    if window.fault == "not_in_effect" and wanted:
        applied[next(iter(wanted))] = "fq_codel"
    return {"wanted": wanted, "applied": applied}


def evaluate(document: Mapping[str, Any], window: Window) -> dict[str, GuardResult]:
    """Return every guard's result on a window by name."""
    record = BandwidthRecord.of(window.cell)
    found = guards_traffic.evaluate(document, record, traffic(window), samples(window), policy_readings(window))
    return {result.guard: result for result in found}


def make_bandwidth_run(path: Path | str, options: Options | None = None) -> BandwidthRun:
    """Write a run directory at ``path`` and return it; finished unless ``stop_after`` cuts it short."""
    options = options or Options()
    document = manifest(options)
    run = BandwidthRun.create(path, document)
    progress = schedule.Progress(schedule_traffic.plan(document), options.repeat_cap)
    done: list[BandwidthRecord] = []
    while (cell := progress.next_cell(done)) is not None:
        if options.stop_after is not None and len(done) >= options.stop_after:
            return run
        window = window_of(options, cell, len(done))
        found, lines, policy = traffic(window), samples(window), policy_readings(window)
        record = BandwidthRecord.of(cell)
        results = guards_traffic.evaluate(document, record, found, lines, policy)
        done.append(run.store_measurement(guards.judged(record, results), found, lines, policy, results))
    run.finish()
    return run


def main() -> None:
    """Write a run directory from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stop-after", type=int)
    arguments = parser.parse_args()
    options = Options(
        run_id=arguments.path.name, seed=arguments.seed, blocks=arguments.blocks, stop_after=arguments.stop_after
    )
    print(make_bandwidth_run(arguments.path, options).path)


if __name__ == "__main__":
    main()
