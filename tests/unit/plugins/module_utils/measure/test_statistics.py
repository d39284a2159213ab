"""Intervals and power against published values and by simulation."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.measure import statistics, student


@pytest.mark.parametrize(
    ("p", "df", "expected"),
    # Tables of Student's t: 95 and 99 % two-sided, 90 % one-sided.
    [(0.975, 1, 12.7062), (0.975, 2, 4.30265), (0.975, 9, 2.26216), (0.995, 4, 4.60409), (0.9, 30, 1.31042)],
)
def test_t_quantiles_are_those_of_the_tables(p, df, expected):
    assert student.t_quantile(p, df) == pytest.approx(expected, rel=1e-5)
    assert student.t_quantile(1 - p, df) == pytest.approx(-expected, rel=1e-5)
    assert student.t_cdf(expected, df) == pytest.approx(p, abs=1e-5)


@given(st.floats(min_value=-50, max_value=50), st.floats(min_value=1, max_value=200))
def test_t_distribution_is_symmetric_and_between_0_and_1(t, df):
    assert 0.0 <= student.t_cdf(t, df) <= 1.0
    assert student.t_cdf(t, df) + student.t_cdf(-t, df) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("n", "shift"),
    # R: power.t.test(n, power = 0.8, type = "one.sample")$delta with sd = 1
    [(3, 3.264), (5, 1.682), (10, 0.9960), (20, 0.6604)],
)
def test_detectable_shift_is_that_of_the_noncentral_t(n, shift):
    assert student.detectable_shift(n) == pytest.approx(shift, rel=1e-3)


def test_power_without_effect_is_the_level():
    assert student.t_power(0.0, 5) == pytest.approx(0.05, abs=1e-4)


def covered(n, draw, trials=600):
    """Return how often (of 1) the interval and the bare bootstrap hold the true mean, which is 0."""
    source = random.Random(n)
    hits = bootstrap_hits = 0
    for _ in range(trials):
        values = [draw(source) for _ in range(n)]
        interval = statistics.mean_interval(values, resamples=400)
        hits += interval.low <= 0.0 <= interval.high
        means = statistics.bootstrap_means(values, 400)
        bootstrap_hits += means[10] <= 0.0 <= means[-11]
    return hits / trials, bootstrap_hits / trials


@pytest.mark.parametrize("n", [3, 5, 10])
def test_interval_of_few_normal_values_covers_what_it_names(n):
    interval, bootstrap = covered(n, lambda source: source.gauss(0.0, 0.02))
    # 600 trials at 95 %: standard error 0.9 %
    assert interval > 0.925
    if n <= 5:  # why the bootstrap alone would not do
        assert bootstrap < 0.88


def test_interval_of_values_with_outliers_covers_as_well():
    interval, _ = covered(5, lambda source: source.gauss(0.0, 0.1 if source.random() < 0.1 else 0.01))
    assert interval > 0.93


def test_what_is_drawn_for_ten_blocks_is_drawn_once():
    values = [math.log(1 + index / 100) for index in range(10)]
    statistics._resamplers.cache_clear()
    assert statistics.mean_interval(values) == statistics.mean_interval(values)
    assert statistics._resamplers.cache_info().misses == 1


def test_change_is_the_ratio_of_geometric_means():
    ratios = statistics.log_ratios({1: 110.0, 2: 220.0, 3: 330.0}, {1: 100.0, 2: 200.0, 3: 300.0, 4: 5.0})
    change = statistics.change_pct(ratios)
    assert change.value == pytest.approx(10.0)
    assert change.low == pytest.approx(10.0)
    assert change.high == pytest.approx(10.0)


def test_one_pair_has_no_interval():
    assert statistics.change_pct((0.1,)) is None
    with pytest.raises(statistics.StatisticsError, match="at least two"):
        statistics.mean_interval([1.0])


def test_values_without_logarithm_make_no_pair():
    assert statistics.log_ratios({1: 0.0, 2: 2.0}, {1: 1.0, 2: 1.0}) == (math.log(2.0),)


def test_independent_samples_that_differ_are_found_and_equal_ones_not():
    source = random.Random(3)
    first = [source.gauss(0.0, 0.01) for _ in range(8)]
    same = [source.gauss(0.0, 0.01) for _ in range(8)]
    other = [source.gauss(0.05, 0.01) for _ in range(8)]
    unchanged = statistics.difference_interval(first, same)
    assert unchanged.low < 0.0 < unchanged.high
    found = statistics.difference_interval(first, other)
    assert 0.02 < found.low < found.value < found.high < 0.08


def test_independent_samples_cover_what_they_name():
    source = random.Random(11)
    hits = 0
    for _ in range(300):
        first = [source.gauss(0.0, 0.01) for _ in range(3)]
        second = [source.gauss(0.0, 0.03) for _ in range(5)]
        interval = statistics.difference_interval(first, second, resamples=300)
        hits += interval.low <= 0.0 <= interval.high
    assert hits / 300 > 0.91


def test_detectable_effect_shrinks_with_blocks_and_grows_with_scatter():
    by_blocks = [statistics.detectable_pct(0.02, blocks) for blocks in (3, 5, 10, 20)]
    assert by_blocks == sorted(by_blocks, reverse=True)
    assert by_blocks[0] == pytest.approx(100 * math.expm1(3.264 * 0.02), rel=1e-3)
    assert statistics.detectable_pct(0.04, 5) > statistics.detectable_pct(0.02, 5)
    assert statistics.detectable_pct(0.02, 1) is None
    repeats = [100.0 * math.exp(step) for step in (-0.01, 0.0, 0.01)]
    assert statistics.detectable_from_repeats_pct(repeats, 5) == pytest.approx(
        statistics.detectable_pct(0.01 * math.sqrt(2), 5)
    )


def test_detectable_effect_is_found_four_times_of_five():
    source = random.Random(5)
    shift = math.log1p(statistics.detectable_pct(0.02, 5) / 100)
    hits = sum(statistics.t_interval([source.gauss(shift, 0.02) for _ in range(5)]).low > 0.0 for _ in range(2000))
    assert 0.77 < hits / 2000 < 0.83


def test_spread_leaves_out_one_of_five_and_takes_fewer_whole():
    assert statistics.spread_pct([100.0, 102.0, 104.0]) == pytest.approx(100 * 4 / 102)
    assert statistics.spread_pct([100.0, 101.0, 102.0, 103.0, 900.0]) == pytest.approx(100 * 3 / 102)
    assert statistics.spread_pct([100.0, 100.0, 100.0, 200.0]) == pytest.approx(100.0)
    assert statistics.spread_pct([100.0]) is None


def test_median_interval_holds_the_median():
    interval = statistics.median_interval([3.0, 1.0, 2.0, 5.0, 4.0])
    assert (interval.value, interval.low >= 1.0, interval.high <= 5.0) == (3.0, True, True)
    assert statistics.median_interval([1.0, 2.0]) is None
