# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables over the matrix: one row a mode, the heat map over conditions, how sure each effect is."""

from __future__ import annotations

import math

from ansible_collections.colocation.testbed.plugins.plugin_utils.report import numerals, words
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.markup import Child, Html, join, table, tag
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.model import Cell, Condition, Effect, View
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Interval, Mode

HEAT_STEPS = 6


def mode_label(mode: Mode) -> Html:
    """Name a mode with its colour."""
    swatch = tag("span", class_="swatch", style=f"background:var(--mode-{mode.colour % 8})", aria_hidden="true")
    return tag("span", swatch, mode.name, class_="mode-name")


def per_condition(view: View, condition: Condition, *children: Child) -> Html:
    """Wrap what belongs to one condition, so that the chooser can show it alone."""
    heading = tag("h3", f"At {words.condition_words(condition)}", class_="condition") if view.is_grid else None
    return tag("div", heading, *children, data_condition=words.condition_id(view, condition))


def modes_table(view: View, condition: Condition) -> Html:
    """Make the table of medians, intervals and changes: one row a mode."""
    head = ["Mode", *(f"{name} ms" for name in words.PERCENTILES.values()), "Utilisation", "Batch work", "Blocks"]
    rows = [_mode_row(view, mode, condition) for mode in view.modes]
    caption = f"Medians over blocks with 95 % intervals; change against the baseline. {_load_words(view, condition)}"
    return table(head, rows, caption=caption.strip(), class_="modes")


def _load_words(view: View, condition: Condition) -> str:
    cells = [cell for mode in view.modes if (cell := view.cell(mode.name, condition)) and cell.rate_rps]
    return f"Offered load {numerals.plain(cells[0].rate_rps, 0)} requests/s." if cells else ""


def _mode_row(view: View, mode: Mode, condition: Condition) -> list[Child]:
    cell = view.cell(mode.name, condition)
    label = join(mode_label(mode), tag("span", mode.title, class_="description") if mode.title else None)
    if cell is None:
        return [label, *[_nothing() for _unused in range(len(words.PERCENTILES) + 2)], _nothing("not measured")]
    latencies = [_latency(view, cell, metric) for metric in words.PERCENTILES]
    return [label, *latencies, _utilisation(view, cell), _work(view, cell, condition), _blocks(cell)]


def _nothing(text: str = numerals.NONE) -> Html:
    return tag("span", text, class_="nothing")


def stack(value: str, note: str | None, extra: Child = None) -> Html:
    """Set a figure above its interval."""
    return join(
        tag("span", value, class_="value figure"),
        tag("span", note, class_="interval") if note else None,
        extra,
    )


def _latency(view: View, cell: Cell, metric: str) -> Html:
    found = cell.metrics.get(metric)
    if found is None:
        return _nothing()
    effect = view.effect(cell.mode, cell.condition, metric)
    extra = None
    if effect is not None and effect.change_pct is not None:
        text = numerals.change(effect.change_pct.value)
        judged = effect.result != "none"
        extra = words.result_chip(effect.result, text) if judged else tag("span", text, class_="chip none")
    return stack(numerals.millis(found.median, unit=False), numerals.millis_span(found.low, found.high), extra)


def _utilisation(view: View, cell: Cell) -> Html:
    found = cell.metrics.get("utilisation_pct")
    if found is None:
        return _nothing()
    gain = view.gain(cell.mode, cell.condition)
    won = gain.utilisation_won_points if gain else None
    extra = tag("span", f"{numerals.signed(won.value)} points", class_="delta") if won else None
    return stack(numerals.percent(found.median), numerals.plain_span(found.low, found.high, 1), extra)


def _work(view: View, cell: Cell, condition: Condition) -> Html:
    found = cell.metrics.get("batch_work_per_s")
    if found is None:
        return _nothing()
    gain = view.gain(cell.mode, cell.condition)
    kept = gain.batch_work_kept_pct if gain else None
    extra = tag("span", f"{numerals.percent(kept.value)} kept", class_="delta") if kept else None
    value = f"{numerals.plain(found.median)}{numerals.NBSP}{words.batch_unit(view, condition)}"
    return stack(value, numerals.plain_span(found.low, found.high), extra)


def _blocks(cell: Cell) -> Html:
    failed = cell.measured - cell.kept
    return join(
        tag("span", f"{cell.kept} used", class_="value"),
        tag("span", f"{failed} failed" if failed else "none failed", class_="interval"),
    )


def effects_table(view: View, condition: Condition) -> Html:
    """Make the table of changes: with and without the steal filter, and what could have been seen."""
    head = [
        "Metric",
        "Change, 95 % interval",
        "Without the steal filter",
        "Smallest detectable",
        "Objective",
        "Result",
    ]
    rows: list[list[Child]] = []
    for mode in view.candidates:
        effects = [view.effect(mode.name, condition, metric) for metric in _metrics(view, mode, condition)]
        rows.append([mode_label(mode)])
        rows.extend(_effect_row(effect) for effect in effects if effect is not None)
        rows.extend(_gain_rows(view, mode, condition))
    return table(head, rows, caption="Change against the baseline of the same block", class_="effects")


