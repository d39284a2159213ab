# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say the result of a bandwidth run in a terminal: verdict, one table for each scenario, what tripped."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report import names
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.view import (
    BandwidthView,
    Cell,
    Objective,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.report import numerals, terminal, text_table
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.terminal import NARROWEST, SIGNS, Line
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.text_table import Column

#: Figure, heading, factor and decimals; a narrow terminal drops the highest place first, 0 never.
_COLUMNS = (
    ("accuracy_pct", "accuracy %", 1.0, 2, 0),
    ("accuracy_p95_pct", "of 19 in 20 %", 1.0, 2, 3),
    ("request_kept_pct", "requests %", 1.0, 1, 2),
    ("received_mbps", "Mbit/s", 1.0, 1, 4),
    ("cpu_s_per_gbit", "CPU s/Gbit", 1.0, 3, 0),
    ("rr_p50_us", "RTT P50 ms", 0.001, 2, 5),
    ("rr_p99_us", "RTT P99 ms", 0.001, 2, 0),
    ("switch_p95_ms", "gives way ms", 1.0, 1, 0),
    ("transitions_per_change", "per change", 1.0, 2, 6),
    ("apply_ms", "applied ms", 1.0, 1, 7),
)
_MOST_OBJECTIVES = 12


def render(view: BandwidthView, width: int = 100, unicode: bool = True) -> list[Line]:
    """Say the result in lines of at most ``width`` terminal cells (user's own long words apart)."""
    width = max(width, NARROWEST)
    lines = [
        *terminal.head(view, width, _extent(view)),
        *(line for scenario in view.scenarios for line in _scenario(view, scenario, width)),
        *_objectives(view, width),
        *_impossible(view, width),
        *terminal.guards(view, width, sum(cell.measured - cell.kept for cell in view.cells)),
    ]
    return terminal.adapt(lines, unicode)


def _extent(view: BandwidthView) -> str:
    kept = max((cell.kept for cell in view.cells), default=0)
    cases = len({(cell.scenario, cell.case) for cell in view.cells})
    return (
        f"bandwidth · plane {view.plane} · {cases} case{'' if cases == 1 else 's'} · "
        f"{kept} block{'' if kept == 1 else 's'}"
    )


def _scenario(view: BandwidthView, scenario: str, width: int) -> list[Line]:
    cells = [cell for cell in view.cells_of(scenario) if cell.measured]
    if not cells:
        return []
    title = text_table.wrap(f"{view.title(scenario)} ({scenario})", width)
    table = text_table.render(_columns(view, cells), width)
    return [Line(""), *(Line(text) for text in title), *(Line(text) for text in table)]


def _columns(view: BandwidthView, cells: Sequence[Cell]) -> list[Column]:
    columns = [
        Column("case", tuple(text_table.shorten(cell.case, 24) for cell in cells), left=True),
        Column("shaper", tuple(names.shaper(cell.shaper) for cell in cells), left=True),
    ]
    for metric, title, factor, decimals, drop in _COLUMNS:
        values = [cell.median(metric) for cell in cells]
        alone = metric == "accuracy_p95_pct" and all(len(cell.limited) < 2 for cell in cells)
        if any(value is not None for value in values) and not alone:
            texts = (numerals.plain(None if value is None else factor * value, decimals) for value in values)
            columns.append(Column(title, tuple(texts), drop))
    saved = tuple(_saved(view, cell) for cell in cells)
    if any(saved):
        columns.append(Column("ours costs", saved, 1))
    columns.append(Column("used/tried", tuple(f"{cell.kept}/{cell.measured}" for cell in cells), 8))
    return columns


def _saved(view: BandwidthView, cell: Cell) -> str:
    """Say by how much the shaper under test costs more or less than this one, for each Gbit."""
    found = view.comparison(cell, "cpu_s_per_gbit")
    if found is not None and found.other_rate:
        return "other rate"
    return "" if found is None or found.ratio is None else numerals.change(100.0 * (found.ratio.value - 1.0))


def _objectives(view: BandwidthView, width: int) -> list[Line]:
    """List the objectives that did not pass; the others are counted."""
    unmet = [item for item in view.objectives if item.result != "pass"]
    passed = len(view.objectives) - len(unmet)
    lines = [Line(""), Line(f"Objectives: {passed} of {len(view.objectives)} met.", "" if unmet else "pass")]
    for item in unmet[:_MOST_OBJECTIVES]:
        first = f"{SIGNS[item.result]} "
        lines.extend(Line(text, item.result) for text in text_table.wrap(_told(item), width, first, "  "))
    if len(unmet) > _MOST_OBJECTIVES:
        lines.append(Line(f"  … {len(unmet) - _MOST_OBJECTIVES} more in report.html"))
    return lines if view.objectives else []


def _told(item: Objective) -> str:
    reason = item.reasons[0] if item.reasons else "no reason was recorded"
    return f"{item.scenario}.{item.case}, {names.objective_name(item.name)}: {reason}"


def _impossible(view: BandwidthView, width: int) -> list[Line]:
    wrong = [item for item in view.reference if not item["possible"]]
    if not wrong:
        return []
    text = (
        f"{len(wrong)} of {len(view.reference)} published figures that report.html shows beside these are physically "
        f"impossible: {wrong[0]['why_impossible']}."
    )
    return [Line(""), *(Line(part) for part in text_table.wrap(text, width))]
