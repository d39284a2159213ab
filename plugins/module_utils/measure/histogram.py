# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Histograms of whole values, such as every request's latency in µs with its count."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity


class HistogramError(Exception):
    """A histogram cannot be read or asked; the text says why and what is allowed."""


class Histogram:
    """An immutable histogram: each value in µs with the number of times that it occurred."""

    __slots__ = ("_cumulative", "_values")

    def __init__(self, counts: Iterable[tuple[int, int]]) -> None:
        """Build from (value_us, count) pairs in any order; equal values add up. Raises HistogramError."""
        merged: dict[int, int] = {}
        for value_us, count in counts:
            if value_us < 0 or count < 0:
                raise HistogramError(f"histogram: pair ({value_us}, {count}) is negative; both must be 0 or more")
            if count:
                merged[value_us] = merged.get(value_us, 0) + count
        self._values = sorted(merged)
        self._cumulative = list(accumulate(merged[value] for value in self._values))

    @classmethod
    def from_pairs(cls, pairs: Any) -> Histogram:
        """Build from the JSON form ``[[value_us, count], …]``. Raises HistogramError naming the bad element."""
        if not isinstance(pairs, (list, tuple)):
            raise HistogramError(f"histogram: is {quantity.kind_of(pairs)}; must be a list of [value, count] pairs")
        checked: list[tuple[int, int]] = []
        for index, pair in enumerate(pairs):
            if not _is_pair(pair):
                raise HistogramError(f"histogram: element {index} is {pair!r}; must be [value, count] of whole numbers")
            checked.append((int(pair[0]), int(pair[1])))
        return cls(checked)

    def __eq__(self, other: object) -> bool:
        """Compare by content."""
        if not isinstance(other, Histogram):
            return NotImplemented
        return self.pairs() == other.pairs()

    def __hash__(self) -> int:
        """Hash by content."""
        return hash((tuple(self._values), tuple(self._cumulative)))

    @property
    def total(self) -> int:
        """Return the number of occurrences."""
        return self._cumulative[-1] if self._cumulative else 0

    def pairs(self) -> list[list[int]]:
        """Return the JSON form, in order of the value."""
        previous = 0
        result = []
        for value, cumulative in zip(self._values, self._cumulative):
            result.append([value, cumulative - previous])
            previous = cumulative
        return result

    def quantile(self, share: float) -> int:
        """Return the nearest-rank quantile: the smallest value that at least ``share`` of all occurrences reach.

        That is the value of rank ⌈share · total⌉ (Hyndman and Fan 1996, definition 1), which always occurred
        itself and needs no interpolation. Raises HistogramError for an empty histogram or a share outside 0 to 1.
        """
        if not 0.0 <= share <= 1.0:
            raise HistogramError(f"quantile: share is {share}; must be between 0 and 1")
        if not self.total:
            raise HistogramError("quantile: the histogram is empty; there must be at least one request")
        # 0.99 * 100 is 99.00000000000001 in binary: without the slack the rank would be one too high.
        rank = max(1, math.ceil(share * self.total - 1e-9 * self.total))
        return self._values[bisect_left(self._cumulative, rank)]

    def mean(self) -> float:
        """Return the mean. Raises HistogramError for an empty histogram."""
        if not self.total:
            raise HistogramError("mean: the histogram is empty; there must be at least one request")
        return sum(value * count for value, count in self.pairs()) / self.total

    def count_above(self, threshold: float) -> int:
        """Return how many occurrences are greater than ``threshold``."""
        index = bisect_right(self._values, threshold)
        return self.total - (self._cumulative[index - 1] if index else 0)

    def cdf(self) -> list[tuple[int, float]]:
        """Return (value, share of occurrences that are at most value), one point for each value."""
        return [(value, cumulative / self.total) for value, cumulative in zip(self._values, self._cumulative)]

    def ccdf(self) -> list[tuple[int, float]]:
        """Return (value, share of occurrences greater than value), one point for each value; the last share is 0."""
        total = self.total
        return [(value, (total - cumulative) / total) for value, cumulative in zip(self._values, self._cumulative)]


def merge(histograms: Sequence[Histogram]) -> Histogram:
    """Return one histogram with the occurrences of all."""
    return Histogram((value, count) for histogram in histograms for value, count in histogram.pairs())


def _is_pair(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 2 and _is_whole(value[0]) and _is_whole(value[1])


def _is_whole(value: Any) -> bool:
    # A run has millions of them, and nearly all are of this type.
    if isinstance(value, int):
        return not isinstance(value, bool)
    return isinstance(value, float) and math.isfinite(value) and value == int(value)