def _metrics(view: View, mode: Mode, condition: Condition) -> list[str]:
    found = [metric for name, where, metric in view.effects if (name, where) == (mode.name, condition)]
    order = list(words.PERCENTILES)
    return sorted(found, key=lambda metric: (order.index(metric) if metric in order else len(order), metric))


def _effect_row(effect: Effect) -> list[Child]:
    return [
        words.metric_name(effect.metric),
        _change(effect.change_pct, effect.blocks),
        _change(effect.unfiltered, effect.unfiltered.blocks if effect.unfiltered else None),
        _nothing() if effect.detectable_pct is None else _detectable(effect.detectable_pct),
        _nothing() if effect.objective_pct is None else f"≤{numerals.NBSP}{numerals.change(effect.objective_pct)}",
        join(words.result_chip(effect.result), words.reasons_note(effect.reasons)),
    ]


def _detectable(value: float) -> str:
    return f"below 0.1{numerals.NBSP}%" if value < 0.05 else numerals.percent(value)


def _gain_rows(view: View, mode: Mode, condition: Condition) -> list[list[Child]]:
    """Make the rows of objectives on what a mode must win; their figures are shares, not changes."""
    gain = view.gain(mode.name, condition)
    rows: list[list[Child]] = []
    for objective in gain.objectives if gain else ():
        found = getattr(gain, objective.name.removesuffix("_min"), None)
        value = _nothing("no data")
        if isinstance(found, Interval):
            value = stack(numerals.percent(found.value), numerals.plain_span(found.low, found.high, 1))
        limit = f"≥{numerals.NBSP}{numerals.quantity(objective.limit, '%')}"
        result = join(words.result_chip(objective.result), words.reasons_note(objective.reasons))
        name = words.metric_name(objective.name.removesuffix("_min"))
        rows.append([name, value, _nothing(), _nothing(), limit, result])
    return rows


def mode_sentences(view: View) -> Html | None:
    """List what the judge says of each mode."""
    said = [mode for mode in view.candidates if mode.sentence]
    if not said:
        return None
    items = [tag("li", words.result_chip(mode.result), tag("span", mode.sentence)) for mode in said]
    return tag("ul", items, class_="sentences")


def _change(interval: Interval | None, blocks: int | None) -> Html:
    if interval is None:
        return _nothing("no data")
    note = numerals.change_span(interval)
    counted = f" · {blocks} block{'' if blocks == 1 else 's'}" if blocks is not None else ""
    return stack(numerals.change(interval.value), note + counted)


def heat_map(view: View, metric: str) -> Html:
    """Make the coloured table of tail latency in % of the baseline's: modes down, conditions across."""
    aggressors = list(dict.fromkeys(condition.aggressor for condition in view.conditions))
    points = list(dict.fromkeys(condition.load_point for condition in view.conditions))
    aggressors_row = [
        tag("th", aggressor or numerals.NONE, colspan=len(points), scope="colgroup", class_="group")
        for aggressor in aggressors
    ]
    points_row = [tag("th", numerals.share(point), scope="col") for _unused in aggressors for point in points]
    body = [
        tag(
            "tr",
            tag("th", mode_label(mode), scope="row"),
            [
                _heat_cell(view, mode, Condition(point, aggressor), metric)
                for aggressor in aggressors
                for point in points
            ],
        )
        for mode in view.candidates
    ]
    name = words.metric_name(metric)
    return tag(
        "div",
        tag(
            "table",
            tag("caption", f"{name} in % of the baseline's {name} under the same condition (100 = no cost)"),
            tag(
                "thead",
                tag("tr", tag("th", "Aggressor", scope="row"), aggressors_row),
                tag("tr", tag("th", "Load, % of peak", scope="row"), points_row),
            ),
            tag("tbody", body),
            class_="heat",
        ),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label=f"Heat map of {name}",
    )


def _heat_cell(view: View, mode: Mode, condition: Condition, metric: str) -> Html:
    effect = view.effect(mode.name, condition, metric)
    if effect is None or effect.change_pct is None:
        return tag("td", numerals.NONE, class_="heat-none", title="no data")
    change = effect.change_pct.value
    title = (
        f"{mode.name}, {words.condition_words(condition)}: {numerals.change(change)} "
        f"({numerals.change_span(effect.change_pct)}), {words.RESULT_TITLES[effect.result].lower()}"
    )
    text = numerals.plain(100.0 + change, 0)
    return tag("td", tag("span", text, class_="figure"), class_=f"heat-{heat_step(change)}", title=title)


def heat_step(change_pct: float) -> int:
    """Colour step of a change: each step is about twice the cost of the one before (2, 5, 10, 25, 75 %)."""
    limits = (2.0, 5.0, 10.0, 25.0, 75.0, math.inf)
    return next(step for step, limit in enumerate(limits) if change_pct < limit)


def heat_legend() -> Html:
    """Explain the colours of the heat map."""
    names = ("below +2 %", "+2 to +5 %", "+5 to +10 %", "+10 to +25 %", "+25 to +75 %", "above +75 %")
    keys = [tag("li", tag("span", class_=f"key heat-{i}"), name) for i, name in enumerate(names)]
    return tag("ul", keys, class_="legend", aria_label="Colours of the heat map")
