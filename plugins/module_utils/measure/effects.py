# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a mode costs and wins against the baseline: paired by block, with intervals and objectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import stdev
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import statistics
from ansible_collections.colocation.testbed.plugins.module_utils.measure.statistics import Interval

#: Figures that are compared with the baseline's.
EFFECT_METRICS = ("p50_us", "p90_us", "p99_us", "p999_us", "throughput_rps", "service_cpu_us_per_request")
#: Latencies in which a colocated mode must not beat the baseline; P99.9 of a window rests on a handful of requests.
TOO_GOOD_METRICS = ("p50_us", "p90_us", "p99_us")

PASS, FAIL, INCONCLUSIVE, INVALID, NONE = "pass", "fail", "inconclusive", "invalid", "none"
#: Worst first.
ORDER = (INVALID, FAIL, INCONCLUSIVE, PASS, NONE)

UPPER_OBJECTIVES: Mapping[str, str] = {
    "p50_added_pct": "p50_us",
    "p90_added_pct": "p90_us",
    "p99_added_pct": "p99_us",
    "p999_added_pct": "p999_us",
}
LOWER_OBJECTIVES: Mapping[str, str] = {
    "batch_work_kept_pct": "batch_work_kept_pct",
    "utilisation_won_points_min": "utilisation_won_points",
}

Values = Mapping[int, float]


class EffectsError(Exception):
    """An objective is not one; the text says which and what is allowed."""


@dataclass(frozen=True)
class Judgement:
    """A result with its reasons in words."""

    result: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Effect:
    """The change of one figure against the baseline."""

    metric: str
    change: Interval | None
    blocks: int
    detectable_pct: float | None
    objective_pct: float | None
    judgement: Judgement


def check_objectives(mode: str, objectives: Mapping[str, Any]) -> None:
    """Check a mode's objectives. Raises EffectsError for one that is unknown or no number."""
    known = [*UPPER_OBJECTIVES, *LOWER_OBJECTIVES]
    for name, value in objectives.items():
        if name not in known:
            raise EffectsError(f"mode {mode}: objective {name!r} is unknown; known are {', '.join(known)}")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise EffectsError(f"mode {mode}: objective {name} is {value!r}; must be a number")


def worst(results: Sequence[str]) -> str:
    """Return the worst of several results; ``none`` for none."""
    return min(results, key=ORDER.index, default=NONE)


def objective_for(metric: str, objectives: Mapping[str, Any]) -> float | None:
    """Return by how many % a metric may rise, or None when the mode does not say."""
    for name, target in UPPER_OBJECTIVES.items():
        if target == metric and name in objectives:
            return float(objectives[name])
    return None


def judge_upper(
    change: Interval | None, objective: float | None, blocks: int, detectable_pct: float | None
) -> Judgement:
    """Compare a change with the most that is allowed: the interval must lie below it as a whole."""
    if blocks < statistics.MIN_BLOCKS or change is None:
        return _too_few(blocks)
    if objective is None:
        return Judgement(NONE)
    text = f"{change.value:+.1f} % ({change.low:+.1f} to {change.high:+.1f}), allowed are {objective:+g} %"
    if change.high <= objective:
        return Judgement(PASS, (text,))
    if change.low > objective:
        return Judgement(FAIL, (text,))
    can = "" if detectable_pct is None else f"; {blocks} blocks can find {detectable_pct:.1f} % here"
    return Judgement(INCONCLUSIVE, (f"{text}: the interval holds both sides{can}",))


def judge_lower(figure: Interval | None, objective: float, blocks: int, unit: str, digits: int = 1) -> Judgement:
    """Compare a figure with the least that is wanted: the interval must lie above it as a whole."""
    if blocks < statistics.MIN_BLOCKS or figure is None:
        return _too_few(blocks)
    text = f"{_figure(figure, unit, digits)}, wanted are at least {objective:g}"
    if figure.low >= objective:
        return Judgement(PASS, (text,))
    if figure.high < objective:
        return Judgement(FAIL, (text,))
    return Judgement(INCONCLUSIVE, (f"{text}: the interval holds both sides",))


