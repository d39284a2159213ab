# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Draw the figures of the bandwidth experiment. Each function takes plain numbers and returns inline SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from ansible_collections.colocation.testbed.plugins.plugin_utils.report import svg
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.markup import Html
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Mode
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.plots import NARROW_PX, WIDE_PX, log_ticks
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.series import Floats

_CARD_PX = 400.0
_BAR_PX = 24.0


@dataclass(frozen=True)
class RateLine:
    """The rate of one class over a window: entry i covers the time from i to i + 1 steps, in Mbit/s."""

    mode: Mode
    rates_mbps: tuple[float, ...]


@dataclass(frozen=True)
class Switch:
    """A moment at which online traffic went above the waterline (``down``: the others must go down) or below."""

    at_s: float
    down: bool


@dataclass(frozen=True)
class CountCurve:
    """How far classes are off by their number with one shaper, in %: the median class, and the worst of 19 in 20."""

    mode: Mode
    counts: tuple[int, ...]
    median_pct: tuple[float, ...]
    p95_pct: tuple[float, ...]


@dataclass(frozen=True)
class Bar:
    """What a Gbit costs with one shaper in one case, in CPU seconds, with its interval where there is one."""

    mode: Mode
    value: float
    low: float | None
    high: float | None


def rates_over_time(
    lines: Sequence[RateLine],
    step_s: float,
    switches: Sequence[Switch],
    bounds_mbps: Mapping[str, float],
    title: str,
    name: str,
    size_px: tuple[float, float],
    class_: str,
) -> Html:
    """Draw the rates of classes over a window; bands are the times in which offline classes must hold back."""
    with svg.drawing():
        figure = svg.new_figure(*size_px)
        axes = figure.add_subplot()
        svg.quiet_axes(axes)
        longest = max(len(line.rates_mbps) for line in lines) * step_s
        for start_s, end_s in _held_back(switches, longest):
            axes.axvspan(start_s, end_s, color=svg.MUTED, alpha=0.14, linewidth=0)
        for value in bounds_mbps.values():
            axes.axhline(value, color=svg.INK, linewidth=1.1, linestyle=(0, (4, 3)))
        for line in lines:
            edges = np.arange(len(line.rates_mbps) + 1) * step_s
            colour, dash = svg.mode_colour(line.mode.colour), svg.mode_dash(line.mode.colour)
            axes.stairs(line.rates_mbps, edges, baseline=None, color=colour, linewidth=2.2, linestyle=dash)
        most = max([*(max(line.rates_mbps) for line in lines), *bounds_mbps.values(), 1.0])
        axes.set_xlim(0.0, longest)
        axes.set_ylim(0.0, most * 1.08)
        axes.set_xlabel("time in the window, s")
        axes.set_ylabel("received, Mbit/s")
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.yaxis.set_major_formatter(FuncFormatter(_plain_tick))
        svg.set_margins(figure, 62.0, 12.0, 10.0, 44.0)
        return svg.render(figure, title, name, class_)


def wide_and_narrow(
    lines: Sequence[RateLine],
    step_s: float,
    switches: Sequence[Switch],
    bounds_mbps: Mapping[str, float],
    title: str,
    name: str,
) -> Html:
    """Draw rates_over_time twice: for a desk, and for a phone."""
    sizes = (("wide", WIDE_PX), ("narrow", NARROW_PX))
    return Html(
        "".join(
            rates_over_time(lines, step_s, switches, bounds_mbps, title, f"{name} {kind}", size, f"plot {kind}")
            for kind, size in sizes
        )
    )


def _held_back(switches: Sequence[Switch], end_s: float) -> list[tuple[float, float]]:
    """Return the times between a way down and the next way up."""
    spans: list[tuple[float, float]] = []
    since: float | None = None
    for switch in sorted(switches, key=lambda item: item.at_s):
        if switch.down and since is None:
            since = switch.at_s
        elif not switch.down and since is not None:
            spans.append((since, switch.at_s))
            since = None
    if since is not None:
        spans.append((since, end_s))
    return spans


def _plain_tick(value: float, _place: int | None) -> str:
    return f"{value:,.10g}".replace(",", "\u202f")


def settling(
    blocks: Mapping[int, Sequence[float]], limit_ms: float | None, mode: Mode, title: str, name: str, narrow: bool
) -> Html:
    """Draw one dot for each switch: how long offline traffic took to give way; the dashed line is the objective."""
    with svg.drawing():
        width = NARROW_PX[0] if narrow else WIDE_PX[0]
        figure = svg.new_figure(width, min(max(110.0 + 44.0 * len(blocks), 200.0), 420.0))
        axes = figure.add_subplot()
        svg.quiet_axes(axes, "x")
        colour = svg.mode_colour(mode.colour)
        if limit_ms is not None:
            axes.axvline(limit_ms, color=svg.INK, linewidth=1.2, linestyle=(0, (4, 3)))
        for block, times_ms in sorted(blocks.items()):
            # Times are whole milliseconds: dots of a block are spread, in their order, so that each can be seen.
            heights = block + 0.5 * (np.arange(len(times_ms)) / max(1, len(times_ms) - 1) - 0.5)
            axes.plot(times_ms, heights, "o", color=colour, markersize=4.5, alpha=0.7, markeredgewidth=0)
        axes.set_xlim(left=0.0)
        axes.set_ylim(max(blocks, default=1) + 0.7, min(blocks, default=1) - 0.7)
        axes.yaxis.set_major_locator(MaxNLocator(10, integer=True))
        axes.set_xlabel("from the change to the new rate, ms")
        axes.set_ylabel("block")
        svg.set_margins(figure, 44.0, 14.0, 12.0, 42.0)
        return svg.render(figure, title, name, "plot narrow" if narrow else "plot wide")


