# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures with their legends and the tables that say the same in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ansible_collections.colocation.testbed.plugins.module_utils.measure import scene
from ansible_collections.colocation.testbed.plugins.plugin_utils.report import digest, numerals, plots, words
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.digest import Digest
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.markup import Child, Html, details, table, tag
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.matrix_tables import mode_label, per_condition
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.model import Condition, View
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Mode
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.series import (
    CLASSES,
    CpuSeries,
    Floats,
    cpu_series,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir import RunDirectory

_TABLE_TAILS = ((0.5, "P50"), (0.25, "P75"), (0.1, "P90"), (0.05, "P95"), (0.01, "P99"), (0.001, "P99.9"))
_CPU_NAMES = {
    "service": "latency service",
    "batch": "batch workload",
    "other": "other (kernel, samplers, foreign)",
    "steal": "steal (taken by the hypervisor)",
    "idle": "idle",
}


def mode_legend(modes: Sequence[Mode]) -> Html:
    """Explain the lines of a figure: colour and dash of each mode."""
    patterns = ("none", "9 4", "2.5 3", "12 4 2.5 4")
    keys = []
    for mode in modes:
        line = Html(
            '<svg viewBox="0 0 34 10" class="line" aria-hidden="true"><path d="M1 5H33" '
            f'style="stroke:var(--mode-{mode.colour % 8});stroke-dasharray:{patterns[mode.colour % 4]}"/></svg>'
        )
        keys.append(tag("li", line, mode.name))
    return tag("ul", keys, class_="legend")


def distribution(view: View, found: Sequence[Digest], condition: Condition) -> Html | None:
    """Make the latency distribution of one condition."""
    curves, tails = digest.curves(view, found, condition)
    if not curves:
        return None
    name = f"distribution {words.condition_id(view, condition)}"
    title = "Latency in ms over the percentile of requests, one line a mode, band from least to greatest block"
    wide, narrow = (plots.latency_distribution(curves, tails, title, f"{name} {n}", n) for n in (False, True))
    return per_condition(
        view,
        condition,
        tag("figure", mode_legend([curve.mode for curve in curves]), wide, narrow),
        distribution_numbers(curves, tails, "Mode"),
    )


def distribution_numbers(curves: Sequence[plots.Curve], tails: Floats, what: str) -> Html:
    """Say a latency distribution in numbers, a row for each curve."""
    shown = [(tail, label) for tail, label in _TABLE_TAILS if tail >= tails[-1] * 0.999]
    rows = [[mode_label(curve.mode), *[_at(curve, tails, tail) for tail, _unused in shown]] for curve in curves]
    head = [what, *[f"{label} ms" for _unused, label in shown]]
    return details("The same in numbers", table(head, rows, caption="Median block (least to greatest)"))


def _at(curve: plots.Curve, tails: Floats, tail: float) -> str:
    place = int(np.argmin(np.abs(np.log(tails / tail))))
    middle, least, most = (float(values[place]) for values in (curve.middle_ms, curve.least_ms, curve.most_ms))
    return f"{numerals.plain(middle)} ({numerals.millis_span(least * 1000, most * 1000)})"


def pairing(view: View, found: Sequence[Digest], condition: Condition) -> Html | None:
    """Make the block-by-block figures of one condition."""
    made = []
    for mode in view.candidates:
        panels = digest.pairs(view, found, mode.name, condition)
        if panels:
            made.append(_pairs_card(view, condition, mode, panels))
    return per_condition(view, condition, tag("div", made, class_="cards pairs")) if made else None


def _pairs_card(view: View, condition: Condition, mode: Mode, panels: Sequence[plots.Pairs]) -> Html:
    title = f"{mode.name}: change of P90 and P99 against the baseline of the same block, in per cent"
    drawing = plots.paired_changes(panels, mode, title, f"pairs {mode.name} {words.condition_id(view, condition)}")
    blocks = sorted({block for panel in panels for block in panel.blocks})
    values = [dict(zip(panel.blocks, panel.change_pct, strict=True)) for panel in panels]
    rows = [[str(block), *[numerals.change(value.get(block)) for value in values]] for block in blocks]
    numbers = table(["Block", *[panel.label for panel in panels]], rows, caption="Change against the block's baseline")
    return tag(
        "figure",
        tag("figcaption", mode_label(mode)),
        drawing,
        details("The same in numbers", numbers),
        class_="card",
    )


def cpu_legend() -> Html:
    """Explain the classes of CPU time."""
    keys = [
        tag("li", tag("span", class_=f"key cpu-{name}"), text, class_=f"cpu-{name}-item")
        for name, text in _CPU_NAMES.items()
    ]
    return tag("ul", keys, class_="legend")


@dataclass(frozen=True)
class Chart:
    """One measurement whose CPU time is drawn, and why it was chosen."""

    item: Digest
    why: str
    series: CpuSeries
    name: str

    @property
    def label(self) -> str:
        """What the chooser calls it."""
        text = f"block {self.item.record.block}, P99 {numerals.millis(self.item.tail_us['p99_us'])}"
        return f"{text} · {self.why}" if self.why else text


def cpu_time(view: View, run: RunDirectory, found: Sequence[Digest], condition: Condition) -> Html | None:
    """Make the CPU time cards of one condition, one a mode."""
    made = {mode: _charts(view, run, found, mode, condition) for mode in view.modes}
    made = {mode: charts for mode, charts in made.items() if charts}
    if not made:
        return None
    top = plots.wait_ceiling_ms([charts[0].series for charts in made.values()])
    cards = [_cpu_card(mode, charts, top) for mode, charts in made.items()]
    return per_condition(view, condition, tag("div", cards, class_="cards"))


def _charts(view: View, run: RunDirectory, found: Sequence[Digest], mode: Mode, condition: Condition) -> list[Chart]:
    charts = []
    for item, why in digest.cards(view, found, mode.name, condition):
        hosts = scene.hosts(run.manifest, item.window, run.samples(item.record))
        series = next((cpu_series(host) for host in hosts if host.tested), None)
        if series:
            # A mode without batch work stands under several conditions: the name tells its drawings apart.
            charts.append(Chart(item, why, series, f"cpu {item.record.name} {words.condition_id(view, condition)}"))
    return charts


def _cpu_card(mode: Mode, charts: Sequence[Chart], top: float) -> Html:
    options = [tag("option", chart.label, value=str(place)) for place, chart in enumerate(charts)]
    drawn = [
        tag("div", _cpu_chart(chart, top), data_chart=str(place), class_="chart") for place, chart in enumerate(charts)
    ]
    chooser: Child = tag("p", charts[0].label, class_="sub")
    if len(charts) > 1:
        label = f"Measurement of {mode.name} to show"
        chooser = tag("select", options, aria_label=label, class_="chart-chooser")
    return tag("figure", tag("figcaption", mode_label(mode), chooser), drawn, class_="card cpu")


def _cpu_chart(chart: Chart, top: float) -> Html:
    series, window, name = chart.series, chart.item.window, chart.item.record.name
    title = f"{name}: CPU time by class in per cent, and run-queue wait of the service in ms each second"
    ceiling = max(top, float(series.wait_ms_per_s.max()) * 1.08)
    limits = (0.0, max(window["end_wall_s"] - window["start_wall_s"], 1.0))
    drawing = plots.cpu_classes(series, limits, ceiling, title, chart.name)
    columns = [*(series.share_pct[cpu_class] for cpu_class in CLASSES), series.wait_ms_per_s]
    rows = [
        [numerals.plain(max(float(value), 0.0), 1) for value in values]
        for values in zip(series.edges_s[1:], *columns, strict=True)
    ]
    head = ["Second", *CLASSES, "wait ms/s"]
    numbers = table(head, rows, caption=f"{name}: CPU time in %", class_="plain tight")
    return Html(drawing + details("The same in numbers", numbers))
