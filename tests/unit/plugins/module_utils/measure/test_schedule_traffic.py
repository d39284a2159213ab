"""The order of the bandwidth experiment: whole blocks, what is compared side by side, the same from the same seed."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.measure import schedule, schedule_traffic
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import BandwidthRecord

SHAPERS = ("ebpf", "htb", "tbf", "none")


def manifest(seed: int = 7, blocks: int = 3) -> dict[str, Any]:
    case = {"direction": "egress"}
    cells = [
        {"scenario": scenario, "case": name, "shaper": shaper, "blocks": blocks}
        for scenario, cases in (("first", ("a", "b", "c", "d")), ("second", ("e",)))
        for name in cases
        for shaper in (SHAPERS if scenario == "first" else SHAPERS[:2])
    ]
    return {
        "schedule": {"seed": seed, "blocks": blocks, "cells": cells},
        "scenarios": {"first": {"cases": dict.fromkeys("abcd", case)}, "second": {"cases": {"e": case}}},
    }


def test_every_block_holds_every_cell_once() -> None:
    plan = schedule_traffic.plan(manifest())
    wanted = {(cell["scenario"], cell["case"], cell["shaper"]) for cell in manifest()["schedule"]["cells"]}
    for _block, cells in itertools.groupby(plan, key=lambda cell: cell.block):
        found = [(cell.scenario, cell.case, cell.shaper) for cell in cells]
        assert len(found) == len(wanted)
        assert set(found) == wanted


def test_shapers_of_a_case_follow_each_other() -> None:
    plan = schedule_traffic.plan(manifest())
    runs = [key for key, _cells in itertools.groupby(plan, key=lambda cell: (cell.block, cell.scenario, cell.case))]
    assert len(runs) == len(set(runs)) == 3 * 5


def test_the_order_follows_the_seed_and_differs_between_blocks() -> None:
    def order(seed: int, block: int) -> list[tuple[str, str]]:
        return [(cell.case, cell.shaper) for cell in schedule_traffic.plan(manifest(seed)) if cell.block == block]

    assert order(7, 1) == order(7, 1)
    assert order(7, 1) != order(8, 1)
    assert len({tuple(order(7, block)) for block in (1, 2, 3)}) == 3


def test_all_shapers_of_a_case_get_the_same_seed() -> None:
    seeds: dict[tuple[int, str], set[int]] = {}
    for cell in schedule_traffic.plan(manifest()):
        seeds.setdefault((cell.block, cell.case), set()).add(cell.seed)
    assert {len(found) for found in seeds.values()} == {1}


def test_a_spoiled_cell_comes_again_within_its_block() -> None:
    plan = schedule_traffic.plan(manifest())
    progress = schedule.Progress(plan, 1)
    done = [BandwidthRecord.of(cell, kept=number != 3) for number, cell in enumerate(plan[:18])]
    again = progress.next_cell(done)
    assert again is not None
    assert (again.key, again.attempt) == (plan[3].key, 2)


def test_a_cell_without_definition_is_refused() -> None:
    broken = manifest()
    broken["schedule"]["cells"][0]["case"] = "z"
    with pytest.raises(schedule.ScheduleError, match=r"first\.z has no definition"):
        schedule_traffic.plan(broken)
