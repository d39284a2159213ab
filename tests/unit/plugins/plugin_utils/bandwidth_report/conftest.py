"""Runs of the bandwidth experiment of every kind, made once for all tests of their report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report import view
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.summary import summarise
from tests.support.synthetic_bandwidth_run import BIAS, COST, Options, make_bandwidth_run
from tests.support.synthetic_bandwidth_scenarios import only

if TYPE_CHECKING:
    from collections.abc import Callable

    from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_rundir import BandwidthRun

SINGLE = only("single_priority")
WATER = only("waterline")
BLOCKS = (1, 2, 3)


def always(fault: str, scenario: str, shaper: str = "ebpf") -> dict[tuple[str, str, int], str]:
    """Return a fault in every block."""
    return {(scenario, shaper, block): fault for block in BLOCKS}


KINDS: dict[str, Options] = {
    "good": Options(),
    "single": Options(scenarios=SINGLE),
    "water": Options(scenarios=WATER),
    "slow": Options(scenarios=WATER, switch_ms=14.0),
    "never": Options(scenarios=WATER, faults=always("never_settles", "waterline")),
    "few": Options(scenarios=WATER, switches=10),
    "flapping": Options(scenarios=WATER, flaps=30),
    "inexact": Options(scenarios=SINGLE, bias_pct={**BIAS, "ebpf": -0.4}),
    "over": Options(scenarios=SINGLE, bias_pct={**BIAS, "ebpf": 2.0}),
    "costly": Options(scenarios=SINGLE, cost_s_per_gbit={**COST, "ebpf": 0.42}),
    "noisy": Options(scenarios=SINGLE, spread_pct=0.15),
    "unpaced": Options(scenarios=SINGLE, unshaped_times=4.0),
    "faster": Options(scenarios=SINGLE, bias_pct={**BIAS, "htb": 20.0}),
    "two_blocks": Options(scenarios=SINGLE, blocks=2),
    "repeated": Options(scenarios=SINGLE, faults={("single_priority", "ebpf", 2): "steal"}),
    "lost": Options(scenarios=SINGLE, faults=always("drops_unread", "single_priority", "htb")),
    "not_in_effect": Options(scenarios=SINGLE, faults=always("not_in_effect", "single_priority")),
    "busy": Options(scenarios=SINGLE, faults=always("receiver_busy", "single_priority")),
    "busy_other": Options(scenarios=only("class_count"), faults=always("receiver_busy", "class_count", "htb")),
    "silent": Options(scenarios=SINGLE, faults=always("silent_class", "single_priority")),
    "no_packets": Options(scenarios=SINGLE, faults=always("no_packets", "single_priority")),
    "partial": Options(scenarios=SINGLE, stop_after=5),
    "empty": Options(scenarios=SINGLE, stop_after=0),
}


@pytest.fixture(scope="session")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], BandwidthRun]:
    """Make a run of a kind, the same one for all tests."""
    made: dict[str, BandwidthRun] = {}

    def make(kind: str) -> BandwidthRun:
        if kind not in made:
            made[kind] = make_bandwidth_run(tmp_path_factory.mktemp("results") / kind, KINDS[kind])
        return made[kind]

    return make


@pytest.fixture(scope="session")
def summary_of(run_of: Callable[[str], BandwidthRun]) -> Callable[[str], dict[str, Any]]:
    """Judge a run of a kind, once."""
    made: dict[str, dict[str, Any]] = {}

    def judge(kind: str) -> dict[str, Any]:
        if kind not in made:
            made[kind] = summarise(run_of(kind))
        return made[kind]

    return judge


@pytest.fixture(scope="session")
def view_of(
    run_of: Callable[[str], BandwidthRun], summary_of: Callable[[str], dict[str, Any]]
) -> Callable[[str], view.BandwidthView]:
    """Read a run of a kind as the report does."""
    return lambda kind: view.build(summary_of(kind), run_of(kind).manifest)
