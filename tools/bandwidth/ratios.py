"""Ratios of costs that have a common floor, with intervals that stay honest when the divisor is small. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ansible_collections.colocation.testbed.plugins.module_utils.measure import statistics
from ansible_collections.colocation.testbed.plugins.module_utils.measure.statistics import Interval

_STEPS = 60
_FURTHEST = 1e3


def ratio_interval(numerators: Sequence[float], divisors: Sequence[float]) -> Interval | None:
    """Return the ratio of the means of paired values with its 95 % interval; None where there is none.

    Fieller (1954): the ratios r for which the mean of numerator - r * divisor may be 0. There is no bounded interval
    when the divisors' own interval reaches 0. Raises StatisticsError for fewer than two pairs.
    """
    if statistics.mean_interval(divisors).low <= 0.0:
        return None
    value = math.fsum(numerators) / math.fsum(divisors)

    def may_be(ratio: float) -> bool:
        found = statistics.mean_interval([a - ratio * b for a, b in zip(numerators, divisors, strict=True)])
        return found.low <= 0.0 <= found.high

    return Interval(value, _end(may_be, value, -1.0), _end(may_be, value, 1.0))


def _end(may_be: Callable[[float], bool], value: float, sign: float) -> float:
    """Return how far the ratios that may be reach on one side."""
    width = max(abs(value), 1.0) * 0.01
    while may_be(value + sign * width):
        width *= 2.0
        if width > _FURTHEST:
            return sign * math.inf
    inside, outside = 0.0, width
    for _ in range(_STEPS):
        middle = (inside + outside) / 2.0
        if may_be(value + sign * middle):
            inside = middle
        else:
            outside = middle
    return value + sign * outside


def geometric_ratio(numerators: Sequence[float], divisors: Sequence[float]) -> Interval:
    """Return the ratio of geometric means of paired positive values with its interval. Raises StatisticsError."""
    blocks = range(len(numerators))
    logs = statistics.log_ratios(dict(zip(blocks, numerators, strict=True)), dict(zip(blocks, divisors, strict=True)))
    found = statistics.mean_interval(logs)
    return Interval(math.exp(found.value), math.exp(found.low), math.exp(found.high))


def upper_quantile(values: Sequence[float], share: float) -> Interval:
    """Return the quantile of values that this share does not exceed (nearest rank), with its 95 % interval.

    The ends are values themselves, by the binomial distribution of how many are below (David and Nagaraja, Order
    Statistics, 7.1), which assumes no shape; too few values have no upper end.
    """
    ordered, size = sorted(values), len(values)
    below, low, high = 0.0, 0, size
    for rank in range(size):
        # Probability that at most `rank` of the values are not above the quantile.
        below += math.comb(size, rank) * share**rank * (1 - share) ** (size - rank)
        if below <= 0.025:
            low = rank
        if below >= 0.975:
            high = min(high, rank)
    upper = ordered[high] if high < size else math.inf
    return Interval(ordered[math.ceil(share * size) - 1], ordered[low], upper)
