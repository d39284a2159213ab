"""Objectives of the bandwidth experiment: what may be asked, and what follows from figures over blocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.measure import objectives
from ansible_collections.colocation.testbed.plugins.module_utils.measure.effects import Judgement


def one(name, value):
    return objectives.parse("s.c", {name: value}, limited=False)[0]


def judged(name, limit, values):
    item = one(name, limit)
    return objectives.judge(item, objectives.figure_of(values), len(values))


def test_a_limit_is_always_judged_where_there_is_one():
    assert [item.name for item in objectives.parse("s.c", {}, limited=True)] == ["overshoot_pct_max"]
    assert objectives.parse("s.c", {}, limited=False) == ()
    assert objectives.parse("s.c", {"overshoot_pct_max": 3}, limited=True)[0].limit == 3.0


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("accuracy_min", 99, "s.c: objective 'accuracy_min' is unknown; known are cpu_ratio_<shaper>_max"),
        ("accuracy_pct", 99, "s.c: objective 'accuracy_pct' is unknown"),
        ("accuracy_pct_min", "99", "s.c: objective accuracy_pct_min is '99'; must be a number"),
        ("accuracy_pct_min", True, "s.c: objective accuracy_pct_min is True; must be a number"),
    ],
)
def test_bad_objectives_are_one_sentence(name, value, text):
    with pytest.raises(objectives.ObjectivesError) as caught:
        one(name, value)
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize(
    ("name", "limit", "values", "result"),
    [
        ("accuracy_pct_min", 99.9, [99.95, 99.95, 99.96], "pass"),
        ("accuracy_pct_min", 99.9, [99.5, 99.6, 99.5], "fail"),
        ("accuracy_pct_min", 99.9, [99.8, 99.95, 99.99], "inconclusive"),
        ("accuracy_pct_min", 99.9, [99.95, 99.95], "inconclusive"),
        ("accuracy_pct_min", 99.9, [], "inconclusive"),
        ("switch_p95_ms_max", 10, [6.0, 7.0, 6.5], "pass"),
        ("switch_p95_ms_max", 10, [16.0, 17.0, 16.5], "fail"),
        ("transitions_per_change_max", 1, [1.0, 1.0, 1.0], "pass"),
        ("apply_ms_max", 50, [49.0, 51.0, 50.0], "inconclusive"),
    ],
)
def test_the_whole_interval_must_keep_to_the_limit(name, limit, values, result):
    assert judged(name, limit, values).result == result


def test_reasons_have_figure_interval_and_limit():
    assert judged("switch_p95_ms_max", 10, [6.0, 6.0, 6.0]).reasons == ("6.0 ms (6.0 to 6.0), allowed are 10",)
    text = judged("accuracy_pct_min", 99.9, [99.95, 99.95, 99.95]).reasons[0]
    assert text == "99.95 % (99.95 to 99.95), wanted are at least 99.9"


def test_a_ratio_names_the_other_shaper():
    item = one("cpu_ratio_htb_max", 1)
    assert (item.metric, item.against, item.unit) == ("cpu_s_per_gbit", "htb", "")


def test_a_percentile_of_few_switches_stays_open():
    passed = Judgement("pass", ("7.0 ms",))
    assert objectives.enough_switches(passed, 50.0) == passed
    open_ = objectives.enough_switches(passed, 49.0)
    assert open_.result == "inconclusive"
    assert open_.reasons[-1] == "49 switches of the 50 that the percentile takes"
    assert objectives.enough_switches(Judgement("fail"), 10.0).result == "inconclusive"


@given(st.lists(st.floats(0.0, 100.0), min_size=0, max_size=2), st.floats(0.0, 100.0))
def test_fewer_than_three_blocks_conclude_nothing(values, limit):
    assert judged("accuracy_pct_min", limit, values).result == "inconclusive"


@given(st.lists(st.floats(0.0, 100.0), min_size=3, max_size=8), st.floats(-1.0, 101.0))
def test_nothing_passes_and_fails_at_once(values, limit):
    least, most = judged("accuracy_pct_min", limit, values).result, judged("accuracy_pct_max", limit, values).result
    if least == "pass" and most == "pass":
        assert objectives.figure_of(values).low == objectives.figure_of(values).high == limit
    assert not (least == "fail" and most == "fail")
