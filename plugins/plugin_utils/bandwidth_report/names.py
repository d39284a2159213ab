# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What scenarios, shapers, figures and objectives of the bandwidth experiment are called, and how figures are told."""

from __future__ import annotations

import re

from ansible_collections.colocation.testbed.plugins.module_utils.measure import objectives
from ansible_collections.colocation.testbed.plugins.module_utils.measure.objectives import Objective
from ansible_collections.colocation.testbed.plugins.plugin_utils.report import numerals

#: Metrics as people say them.
METRICS = {
    "accuracy_pct": "accuracy",
    "accuracy_p95_pct": "accuracy of 19 of 20 classes",
    "overshoot_pct": "excess over the limit",
    "request_kept_pct": "requests kept",
    "fluctuation_pct": "fluctuation at 100 ms",
    "received_mbps": "received",
    "utilisation_pct": "link in use",
    "cpu_s_per_gbit": "CPU per Gbit",
    "kernel_cpu_s_per_gbit": "kernel CPU per Gbit",
    "program_ns_per_packet": "program time per packet",
    "rr_p50_us": "round trip P50",
    "rr_p99_us": "round trip P99",
    "switch_p95_ms": "giving way P95",
    "switch_up_p95_ms": "coming back P95",
    "switches": "switches",
    "transitions": "transitions in the window",
    "transitions_per_change": "transitions for each change",
    "apply_ms": "applying",
    "drops": "dropped by the shaper",
    "ecn_marks": "ECN marks",
    "retransmits": "retransmits",
    "cpu_pct": "CPU",
}
_SHAPERS = {"ebpf": "eBPF", "htb": "HTB", "tbf": "TBF", "none": "unshaped"}
_FAMILIES = {"ipv4": "IPv4", "ipv6": "IPv6"}
_UNITS = {"us": "\u00b5s"}
PLANES = {
    "edt": "departure times (edt)",
    "htb": "a tree that the programs steer (htb)",
    "police": "dropping (police)",
}


#: Scenarios in the order of the published report; others follow by name.
_SCENARIOS = (
    *("single_priority", "multi_priority", "waterline", "message_sizes", "class_count", "latency"),
    "cpu_cost",
)


def order(scenario: str, case: str, shaper: str) -> tuple[int, str, list[tuple[int, str]], int]:
    """Return what sorts cells as people would: numbers by size. A manifest's own order is that of the alphabet."""
    place = _SCENARIOS.index(scenario) if scenario in _SCENARIOS else len(_SCENARIOS)
    parts = re.findall(r"\d+|\D+", case)
    shapers = list(_SHAPERS)
    return (
        place,
        scenario,
        [(int(part) * (1024 if kilo else 1), "") if part.isdigit() else (-1, part) for part, kilo in _kilos(parts)],
        shapers.index(shaper) if shaper in shapers else len(shapers),
    )


def _kilos(parts: list[str]) -> list[tuple[str, bool]]:
    """Return each part with whether a prefix for thousands follows it: 128KB comes after 512B."""
    return [(part, following.startswith("K")) for part, following in zip(parts, [*parts[1:], ""], strict=True)]


def traffic(protocol: str, family: str) -> str:
    """Name what packets a class has."""
    return f"{protocol.upper()}, {_FAMILIES.get(family, family)}"


def shaper(name: str) -> str:
    """Name a shaper as people write it."""
    return _SHAPERS.get(name, name)


def metric(name: str) -> str:
    """Name a figure."""
    return METRICS.get(name) or name.replace("_", " ")


def objective(item: Objective) -> str:
    """Name an objective: the figure, and beside which shaper."""
    return f"{metric(item.metric)} against {shaper(item.against)}" if item.against else metric(item.metric)


def objective_name(name: str) -> str:
    """Name an objective by what summary.json calls it."""
    return objective(objectives.parse("", {name: 0.0}, limited=False)[0])


def unit(text: str) -> str:
    """Write a unit as a page shows it."""
    return _UNITS.get(text, text)


def figure(name: str, value: float, unit_text: str) -> str:
    """Write a figure with its unit, as a page shows it."""
    text = numerals.plain(value, objectives.digits_of(name))
    return f"{text}{numerals.NBSP}{unit(unit_text)}" if unit_text else text
