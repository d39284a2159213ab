# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of one measurement of the bandwidth experiment: how exact, how quick, at what cost.

A figure is None where the readings that it needs are missing, or where it has no meaning in the case.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, pstdev
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import frames, histogram
from ansible_collections.colocation.testbed.plugins.module_utils.measure.histogram import Histogram, HistogramError
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import TESTED_SHAPER
from ansible_collections.colocation.testbed.plugins.module_utils.measure.scene import number

#: All figures of a measurement, in the order in which tables show them.
METRICS = (
    "accuracy_pct",
    "accuracy_p95_pct",
    "overshoot_pct",
    "request_kept_pct",
    "fluctuation_pct",
    "received_mbps",
    "utilisation_pct",
    "cpu_s_per_gbit",
    "kernel_cpu_s_per_gbit",
    "program_ns_per_packet",
    "rr_p50_us",
    "rr_p99_us",
    "switch_p95_ms",
    "switch_up_p95_ms",
    "switches",
    "transitions",
    "transitions_per_change",
    "apply_ms",
    "drops",
    "ecn_marks",
    "retransmits",
)
_MS = 1e3


@dataclass(frozen=True)
class ClassFigures:
    """One class as its receiver counted it; rates in payload bit/s."""

    expected_bps: float | None
    received_bps: float | None
    floor_bps: float | None
    offered_bps: float | None
    fluctuation_pct: float | None
    rr_p50_us: float | None
    rr_p99_us: float | None

    @property
    def held(self) -> bool:
        """Return whether a shaper holds the class: one that offers no more than is expected of it holds itself."""
        return self.expected_bps is not None and (self.offered_bps is None or self.offered_bps > self.expected_bps)

    @property
    def error_pct(self) -> float | None:
        """Return how far received is from expected: 100·(received - expected)/expected."""
        if self.expected_bps is None or self.expected_bps <= 0.0 or self.received_bps is None:
            return None
        return 100.0 * (self.received_bps / self.expected_bps - 1.0)

    @property
    def accuracy_pct(self) -> float | None:
        """Return 100 less the error's size; 0 for one that is off by all of its rate or more."""
        return None if self.error_pct is None else max(0.0, 100.0 - abs(self.error_pct))

    @property
    def request_kept_pct(self) -> float | None:
        """Return received in % of what the class must have in any case."""
        if not self.floor_bps or self.received_bps is None:
            return None
        return 100.0 * self.received_bps / self.floor_bps


