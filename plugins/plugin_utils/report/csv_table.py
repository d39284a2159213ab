# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the summary as one long table: a line for each cell and metric, for spreadsheets and scripts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from ansible_collections.colocation.testbed.plugins.plugin_utils.report.model import Cell, View
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Interval

COLUMNS = (
    "run_id", "mode", "load_point", "aggressor", "metric", "median", "low", "high", "blocks_kept", "blocks_measured",
    "change_pct", "change_low_pct", "change_high_pct", "unfiltered_change_pct", "detectable_pct", "objective_pct",
    "result",
)  # fmt: skip


def render(view: View) -> str:
    """Write the table; names of metrics carry their unit, an empty field is no data."""
    return write(COLUMNS, (row for cell in view.cells.values() for row in _rows(view, cell)))


def write(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table with its head."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return buffer.getvalue()


def _rows(view: View, cell: Cell) -> Iterator[list[str]]:
    judged = [metric for mode, where, metric in view.effects if (mode, where) == (cell.mode, cell.condition)]
    gain = view.gain(cell.mode, cell.condition)
    for metric in dict.fromkeys([*cell.metrics, *judged]):
        found = cell.metrics.get(metric)
        values = (found.median, found.low, found.high) if found else (None, None, None)
        yield [*_key(view, cell, metric), *map(number, values), *_counts(cell), *_effect(view, cell, metric)]
    for name in ("utilisation_won_points", "batch_work_kept_pct", "p99_cost_pct_per_point"):
        won = getattr(gain, name, None)
        if isinstance(won, Interval):
            values = (won.value, won.low, won.high)
            yield [*_key(view, cell, name), *map(number, values), *_counts(cell), *[""] * 7]
    for name, value in _best_effort(view, cell):
        if value is not None:
            yield [*_key(view, cell, name), number(value), "", "", *_counts(cell), *[""] * 7]


def _best_effort(view: View, cell: Cell) -> Iterator[tuple[str, float | None]]:
    """Name each figure of the quota of best effort; one that is no limit has no line."""
    found = view.held_back(cell.mode, cell.condition)
    if found is None:
        return
    for phase, quota in found["quota"].items():
        if quota:
            for name in ("least_us", "median_us", "greatest_us"):
                yield f"best_effort_quota_{phase}_{name}", quota[name]
            yield f"service_{phase}_cpus", found["service_cpus"][phase]


def _key(view: View, cell: Cell, metric: str) -> list[str]:
    where = cell.condition
    names = [view.run_id, cell.mode, number(where.load_point), where.aggressor or "", metric]
    return [harmless(name) for name in names]


def _counts(cell: Cell) -> list[str]:
    return [str(cell.kept), str(cell.measured)]


def _effect(view: View, cell: Cell, metric: str) -> list[str]:
    effect = view.effect(cell.mode, cell.condition, metric)
    if effect is None:
        return [""] * 7
    change, unfiltered = effect.change_pct, effect.unfiltered
    numbers = (
        change.value if change else None,
        change.low if change else None,
        change.high if change else None,
        unfiltered.value if unfiltered else None,
        effect.detectable_pct,
        effect.objective_pct,
    )
    return [*map(number, numbers), effect.result]


def number(value: float | None) -> str:
    """Write a number for a spreadsheet; none is an empty field."""
    return "" if value is None else f"{value:.6g}"


def harmless(text: str) -> str:
    """Quote what a spreadsheet would run as a formula: mode names come from users."""
    return "'" + text if text[:1] in ("=", "+", "-", "@") else text
