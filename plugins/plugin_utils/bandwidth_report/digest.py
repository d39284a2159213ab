# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shrink the traffic of a bandwidth run to what its figures need, one measurement in memory at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ansible_collections.colocation.testbed.plugins.module_utils.measure import figures_traffic
from ansible_collections.colocation.testbed.plugins.module_utils.measure.guards_traffic import INTERVAL_S
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import (
    TESTED_SHAPER,
    BandwidthRecord,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.plots import (
    RateLine,
    Switch,
    stacked_curve,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.view import (
    BandwidthView,
    Cell,
    shaper_mode,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_rundir import BandwidthRun
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.digest import TAILS
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Mode
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.plots import Curve
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.series import Floats

#: More lines than that nobody tells apart; the others are summed up.
MOST_LINES = 6
#: Offline traffic is orange and the service blue on every page; others take what is left.
_COLOURS = {"online": 2, "offline": 1}
_FREE = (3, 4, 5, 6, 7, 0)


@dataclass(frozen=True)
class Window:
    """The rates of one measurement, class by class, with what was asked of the offline ones."""

    record: BandwidthRecord
    lines: tuple[RateLine, ...]
    switches: tuple[Switch, ...]
    bounds_mbps: Mapping[str, float]
    step_s: float = INTERVAL_S


def kept(records: Sequence[BandwidthRecord], cell: Cell) -> list[BandwidthRecord]:
    """Return the measurements of a cell that count, in the order of execution."""
    key = (cell.scenario, cell.case, cell.shaper)
    return [item for item in records if item.kept and (item.scenario, item.case, item.shaper) == key]


def window(run: BandwidthRun, records: Sequence[BandwidthRecord], cell: Cell) -> Window | None:
    """Return the rates of a cell's first measurement that counts; None without any.

    The first and not the best: which one it is depends on nothing that was measured. Raises RunDirectoryError.
    """
    chosen = kept(records, cell)
    if not chosen:
        return None
    traffic = run.traffic(chosen[0])
    lines = _lines(cell, traffic)
    if not lines:
        return None
    start_s = float(traffic["start_mono_s"])
    switches = tuple(
        Switch(float(item["wanted_mono_s"]) - start_s, item["direction"] == "down") for item in traffic["switches"]
    )
    return Window(chosen[0], lines, switches, _bounds(traffic))


def _lines(cell: Cell, traffic: Mapping[str, Any]) -> tuple[RateLine, ...]:
    rates = {
        str(name): tuple(float(rate) / 1e6 for rate in item["intervals_bps"])
        for name, item in traffic["classes"].items()
        if item["intervals_bps"]
    }
    if len(rates) > MOST_LINES:
        shortest = min(len(values) for values in rates.values())
        total = tuple(sum(values[place] for values in rates.values()) for place in range(shortest))
        return (RateLine(_line_mode(f"all {len(rates)} classes together", 2), total),)
    free, taken = iter(_FREE), set[int]()
    lines = []
    for name, values in rates.items():
        colour = _COLOURS.get(cell.classes[name].role if name in cell.classes else "", -1)
        if colour in taken or colour < 0:
            colour = next(free)
        taken.add(colour)
        lines.append(RateLine(_line_mode(name, colour), values))
    return tuple(lines)


def _line_mode(name: str, colour: int) -> Mode:
    return Mode(name, colour, False, "", "none", "")


def _bounds(traffic: Mapping[str, Any]) -> dict[str, float]:
    """Return the rates that offline traffic must keep to, as a receiver counts them: below and above the waterline."""
    found = {
        "offline traffic at most, held back" if item["direction"] == "down" else "offline traffic at most": bound / 1e6
        for item in traffic["switches"]
        if (bound := item.get("bound_bps"))
    }
    return dict(sorted(found.items()))


def settle_times_ms(run: BandwidthRun, records: Sequence[BandwidthRecord], cell: Cell) -> dict[int, list[float]]:
    """Return how long each way down took, by block. Raises RunDirectoryError."""
    found = {item.block: figures_traffic.settle_times_ms(run.traffic(item), "down") for item in kept(records, cell)}
    return {block: times for block, times in found.items() if times}


def latency_curves(
    view: BandwidthView, run: BandwidthRun, records: Sequence[BandwidthRecord], case: str, scenario: str
) -> tuple[list[Curve], Floats]:
    """Return the probe's latency of each shaper over the tail, with its band over the blocks.

    Raises RunDirectoryError.
    """
    made: list[tuple[Mode, list[Floats]]] = []
    answers = []
    for cell in view.cells_of(scenario, case):
        curves = []
        for record in kept(records, cell):
            roles = {name: item.role for name, item in cell.classes.items()}
            merged = figures_traffic.online_latency(roles, run.traffic(record))
            if merged is not None:
                answers.append(merged.total)
                curves.append(np.array([float(merged.quantile(1.0 - tail)) for tail in TAILS.tolist()]))
        if curves:
            made.append((shaper_mode(cell.shaper), curves))
    visible = min(1.0 / max(min(answers, default=10), 10), 0.1) * 0.999 <= TAILS
    return [Curve(mode, *stacked_curve([curve[visible] for curve in curves])) for mode, curves in made], TAILS[visible]


def heroes(view: BandwidthView) -> list[Cell]:
    """Return the cells of the shaper under test whose rates are shown, those of the waterline first."""

    def rank(cell: Cell) -> tuple[bool, bool]:
        return cell.median("switches") is None, cell.scenario != "waterline"

    ranked = sorted((cell for cell in view.cells if cell.shaper == TESTED_SHAPER and cell.kept), key=rank)
    return [cell for cell in ranked if cell is ranked[0] or 1 < len(cell.classes) <= MOST_LINES]
