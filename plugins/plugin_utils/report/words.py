# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say in plain words what results, metrics, modes and guards mean."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.colocation.testbed.plugins.module_utils.measure import limits
from ansible_collections.colocation.testbed.plugins.plugin_utils.report import numerals
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.markup import Html, tag
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.model import Condition, View

PERCENTILES = {"p50_us": "P50", "p90_us": "P90", "p99_us": "P99", "p999_us": "P99.9"}

_METRICS = {
    **PERCENTILES,
    "service_cpu_us_per_request": "Service CPU per request",
    "throughput_rps": "Throughput",
    "batch_work_per_s": "Batch work",
    "utilisation_pct": "Utilisation",
    "batch_work_kept_pct": "Batch work kept",
    "utilisation_won_points": "Utilisation won",
}
MOST_REASONS = 2

RESULT_TITLES = {
    "pass": "Pass",
    "fail": "Fail",
    "inconclusive": "Inconclusive",
    "invalid": "Invalid",
    "none": "Not judged",
}

RESULT_MEANINGS = {
    "pass": "The objective holds, and the run was a valid experiment.",
    "fail": "The objective is missed by more than the noise, and the run was a valid experiment.",
    "inconclusive": "The noise is larger than the question: more blocks or a quieter machine are needed.",
    "invalid": "A guard tripped, so the figures are not evidence. They are shown, greyed, for finding the cause.",
    "none": "No objective was set for this comparison.",
}

_ICONS = {
    "pass": '<path d="M5 12.5l4.5 4.5L19 7.5"/>',
    "fail": '<path d="M6.5 6.5l11 11M17.5 6.5l-11 11"/>',
    "inconclusive": '<path d="M4 14c2.7-5.5 5.3-5.5 8-2s5.3 3.500 8-2"/>',
    "invalid": '<circle cx="12" cy="12" r="8"/><path d="M6.500 6.500l11 11"/>',
    "none": '<path d="M6 12h12"/>',
}


def icon(result: str) -> Html:
    """Draw the sign of a result; the word always stands beside it."""
    return Html(f'<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">{_ICONS[result]}</svg>')


def result_chip(result: str, text: str | None = None) -> Html:
    """Make a small label with sign and word."""
    return tag("span", icon(result), tag("span", text or RESULT_TITLES[result]), class_=f"chip {result}")


def metric_name(metric: str) -> str:
    """Name of a metric as people say it: P99 for p99_us."""
    return _METRICS.get(metric) or metric.removesuffix("_us").removesuffix("_pct").replace("_", " ")


def reasons_note(reasons: Sequence[str]) -> Html | None:
    """Say the first reasons of a result in small type, and how many there are more."""
    if not reasons:
        return None
    more = f"; and {len(reasons) - MOST_REASONS} more" if len(reasons) > MOST_REASONS else ""
    return tag("span", "; ".join(reasons[:MOST_REASONS]) + more, class_="interval")


def guard_reason(name: str) -> str:
    """Say what a guard protects from; a guard of a later version has only its own text."""
    guard = limits.BY_NAME.get(name)
    return f"{guard.why[0].upper()}{guard.why[1:]}." if guard else ""


def condition_words(condition: Condition) -> str:
    """Say a condition: 50 % of peak load, beside ffmpeg."""
    parts = []
    if condition.load_point is not None:
        parts.append(f"{numerals.share(condition.load_point)} of peak load")
    if condition.aggressor:
        parts.append(f"beside {condition.aggressor}")
    return ", ".join(parts) or "the only condition"


def condition_short(condition: Condition) -> str:
    """Say a condition in a few characters: 50 % · ffmpeg."""
    load_point = None if condition.load_point is None else f"{numerals.share(condition.load_point)} load"
    return " · ".join(part for part in (load_point, condition.aggressor) if part) or "the only condition"


def condition_id(view: View, condition: Condition) -> str:
    """Identify a condition on the page."""
    return f"c{view.conditions.index(condition)}"


def batch_unit(view: View, condition: Condition) -> str:
    """Name the unit of batch work each second (frames/s): the aggressor's, as the manifest has it."""
    aggressor = (view.manifest.get("aggressors") or {}).get(condition.aggressor) or {}
    return f"{(aggressor.get('work') or {}).get('unit') or 'units'}/s"
