# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what a measurement brought home to traffic.json (docs/architecture.md): pure functions."""

from __future__ import annotations

import itertools
import json
from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.measure import series
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment import counts, expectations
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.counts import (
    Counts,
    CountsError,
    Window,
)

if TYPE_CHECKING:
    from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.processes import Job

_CPU = {
    "busy_s": ("user_s", "nice_s", "system_s", "irq_s", "softirq_s"),
    "system_s": ("system_s",),
    "softirq_s": ("softirq_s",),
    "steal_s": ("steal_s",),
}
_NOT_USED = ("idle_s", "iowait_s", "steal_s")


@dataclass(frozen=True)
class Raw:
    """What a measurement brought home: files by host and name, and the shaper's report before and after."""

    files: Mapping[str, Mapping[str, bytes]]
    before: Mapping[str, Any]
    after: Mapping[str, Any]

    def json(self, host: str, name: str) -> dict[str, Any]:
        """Return a JSON file of a host, empty where it is missing or was never finished."""
        content = self.files[host].get(name, b"")
        try:
            return dict(json.loads(content)) if content else {}
        except ValueError:
            return {}


@dataclass(frozen=True)
class Clocks:
    """What brings moments of both hosts together: offset of each wall clock from the controller's, in seconds."""

    offsets_s: Mapping[str, float]
    load: str

    def to_load_s(self, host: str, wall_s: float) -> float:
        """Return a moment of a host's wall clock on that of the load node."""
        return wall_s - self.offsets_s[host] + self.offsets_s[self.load]

    def from_load_s(self, host: str, wall_s: float) -> float:
        """Return a moment of the load node's wall clock on that of a host."""
        return wall_s + self.offsets_s[host] - self.offsets_s[self.load]


@dataclass(frozen=True)
class Scene:
    """All that traffic.json is made from; host names by role."""

    case: Mapping[str, Any]
    job: Job
    shaper: str
    tested: str
    load: str
    measured_cpus: Mapping[str, str]
    clocks: Clocks
    counting: expectations.Counting
    window_s: float
    warmup_s: float

    def receiver(self, direction: str) -> str:
        """Return the host that counts what goes in a direction."""
        return self.load if direction == "egress" else self.tested


def traffic(scene: Scene, raw: Raw) -> dict[str, Any]:
    """Return traffic.json. Raises CountsError where the window cannot be told, or has not been counted to its end."""
    counted = {host: counts.parse(raw.json(host, "bw-counter.json")) for host in _receivers(scene)}
    start_s = _start_s(scene, counted)
    end_s = start_s + scene.window_s
    windows = {host: _on_host(scene, host, found, start_s, end_s) for host, found in counted.items()}
    samples = {host: series.parse_lines(raw.files[host].get("samples.jsonl", b"")) for host in raw.files}
    tested_mono_s = _mono_s(samples[scene.tested], scene.clocks.from_load_s(scene.tested, start_s))
    return {
        "start_wall_s": round(start_s, 6),
        "end_wall_s": round(end_s, 6),
        "start_mono_s": round(tested_mono_s, 6),
        "end_mono_s": round(tested_mono_s + scene.window_s, 6),
        "window_s": scene.window_s,
        "classes": _classes(scene, raw, counted, windows),
        "rr_latency_us": _latencies(scene, raw, start_s, end_s),
        "cpu": {host: _cpu(scene, host, found, start_s, end_s) for host, found in samples.items()},
        "events": _events(raw, tested_mono_s, tested_mono_s + scene.window_s),
        "switches": _switches(scene, raw, counted, windows),
        "programs": _programs(raw),
        "apply_ms": raw.before["apply_ms"],
        "drops": _grown(raw, "drops"),
        "ecn_marks": _grown(raw, "ecn_marks"),
        "foreign_drops": _foreign_drops(raw, scene),
    }


def _receivers(scene: Scene) -> list[str]:
    return [scene.receiver(direction) for direction in ("egress", "ingress") if scene.job.sending(direction)]


def connections(job: Job, name: str) -> int:
    """Return how many connections or senders a class has: iperf3 has one more, to control it."""
    return int(job.classes[name]["flows"]) + int(job.by_iperf3(name))


def _start_s(scene: Scene, counted: Mapping[str, Counts]) -> float:
    """Return the start of the window on the load node's wall clock."""
    begins = []
    for direction in ("egress", "ingress"):
        expected = {name: connections(scene.job, name) for name in scene.job.sending(direction)}
        if expected:
            host = scene.receiver(direction)
            begin_s = counts.begin_s(counted[host], expected) + counted[host].wall_minus_mono_s
            begins.append(scene.clocks.to_load_s(host, begin_s))
    return max(begins) + scene.warmup_s


