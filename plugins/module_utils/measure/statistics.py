# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Intervals from few repeats: paired or independent, by Student's t and by bootstrap, whichever is wider.

The percentile bootstrap of few values covers far less than the 95 % that it names (68 % for three values, 83 % for
five): it can return nothing wider than the values' own range. The t interval covers 95 % for normal values at every
number, but trusts their shape. Their envelope covers at least as much as either; a test simulates that.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import fmean, median, stdev
from typing import Callable

from ansible_collections.colocation.testbed.plugins.module_utils.measure import student

LEVEL = 0.05
RESAMPLES = 10_000
#: Below this many repeats nothing is concluded.
MIN_BLOCKS = 3
_SEED = 20_260_101
#: exp() beyond this says nothing any more, and overflows at 709.
_MAX_LOG = 50.0


class StatisticsError(Exception):
    """A figure cannot be computed; the text says why and what is needed."""


@dataclass(frozen=True)
class Interval:
    """A figure with the interval that covers it with 95 % confidence."""

    value: float
    low: float
    high: float

    def as_dict(self, digits: int = 4) -> dict[str, float]:
        """Return the form of summary.json."""
        return {
            "value": round(self.value, digits),
            "low": round(self.low, digits),
            "high": round(self.high, digits),
        }


@functools.lru_cache(maxsize=16)
def _resamplers(size: int, resamples: int, seed: int) -> tuple[Callable[[Sequence[float]], tuple[float, ...]], ...]:
    """Return functions that each draw one resample of ``size`` (2 or more) values with replacement.

    Which places are drawn depends on no value, so that all figures of a run share the drawing, which costs most.
    """
    places = random.Random(seed).choices(range(size), k=size * resamples)  # noqa: S311 - no secret
    return tuple(itemgetter(*places[start : start + size]) for start in range(0, size * resamples, size))


def bootstrap_means(values: Sequence[float], resamples: int = RESAMPLES, seed: int = _SEED) -> tuple[float, ...]:
    """Return the sorted means of resamples of two ``values`` or more, with replacement (Efron 1979)."""
    size = len(values)
    return tuple(sorted([sum(draw(values)) / size for draw in _resamplers(size, resamples, seed)]))


@functools.lru_cache(maxsize=4096)
def _bootstrap_ends(values: tuple[float, ...], level: float, resamples: int) -> tuple[float, float]:
    """Return the ends of the percentile bootstrap interval, which summary, comparison and figures all ask for."""
    return _percentiles(bootstrap_means(values, resamples), level)


def _percentiles(ordered: Sequence[float], level: float) -> tuple[float, float]:
    cut = int(len(ordered) * level / 2.0)
    return ordered[cut], ordered[-1 - cut]


def mean_interval(values: Sequence[float], level: float = LEVEL, resamples: int = RESAMPLES) -> Interval:
    """Return the mean with the envelope of its t interval and its percentile bootstrap interval.

    Raises StatisticsError for fewer than two values: one says nothing about its own scatter.
    """
    if len(values) < 2:
        raise StatisticsError(f"interval: {len(values)} values; at least two are needed, measure more blocks")
    parametric = t_interval(values, level)
    low, high = _bootstrap_ends(tuple(values), level, resamples)
    return Interval(parametric.value, min(parametric.low, low), max(parametric.high, high))


def t_interval(values: Sequence[float], level: float = LEVEL) -> Interval:
    """Return the mean of two values or more with Student's t interval."""
    mean, size = fmean(values), len(values)
    half = student.t_quantile(1.0 - level / 2.0, size - 1) * stdev(values) / math.sqrt(size)
    return Interval(mean, mean - half, mean + half)


