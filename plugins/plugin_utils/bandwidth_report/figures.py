# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of the bandwidth experiment with their legends and the tables that say the same in numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import (
    TESTED_SHAPER,
    BandwidthRecord,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report import digest, names, plots, tables
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.digest import Window
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.view import (
    BandwidthView,
    Cell,
    shaper_mode,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_rundir import BandwidthRun
from ansible_collections.colocation.testbed.plugins.plugin_utils.report import figures, numerals
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.markup import (
    Child,
    Html,
    details,
    join,
    table,
    tag,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.matrix_tables import mode_label
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.plots import latency_distribution

MOST_CARDS = 6
_SWITCH_OBJECTIVE = "switch_p95_ms_max"


def rates(view: BandwidthView, run: BandwidthRun, records: Sequence[BandwidthRecord]) -> tuple[Html | None, list[Html]]:
    """Make the figure of rates over time, wide for the first case, and a card for each of the next ones."""
    windows = [(cell, found) for cell in digest.heroes(view) if (found := digest.window(run, records, cell))]
    if not windows:
        return None, []
    cards = [_rates_card(cell, found) for cell, found in windows[1 : MOST_CARDS + 1]]
    return _rates_wide(*windows[0]), cards


def _rates_wide(cell: Cell, found: Window) -> Html:
    title = f"{_place(cell)}: received rate of each class in Mbit/s over the window"
    drawing = plots.wide_and_narrow(
        found.lines, found.step_s, found.switches, found.bounds_mbps, title, f"rates {found.record.name}"
    )
    caption = f"{_place(cell)}, {names.shaper(cell.shaper)}, measurement {found.record.name}"
    legend = figures.mode_legend([line.mode for line in found.lines])
    return tag("figure", tag("p", caption, class_="sub"), legend, _keys(found), drawing, _rates_numbers(found))


def _rates_card(cell: Cell, found: Window) -> Html:
    title = f"{_place(cell)}: received rate of each class in Mbit/s over the window"
    drawing = plots.rates_over_time(
        found.lines, found.step_s, found.switches, {}, title, f"rates {found.record.name}", (400.0, 270.0), "plot"
    )
    caption = tag("figcaption", _place(cell), tag("span", found.record.name, class_="sub"))
    legend = figures.mode_legend([line.mode for line in found.lines])
    return tag("figure", caption, legend, drawing, _rates_numbers(found), class_="card")


def _place(cell: Cell) -> str:
    return f"{cell.scenario}.{cell.case}"


def _keys(found: Window) -> Html | None:
    """Explain bands and dashed lines where there are any."""
    keys: list[Child] = []
    if found.switches:
        keys.append(tag("li", "grey: online traffic is above the waterline, offline traffic must hold back"))
    if found.bounds_mbps:
        told = "; ".join(f"{name} {numerals.plain(value)}" for name, value in found.bounds_mbps.items())
        keys.append(tag("li", f"dashed, Mbit/s: {told}"))
    return tag("ul", keys, class_="legend") if keys else None


def _rates_numbers(found: Window) -> Html:
    length = min(len(line.rates_mbps) for line in found.lines)
    rows = [
        [f"{(place + 1) * found.step_s:.1f}", *[numerals.plain(line.rates_mbps[place], 1) for line in found.lines]]
        for place in range(length)
    ]
    head = ["Until s", *[line.mode.name for line in found.lines]]
    caption = f"{found.record.name}: received Mbit/s"
    return details("The same in numbers", table(head, rows, caption=caption, class_="plain tight"))


def settling(view: BandwidthView, run: BandwidthRun, records: Sequence[BandwidthRecord]) -> Html | None:
    """Make a figure for each case with switches: how long each way down took."""
    made = []
    for cell in view.cells:
        blocks = digest.settle_times_ms(run, records, cell) if cell.median("switch_p95_ms") is not None else {}
        if blocks:
            made.append(_settling(cell, blocks, _switch_limit_ms(view, cell)))
    return join(*made) if made else None


def _switch_limit_ms(view: BandwidthView, cell: Cell) -> float | None:
    """Return what was asked of the switches of a cell; None where nothing was, and for other shapers."""
    key = (cell.scenario, cell.case, _SWITCH_OBJECTIVE)
    limits = (item.limit for item in view.objectives if (item.scenario, item.case, item.name) == key)
    return next(limits, None) if cell.shaper == TESTED_SHAPER else None


def _settling(cell: Cell, blocks: dict[int, list[float]], limit_ms: float | None) -> Html:
    mode = shaper_mode(cell.shaper)
    title = f"{_place(cell)}, {mode.name}: time from each change to the new rate, in ms, by block"
    wide, narrow = (
        plots.settling(blocks, limit_ms, mode, title, f"settling {_place(cell)} {cell.shaper} {narrow}", narrow)
        for narrow in (False, True)
    )
    rows: list[list[Child]] = [
        [str(block), str(len(times)), *[numerals.plain(value, 1) for value in _spread(times)]]
        for block, times in sorted(blocks.items())
    ]
    numbers = table(["Block", "Switches", "Least ms", "Median ms", "Most ms"], rows, caption="Giving way")
    caption = tag("p", f"{_place(cell)}, {mode.name}", class_="sub")
    return tag("figure", caption, wide, narrow, details("The same in numbers", numbers))


def _spread(times: Sequence[float]) -> tuple[float, float, float]:
    ordered = sorted(times)
    return ordered[0], ordered[(len(ordered) - 1) // 2], ordered[-1]


def errors(view: BandwidthView) -> Html | None:
    """Make the figure of accuracy by number of classes; None where fewer than two numbers were measured."""
    curves = [made for shaper in _shapers(view, "class_count") if (made := _count_curve(view, shaper))]
    if len({count for curve in curves for count in curve.counts}) < 2:
        return None
    published = {
        int(found.group()): 100.0 - float(item["value"])
        for item in view.reference
        if item["scenario"] == "class_count" and item["metric"] == "accuracy_pct"
        if (found := re.match(r"\d+", str(item["case"])))
    }
    title = "How far classes are off their expected rate, in per cent, over the number of classes"
    wide, narrow = (
        plots.error_by_count(curves, published, title, f"errors {name}", name == "narrow")
        for name in ("wide", "narrow")
    )
    rows: list[list[Child]] = [
        [mode_label(curve.mode), str(count), f"{median:.3f}", f"{worst:.3f}"]
        for curve in curves
        for count, median, worst in zip(curve.counts, curve.median_pct, curve.p95_pct, strict=True)
    ]
    head = ["Shaper", "Classes", "Median class, %", "19 of 20 classes within, %"]
    keys = tag(
        "ul",
        tag("li", "line: median class"),
        tag("li", "dots: 19 of 20 classes are within"),
        tag("li", "crosses: published, other hardware"),
        class_="legend",
    )
    numbers = details("The same in numbers", table(head, rows, caption="Off the expected rate"))
    return tag("figure", figures.mode_legend([curve.mode for curve in curves]), keys, wide, narrow, numbers)


def _shapers(view: BandwidthView, scenario: str) -> list[str]:
    return list(dict.fromkeys(cell.shaper for cell in view.cells_of(scenario)))


def _count_curve(view: BandwidthView, shaper: str) -> plots.CountCurve | None:
    found = []
    for cell in view.cells_of("class_count"):
        median, worst = cell.median("accuracy_pct"), cell.median("accuracy_p95_pct")
        if cell.shaper == shaper and median is not None and worst is not None:
            found.append((len(cell.limited), 100.0 - median, 100.0 - worst))
    if not found:
        return None
    counts, middles, worsts = zip(*sorted(found), strict=True)
    return plots.CountCurve(shaper_mode(shaper), counts, middles, worsts)


def cost(view: BandwidthView) -> Html | None:
    """Make a card for each scenario of more than one shaper: what a Gbit costs."""
    cards = []
    for scenario in view.scenarios:
        groups = {case: _bars(view, scenario, case) for case in view.cases_of(scenario)}
        groups = {case: bars for case, bars in groups.items() if len(bars) > 1}
        if groups:
            title = f"{scenario}: CPU seconds for each Gbit received, by shaper, with 95 % intervals"
            drawing = plots.cost_bars(groups, title, f"cost {scenario}")
            modes = list(dict.fromkeys(bar.mode for bars in groups.values() for bar in bars))
            caption = tag("figcaption", view.title(scenario))
            cards.append(tag("figure", caption, tables.shaper_legend(modes), drawing, class_="card"))
    return tag("div", cards, class_="cards pairs") if cards else None


def _bars(view: BandwidthView, scenario: str, case: str) -> list[plots.Bar]:
    comparable = [cell for cell in view.cells_of(scenario, case) if view.costs_compare(cell)]
    found = ((cell, cell.metrics.get("cpu_s_per_gbit")) for cell in comparable)
    return [plots.Bar(shaper_mode(cell.shaper), item.median, item.low, item.high) for cell, item in found if item]


def latency(view: BandwidthView, run: BandwidthRun, records: Sequence[BandwidthRecord]) -> list[Html]:
    """Make the distribution of round trips of each case that was probed, a line for each shaper."""
    made = []
    probed = dict.fromkeys((cell.scenario, cell.case) for cell in view.cells if cell.median("rr_p50_us") is not None)
    for scenario, case in probed:
        curves, tails = digest.latency_curves(view, run, records, case, scenario)
        if not curves:
            continue
        title = f"{scenario}.{case}: round trips in ms over the percentile of requests, one line a shaper"
        wide, narrow = (
            latency_distribution(curves, tails, title, f"latency {scenario} {case} {narrow}", narrow)
            for narrow in (False, True)
        )
        legend = figures.mode_legend([curve.mode for curve in curves])
        numbers = figures.distribution_numbers(curves, tails, "Shaper")
        made.append(tag("figure", tag("p", f"{scenario}.{case}", class_="sub"), legend, wide, narrow, numbers))
    return made
