# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Draw the report's figures. Each function takes plain numbers and returns inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from ansible_collections.colocation.testbed.plugins.plugin_utils.report import svg
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.markup import Html
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.numerals import MINUS
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Interval, Mode
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.series import CLASSES, CpuSeries, Floats

WIDE_PX = (920.0, 380.0)
NARROW_PX = (340.0, 300.0)
PAIRS_WIDTH_PX = 400.0
CPU_PX = (330.0, 270.0)
QUOTA_PX = (460.0, 260.0)

_PERCENTILES = ((1.0, "0"), (0.5, "50"), (0.1, "90"), (0.01, "99"), (0.001, "99.9"), (0.0001, "99.99"))


@dataclass(frozen=True)
class Curve:
    """Latency over the tail share of one mode: median, least and greatest over the blocks."""

    mode: Mode
    middle_ms: Floats
    least_ms: Floats
    most_ms: Floats


@dataclass(frozen=True)
class QuotaSeries:
    """Quota of best effort and the service's use in CPUs over seconds after the window's start; NaN is no limit."""

    t_s: Floats
    quota_cpus: Floats
    service_cpus: Floats
    load_s: float
    window_s: float


@dataclass(frozen=True)
class Pairs:
    """Change of one metric against the own baseline, block by block."""

    label: str
    blocks: tuple[int, ...]
    change_pct: tuple[float, ...]
    estimate: Interval | None
    objective_pct: float | None


def tail_grid(requests: int) -> Floats:
    """Tail shares from 1 (the minimum) to the last that so many requests of one block can show."""
    last = max(min(requests, 10_000), 10)
    return np.logspace(0.0, -np.log10(last), 121)


def latency_distribution(curves: Sequence[Curve], tails: Floats, title: str, name: str, narrow: bool) -> Html:
    """Draw latency over percentile, the tail stretched: 90, 99, 99.9 are equally far apart."""
    with svg.drawing():
        figure = svg.new_figure(*(NARROW_PX if narrow else WIDE_PX))
        axes = figure.add_subplot()
        svg.quiet_axes(axes, "both")
        for curve in curves:
            colour = svg.mode_colour(curve.mode.colour)
            axes.fill_between(tails, curve.least_ms, curve.most_ms, color=colour, alpha=0.16, linewidth=0)
            style = svg.mode_dash(curve.mode.colour)
            axes.plot(tails, curve.middle_ms, color=colour, linestyle=style, linewidth=2.4)
        axes.set_xscale("log")
        axes.set_xlim(1.0, float(tails[-1]))
        ticks = [(tail, text) for tail, text in _PERCENTILES if tail >= float(tails[-1]) * 0.999]
        axes.set_xticks([tail for tail, _unused in ticks], [text for _unused, text in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("percentile of requests")
        axes.set_ylabel("latency, ms")
        _latency_axis(axes, curves)
        svg.set_margins(figure, 58.0, 10.0, 8.0, 44.0)
        return svg.render(figure, title, name, "plot narrow" if narrow else "plot wide")


def _latency_axis(axes: Axes, curves: Sequence[Curve]) -> None:
    least = min(float(np.nanmin(curve.middle_ms)) for curve in curves)
    most = max(float(np.nanmax(curve.most_ms)) for curve in curves)
    if least > 0 and most / least > 30:
        axes.set_yscale("log")
        axes.set_ylim(least * 0.8, most * 1.25)
        axes.set_yticks(log_ticks(least * 0.8, most * 1.25))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0.0, most * 1.06)
        axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}".replace(",", "\u202f")))


def log_ticks(low: float, high: float) -> list[float]:
    """Return the ticks 1, 2, 5 of each decade; only 1 where there are many decades."""
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    steps = (1.0, 2.0, 5.0) if high / low < 5000 else (1.0,)
    return [step * 10.0**power for power in decades for step in steps if low <= step * 10.0**power <= high]


def paired_changes(panels: Sequence[Pairs], mode: Mode, title: str, name: str) -> Html:
    """Draw one dot for each block: the change against the baseline of the same block.

    The band is the 95 % interval of the estimate over all blocks, the dashed line the objective.
    """
    blocks = max((len(panel.blocks) for panel in panels), default=1)
    height = min(max(150.0 + 17.0 * blocks, 200.0), 420.0)
    with svg.drawing():
        figure = svg.new_figure(PAIRS_WIDTH_PX, height)
        for place, panel in enumerate(panels):
            axes = figure.add_subplot(1, len(panels), place + 1)
            _pairs_panel(axes, panel, mode)
            if place == 0:
                axes.set_ylabel("block")
        figure.subplots_adjust(wspace=0.22)
        svg.set_margins(figure, 44.0, 12.0, 26.0, 42.0)
        return svg.render(figure, title, name)


