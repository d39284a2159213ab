"""How long windows and runs are: said before anything starts."""

from __future__ import annotations

import pytest
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment import durations, scenarios

from .test_settings import GOOD, made


def test_the_built_in_selection_takes_less_than_twenty_minutes() -> None:
    wanted = made()
    found = scenarios.load(ROOT, {}, GOOD["select"], wanted.shapers)
    assert durations.run_s(found, wanted) < 19 * 60
    assert durations.told(found, wanted).startswith(f"{durations.windows(found, wanted.blocks)} windows, about ")


def test_a_case_may_have_longer_windows_and_more_blocks_than_the_run() -> None:
    wanted = made()
    found = scenarios.load(ROOT, {}, ["cpu_cost.packets"], ["ebpf", "none"])
    case = found["cpu_cost"]["cases"]["packets"]
    assert durations.window_s(case, 3.0) == 8.0
    assert durations.window_s(case, 20.0) == 20.0
    assert durations.windows(found, wanted.blocks) == 2 * 2 * wanted.blocks
    each_s = wanted.warmup_s + 8.0 + durations.OVERHEAD_GUESS_S
    capacity_s = durations.CAPACITY_WARMUP_S + durations.CAPACITY_WINDOW_S + durations.OVERHEAD_GUESS_S
    assert durations.run_s(found, wanted) == pytest.approx(2 * 2 * wanted.blocks * each_s + capacity_s)


def test_bursts_bound_a_window_by_what_the_kernel_remembers() -> None:
    found = scenarios.load(ROOT, {}, ["waterline.dynamic"], ["ebpf"])
    assert durations.window_s(found["waterline"]["cases"]["dynamic"], 3.0) == 3.0
    assert durations.window_s(found["waterline"]["cases"]["dynamic"], 60.0) == pytest.approx(24 * 0.15)