def _on_host(scene: Scene, host: str, found: Counts, start_s: float, end_s: float) -> Window:
    shift_s = scene.clocks.from_load_s(host, 0.0) - found.wall_minus_mono_s
    window = Window(start_s + shift_s, end_s + shift_s)
    if window.end_s > found.mono_s[-1]:
        raise CountsError(
            f"{host}: counting ended {window.end_s - found.mono_s[-1]:.1f} s before the window did; "
            "the machine is too busy, or connections came late"
        )
    return window


def _mono_s(samples: Sequence[series.Sample], wall_s: float) -> float:
    """Return a moment of a host's wall clock on its monotonic clock, by its samples."""
    if not samples:
        raise CountsError("samples.jsonl of the tested node is empty; see processes/sampler.log")
    nearest = min(samples, key=lambda sample: abs(float(sample["wall_s"]) - wall_s))
    return wall_s - float(nearest["wall_s"]) + float(nearest["mono_s"])


def _classes(
    scene: Scene, raw: Raw, counted: Mapping[str, Counts], windows: Mapping[str, Window]
) -> dict[str, dict[str, Any]]:
    unshaped: dict[str, float | None] = dict.fromkeys(scene.case["classes"])
    expected = unshaped if scene.shaper == "none" else expectations.expected_bps(scene.case, scene.counting)
    floors = unshaped if scene.shaper == "none" else expectations.floor_bps(scene.case, scene.counting)
    found = {}
    for name in scene.job.sending():
        item = scene.case["classes"][name]
        host = scene.receiver(item["direction"])
        window = windows[host]
        received = counted[host].at(name, window.end_s) - counted[host].at(name, window.start_s)
        sent, again = _sent(scene, raw, name)
        found[name] = {
            "expected_bps": expected[name],
            "floor_bps": floors[name],
            "direction": item["direction"],
            "offered_bps": item["offered_bps"],
            "received_bytes": round(received),
            "received_bps": round(8.0 * received / scene.window_s, 1),
            "flows": item["flows"],
            "steady": counted[host].steady(name, window),
            "sent_bytes": sent,
            "retransmits": again,
            "intervals_bps": counts.intervals_bps(counted[host], name, window),
        }
    return found


def _sent(scene: Scene, raw: Raw, name: str) -> tuple[int | None, int | None]:
    """Return bytes sent and segments sent again over the whole life of a class's connections, where they are told."""
    host = scene.tested if scene.case["classes"][name]["direction"] == "egress" else scene.load
    if not scene.job.by_iperf3(name):
        return raw.json(host, "bw-sender.json").get("sent_bytes", {}).get(name), None
    total = raw.json(host, f"processes/bw-send-{name}.log").get("end", {}).get("sum_sent", {})
    return total.get("bytes"), total.get("retransmits")


def _latencies(scene: Scene, raw: Raw, start_s: float, end_s: float) -> dict[str, list[list[int]]]:
    found: dict[str, list[list[int]]] = {}
    for name, item in scene.case["classes"].items():
        if not item["probe"]:
            continue
        host = scene.tested if item["direction"] == "egress" else scene.load
        trips = raw.json(host, f"bw-probe-{name}.json")
        if not trips:
            found[name] = []
            continue
        shift_s = scene.clocks.to_load_s(host, float(trips["start_mono_s"]) + float(trips["wall_minus_mono_s"]))
        inside = [
            took for sent, took in zip(trips["sent_us"], trips["took_us"], strict=True)
            if took >= 0 and start_s <= shift_s + sent / 1e6 < end_s
        ]  # fmt: skip
        found[name] = [[value, count] for value, count in sorted(Tally(inside).items())]
    return found


def _cpu(
    scene: Scene, host: str, samples: Sequence[series.Sample], start_s: float, end_s: float
) -> dict[str, float] | None:
    """Return CPU time of a host's measured CPUs in the window, by kind; None where it was not sampled.

    Time by kind is what each tick of 10 ms met. Idle time is measured from its beginning to its end, so what is left of
    the window beside it is exact: ``used_s``.
    """
    shift_s = scene.clocks.from_load_s(host, 0.0)
    cpus = [str(cpu) for cpu in quantity.parse_cpu_list(scene.measured_cpus[host])]
    found = {}
    for name, kinds in (*_CPU.items(), ("used_s", _NOT_USED)):
        ends = [_at(samples, moment_s + shift_s, cpus, kinds) for moment_s in (start_s, end_s)]
        if ends[0] is None or ends[1] is None:
            return None
        found[name] = round(max(0.0, ends[1] - ends[0]), 4)
    found["used_s"] = round(max(0.0, scene.window_s * len(cpus) - found["used_s"]), 4)
    return {**found, "window_s": scene.window_s}