def error_by_count(
    curves: Sequence[CountCurve], published: Mapping[int, float], title: str, name: str, narrow: bool
) -> Html:
    """Draw how far classes are off over their number; full lines are the median class, dots the worst of 19 in 20."""
    counts = sorted({count for curve in curves for count in curve.counts})
    places = {count: place for place, count in enumerate(counts)}
    with svg.drawing():
        figure = svg.new_figure(*(NARROW_PX if narrow else WIDE_PX))
        axes = figure.add_subplot()
        svg.quiet_axes(axes)
        for curve in curves:
            colour, x = svg.mode_colour(curve.mode.colour), [places[count] for count in curve.counts]
            axes.fill_between(x, curve.median_pct, curve.p95_pct, color=colour, alpha=0.16, linewidth=0)
            axes.plot(x, curve.median_pct, color=colour, linestyle=svg.mode_dash(curve.mode.colour), linewidth=2.4)
            axes.plot(x, curve.p95_pct, "o", color=colour, markersize=6.5, markeredgecolor=svg.SURFACE)
        shown = {count: error for count, error in published.items() if count in places}
        axes.plot([places[count] for count in shown], list(shown.values()), "x", color=svg.INK, markersize=8.0)
        _error_axis(axes, [*(value for curve in curves for value in (*curve.median_pct, *curve.p95_pct))], shown)
        axes.set_xticks(range(len(counts)), [str(count) for count in counts])
        axes.set_xlim(-0.3, len(counts) - 0.7)
        axes.set_xlabel("classes at once")
        axes.set_ylabel("off the expected rate, %")
        svg.set_margins(figure, 62.0, 12.0, 10.0, 44.0)
        return svg.render(figure, title, name, "plot narrow" if narrow else "plot wide")


def _error_axis(axes: Axes, errors: Sequence[float], published: Mapping[int, float]) -> None:
    values = [value for value in (*errors, *published.values()) if value > 0.0]
    if values and max(values) / min(values) > 30.0:
        axes.set_yscale("log")
        low, high = min(values) * 0.6, max(values) * 1.6
        axes.set_ylim(low, high)
        axes.set_yticks(log_ticks(low, high))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0.0, max([*values, 0.1]) * 1.15)
        axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.10g}"))


def cost_bars(groups: Mapping[str, Sequence[Bar]], title: str, name: str) -> Html:
    """Draw what a Gbit costs in CPU time, a bar for each shaper of each case, with its interval."""
    rows = sum(len(bars) for bars in groups.values()) + 0.8 * len(groups)
    top_px, bottom_px = 8.0, 42.0
    with svg.drawing():
        figure = svg.new_figure(_CARD_PX, rows * _BAR_PX + top_px + bottom_px)
        axes = figure.add_subplot()
        svg.quiet_axes(axes, "x")
        at = 0.0
        for label, bars in groups.items():
            axes.text(0.0, at + 0.35, label, fontsize=11, color=svg.MUTED, va="center", ha="left")
            at += 0.8
            for item in bars:
                _bar(axes, item, at + 0.5)
                at += 1.0
        axes.set_ylim(at, 0.0)
        axes.set_yticks([])
        axes.set_xlim(left=0.0)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.set_xlabel("CPU seconds for each Gbit received")
        svg.set_margins(figure, 12.0, 16.0, top_px, bottom_px)
        return svg.render(figure, title, name)


def _bar(axes: Axes, item: Bar, at: float) -> None:
    axes.barh(at, item.value, height=0.62, color=svg.mode_colour(item.mode.colour), linewidth=0)
    if item.low is not None and item.high is not None:
        axes.plot([item.low, item.high], [at, at], color=svg.INK, linewidth=1.6)
        axes.plot([item.low, item.high], [at, at], "|", color=svg.INK, markersize=8.0, markeredgewidth=1.6)


def stacked_curve(histogram_us: Sequence[Floats]) -> tuple[Floats, Floats, Floats]:
    """Return median, least and greatest in ms of several windows' latencies over one grid of tails."""
    stack = np.stack(list(histogram_us)) / 1000.0
    return np.median(stack, axis=0), stack.min(axis=0), stack.max(axis=0)
