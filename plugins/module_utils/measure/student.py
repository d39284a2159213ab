# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Student's t distribution with nothing but the standard library, and the power of the test that uses it."""

from __future__ import annotations

import functools
import math
from statistics import NormalDist
from typing import Callable

_NORMAL = NormalDist()
_MAX_TERMS = 300
_TINY = 1e-300


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function (DLMF 8.17.22) by Lentz's method."""
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    value = d
    for term in range(1, _MAX_TERMS):
        even = term * (b - term) * x / ((a + 2 * term - 1) * (a + 2 * term))
        odd = -(a + term) * (a + b + term) * x / ((a + 2 * term) * (a + 2 * term + 1))
        step = 1.0
        for factor in (even, odd):
            d = 1.0 + factor * d
            c = 1.0 + factor / c
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = c if abs(c) > _TINY else _TINY
            step = c * d
            value *= step
        if abs(step - 1.0) < 1e-14:
            break
    return value


def _incomplete_beta(a: float, b: float, x: float) -> float:
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    front = math.exp(log_front)
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _beta_fraction(a, b, x) / a
    return 1.0 - front * _beta_fraction(b, a, 1.0 - x) / b


def t_cdf(t: float, df: float) -> float:
    """Return P(T ≤ t) of Student's t with ``df`` degrees of freedom (DLMF 8.17 with x = df / (df + t²))."""
    tail = 0.5 * _incomplete_beta(df / 2.0, 0.5, df / (df + t * t))
    return 1.0 - tail if t > 0 else tail


@functools.lru_cache(maxsize=1024)
def t_quantile(p: float, df: float) -> float:
    """Return the value below which a share ``p`` (0 < p < 1) of Student's t lies."""
    if p < 0.5:
        return -t_quantile(1.0 - p, df)
    high = 1.0
    while t_cdf(high, df) < p:
        high *= 2.0
    return _bisect(lambda t: t_cdf(t, df) - p, 0.0, high)


def _bisect(increasing: Callable[[float], float], low: float, high: float) -> float:
    for _unused in range(100):
        middle = (low + high) / 2.0
        if increasing(middle) < 0.0:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


def t_power(shift: float, n: int, level: float = 0.05) -> float:
    """Return the power of the two-sided one-sample t test with ``n`` values whose mean is ``shift`` times its error.

    P(|T| > t) of the noncentral t with noncentrality ``shift``, as the integral over the sample's standard
    deviation u (a scaled chi variable) of the normal probabilities, by Simpson's rule.
    """
    df = n - 1
    critical = t_quantile(1.0 - level / 2.0, df)
    log_scale = math.log(2.0) + df / 2.0 * math.log(df / 2.0) - math.lgamma(df / 2.0)

    def integrand(u: float) -> float:
        if u <= 0.0:
            return 0.0
        density = math.exp(log_scale + (df - 1) * math.log(u) - df * u * u / 2.0)
        return density * (_NORMAL.cdf(shift - critical * u) + _NORMAL.cdf(-shift - critical * u))

    steps, end = 400, 1.0 + 8.0 / math.sqrt(2.0 * df)
    width = end / steps
    inner = sum((4 if index % 2 else 2) * integrand(index * width) for index in range(1, steps))
    return (integrand(0.0) + inner + integrand(end)) * width / 3.0


@functools.lru_cache(maxsize=256)
def detectable_shift(n: int, power: float = 0.8, level: float = 0.05) -> float:
    """Return the mean, in standard deviations of one value, that ``n`` (2 or more) values find with ``power``."""
    return _bisect(lambda shift: t_power(shift, n, level) - power, 0.0, 100.0) / math.sqrt(n)
