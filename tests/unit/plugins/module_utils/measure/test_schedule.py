"""The schedule: what is measured, in which order, and what comes next after any interruption."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.measure import schedule
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import MeasurementRecord

CONFIG = schedule.Config(
    blocks=3,
    modes=("baseline", "colocation", "slo_aware"),
    batch_modes=("colocation", "slo_aware"),
    load_points=(0.25, 0.5),
    aggressors=("ffmpeg", "stress-cpu"),
    seed=7,
    repeat_cap=2,
)


def record(cell, kept=True):
    return MeasurementRecord.of(cell, 100.0, kept)


def test_every_block_holds_the_whole_matrix_and_the_baseline_no_aggressor():
    for block in (1, 2, 3):
        cells = [cell for cell in schedule.plan(CONFIG) if cell.block == block]
        assert len({cell.key for cell in cells}) == len(cells) == 2 + 2 * 2 * 2
        assert {cell.aggressor for cell in cells if cell.mode == "baseline"} == {None}
        assert {cell.aggressor for cell in cells if cell.mode != "baseline"} == {"ffmpeg", "stress-cpu"}


def test_blocks_follow_each_other_and_are_shuffled_apart():
    cells = schedule.plan(CONFIG)
    assert [cell.block for cell in cells] == sorted(cell.block for cell in cells)
    orders = {
        tuple((cell.mode, cell.load_point, cell.aggressor) for cell in cells if cell.block == block)
        for block in (1, 2, 3)
    }
    assert len(orders) == 3


def test_every_position_of_a_block_is_as_likely_for_every_mode():
    config = dataclasses.replace(CONFIG, blocks=3000, load_points=(0.5,), aggressors=("ffmpeg",))
    firsts = Counter(cell.mode for cell in schedule.plan(config)[::3])
    assert all(900 < count < 1100 for count in firsts.values()), firsts


def test_order_and_seeds_stay_the_same_for_ever():
    """A run is resumed by another Python, and compared with one of years ago: these values must never change."""
    config = dataclasses.replace(CONFIG, blocks=1, load_points=(0.5,), aggressors=("ffmpeg",))
    assert [cell.mode for cell in schedule.plan(config)] == ["colocation", "slo_aware", "baseline"]
    assert schedule.arrival_seed(7, 1, 0.5) == 376583553
    assert schedule.arrival_seed(7, 1, 1) == schedule.arrival_seed(7, 1, 1.0)


def test_arrivals_are_the_same_in_all_modes_of_a_block_and_load_point_only():
    seeds = {}
    for cell in schedule.plan(CONFIG):
        seeds.setdefault((cell.block, cell.load_point), set()).add(cell.seed)
    assert all(len(found) == 1 for found in seeds.values())
    assert len(set.union(*seeds.values())) == 6
    assert all(0 < seed < 2**31 for found in seeds.values() for seed in found)


def test_a_failed_cell_is_repeated_at_the_end_of_its_own_block():
    config = dataclasses.replace(CONFIG, load_points=(0.5,), aggressors=("ffmpeg",))
    cells = schedule.plan(config)
    progress = schedule.Progress(cells, config.repeat_cap)
    done = [record(cells[0], kept=False)]
    sequence = []
    for _ in range(3):
        cell = progress.next_cell(done)
        sequence.append((cell.mode, cell.block, cell.attempt))
        done.append(record(cell))
    assert sequence == [(cells[1].mode, 1, 1), (cells[2].mode, 1, 1), (cells[0].mode, 1, 2)]
    assert progress.next_cell(done) == cells[3]


def test_a_cell_is_given_up_at_the_cap():
    config = dataclasses.replace(CONFIG, blocks=1, load_points=(0.5,), aggressors=("ffmpeg",), modes=("slo_aware",))
    progress = schedule.Progress(schedule.plan(config), config.repeat_cap)
    done = []
    while (cell := progress.next_cell(done)) is not None:
        done.append(record(cell, kept=False))
    assert [item.attempt for item in done] == [1, 2, 3]
    assert [cell.mode for cell in progress.exhausted(done)] == ["slo_aware"]
    assert progress.remaining(done) == 0


@given(st.lists(st.booleans(), max_size=200), st.integers(min_value=0, max_value=3))
def test_any_outcomes_end_with_every_cell_had_or_given_up(outcomes, cap):
    cells = schedule.plan(CONFIG)
    progress = schedule.Progress(cells, cap)
    luck = iter(outcomes)
    done = []
    while (cell := progress.next_cell(done)) is not None:
        before = progress.remaining(done)
        done.append(record(cell, kept=next(luck, True)))
        assert before >= progress.remaining(done) >= before - 1
        # resuming is asking again: a fresh object with what is on disk answers the same
        assert schedule.Progress(cells, cap).next_cell(done) == progress.next_cell(done)
    kept = {item.key for item in done if item.kept}
    given_up = {cell.key for cell in progress.exhausted(done)}
    assert kept | given_up == {cell.key for cell in cells}
    assert not kept & given_up
    assert [item.block for item in done] == sorted(item.block for item in done)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"modes": ()}, "modes and load_points"),
        ({"aggressors": ()}, "aggressors must name"),
        ({"modes": ("baseline", "baseline")}, "mode is named twice"),
        ({"load_points": (0.5, 0.5)}, "load point is named twice"),
        ({"blocks": -1}, "0 or more"),
    ],
)
def test_impossible_schedule_is_refused(change, named):
    with pytest.raises(schedule.ScheduleError, match=named):
        schedule.plan(dataclasses.replace(CONFIG, **change))


def test_mode_without_definition_is_named():
    manifest = {
        "modes": {"baseline": {}},
        "schedule": {
            "blocks": 1, "modes": ["baseline", "slow"], "load_points": [0.5], "aggressors": [], "seed": 1,
            "repeat_cap": 0,
        },
    }  # fmt: skip
    with pytest.raises(schedule.ScheduleError, match="'slow' has no definition"):
        schedule.Config.from_manifest(manifest)