def _pairs_panel(axes: Axes, panel: Pairs, mode: Mode) -> None:
    colour = svg.mode_colour(mode.colour)
    svg.quiet_axes(axes, "x")
    axes.axvline(0.0, color=svg.MUTED, linewidth=1.2)
    if panel.objective_pct is not None:
        axes.axvline(panel.objective_pct, color=svg.INK, linewidth=1.2, linestyle=(0, (4, 3)))
    if panel.estimate is not None:
        if panel.estimate.low is not None and panel.estimate.high is not None:
            axes.axvspan(panel.estimate.low, panel.estimate.high, color=colour, alpha=0.18, linewidth=0)
        axes.axvline(panel.estimate.value, color=colour, linewidth=2.0)
    axes.hlines(panel.blocks, 0.0, panel.change_pct, color=colour, linewidth=1.2, alpha=0.55)
    axes.plot(panel.change_pct, panel.blocks, "o", color=colour, markersize=6.5, markeredgecolor=svg.SURFACE)
    first, last = (min(panel.blocks), max(panel.blocks)) if panel.blocks else (1, 1)
    axes.set_ylim(last + 0.7, first - 0.7)
    axes.yaxis.set_major_locator(MaxNLocator(10, integer=True))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(_signed_tick))
    axes.set_xlabel("change, %")
    axes.set_title(panel.label, fontsize=12, loc="left", color=svg.INK)
    axes.margins(x=0.1)


def _signed_tick(value: float, _place: int | None) -> str:
    return "0" if value == 0 else ("+" if value > 0 else MINUS) + f"{abs(value):g}"


def cpu_classes(series: CpuSeries, limits_s: tuple[float, float], wait_top_ms: float, title: str, name: str) -> Html:
    """Draw CPU time by class, stacked, above the run-queue wait of the service's tasks."""
    with svg.drawing():
        figure = svg.new_figure(*CPU_PX)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1.25))
        base = np.zeros(len(series.edges_s))
        for cpu_class in CLASSES[:-1]:
            share = series.share_pct[cpu_class]
            top = base + np.concatenate([share[:1], share])
            colour = svg.cpu_colour(cpu_class)
            stolen = cpu_class == "steal"
            edge, hatch = (svg.SURFACE, "////") if stolen and share.max() > 0 else (colour, None)
            upper.fill_between(
                series.edges_s, base, top, step="pre", facecolor=colour, edgecolor=edge, linewidth=0.0, hatch=hatch
            )
            base = top
        svg.quiet_axes(upper)
        upper.set_ylim(0.0, 100.0)
        upper.set_yticks([0, 50, 100])
        upper.set_ylabel("CPU, %")
        svg.quiet_axes(lower)
        lower.stairs(series.wait_ms_per_s, series.edges_s, baseline=None, color=svg.INK, linewidth=1.8)
        lower.set_ylim(0.0, wait_top_ms)
        lower.yaxis.set_major_locator(MaxNLocator(2))
        lower.set_ylabel("wait, ms/s")
        lower.set_xlabel("time in the window, s")
        lower.set_xlim(*limits_s)
        for axes in (upper, lower):
            axes.yaxis.set_label_coords(-44.0 / (CPU_PX[0] - 64.0), 0.5)
        svg.set_margins(figure, 54.0, 10.0, 8.0, 42.0)
        return svg.render(figure, title, name)


def wait_ceiling_ms(all_series: Sequence[CpuSeries]) -> float:
    """Compute the common upper end of the wait axes, so that the cards of one condition compare by eye."""
    peaks = [float(series.wait_ms_per_s.max()) for series in all_series if len(series)]
    return max([*peaks, 1.0]) * 1.08


def quota_over_time(series: QuotaSeries, title: str, name: str) -> Html:
    """Draw the quota of best effort beside what the service used, from before the load to the end of the window."""
    with svg.drawing():
        figure = svg.new_figure(*QUOTA_PX)
        axes = figure.add_subplot()
        svg.quiet_axes(axes)
        axes.axvspan(0.0, series.window_s, color=svg.LINE, alpha=0.35, linewidth=0)
        axes.axvline(series.load_s, color=svg.MUTED, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.plot(
            series.t_s, series.quota_cpus, color=svg.cpu_colour("batch"), linestyle=(0, (5, 2)), drawstyle="steps-post"
        )
        axes.plot(series.t_s, series.service_cpus, color=svg.cpu_colour("service"), drawstyle="steps-pre")
        known = np.concatenate([series.quota_cpus, series.service_cpus])
        axes.set_ylim(0.0, max(float(np.nanmax(known)), 0.1) * 1.12)
        axes.set_xlim(float(series.t_s[0]), float(series.t_s[-1]))
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.set_ylabel("CPUs")
        axes.set_xlabel("time after the window's start, s")
        svg.set_margins(figure, 48.0, 10.0, 8.0, 42.0)
        return svg.render(figure, title, name)
