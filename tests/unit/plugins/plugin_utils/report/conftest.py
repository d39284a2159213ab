"""Run directories of every kind, made once for all tests of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.report import digest, model
from ansible_collections.colocation.testbed.plugins.plugin_utils.summary import summarise
from tests.support.synthetic_pods import POD_MODES
from tests.support.synthetic_readings import CALIBRATION_MODES, THREE_MODES, Behaviour, Options
from tests.support.synthetic_run import make_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from ansible_collections.colocation.testbed.plugins.plugin_utils.report.model import View
    from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir import RunDirectory

LONG = "a_policy-with.a-very-long-name_that-somebody-made-up"

KINDS: dict[str, Options] = {
    "good": Options(blocks=4, window_s=3.0),
    "stolen": Options(blocks=3, window_s=3.0, steal=(("slo_aware", 2),)),
    "lost": Options(blocks=3, window_s=3.0, steal_always=tuple(("slo_aware", block) for block in (1, 2, 3))),
    "invalid": Options(blocks=3, window_s=3.0, pm_qos_held=False),
    "pods": Options(blocks=3, window_s=3.0, pods=True, modes=POD_MODES),
    "apart": Options(blocks=3, window_s=3.0, pods=True, modes=POD_MODES, shares_machine=False),
    "not_injected": Options(
        blocks=3, window_s=3.0, pods=True, modes=POD_MODES,
        faults={("slo_aware", block): "not_injected" for block in (1, 2, 3)},
    ),
    "partial": Options(blocks=3, window_s=3.0, stop_after=4),
    "empty": Options(blocks=3, window_s=3.0, stop_after=0),
    "single": Options(blocks=3, window_s=3.0, modes={"baseline": THREE_MODES["baseline"]}),
    "closed": Options(blocks=3, window_s=3.0, load_kind="closed_loop"),
    "calibration": Options(blocks=5, window_s=3.0, modes=CALIBRATION_MODES),
    "grid": Options(
        blocks=3,
        window_s=3.0,
        load_points=(0.25, 0.5),
        aggressors=("ffmpeg", "stress-cache"),
        modes={
            **THREE_MODES,
            LONG: Behaviour(latency_factor=1.2, definition={"title": "<img src=x onerror=alert(1)> & \"quoted\""}),
        },
    ),
}  # fmt: skip


@pytest.fixture(scope="session", autouse=True)
def _few_cards():
    """Draw fewer measurements: drawing is what takes the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digest, "MOST_CARDS_FOR_MODE", 3)
        yield


@pytest.fixture(scope="session")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], RunDirectory]:
    """Make a run of a kind, the same one for all tests."""
    made: dict[str, RunDirectory] = {}

    def make(kind: str) -> RunDirectory:
        if kind not in made:
            made[kind] = make_run(tmp_path_factory.mktemp("results") / kind, KINDS[kind])
        return made[kind]

    return make


@pytest.fixture(scope="session")
def summary_of(run_of: Callable[[str], RunDirectory]) -> Callable[[str], dict[str, Any]]:
    """Judge a run of a kind, once."""
    made: dict[str, dict[str, Any]] = {}

    def judge(kind: str) -> dict[str, Any]:
        if kind not in made:
            made[kind] = summarise(run_of(kind))
        return made[kind]

    return judge


@pytest.fixture(scope="session")
def view_of(
    run_of: Callable[[str], RunDirectory], summary_of: Callable[[str], dict[str, Any]]
) -> Callable[[str], View]:
    """Read a run of a kind as the report does."""
    return lambda kind: model.build(summary_of(kind), run_of(kind).manifest)
