# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge one measurement of the bandwidth experiment: run every guard on it that applies.

What follows is decided as in the matrix (``guards.judged``). Missing data trips a guard, it raises nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.measure import guards_host, limits, scene, series
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import GuardResult
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import BandwidthRecord
from ansible_collections.colocation.testbed.plugins.module_utils.measure.scene import Scene, number
from ansible_collections.colocation.testbed.plugins.module_utils.measure.series import Sample

#: Receivers' rates are read ten times a second, the latency probe asks a thousand times a second.
INTERVAL_S = 0.1
PROBE_HZ = 1000.0
#: Nothing limits what is sent: filling the receiver's CPUs is what this measurement is for.
UNSHAPED = "none"
_RECEIVERS = {"egress": ("load",), "ingress": ("tested",), "both": ("load", "tested")}


@dataclass(frozen=True)
class TrafficScene(Scene):
    """One measurement as the guards see it; ``load`` is traffic.json, ``case`` the definition of what was measured."""

    record: BandwidthRecord
    case: Mapping[str, Any]
    roles: Mapping[str, str]
    cpu_counts: Mapping[str, int]

    @property
    def classes(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the classes that send bulk traffic, as the case defines them."""
        return {name: item for name, item in self.case["classes"].items() if item.get("flows")}

    def counted(self, name: str) -> Mapping[str, Any]:
        """Return what was counted of a class; empty where nothing was."""
        found = (self.load.get("classes") or {}).get(name)
        return found if isinstance(found, Mapping) else {}


def traffic_scene(
    manifest: Mapping[str, Any],
    record: BandwidthRecord,
    traffic: Mapping[str, Any],
    samples: Mapping[str, Sequence[Sample]],
    policy: Mapping[str, Any] | None,
) -> TrafficScene:
    """Bring a measurement's readings together."""
    entries: Mapping[str, Mapping[str, Any]] = manifest["hosts"]
    return TrafficScene(
        hosts=scene.hosts(manifest, traffic, samples),
        load=traffic,
        policy=policy,
        batch=False,
        limits=manifest.get("limits") or {},
        record=record,
        case=manifest["scenarios"][record.scenario]["cases"][record.case],
        roles={name: str(entry["role"]) for name, entry in entries.items()},
        cpu_counts={name: len(quantity.parse_cpu_list(entry["measured_cpus"])) for name, entry in entries.items()},
    )


def traffic_complete(scene: TrafficScene) -> GuardResult:
    """Count classes of which the receiver has no figure, or nothing came through."""
    silent = [name for name in scene.classes if not number(scene.counted(name), "received_bytes")]
    if not scene.classes:
        return limits.result("traffic_complete", scene.limits, None, "the case has no class that sends")
    text = f"{_some(silent)}: nothing was received" if silent else f"all {len(scene.classes)} classes were counted"
    return limits.result("traffic_complete", scene.limits, float(len(silent)), text)


def _some(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def intervals_complete(scene: TrafficScene) -> GuardResult:
    """Compare each class's readings of its rate with the window's tenths of a second."""
    window_s = scene.window_s
    if window_s is None or not scene.classes:
        return limits.result("intervals_complete", scene.limits, None, "the traffic names no window or no class")
    expected = max(1, int(window_s / INTERVAL_S + 0.5))
    missing = {
        name: 100.0 * max(0, expected - len(scene.counted(name).get("intervals_bps") or ())) / expected
        for name in scene.classes
    }
    name = max(missing, key=lambda item: missing[item])
    text = f"{name}: {missing[name]:.0f} % of {expected} readings" if missing[name] else "every class at all times"
    return limits.result("intervals_complete", scene.limits, missing[name], text)


def probed(scene: TrafficScene) -> tuple[str, ...]:
    """Return the classes whose latency is probed."""
    wanted = [name for name, item in scene.case["classes"].items() if item.get("probe")]
    return tuple(dict.fromkeys([*wanted, *(scene.load.get("rr_latency_us") or {})]))


def probe_complete(scene: TrafficScene) -> GuardResult:
    """Compare the answers to the latency probe with its pace."""
    window_s, histograms = scene.window_s, scene.load.get("rr_latency_us") or {}
    if window_s is None:
        return limits.result("probe_complete", scene.limits, None, "the traffic names no window")
    asked = PROBE_HZ * window_s
    answers = {name: sum(int(pair[1]) for pair in histograms.get(name) or ()) for name in probed(scene)}
    name = min(answers, key=lambda item: answers[item])
    text = f"{name}: {answers[name]} of {asked:.0f} requests were answered"
    return limits.result("probe_complete", scene.limits, max(0.0, 100.0 * (1.0 - answers[name] / asked)), text)


def shaping_in_effect(scene: TrafficScene) -> GuardResult:
    """Count values that were not read back as they were asked for."""
    if scene.policy is None:
        return limits.result("shaping_in_effect", scene.limits, None, "no values of the shaper were stored")
    wanted, applied = scene.policy.get("wanted") or {}, scene.policy.get("applied") or {}
    if not wanted and scene.record.shaper != UNSHAPED:
        return limits.result("shaping_in_effect", scene.limits, None, "nothing is stored of what the shaper should do")
    differing = sorted(key for key, value in wanted.items() if applied.get(key) != value)
    text = f"all {len(wanted)} values as asked"
    if differing:
        key = differing[0]
        text = f"{len(differing)} of {len(wanted)} differ ({key} is {applied.get(key)!r}, asked was {wanted[key]!r})"
    return limits.result("shaping_in_effect", scene.limits, float(len(differing)), text)


def foreign_drops(scene: TrafficScene) -> GuardResult:
    """Return the packets that were dropped anywhere but by the shaper."""
    dropped = number(scene.load, "foreign_drops")
    text = "drops of devices and other queues could not be read" if dropped is None else f"{dropped:.0f} packets"
    return limits.result("foreign_drops", scene.limits, dropped, text)


def receiver_cpu(scene: TrafficScene) -> GuardResult:
    """Return the highest use of a receiving host's CPUs.

    Where foreign work fills them, the window is spoiled by noise and worth a repeat; where receiving does, every repeat
    would meet it again.
    """
    shares: dict[str, float] = {}
    for host, role in scene.roles.items():
        if role in _RECEIVERS[scene.record.direction]:
            used = (scene.load.get("cpu") or {}).get(host) or {}
            busy_s, window_s = number(used, "busy_s"), number(used, "window_s")
            if busy_s is None or not window_s or not scene.cpu_counts[host]:
                return limits.result("receiver_cpu", scene.limits, None, f"{host}: its CPU time could not be read")
            shares[host] = 100.0 * busy_s / (window_s * scene.cpu_counts[host])
    if not shares:
        return limits.result("receiver_cpu", scene.limits, None, "the manifest names no receiving host")
    host = max(shares, key=lambda item: shares[item])
    text = f"{host}: {shares[host]:.0f} % of its CPUs in use"
    foreign_pct = _foreign_pct(scene, host)
    limit = limits.limit_of("receiver_cpu", scene.limits)
    if foreign_pct is None or shares[host] <= limit or shares[host] - foreign_pct > limit:
        return limits.result("receiver_cpu", scene.limits, shares[host], text)
    text += f", {foreign_pct:.0f} % by foreign work"
    return limits.result("receiver_cpu", scene.limits, shares[host], text, repeatable=True, noise=True)


def _foreign_pct(scene: TrafficScene, name: str) -> float | None:
    host = next((item for item in scene.hosts if item.name == name), None)
    return series.foreign_cpu_pct(host.series.around, host.cpus) if host and host.series else None


_HOST_GUARDS: Mapping[str, Callable[[Scene], GuardResult]] = {
    "steal": guards_host.steal,
    "foreign_cpu": guards_host.foreign_cpu,
    "foreign_burst": guards_host.foreign_burst,
    "clocks_monotonic": guards_host.clocks_monotonic,
    "samples_complete": guards_host.samples_complete,
}
_GUARDS: Mapping[str, Callable[[TrafficScene], GuardResult]] = {
    **_HOST_GUARDS,
    "traffic_complete": traffic_complete,
    "intervals_complete": intervals_complete,
    "probe_complete": probe_complete,
    "shaping_in_effect": shaping_in_effect,
    "foreign_drops": foreign_drops,
    "receiver_cpu": receiver_cpu,
}


def evaluate(
    manifest: Mapping[str, Any],
    record: BandwidthRecord,
    traffic: Mapping[str, Any],
    samples: Mapping[str, Sequence[Sample]],
    policy: Mapping[str, Any] | None,
) -> tuple[GuardResult, ...]:
    """Return what every guard that applies finds in a measurement.

    :param samples: each host's samples, as ``series.parse_lines`` returns them.
    """
    view = traffic_scene(manifest, record, traffic, samples, policy)
    skipped = {
        *(() if probed(view) else ("probe_complete",)),
        *(("receiver_cpu",) if record.shaper == UNSHAPED else ()),
    }
    names = [guard.name for guard in limits.TRAFFIC if guard.name in _GUARDS and guard.name not in skipped]
    return tuple(_GUARDS[name](view) for name in names)


def sender_headroom(
    needed: Mapping[str, float], capacity: Mapping[str, float], overrides: Mapping[str, Any]
) -> GuardResult:
    """Compare what classes may have together with what their senders got through unshaped, both payload bit/s.

    :param needed: sum of what receivers should count, by case.
    :param capacity: by case as well; a case without is no data.
    """
    if not needed:
        return limits.result("sender_headroom", overrides, 0.0, "no case limits anything")
    unknown = sorted(case for case in needed if not capacity.get(case))
    if unknown:
        text = f"what senders could offer was not measured for {_some(unknown)}"
        return limits.result("sender_headroom", overrides, None, text)
    shares = {case: 100.0 * value / capacity[case] for case, value in needed.items()}
    case = max(shares, key=lambda item: shares[item])
    text = f"{case}: limits of {needed[case] / 1e6:.0f} Mbit/s, senders can do {capacity[case] / 1e6:.0f}"
    return limits.result("sender_headroom", overrides, shares[case], text)
