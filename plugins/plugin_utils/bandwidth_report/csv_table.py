# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the summary of a bandwidth run as one long table: a line for each cell, class and figure."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.view import BandwidthView, Cell
from ansible_collections.colocation.testbed.plugins.plugin_utils.report import csv_table
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Metric

COLUMNS = (
    "run_id", "scenario", "case", "direction", "shaper", "class", "metric", "median", "low", "high", "blocks_kept",
    "blocks_measured", "counts", "ratio_of_ebpf", "ratio_low", "ratio_high", "objective", "limit", "result",
)  # fmt: skip


def render(view: BandwidthView) -> str:
    """Write the table; names of figures carry their unit, an empty field is no data."""
    return csv_table.write(COLUMNS, (row for cell in view.cells for row in _rows(view, cell)))


def _rows(view: BandwidthView, cell: Cell) -> Iterator[list[str]]:
    for name, found in cell.metrics.items():
        yield [*_key(view, cell, "", name), *_values(found), *_counts(cell), *_ratio(view, cell, name), *[""] * 3]
    for name, item in cell.classes.items():
        for figure in ("received_bps", "error_pct", "rr_p50_us", "rr_p99_us"):
            value: Metric | None = getattr(item, figure)
            if value is not None:
                yield [*_key(view, cell, name, figure), *_values(value), *_counts(cell), *[""] * 6]
    if cell.shaper == "ebpf":
        yield from _objectives(view, cell)


def _objectives(view: BandwidthView, cell: Cell) -> Iterator[list[str]]:
    for item in view.objectives:
        if (item.scenario, item.case) == (cell.scenario, cell.case):
            figure = item.figure
            found = (figure.value, figure.low, figure.high) if figure else (None, None, None)
            ends = [item.name, csv_table.number(item.limit), item.result]
            yield [*_key(view, cell, "", ""), *map(csv_table.number, found), *_counts(cell), *[""] * 3, *ends]


def _key(view: BandwidthView, cell: Cell, class_: str, metric: str) -> list[str]:
    parts = [view.run_id, cell.scenario, cell.case, cell.direction, cell.shaper, class_, metric]
    return [csv_table.harmless(part) for part in parts]


def _values(found: Metric) -> list[str]:
    return [csv_table.number(value) for value in (found.median, found.low, found.high)]


def _counts(cell: Cell) -> list[str]:
    return [str(cell.kept), str(cell.measured), "yes" if cell.counts else "no"]


def _ratio(view: BandwidthView, cell: Cell, name: str) -> list[str]:
    found = view.comparison(cell, name)
    ratio = found.ratio if found else None
    return ["", "", ""] if ratio is None else [csv_table.number(part) for part in (ratio.value, ratio.low, ratio.high)]