def _at(samples: Sequence[series.Sample], wall_s: float, cpus: Sequence[str], kinds: Sequence[str]) -> float | None:
    """Return a sum of CPU times at a moment, between two samples by the straight line; None outside of them."""
    for left, right in itertools.pairwise(samples):
        if float(left["wall_s"]) <= wall_s <= float(right["wall_s"]):
            values = [_sum(sample, cpus, kinds) for sample in (left, right)]
            if values[0] is None or values[1] is None:
                return None
            share = (wall_s - float(left["wall_s"])) / (float(right["wall_s"]) - float(left["wall_s"]))
            return values[0] + share * (values[1] - values[0])
    return None


def _sum(sample: series.Sample, cpus: Sequence[str], kinds: Sequence[str]) -> float | None:
    found = [series.reading(sample, "cpus", cpu, kind) for cpu in cpus for kind in kinds]
    return None if any(value is None for value in found) else float(sum(found))


def _events(raw: Raw, start_s: float, end_s: float) -> list[dict[str, Any]]:
    """Return the waterline's changes within the window, by the kernel's own log."""
    found = []
    for pool, item in raw.after["counted"]["pools"].items():
        for event in item["events"]:
            if start_s <= event["time_ns"] / 1e9 < end_s:
                found.append({
                    "mono_ns": event["time_ns"], "pool": pool, "throttled": event["to"] == "low",
                    "reason": event["reason"],
                })  # fmt: skip
    return sorted(found, key=lambda event: int(event["mono_ns"]))


def _switches(
    scene: Scene, raw: Raw, counted: Mapping[str, Counts], windows: Mapping[str, Window]
) -> list[dict[str, Any]]:
    """Return how long offline classes took to keep their new bound after the service began or paused."""
    pool = scene.case["pool"]
    offline = [name for name in scene.job.sending("egress") if scene.case["classes"][name]["role"] == "offline"]
    turns = raw.json(scene.tested, "bw-sender.json")
    if not turns or not pool["waterline_bps"] or not offline:
        return []
    found, window = counted[scene.load], windows[scene.load]
    share = scene.counting.share(scene.case, scene.case["classes"][offline[0]])
    # From the sender's monotonic clock to that of the host that counts; in the lab both are one.
    shift_s = scene.clocks.to_load_s(scene.tested, turns["wall_minus_mono_s"]) - found.wall_minus_mono_s
    moments = [(float(turn["mono_s"]), bool(turn["on"])) for turn in turns["switches"]]
    switches = []
    for number, (wanted_s, on) in enumerate(moments):
        until_s = moments[number + 1][0] if number + 1 < len(moments) else float("inf")
        if window.start_s <= wanted_s + shift_s and until_s + shift_s <= window.end_s:
            bound_bps = (pool["low_bps"] if on else pool["high_bps"]) * share
            switches.append({
                "wanted_mono_s": wanted_s,
                "settled_ms": counts.settled_ms(found, offline, wanted_s + shift_s, bound_bps, on, until_s + shift_s),
                "direction": "down" if on else "up",
                "class": offline[0] if len(offline) == 1 else ", ".join(offline),
                "bound_bps": round(bound_bps, 1),
            })  # fmt: skip
    return switches


def _programs(raw: Raw) -> dict[str, dict[str, int]]:
    """Return time and runs of our programs while the shaper was on, where the kernel counts them."""
    before, after = raw.before["counted"]["programs"], raw.after["counted"]["programs"]
    found = {}
    for name, item in after.items():
        first = before.get(name, {"run_ns": 0, "runs": 0})
        runs = item["runs"] - first["runs"]
        if runs > 0:
            found[name] = {"run_ns": item["run_ns"] - first["run_ns"], "runs": runs}
    return found


def _grown(raw: Raw, name: str) -> int | None:
    """Return by how much a counter of the shaper grew, None where it has none."""
    first, last = raw.before["counted"][name], raw.after["counted"][name]
    return None if first is None or last is None else max(0, last - first)


def _foreign_drops(raw: Raw, scene: Scene) -> int | None:
    """Return packets that the stack dropped on the hosts that could be asked, from applying to the end."""
    total = int(raw.after["stack_drops"]) - int(raw.before["stack_drops"])
    for host in _receivers(scene):
        if host != scene.tested:
            found = raw.json(host, "bw-counter.json").get("stack_drops")
            if found is None:
                return None
            total += int(found)
    return max(0, total)
