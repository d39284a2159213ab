"""The order of the suite, and what still fits into its time."""

from __future__ import annotations

import pytest
import schedule

DEAR = list(schedule.DEAR)


@pytest.mark.parametrize("order", [schedule.ORDER, schedule.LANES])
def test_cheap_comes_before_what_measures_and_dear_last(order: tuple[str, ...]) -> None:
    found = [("measures", ""), ("molecule", DEAR[1]), ("kernel", ""), ("molecule", "node"), ("molecule", DEAR[0])]
    found += [("somewhere", ""), ("gates", ""), ("unit", ""), ("latest", ""), ("end_to_end", ""), ("report", "")]
    played = sorted(found, key=lambda test: schedule.position(*test, order))
    assert [stage for stage, _scenario in played] == [*order, "somewhere", "molecule", "molecule"]
    assert [scenario for _stage, scenario in played][-2:] == DEAR[:2]


def test_both_orders_have_the_same_stages_and_measure_last() -> None:
    assert sorted(schedule.ORDER) == sorted(schedule.LANES)
    assert schedule.ORDER[-1] == schedule.LANES[-1] == schedule.MEASURES


def test_a_scenario_that_needs_programs_has_others_before_it() -> None:
    assert next(iter(schedule.DEAR.values())).groups == ()
    assert all(dear.cost_min > 0 for dear in schedule.DEAR.values())


def test_a_cluster_and_the_matrix_on_it_fit_into_a_third_of_the_time() -> None:
    costs = [dear.cost_min for dear in schedule.DEAR.values()]
    assert sum(costs[: list(schedule.DEAR).index("matrix_pods") + 1]) <= schedule.DEFAULT_BUDGET_MIN / 3


def test_what_fits_is_not_refused() -> None:
    budget = schedule.Budget(1000.0, 55.0)
    assert budget.left_min(1000.0 + 51 * 60) == pytest.approx(4.0)
    assert budget.refusal(4.0, 1000.0 + 51 * 60) == ""


def test_what_does_not_fit_is_refused_with_numbers_and_remedy() -> None:
    refusal = schedule.Budget(1000.0, 55.0).refusal(6.0, 1000.0 + 51 * 60)
    assert refusal == "needs 6 min, and 4.0 of 55 are left: COLOCATION_TESTBED_BUDGET_MIN=0 make test runs it"
    assert "0.0 of 55" in schedule.Budget(1000.0, 55.0).refusal(1.0, 1000.0 + 90 * 60)


def test_without_a_limit_everything_fits() -> None:
    budget = schedule.Budget(1000.0, 0.0)
    assert budget.refusal(10_000.0, 1e9) == ""
    assert budget.left_min(1e9) == float("inf")


def test_the_budget_counts_from_when_make_began() -> None:
    assert schedule.budget({}, 77.0) == schedule.Budget(77.0, schedule.DEFAULT_BUDGET_MIN)
    assert schedule.budget({schedule.STARTED: "70", schedule.BUDGET: "12.5"}, 77.0) == schedule.Budget(70.0, 12.5)
    assert schedule.budget({schedule.BUDGET: ""}, 77.0).minutes == schedule.DEFAULT_BUDGET_MIN


@pytest.mark.parametrize("text", ["an hour", "-1", "nan", "inf"])
def test_bad_budget_is_one_sentence(text: str) -> None:
    with pytest.raises(schedule.ScheduleError) as caught:
        schedule.budget({schedule.BUDGET: text})
    assert (
        str(caught.value) == f"COLOCATION_TESTBED_BUDGET_MIN={text}: is not a number of 0 or more; "
        "correct it or leave it away"
    )
