from __future__ import annotations

import copy

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.report import model, outcome
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.model import Condition
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import ReportError


def test_mode_without_batch_work_stands_beside_every_aggressor(view_of):
    view = view_of("grid")
    assert set(view.conditions) == {
        Condition(point, name) for point in (0.25, 0.5) for name in ("ffmpeg", "stress-cache")
    }
    for condition in view.conditions:
        cell = view.cell("baseline", condition)
        assert cell is not None
        assert cell.condition == Condition(condition.load_point, None)


def test_baseline_comes_first_and_its_colour_is_nobody_elses(view_of, summary_of, run_of):
    assert [mode.colour for mode in view_of("good").modes] == [0, 1, 2]
    summary = copy.deepcopy(summary_of("good"))
    summary["cells"] = [cell for cell in summary["cells"] if cell["mode"] != "baseline"]
    modes = model.build(summary, run_of("good").manifest).modes
    assert [(mode.name, mode.colour, mode.is_baseline) for mode in modes] == [
        ("colocation", 1, False),
        ("slo_aware", 2, False),
    ]


@pytest.mark.parametrize("key", ["cells", "effects", "gains", "guards", "verdict", "run_id"])
def test_summary_without_a_part_is_refused_with_its_name(summary_of, run_of, key):
    summary = {name: value for name, value in summary_of("good").items() if name != key}
    with pytest.raises(ReportError, match=key):
        model.build(summary, run_of("good").manifest)


def test_unknown_result_is_refused(summary_of, run_of):
    summary = copy.deepcopy(summary_of("good"))
    summary["verdict"]["result"] = "superb"
    with pytest.raises(ReportError, match="superb"):
        model.build(summary, run_of("good").manifest)


def test_estimate_without_a_value_is_no_estimate():
    assert outcome.interval(None) is None
    assert outcome.interval({"value": None, "low": None, "high": None}) is None
    assert outcome.interval({"value": 0, "low": -1, "high": None}) == outcome.Interval(0.0, -1.0, None)