def percentile(values: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile of one value or more (Hyndman and Fan 1996, definition 1)."""
    ordered = sorted(values)
    return ordered[max(1, math.ceil(share * len(ordered) - 1e-9)) - 1]


def class_figures(traffic: Mapping[str, Any]) -> dict[str, ClassFigures]:
    """Return the figures of every class that was counted or probed."""
    counted: Mapping[str, Mapping[str, Any]] = traffic.get("classes") or {}
    histograms: Mapping[str, Any] = traffic.get("rr_latency_us") or {}
    found = {}
    for name in dict.fromkeys([*counted, *histograms]):
        item = counted.get(name) or {}
        latencies = latency_of(histograms.get(name))
        found[name] = ClassFigures(
            expected_bps=number(item, "expected_bps"),
            received_bps=number(item, "received_bps"),
            floor_bps=number(item, "floor_bps"),
            offered_bps=number(item, "offered_bps"),
            fluctuation_pct=fluctuation_pct(item.get("intervals_bps") or ()),
            rr_p50_us=None if latencies is None else float(latencies.quantile(0.5)),
            rr_p99_us=None if latencies is None else float(latencies.quantile(0.99)),
        )
    return found


def latency_of(pairs: Any) -> Histogram | None:
    """Return the latencies of a probe; None where nothing was answered or the pairs are damaged."""
    try:
        found = Histogram.from_pairs(pairs)
    except HistogramError:
        return None
    return found if found.total else None


def fluctuation_pct(intervals_bps: Sequence[float]) -> float | None:
    """Return the standard deviation of the rates of 100 ms in % of their mean; None for a class at rest."""
    if len(intervals_bps) < 2 or fmean(intervals_bps) <= 0.0:
        return None
    return 100.0 * pstdev(intervals_bps) / fmean(intervals_bps)


def figures(
    manifest: Mapping[str, Any], case: Mapping[str, Any], shaper: str, traffic: Mapping[str, Any]
) -> dict[str, float | None]:
    """Return every figure of METRICS of one measurement."""
    classes = class_figures(traffic)
    counted: Mapping[str, Mapping[str, Any]] = traffic.get("classes") or {}
    # A class that is only probed sends no bulk traffic, so that nobody counts it.
    sending = {name: classes[name] for name, item in counted.items() if item.get("flows")}
    received_bps = _sum([item.received_bps for item in sending.values()], 1.0)
    return {
        **dict.fromkeys(METRICS),
        **_exactness(classes),
        **_cost(manifest, traffic, _received_bits(traffic)),
        **_latency(case, traffic),
        **_switching(traffic, shaper == TESTED_SHAPER),
        **_counters(traffic),
        "received_mbps": None if received_bps is None else received_bps / 1e6,
        "utilisation_pct": _utilisation_pct(manifest, case, shaper, sending),
    }


def _exactness(classes: Mapping[str, ClassFigures]) -> dict[str, float | None]:
    """Return accuracy over classes: the median, and what 19 of 20 classes reach at least."""
    errors = [item.error_pct for item in classes.values() if item.error_pct is not None]
    limited = [item for item in classes.values() if item.expected_bps is not None]
    kept = [item.request_kept_pct for item in classes.values() if item.request_kept_pct is not None]
    steady = [item.fluctuation_pct for item in limited if item.fluctuation_pct is not None]
    if not errors or len(errors) < len(limited):
        errors = []
    over = [item.error_pct for item in limited if item.held and item.error_pct is not None] if errors else []
    return {
        "accuracy_pct": max(0.0, 100.0 - median(map(abs, errors))) if errors else None,
        "accuracy_p95_pct": max(0.0, 100.0 - percentile([abs(error) for error in errors], 0.95)) if errors else None,
        "overshoot_pct": max(0.0, *over) if over else None,
        "request_kept_pct": min(kept) if kept else None,
        "fluctuation_pct": median(steady) if steady else None,
    }


def _received_bits(traffic: Mapping[str, Any]) -> float:
    counted: Mapping[str, Mapping[str, Any]] = traffic.get("classes") or {}
    return 8.0 * sum(number(item, "received_bytes") or 0.0 for item in counted.values())


def _cost(manifest: Mapping[str, Any], traffic: Mapping[str, Any], received_bits: float) -> dict[str, float | None]:
    """Return CPU seconds of the tested hosts for each Gbit that receivers counted, all of it and the kernel's part."""
    tested = [name for name, host in manifest["hosts"].items() if host["role"] == "tested"]
    used = [(traffic.get("cpu") or {}).get(name) or {} for name in tested]
    busy = [number(item, "used_s" if "used_s" in item else "busy_s") for item in used]
    kernel = [_plus(number(item, "system_s"), number(item, "softirq_s")) for item in used]
    programs: Mapping[str, Mapping[str, Any]] = traffic.get("programs") or {}
    runs = sum(number(item, "runs") or 0.0 for item in programs.values())
    gbit = received_bits / 1e9
    return {
        "cpu_s_per_gbit": _sum(busy, 1.0 / gbit) if gbit else None,
        "kernel_cpu_s_per_gbit": _sum(kernel, 1.0 / gbit) if gbit else None,
        "program_ns_per_packet": sum(number(item, "run_ns") or 0.0 for item in programs.values()) / runs
        if runs
        else None,
    }


def _plus(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def _sum(values: Sequence[float | None], factor: float) -> float | None:
    known = [value for value in values if value is not None]
    return factor * sum(known) if known and len(known) == len(values) else None


def online_latency(roles: Mapping[str, str], traffic: Mapping[str, Any]) -> Histogram | None:
    """Return the round trips of the online classes; where no probe is of one, of all probes together.

    None where nothing was probed, or where a probe had no answer at all. ``roles`` are those of the classes.
    """
    probes = {name: latency_of(pairs) for name, pairs in (traffic.get("rr_latency_us") or {}).items()}
    chosen = {name: item for name, item in probes.items() if roles.get(name) == "online"} or probes
    answered = [item for item in chosen.values() if item is not None]
    return histogram.merge(answered) if answered and len(answered) == len(chosen) else None


def _latency(case: Mapping[str, Any], traffic: Mapping[str, Any]) -> dict[str, float | None]:
    found = online_latency({name: str(item.get("role")) for name, item in case["classes"].items()}, traffic)
    if found is None:
        return {}
    return {"rr_p50_us": float(found.quantile(0.5)), "rr_p99_us": float(found.quantile(0.99))}


def settle_times_ms(traffic: Mapping[str, Any], direction: str) -> list[float]:
    """Return how long each switch in a direction took; one that never came counts as long as it was watched."""
    end_s = number(traffic, "end_mono_s")
    times = []
    for switch in traffic.get("switches") or ():
        if switch.get("direction") != direction:
            continue
        settled_ms, wanted_s = number(switch, "settled_ms"), number(switch, "wanted_mono_s")
        if settled_ms is None and wanted_s is not None and end_s is not None:
            settled_ms = _MS * max(0.0, end_s - wanted_s)
        if settled_ms is not None:
            times.append(settled_ms)
    return times


def _switching(traffic: Mapping[str, Any], logged: bool) -> dict[str, float | None]:
    """Return what the waterline did: only the way down is urgent, the way up waits on purpose.

    ``logged``: whether the shaper keeps a log of its transitions at all.
    """
    down, up = settle_times_ms(traffic, "down"), settle_times_ms(traffic, "up")
    changes = len(down) + len(up)
    events = traffic.get("events") or ()
    answers = _since_first_change(traffic, events)
    return {
        "switch_p95_ms": percentile(down, 0.95) if down else None,
        "switch_up_p95_ms": percentile(up, 0.95) if up else None,
        "switches": float(len(down)) if changes else None,
        "transitions": float(len(events)) if logged and "events" in traffic else None,
        "transitions_per_change": len(answers) / changes if changes and answers else None,
    }


def _since_first_change(traffic: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the transitions since the first change of a window: those before answer a change that lies before it."""
    wanted = [number(switch, "wanted_mono_s") for switch in traffic.get("switches") or ()]
    first_s = min((moment for moment in wanted if moment is not None), default=math.inf)
    return [event for event in events if (number(event, "mono_ns") or 0.0) >= 1e9 * first_s]


def _counters(traffic: Mapping[str, Any]) -> dict[str, float | None]:
    counted: Mapping[str, Mapping[str, Any]] = traffic.get("classes") or {}
    resent = [number(item, "retransmits") for item in counted.values()]
    return {
        "apply_ms": number(traffic, "apply_ms"),
        "drops": number(traffic, "drops"),
        "ecn_marks": number(traffic, "ecn_marks"),
        "retransmits": _sum(resent, 1.0),
    }


def _utilisation_pct(
    manifest: Mapping[str, Any], case: Mapping[str, Any], shaper: str, classes: Mapping[str, ClassFigures]
) -> float | None:
    """Return what all classes received in % of what the pool, or else the link, can carry as payload."""
    total_bps = number(case.get("pool") or {}, "total_bps") or number(manifest, "link_bps")
    accounting = str(manifest["accounting"]) if shaper == TESTED_SHAPER else "wire"
    family = str(case.get("family") or "ipv4")
    counted = []
    for name, found in classes.items():
        item = case["classes"].get(name) or {}
        full = frames.GSO_BYTES // frames.segment_bytes(ip_bytes=frames.IP_BYTES[family])
        share = frames.class_share(accounting, item, family, segments=full if accounting == "skb" else 1)
        counted.append(None if found.received_bps is None else found.received_bps / share)
    used_bps = _sum(counted, 1.0)
    return 100.0 * used_bps / total_bps if used_bps is not None and total_bps else None
