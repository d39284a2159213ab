# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say in a terminal how runs differ: one table for each run that is compared with the first."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report import names
from ansible_collections.colocation.testbed.plugins.plugin_utils.report import numerals, text_table, words
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.model import Condition
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Json, interval
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.terminal import SIGNS, Line, adapt
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.text_table import Column

#: Shown without a threshold too; the others only where somebody set one.
MAIN_METRICS = (
    "p90_us", "p99_us", "utilisation_pct", "batch_work_per_s",
    "accuracy_pct", "accuracy_p95_pct", "cpu_s_per_gbit", "rr_p99_us", "switch_p95_ms",
)  # fmt: skip
_UNITS = {"_us": "ms", "_ms": "ms", "_pct": "%", "_rps": "/s", "_per_s": "/s", "_mbps": "Mbit/s", "_gbit": "s/Gbit"}


def render(comparison: Json, width: int = 100, unicode: bool = True) -> list[Line]:
    """Say a comparison (plugin_utils/compare.py) in lines of at most ``width`` terminal cells."""
    result = str(comparison["result"])
    first = f"{SIGNS[result]} {words.RESULT_TITLES[result].upper()}  "
    lines = [Line(text, result) for text in text_table.wrap(_verdict(comparison), width, first, " " * len(first))]
    for text in comparison["failures"]:
        lines.extend(Line(part, "fail") for part in text_table.wrap(str(text), width, "  - ", "    "))
    for run_id in dict.fromkeys(str(change["run_id"]) for change in comparison["changes"]):
        shown = [change for change in comparison["changes"] if change["run_id"] == run_id and _is_shown(change)]
        lines.extend([Line(""), Line(f"{comparison['base']} → {run_id}")])
        lines.extend(Line(text) for text in _table(shown, width))
    return adapt(lines, unicode)


def _verdict(comparison: Json) -> str:
    if comparison["result"] == "none":
        why = "no threshold is about what both runs have" if comparison["thresholds"] else "compare_thresholds is empty"
        return f"changes against run {comparison['base']} are shown without a verdict: {why}"
    regressions = len(comparison["failures"])
    unclear = sum(change["result"] == "inconclusive" for change in comparison["changes"])
    found = "no regression" if not regressions else f"{regressions} regression{'' if regressions == 1 else 's'}"
    doubt = f"; {unclear} judged change{' is' if unclear == 1 else 's are'} too noisy to tell" if unclear else ""
    return f"{found} against run {comparison['base']}{doubt}"


def _table(changes: Sequence[Json], width: int) -> list[str]:
    """Set one table for all modes, with a heading line before the rows of each."""
    lines = text_table.render(_columns(changes), width)
    if len(lines) != len(changes) + 2:  # too narrow for a table: stacked, one part for each metric
        return lines
    headed, last = lines[:2], ""
    for change, line in zip(changes, lines[2:], strict=True):
        where = _where(change)
        if where != last:
            headed.extend(text_table.wrap(where, width))
        headed.append(line)
        last = where
    return headed


def _is_shown(change: Json) -> bool:
    return change["metric"] in MAIN_METRICS or change["threshold_pct"] is not None


def _columns(changes: Sequence[Json]) -> list[Column]:
    def column(title: str, cells: list[str], drop: int = 0, left: bool = False) -> Column:
        return Column(title, tuple(cells), drop, left)

    intervals = [interval(change["change_pct"]) for change in changes]
    limits = [change["threshold_pct"] for change in changes]
    return [
        column("metric", [_name(change) for change in changes], left=True),
        column("before", [_value(change, "before") for change in changes], 3),
        column("after", [_value(change, "after") for change in changes], 4),
        column("change", [numerals.change(found.value if found else None) for found in intervals]),
        column("95 % interval", [numerals.change_span(found) for found in intervals], 2),
        column("allowed", [numerals.NONE if limit is None else numerals.percent(float(limit)) for limit in limits], 1),
        column("", [_judged(str(change["result"])) for change in changes], left=True),
    ]


def _name(change: Json) -> str:
    metric = str(change["metric"])
    return names.metric(metric) if "scenario" in change else words.metric_name(metric)


def _where(change: Json) -> str:
    if "scenario" in change:
        return f"{change['scenario']}.{change['case']}, {change['shaper']}"
    condition = Condition(float(change["load_point"]), change["aggressor"])
    return f"{text_table.shorten(str(change['mode']), 20)}, {words.condition_short(condition)}"


def _judged(result: str) -> str:
    return "" if result == "none" else f"{SIGNS[result]} {result}"


def _value(change: Json, key: str) -> str:
    metric, value = str(change["metric"]), float(change[key])
    if metric.endswith("_us"):
        return numerals.millis(value)
    unit = next((unit for suffix, unit in _UNITS.items() if metric.endswith(suffix)), "")
    decimals = 2 if metric.startswith("accuracy") else 1
    text = numerals.plain(value, decimals) if unit == "%" else numerals.plain(value)
    return f"{text}{unit}" if unit == "/s" or not unit else f"{text}{numerals.NBSP}{unit}"
