"""Effects, gains and objectives: what passes, what fails, what stays open."""

from __future__ import annotations

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.measure import effects, guards_run
from ansible_collections.colocation.testbed.plugins.module_utils.measure.statistics import Interval

BASE = {1: 100.0, 2: 104.0, 3: 98.0, 4: 101.0}


def scaled(factors):
    return {block: BASE[block] * factor for block, factor in zip(BASE, factors, strict=False)}


def test_a_block_is_compared_with_its_own_baseline():
    """The blocks differ by 6 %, the mode by exactly 2 %: only pairs see that without scatter."""
    found = effects.effect("p99_us", scaled([1.02] * 4), BASE, {"p99_added_pct": 5})
    assert found.change.value == pytest.approx(2.0)
    assert found.change.high - found.change.low < 1e-6
    assert (found.blocks, found.objective_pct, found.judgement.result) == (4, 5.0, "pass")


@pytest.mark.parametrize(
    ("factors", "result"),
    [
        ([1.02, 1.021, 1.019, 1.02], "pass"),
        ([1.10, 1.11, 1.09, 1.10], "fail"),
        ([1.01, 1.09, 1.00, 1.12], "inconclusive"),
        ([1.02, 1.02], "inconclusive"),
    ],
)
def test_objective_is_met_only_when_the_whole_interval_is_below(factors, result):
    found = effects.effect("p90_us", scaled(factors), BASE, {"p90_added_pct": 5})
    assert found.judgement.result == result
    assert found.judgement.reasons


def test_what_is_open_says_which_effect_could_be_found():
    found = effects.effect("p90_us", scaled([1.01, 1.09, 1.00, 1.12]), BASE, {"p90_added_pct": 5})
    assert f"4 blocks can find {found.detectable_pct:.1f} %" in found.judgement.reasons[0]


@pytest.mark.parametrize("factors", [[1.5], [1.5, 1.5]])
def test_fewer_than_three_blocks_are_always_inconclusive(factors):
    assert effects.effect("p50_us", scaled(factors), BASE, {}).judgement.result == "inconclusive"


def test_without_objective_nothing_is_judged():
    assert effects.effect("p50_us", scaled([1.5] * 4), BASE, {}).judgement.result == "none"


@pytest.mark.parametrize(
    ("figure", "result"),
    [(Interval(98, 97, 99), "pass"), (Interval(90, 89, 91), "fail"), (Interval(95, 94, 96), "inconclusive")],
)
def test_lower_objective(figure, result):
    assert effects.judge_lower(figure, 95.0, 5, "%").result == result
    assert effects.judge_lower(figure, 95.0, 2, "%").result == "inconclusive"


def test_points_won_and_work_kept():
    won, blocks = effects.points_won({1: 99.0, 2: 98.0}, {1: 40.0, 2: 39.0, 3: 1.0})
    assert (won.value, blocks) == (59.0, 2)
    kept, blocks = effects.kept_pct(scaled([0.98] * 3), BASE)
    assert (kept.value, blocks) == (pytest.approx(98.0), 3)
    assert effects.kept_pct({1: 5.0}, {1: 5.0}) == (None, 1)


def test_cost_of_a_point():
    utilisation, idle = dict.fromkeys(BASE, 99.0), dict.fromkeys(BASE, 39.0)
    cost = effects.cost_per_point(scaled([1.06] * 4), BASE, utilisation, idle)
    assert cost.value == pytest.approx(0.1)
    assert effects.cost_per_point(scaled([1.06] * 4), BASE, idle, idle) is None


def test_worst_result_leads():
    assert effects.worst(["pass", "none", "inconclusive", "fail"]) == "fail"
    assert effects.worst(["invalid", "fail"]) == "invalid"
    assert effects.worst([]) == "none"


@pytest.mark.parametrize(
    ("objectives", "named"), [({"p95_added_pct": 5}, "'p95_added_pct' is unknown"), ({"p90_added_pct": "5"}, "must be")]
)
def test_wrong_objective_is_named(objectives, named):
    with pytest.raises(effects.EffectsError, match=named):
        effects.check_objectives("slo_aware", objectives)


@pytest.mark.parametrize(
    ("metric", "factors", "good"),
    [
        ("p50_us", [0.90, 0.91, 0.89, 0.90], False),
        ("p99_us", [0.95, 0.951, 0.949, 0.95], False),
        ("p99_us", [0.998, 0.999, 0.997, 0.998], True),  # within the judge's own noise
        ("p99_us", [0.90, 1.05, 0.99, 1.01], True),
        ("p999_us", [0.90, 0.91, 0.89, 0.90], True),  # a handful of requests
        ("throughput_rps", [0.90, 0.91, 0.89, 0.90], True),
        ("p99_us", [0.90, 0.90], True),  # too few to say anything
    ],
)
def test_a_colocated_mode_must_not_beat_the_baseline(metric, factors, good):
    found = effects.effect(metric, scaled(factors), BASE, {})
    assert guards_run.is_too_good(found, {}) is not good


def test_baselines_that_disagree_trip():
    assert guards_run.baseline_spread({0.4: [100, 101, 102, 103]}, {}).ok
    result = guards_run.baseline_spread({0.4: [100, 101], 0.8: [100, 150, 120]}, {})
    assert (result.ok, result.repeatable) == (False, False)
    assert "load point 0.8" in result.text
    assert guards_run.baseline_spread({0.8: [100, 150, 120]}, {"baseline_spread": 60}).ok


@pytest.mark.parametrize("repeats", [{}, {0.4: [100.0]}, {0.4: [100.0, 101.0], 0.8: []}])
def test_baselines_without_repeats_are_no_agreement(repeats):
    result = guards_run.baseline_spread(repeats, {})
    assert (result.ok, result.figure) == (False, None)
