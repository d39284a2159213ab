"""Readings of windows that never were: from a behaviour and a seed what the hosts and the generator would say."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Mapping
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import schedule
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import Cell

TESTED, LOAD = "tested1", "load1"
EPOCH_S = 1_790_000_000.0
SERVICE_CPU_S_PER_REQUEST = 0.00075
DEEP_SLEEP_PM_QOS_US = 2_000_000_000


@dataclasses.dataclass(frozen=True)
class Behaviour:
    """How a mode behaves: latency relative to the baseline, batch frames a second at an idle service, and so on."""

    latency_factor: float = 1.0
    batch: bool = True
    frames_per_s: float = 85.0
    service_cpu_factor: float = 1.0
    definition: Mapping[str, Any] = dataclasses.field(default_factory=dict)


THREE_MODES: Mapping[str, Behaviour] = {
    "baseline": Behaviour(batch=False, definition={"title": "Service alone"}),
    "colocation": Behaviour(
        latency_factor=2.1, service_cpu_factor=1.06, definition={"title": "Default colocation", "policy": "shares"}
    ),
    "slo_aware": Behaviour(
        latency_factor=1.012,
        frames_per_s=84.0,
        service_cpu_factor=1.045,
        definition={
            "title": "SLO-aware colocation",
            "policy": "best_effort",
            "engine": "static",
            "objectives": {"p90_added_pct": 5, "p99_added_pct": 5, "batch_work_kept_pct": 95},
        },
    ),
}

CALIBRATION_MODES: Mapping[str, Behaviour] = {
    "baseline": Behaviour(batch=False, definition={"title": "Service alone"}),
    "baseline_again": Behaviour(batch=False, definition={"title": "Service alone, again"}),
    "slow_5": Behaviour(
        batch=False, latency_factor=1.07, service_cpu_factor=1.05, definition={"service_slowdown_pct": 5}
    ),
    "slow_20": Behaviour(
        batch=False, latency_factor=1.35, service_cpu_factor=1.2, definition={"service_slowdown_pct": 20}
    ),
}


@dataclasses.dataclass(frozen=True)
class Options:
    """What the run looks like. Cells are named by (mode, block); ``faults`` maps them to one of FAULTS."""

    run_id: str = "synthetic"
    seed: int = 1
    modes: Mapping[str, Behaviour] = dataclasses.field(default_factory=lambda: dict(THREE_MODES))
    blocks: int = 5
    load_points: tuple[float, ...] = (0.4,)
    aggressors: tuple[str, ...] = ("ffmpeg",)
    load_kind: str = "open_loop"
    window_s: float = 8.0
    peak_rps: float = 1250.0
    noise: float = 0.008
    repeat_cap: int = 3
    pm_qos_held: bool = True
    #: every attempt of these cells is hit by steal, except the last one that the cap allows
    steal: tuple[tuple[str, int], ...] = ()
    #: every attempt of these cells is hit by steal, so that they are never had
    steal_always: tuple[tuple[str, int], ...] = ()
    faults: Mapping[tuple[str, int], str] = dataclasses.field(default_factory=dict)
    #: stop after so many measurements, as a run that was killed
    stop_after: int | None = None
    kernel: str = "6.1.0-example"
    limits: Mapping[str, float] = dataclasses.field(default_factory=dict)
    clock_offset_s: float = 0.25
    created: str = "2026-11-30T20:00:00+00:00"
    #: workloads are pods of a cluster whose load generator is on the same machine, or not; see synthetic_pods
    pods: bool = False
    shares_machine: bool = True


#: fault: what it does to the readings of a window
FAULTS = ("service_dead", "batch_dead", "policy_rewritten", "errors", "rate", "late", "foreign_batch", "foreign_cpu",
          "foreign_burst", "no_samples", "no_progress", "generator_cpu", "clock_step")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Window:
    """One attempt at one cell: everything that the readings are computed from."""

    options: Options
    cell: Cell
    behaviour: Behaviour
    start_wall_s: float
    steal: bool
    fault: str | None

    @property
    def rate_rps(self) -> float | None:
        return None if self.options.load_kind == "closed_loop" else self.cell.load_point * self.options.peak_rps

    def source(self, *parts: object) -> random.Random:
        return random.Random(schedule.derive_seed(self.options.seed, *parts))

    def offered_rps(self) -> float:
        return self.rate_rps or self.options.peak_rps / self.behaviour.latency_factor


def _histogram(window: Window) -> list[list[int]]:
    """Return latencies: the same draws in every mode of a block (the same arrivals), scaled by the mode's behaviour."""
    draws = window.source("latency", window.cell.block, window.cell.load_point)
    own = window.source("noise", *window.cell.key, window.cell.attempt)
    count = round(window.offered_rps() * window.options.window_s)
    load = min(0.9, window.cell.load_point)
    scale_us = 900.0 / (1 - load) * window.behaviour.latency_factor * math.exp(own.gauss(0, window.options.noise))
    counts: dict[int, int] = {}
    for _ in range(count):
        latency_us = int(scale_us * (0.45 + min(draws.gammavariate(2.0, 0.35), 3.5)))
        counts[latency_us] = counts.get(latency_us, 0) + 1
    if window.steal:  # the hypervisor takes the CPU for 60 ms: whoever arrives then waits that long
        for _ in range(max(1, count // 60)):
            latency_us = int(own.uniform(30_000, 90_000))
            counts[latency_us] = counts.get(latency_us, 0) + 1
    return [[value, counts[value]] for value in sorted(counts)]


def load_result(window: Window) -> dict[str, Any]:
    """Return what the load generator reports."""
    latency_us = _histogram(window)
    requests = sum(count for _, count in latency_us)
    end_s = window.start_wall_s + window.options.window_s
    fault = window.fault
    return {
        "kind": window.options.load_kind,
        "tool": "wrk 4.2.0",
        "url": "http://198.18.0.1:8000/",
        "threads": 1,
        "connections": 40,
        "seed": window.cell.seed,
        "rate_rps": window.rate_rps,
        "warmup_s": 2.0,
        "duration_s": window.options.window_s,
        "start_wall_s": window.start_wall_s,
        "end_wall_s": end_s,
        "start_mono_s": window.start_wall_s - EPOCH_S + 100.0,
        "end_mono_s": end_s - EPOCH_S + 100.0,
        "scheduled": int(requests * 1.2) if fault == "rate" else requests,
        "requests": requests,
        "bytes": requests * 21_000,
        "errors": {"connect": 0, "read": 0, "write": 0, "status": 7 if fault == "errors" else 0, "timeout": 0},
        "late": requests // 5 if fault == "late" else 0,
        "late_max_ms": 120.0 if fault == "late" else 0.4,
        "generator_cpu_s": window.options.window_s * (0.95 if fault == "generator_cpu" else 0.12),
        "latency_us": latency_us,
    }


def _cpu(elapsed_s: float, busy: float, steal_s: float) -> dict[str, float]:
    steal_s = min(steal_s, elapsed_s)
    return {
        "user_s": 1000 + elapsed_s * busy * 0.8,
        "nice_s": 0.0,
        "system_s": 100 + elapsed_s * busy * 0.15,
        "idle_s": 5000 + max(0.0, elapsed_s * (1 - busy) - steal_s),
        "iowait_s": 1.0,
        "irq_s": 0.0,
        "softirq_s": 10 + elapsed_s * busy * 0.05,
        "steal_s": steal_s,
    }


def group_reading(elapsed_s: float, cpu_share: float, wait_share: float, tasks: int) -> dict[str, float]:
    return {
        "cpu_s": 50 + elapsed_s * cpu_share,
        "throttled_s": 0.0,
        "throttled_periods": 0,
        "memory_bytes": 64 << 20,
        "tasks": tasks,
        "run_s": 50 + elapsed_s * cpu_share,
        "wait_s": 2 + elapsed_s * wait_share,
    }


def common_reading(
    window: Window, elapsed_s: float, offset_s: float, busy: float, cpu: str, steal_s: float
) -> dict[str, Any]:
    held = window.options.pm_qos_held
    step_s = 3.0 if window.fault == "clock_step" and elapsed_s > window.options.window_s / 2 else 0.0
    return {
        "wall_s": window.start_wall_s + offset_s + elapsed_s + step_s,
        "mono_s": window.start_wall_s - EPOCH_S + 500.0 + elapsed_s,
        "cpus": {cpu: _cpu(elapsed_s + 2, busy, steal_s)},
        "psi": {
            "cpu": {"some_us": int(elapsed_s * 1e6 * max(0.0, busy - 0.5)) + 9_000_000, "full_us": 0},
            "memory": {"some_us": 0, "full_us": 0},
            "io": {"some_us": 1000, "full_us": 500},
        },
        "idle": {cpu: {"deep_entries": 77 if held else int((elapsed_s + 2) * 900), "deep_s": 3.0}},
        "pm_qos_us": 0 if held else DEEP_SLEEP_PM_QOS_US,
        "memory_available_bytes": 5 << 30,
        "net": {"rx_bytes": int((elapsed_s + 2) * 4e6), "tx_bytes": int((elapsed_s + 2) * 4e5)},
    }


def tested_sample(window: Window, elapsed_s: float) -> dict[str, Any]:
    """Return one line of the tested node, ``elapsed_s`` after the window's start."""
    behaviour, fault = window.behaviour, window.fault
    service = window.offered_rps() * SERVICE_CPU_S_PER_REQUEST * behaviour.service_cpu_factor
    service = min(service, 0.95)
    batch = max(0.0, 0.99 - service) if behaviour.batch else 0.0
    foreign = 0.1 if fault == "foreign_cpu" else 0.004
    if fault == "foreign_cpu":
        batch = max(0.0, batch - 0.1)
    steal_s = 0.09 if window.steal and elapsed_s >= window.options.window_s / 2 else 0.0
    pace = window.source("frames", *window.cell.key, window.cell.attempt).gauss(1.0, window.options.noise / 2)
    frames = behaviour.frames_per_s * pace * batch / 0.6 * (elapsed_s + 2) if behaviour.batch else 0.0
    running = (behaviour.batch and fault != "batch_dead") or fault == "foreign_batch"
    processes = {"nginx": {"alive": fault != "service_dead", "group": None if fault == "service_dead" else "service"}}
    if behaviour.batch or fault == "foreign_batch":
        processes["batch"] = {"alive": running, "group": "batch" if running else None}
    done = 0 if fault == "no_progress" else int(frames)
    batch_group = group_reading(elapsed_s + 2, batch, 0.3 if behaviour.batch else 0.0, 3 if running else 0)
    if fault == "foreign_burst" and elapsed_s >= window.options.window_s / 2:
        # Somebody else had a quarter of a second that the batch workload would have had.
        batch_group["cpu_s"] -= 0.25
    return {
        **common_reading(window, elapsed_s, window.options.clock_offset_s, service + batch + foreign, "0", steal_s),
        "groups": {
            "service": group_reading(elapsed_s + 2, service, 0.01 * behaviour.latency_factor, 2),
            "batch": batch_group,
        },
        "work": {"batch": {"unit": "frames", "done": done}} if behaviour.batch else {},
        "processes": processes,
        "policy": _policy_values(window, rewritten=fault == "policy_rewritten" and elapsed_s > 3),
    }


def _policy_values(window: Window, rewritten: bool = False) -> dict[str, str]:
    idle = "1" if window.behaviour.definition.get("policy") == "best_effort" else "0"
    return {
        "batch/cpu.idle": "0" if rewritten and idle == "1" else idle,
        "service/cpu.shares": "2" if rewritten else "1024",
        "/cpu.shares": "1024",
        "../cpu.shares": "1024",
    }


def load_sample(window: Window, elapsed_s: float) -> dict[str, Any]:
    """Return one line of the load node."""
    return {
        **common_reading(window, elapsed_s, 0.0, 0.12, "1", 0.0),
        "groups": {"load": group_reading(elapsed_s + 2, 0.11, 0.001, 2)},
        "work": {},
        "processes": {},
        "policy": {},
    }


def samples(window: Window) -> dict[str, list[dict[str, Any]]]:
    """Return the lines of both hosts."""
    seconds = [second - 1.6 for second in range(int(window.options.window_s) + 4)]
    if window.fault == "no_samples":
        seconds = [second for second in seconds if second < 2]
    return {
        TESTED: [tested_sample(window, second) for second in seconds],
        LOAD: [load_sample(window, second) for second in seconds],
    }


def policy_readings(window: Window) -> dict[str, Any]:
    """Return what the policy asked for and what the kernel said afterwards."""
    applied = _policy_values(window)
    wanted = {key: applied[key] for key in ("batch/cpu.idle", "service/cpu.shares")} if window.behaviour.batch else {}
    return {"wanted": wanted, "applied": applied}


def window_of(options: Options, cell: Cell, number: int) -> Window:
    """Return the attempt at a cell as the number-th window of the run."""
    name = (cell.mode, cell.block)
    hit = name in options.steal_always or (name in options.steal and cell.attempt <= options.repeat_cap)
    return Window(
        options=options,
        cell=cell,
        behaviour=options.modes[cell.mode],
        start_wall_s=EPOCH_S + 20.0 * number + 0.37,
        steal=hit,
        fault=options.faults.get(name),
    )
