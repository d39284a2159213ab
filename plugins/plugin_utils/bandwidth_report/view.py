# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the report of the bandwidth experiment knows: summary and manifest of a run, read once into typed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import TESTED_SHAPER
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report import names
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.summary import SCHEMA
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import (
    Interval,
    Json,
    Metric,
    Mode,
    Outcome,
    common,
    interval,
    metric,
    number,
    result_word,
    unreadable,
)

#: Colours of the page by shaper: no shaping is grey, as a baseline is.
COLOURS = {"none": 0, "htb": 1, TESTED_SHAPER: 2, "tbf": 3}


@dataclass(frozen=True)
class ClassCell:
    """One class of a cell; rates in payload bit/s."""

    role: str
    protocol: str
    expected_bps: float | None
    received_bps: Metric | None
    error_pct: Metric | None
    rr_p50_us: Metric | None
    rr_p99_us: Metric | None


@dataclass(frozen=True)
class Cell:
    """One case with one shaper. ``counts`` is false where a guard took its figures away."""

    scenario: str
    case: str
    direction: str
    family: str
    shaper: str
    measured: int
    kept: int
    counts: bool
    classes: Mapping[str, ClassCell]
    metrics: Mapping[str, Metric]

    @property
    def limited(self) -> dict[str, ClassCell]:
        """Return the classes of which a receiver knows what to expect."""
        return {name: item for name, item in self.classes.items() if item.expected_bps is not None}

    def median(self, name: str) -> float | None:
        """Median of a figure over the kept blocks, None without data."""
        found = self.metrics.get(name)
        return found.median if found else None


@dataclass(frozen=True)
class Comparison:
    """A figure of the shaper under test beside another shaper's."""

    scenario: str
    case: str
    metric: str
    against: str
    ratio: Interval | None
    difference: Interval | None
    blocks: int
    result: str
    other_rate: bool


@dataclass(frozen=True)
class Objective:
    """An objective of a case, and how it was judged."""

    scenario: str
    case: str
    name: str
    limit: float
    unit: str
    figure: Interval | None
    blocks: int
    result: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class BandwidthView(Outcome):
    """Everything that sections, figures and tables of the bandwidth experiment draw from."""

    plane: str
    accounting: str
    cells: tuple[Cell, ...]
    comparisons: tuple[Comparison, ...]
    objectives: tuple[Objective, ...]

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Return the scenarios in the order in which they are shown."""
        return tuple(dict.fromkeys(cell.scenario for cell in self.cells))

    def cells_of(self, scenario: str, case: str | None = None) -> tuple[Cell, ...]:
        """Return the cells of a scenario, or of one of its cases."""
        return tuple(cell for cell in self.cells if cell.scenario == scenario and case in (None, cell.case))

    def cases_of(self, scenario: str) -> tuple[str, ...]:
        """Return the cases of a scenario in the order in which they are shown."""
        return tuple(dict.fromkeys(cell.case for cell in self.cells_of(scenario)))

    def cell(self, scenario: str, case: str, shaper: str = TESTED_SHAPER) -> Cell | None:
        """Find a cell; None when it was not planned."""
        return next((cell for cell in self.cells_of(scenario, case) if cell.shaper == shaper), None)

    def comparison(self, cell: Cell, name: str) -> Comparison | None:
        """Find how the shaper under test compares with this cell's."""
        return next(
            (
                item
                for item in self.comparisons
                if (item.scenario, item.case, item.metric, item.against)
                == (cell.scenario, cell.case, name, cell.shaper)
            ),
            None,
        )

    def costs_compare(self, cell: Cell) -> bool:
        """Return whether what a Gbit costs in this cell can be set beside the shaper under test."""
        found = self.comparison(cell, "cpu_s_per_gbit")
        return found is None or not found.other_rate

    def title(self, scenario: str) -> str:
        """Return how a scenario is called."""
        return str(((self.manifest.get("scenarios") or {}).get(scenario) or {}).get("title") or scenario)


def shaper_mode(name: str) -> Mode:
    """Return a shaper as something that figures draw: its name and colour."""
    return Mode(names.shaper(name), COLOURS.get(name, 4), name == "none", "", "none", "")


def build(summary: Json, manifest: Json) -> BandwidthView:
    """Read a summary and the manifest of its run.

    Raises ReportError when the summary lacks something that its schema requires.
    """
    try:
        return _view(summary, manifest)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise unreadable(summary, SCHEMA, error) from error


def _view(summary: Json, manifest: Json) -> BandwidthView:
    return BandwidthView(
        **common(summary, manifest),
        plane=str(summary["plane"]),
        accounting=str(summary["accounting"]),
        cells=tuple(map(_cell, summary["cells"])),
        comparisons=tuple(map(_comparison, summary["comparisons"])),
        objectives=tuple(map(_objective, summary["objectives"])),
    )


def _cell(item: Json) -> Cell:
    return Cell(
        scenario=str(item["scenario"]),
        case=str(item["case"]),
        direction=str(item["direction"]),
        family=str(item.get("family", "ipv4")),
        shaper=str(item["shaper"]),
        measured=int(item["measured"]),
        kept=int(item["kept"]),
        counts=bool(item["counts"]),
        classes={str(name): _class(found) for name, found in item["classes"].items()},
        metrics={str(name): metric(value) for name, value in item["metrics"].items() if value is not None},
    )


def _class(item: Json) -> ClassCell:
    return ClassCell(
        role=str(item["role"]),
        protocol=str(item.get("protocol", "tcp")),
        expected_bps=number(item["expected_bps"]),
        received_bps=_metric(item["received_bps"]),
        error_pct=_metric(item["error_pct"]),
        rr_p50_us=_metric(item["rr_p50_us"]),
        rr_p99_us=_metric(item["rr_p99_us"]),
    )


def _metric(item: Json | None) -> Metric | None:
    return None if item is None else metric(item)


def _comparison(item: Json) -> Comparison:
    return Comparison(
        scenario=str(item["scenario"]),
        case=str(item["case"]),
        metric=str(item["metric"]),
        against=str(item["against"]),
        ratio=interval(item["ratio"]),
        difference=interval(item["difference"]),
        blocks=int(item["blocks"]),
        result=result_word(item["result"]),
        other_rate=bool(item["other_rate"]),
    )


def _objective(item: Json) -> Objective:
    return Objective(
        scenario=str(item["scenario"]),
        case=str(item["case"]),
        name=str(item["objective"]),
        limit=float(item["limit"]),
        unit=str(item["unit"]),
        figure=interval(item["figure"]),
        blocks=int(item["blocks"]),
        result=result_word(item["result"]),
        reasons=tuple(map(str, item["reasons"])),
    )