def difference_interval(
    first: Sequence[float], second: Sequence[float], level: float = LEVEL, resamples: int = RESAMPLES
) -> Interval:
    """Return mean(second) - mean(first) of independent values: envelope of Welch's interval and the bootstrap's.

    Raises StatisticsError for fewer than two values on a side.
    """
    if len(first) < 2 or len(second) < 2:
        raise StatisticsError("interval: at least two values are needed on each side; measure more blocks")
    shift = fmean(second) - fmean(first)
    errors = [stdev(values) ** 2 / len(values) for values in (first, second)]
    total = sum(errors)
    if total == 0.0:
        return Interval(shift, shift, shift)
    # Welch and Satterthwaite's degrees of freedom
    df = total**2 / sum(error**2 / (len(values) - 1) for error, values in zip(errors, (first, second)))
    half = student.t_quantile(1.0 - level / 2.0, df) * math.sqrt(total)
    left = _shuffled(bootstrap_means(first, resamples, _SEED))
    right = bootstrap_means(second, resamples, _SEED + 1)
    low, high = _percentiles(sorted(b - a for a, b in zip(left, right)), level)
    return Interval(shift, min(shift - half, low), max(shift + half, high))


def _shuffled(values: Sequence[float]) -> list[float]:
    """Undo the sorting of one side, so that the sides' resamples are paired at random."""
    source = random.Random(_SEED)  # noqa: S311 - no secret
    return [value for _unused, value in sorted((source.random(), value) for value in values)]


def to_pct(logs: Interval) -> Interval:
    """Return the relative change in % of an interval of log ratios."""
    return Interval(*(100.0 * math.expm1(max(-_MAX_LOG, min(_MAX_LOG, x))) for x in (logs.value, logs.low, logs.high)))


def log_ratios(values: Mapping[int, float], baseline: Mapping[int, float]) -> tuple[float, ...]:
    """Return log(value / baseline) for each block that both have, in order; values of 0 or less have no ratio."""
    return tuple(
        math.log(values[block] / baseline[block])
        for block in sorted(set(values) & set(baseline))
        if values[block] > 0.0 and baseline[block] > 0.0
    )


def change_pct(ratios: Sequence[float], level: float = LEVEL, resamples: int = RESAMPLES) -> Interval | None:
    """Return the change in % (ratio of geometric means) with its interval; None for fewer than two pairs."""
    return to_pct(mean_interval(ratios, level, resamples)) if len(ratios) >= 2 else None


def detectable_pct(sd_log: float, blocks: int) -> float | None:
    """Return the smallest change in % that so many pairs find with 80 % power at the 5 % level; None below two pairs.

    ``sd_log``: standard deviation of one pair's log ratio. The smallest mean for which the t test has that power.
    """
    if blocks < 2:
        return None
    return 100.0 * math.expm1(min(_MAX_LOG, student.detectable_shift(blocks) * sd_log))


def detectable_from_repeats_pct(repeats: Sequence[float], blocks: int) -> float | None:
    """Return detectable_pct from the baseline's own repeats; a pair has twice the variance of one repeat."""
    logs = [math.log(value) for value in repeats if value > 0.0]
    return detectable_pct(stdev(logs) * math.sqrt(2.0), blocks) if len(logs) >= 2 else None


def median_interval(values: Sequence[float], resamples: int = 2_000) -> Interval | None:
    """Return the median with its percentile bootstrap interval; None below MIN_BLOCKS values."""
    size = len(values)
    if size < MIN_BLOCKS:
        return None
    medians = sorted([median(draw(values)) for draw in _resamplers(size, resamples, _SEED)])
    low, high = _percentiles(medians, LEVEL)
    return Interval(median(values), low, high)


def spread_pct(values: Sequence[float]) -> float | None:
    """Return how far repeats lie apart: range of the middle four fifths in % of the median; None below two values.

    The plain range grows with the number of repeats (1.7 standard deviations for three, 3.7 for twenty), and one
    stall that no counter showed would condemn a long run. So of every five repeats the one farthest from the median
    is left out; three or four are taken whole.
    """
    if len(values) < 2:
        return None
    middle = median(values)
    if middle <= 0.0:
        return None
    nearest = sorted(values, key=lambda value: abs(value - middle))
    kept = nearest[: len(values) - len(values) // 5]
    return 100.0 * (max(kept) - min(kept)) / middle
