"""The order of measurements: everything once a block, what is compared close together, the same from the same seed."""

from __future__ import annotations

import itertools

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.measure import schedule, schedule_traffic
from tests.support import synthetic_bandwidth_run as synthetic
from tests.support.synthetic_bandwidth_run import Options


def plan(**options):
    return schedule_traffic.plan(synthetic.manifest(Options(**options)))


def test_everything_is_measured_once_a_block():
    cells = plan(blocks=3)
    assert len({cell.key for cell in cells}) == len(cells) == 3 * 31
    assert [cell.block for cell in cells] == sorted(cell.block for cell in cells)


def test_a_scenario_is_not_torn_apart_and_its_shapers_take_turns():
    cells = [cell for cell in plan(blocks=4) if cell.block == 2]
    assert len([name for name, _unused in itertools.groupby(cell.scenario for cell in cells)]) == 6
    orders = {
        tuple(cell.shaper for cell in plan(blocks=4) if (cell.scenario, cell.block) == ("latency", block))
        for block in range(1, 5)
    }
    assert len(orders) > 1


def test_the_order_depends_on_the_seed_alone():
    assert plan(seed=7) == plan(seed=7)
    assert plan(seed=7) != plan(seed=8)


def test_shapers_of_a_case_have_the_same_seed_in_a_block():
    seeds = {(cell.block, cell.case): cell.seed for cell in plan() if cell.scenario == "latency"}
    assert all(cell.seed == seeds[cell.block, cell.case] for cell in plan() if cell.scenario == "latency")


def chosen(*cells):
    document = synthetic.manifest(Options())
    document["schedule"]["cells"] = list(cells)
    return document


def cell(scenario="latency", case="offline_saturates", shaper="ebpf", blocks=2):
    return {"scenario": scenario, "case": case, "shaper": shaper, "blocks": blocks}


def test_a_choice_is_kept_to():
    cells = schedule_traffic.plan(chosen(cell(), cell(shaper="htb", blocks=1)))
    assert sorted((item.shaper, item.block) for item in cells) == [("ebpf", 1), ("ebpf", 2), ("htb", 1)]


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        ([cell(case="nothing")], "latency.nothing has no definition among the scenarios"),
        ([cell(), cell()], "latency.offline_saturates.ebpf is named twice; each may be named once"),
    ],
)
def test_a_bad_choice_is_one_sentence(cells, text):
    with pytest.raises(schedule.ScheduleError, match=f"^schedule: {text}$"):
        schedule_traffic.plan(chosen(*cells))
