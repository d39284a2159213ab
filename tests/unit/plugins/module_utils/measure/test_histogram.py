"""Histograms against the plain list of values that they stand for."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.measure.histogram import (
    Histogram,
    HistogramError,
    merge,
)

values = st.lists(st.integers(min_value=0, max_value=10**7), min_size=1, max_size=200)


def of(listed: list[int]) -> Histogram:
    return Histogram((value, 1) for value in listed)


@given(values, st.integers(min_value=0, max_value=1000))
def test_quantile_is_the_nearest_rank(listed, permille):
    rank = max(1, math.ceil(Fraction(permille, 1000) * len(listed)))
    assert of(listed).quantile(permille / 1000) == sorted(listed)[rank - 1]


def test_rank_is_not_pushed_up_by_binary_rounding():
    assert of(list(range(1, 101))).quantile(0.99) == 99
    assert Histogram([(1, 99_900), (2, 100)]).quantile(0.999) == 1


@given(values)
def test_mean_total_and_pairs_are_those_of_the_list(listed):
    histogram = of(listed)
    assert histogram.total == len(listed)
    assert histogram.mean() == pytest.approx(sum(listed) / len(listed))
    assert [value for value, count in histogram.pairs() for _ in range(count)] == sorted(listed)


@given(values, st.integers(min_value=-1, max_value=10**7))
def test_count_above_and_ccdf_agree_with_the_list(listed, threshold):
    histogram = of(listed)
    assert histogram.count_above(threshold) == sum(value > threshold for value in listed)
    for (value, above), (_, upto) in zip(histogram.ccdf(), histogram.cdf(), strict=True):
        assert above == pytest.approx(sum(item > value for item in listed) / len(listed))
        assert above + upto == pytest.approx(1.0)
    assert histogram.ccdf()[-1][1] == 0.0


@given(st.lists(values, max_size=5))
def test_merge_is_the_histogram_of_all(lists):
    assert merge([of(listed) for listed in lists]) == of([value for listed in lists for value in listed])


@given(values)
def test_json_form_goes_there_and_back(listed):
    assert Histogram.from_pairs(of(listed).pairs()) == of(listed)


@given(st.recursive(st.none() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=8))
def test_parser_takes_pairs_of_whole_numbers_or_says_why_not(value):
    whole = isinstance(value, list) and all(
        isinstance(pair, list)
        and len(pair) == 2
        and all(isinstance(item, (int, float)) and item >= 0 and item == item // 1 != math.inf for item in pair)
        for pair in value
    )
    if whole:
        assert Histogram.from_pairs(value).total == sum(int(count) for _, count in value)
    else:
        with pytest.raises(HistogramError, match=r"^histogram: "):
            Histogram.from_pairs(value)


@pytest.mark.parametrize(
    ("pairs", "named"),
    [
        (None, "is nothing"),
        ([[1, 2], [3]], "element 1"),
        ([[1.5, 2]], "element 0"),
        ([[True, 2]], "element 0"),
        ([[-1, 2]], "negative"),
        ([[float("inf"), 2]], "element 0"),
    ],
)
def test_bad_pair_is_named(pairs, named):
    with pytest.raises(HistogramError, match=named):
        Histogram.from_pairs(pairs)


def test_an_empty_histogram_has_no_quantile():
    with pytest.raises(HistogramError, match="empty"):
        Histogram([]).quantile(0.5)
    with pytest.raises(HistogramError, match="empty"):
        Histogram([(5, 0)]).mean()