def judge_most(figure: Interval | None, objective: float, blocks: int, unit: str, digits: int = 1) -> Judgement:
    """Compare a figure with the most that is allowed: the interval must lie below it, or end on it, as a whole."""
    if blocks < statistics.MIN_BLOCKS or figure is None:
        return _too_few(blocks)
    text = f"{_figure(figure, unit, digits)}, allowed are {objective:g}"
    if figure.high <= objective:
        return Judgement(PASS, (text,))
    if figure.low > objective:
        return Judgement(FAIL, (text,))
    return Judgement(INCONCLUSIVE, (f"{text}: the interval holds both sides",))


def _figure(figure: Interval, unit: str, digits: int) -> str:
    value = f"{figure.value:.{digits}f} {unit}".strip()
    return f"{value} ({figure.low:.{digits}f} to {figure.high:.{digits}f})"


def _too_few(blocks: int) -> Judgement:
    return Judgement(INCONCLUSIVE, (f"{blocks} of the {statistics.MIN_BLOCKS} blocks that it takes at least",))


def effect(metric: str, values: Values, baseline: Values, objectives: Mapping[str, Any]) -> Effect:
    """Return the effect on one metric from its values by block."""
    ratios = statistics.log_ratios(values, baseline)
    change = statistics.change_pct(ratios)
    detectable = statistics.detectable_pct(stdev(ratios), len(ratios)) if len(ratios) >= 2 else None
    objective = objective_for(metric, objectives)
    return Effect(
        metric=metric,
        change=change,
        blocks=len(ratios),
        detectable_pct=detectable,
        objective_pct=objective,
        judgement=judge_upper(change, objective, len(ratios), detectable),
    )


def replaced(found: Effect, result: str, reasons: Sequence[str]) -> Effect:
    """Return the effect with another judgement."""
    return replace(found, judgement=Judgement(result, tuple(reasons)))


def points_won(values: Values, baseline: Values) -> tuple[Interval | None, int]:
    """Return the difference to the baseline in the metric's own unit, with the number of pairs."""
    blocks = sorted(set(values) & set(baseline))
    differences = [values[block] - baseline[block] for block in blocks]
    return (statistics.mean_interval(differences) if len(differences) >= 2 else None), len(differences)


def kept_pct(values: Values, reference: Values) -> tuple[Interval | None, int]:
    """Return the ratio to a reference mode in %, with the number of pairs."""
    ratios = statistics.log_ratios(values, reference)
    change = statistics.change_pct(ratios)
    if change is None:
        return None, len(ratios)
    return Interval(*(100.0 + part for part in (change.value, change.low, change.high))), len(ratios)


def cost_per_point(
    p99: Values, p99_baseline: Values, utilisation: Values, utilisation_baseline: Values
) -> Interval | None:
    """Return the % that P99 rises for each point of utilisation won.

    None below two pairs, and when the interval of the points won reaches 0, since the ratio then has no bounds.
    """
    blocks = sorted(set(p99) & set(p99_baseline) & set(utilisation) & set(utilisation_baseline))
    if len(blocks) < 2 or any(p99[block] <= 0 or p99_baseline[block] <= 0 for block in blocks):
        return None
    won = statistics.mean_interval([utilisation[block] - utilisation_baseline[block] for block in blocks])
    change = statistics.change_pct(statistics.log_ratios(_only(p99, blocks), p99_baseline))
    if change is None or won.low <= 0.0:
        return None
    # The widest that both intervals allow; the points won scatter far less than P99, so little is given away.
    corners = [bound / points for bound in (change.low, change.high) for points in (won.low, won.high)]
    return Interval(change.value / won.value, min(corners), max(corners))


def _only(values: Values, blocks: Sequence[int]) -> Values:
    return {block: values[block] for block in blocks}
