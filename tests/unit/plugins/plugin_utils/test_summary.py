"""A run directory judged: every way in which a run may end."""

from __future__ import annotations

import dataclasses
import json

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils import (
    best_effort_rows,
    rundir,
    schemas,
    summary,
)
from tests.support import synthetic_run
from tests.support.synthetic_pods import POD_MODES
from tests.support.synthetic_readings import CALIBRATION_MODES, THREE_MODES, Options

QUICK = Options(blocks=4, peak_rps=400.0)


@pytest.fixture
def summarised(tmp_path):
    """Make a run and return its summary, checked against its schema."""

    def _summarised(**changes):
        run = synthetic_run.make_run(tmp_path / "run", dataclasses.replace(QUICK, **changes))
        found = summary.summarise(run)
        run.write_summary(found)
        return found

    return _summarised


def effect(found, mode, metric="p99_us"):
    return next(item for item in found["effects"] if (item["mode"], item["metric"]) == (mode, metric))


def guard(found, name):
    return next(item for item in found["guards"] if item["guard"] == name)


def test_a_good_run_passes_and_says_why(summarised):
    found = summarised()
    assert found["verdict"]["result"] == "pass"
    assert not found["partial"]
    assert found["verdict"]["sentence"].startswith("SLO-aware colocation raised CPU use from ")
    assert "Default colocation added 1" in found["verdict"]["sentence"]
    assert all(item["ok"] for item in found["guards"])
    assert {item["guard"] for item in found["guards"]} >= {"baseline_spread", "too_good", "steal", "no_foreign_batch"}
    assert effect(found, "colocation")["change_pct"]["value"] == pytest.approx(110, abs=5)
    assert effect(found, "slo_aware")["result"] == "pass"
    assert effect(found, "colocation")["result"] == "none"
    assert [item["mode"] for item in found["gains"]] == ["colocation", "slo_aware"]
    assert found["gains"][1]["batch_work_kept_pct"]["value"] == pytest.approx(99, abs=2)
    assert found["gains"][1]["objectives"][0]["result"] == "pass"
    assert found["calibration"] is None


def test_a_summary_is_a_pure_function_of_the_directory(tmp_path):
    run = synthetic_run.make_run(tmp_path / "run", dataclasses.replace(QUICK, blocks=3))
    run.write_summary(summary.summarise(run))
    assert summary.summarise(rundir.RunDirectory.open(run.path)) == run.summary()
    assert run.validate() == 1 + 9 * 6 + 1


def test_the_cells_hold_one_value_for_each_block(summarised):
    cells = {cell["mode"]: cell for cell in summarised()["cells"]}
    assert all((cell["measured"], cell["kept"]) == (4, 4) for cell in cells.values())
    assert all(len(cells["colocation"]["metrics"][name]["values"]) == 4 for name in cells["colocation"]["metrics"])
    assert cells["baseline"]["metrics"]["batch_work_per_s"] is None
    assert cells["baseline"]["aggressor"] is None
    assert cells["baseline"]["rate_rps"] == 160.0
    metric = cells["baseline"]["metrics"]["p99_us"]
    assert metric["min"] <= metric["low"] <= metric["median"] <= metric["high"] <= metric["max"]


def test_pm_qos_not_held_is_invalid_with_every_cell_measured_once(summarised):
    found = summarised(pm_qos_held=False)
    assert found["verdict"]["result"] == "invalid"
    assert "idle states were not held off (PM QoS) on every measured CPU in 12 of 12" in found["verdict"]["sentence"]
    assert all((cell["measured"], cell["kept"]) == (4, 4) for cell in found["cells"])
    assert not guard(found, "pm_qos_held")["ok"]
    assert len(guard(found, "pm_qos_held")["where"]) == 12
    assert {item["result"] for item in found["effects"]} == {"invalid"}


@pytest.mark.parametrize("blocks", [(1,), (1, 2, 3, 4)])
def test_pods_that_were_not_injected_make_the_run_invalid_and_no_window_is_repeated(summarised, blocks):
    faults = {("slo_aware", block): "not_injected" for block in blocks}
    found = summarised(pods=True, modes=POD_MODES, faults=faults)
    assert found["verdict"]["result"] == "invalid"
    assert found["verdict"]["sentence"] == (
        "invalid: pods not injected: batch lacks label koordinator.sh/qosClass=BE, priority class koord-batch in "
        f"{len(blocks)} of 12 measurements."
    )
    assert "pods not injected: batch lacks" in found["verdict"]["reasons"][0]
    assert all((cell["measured"], cell["kept"]) == (4, 4) for cell in found["cells"])
    assert guard(found, "pods_injected")["tripped"] == len(blocks)
    assert {item["result"] for item in found["effects"] if item["mode"] == "slo_aware"} == {"invalid"}
    assert {item["result"] for item in found["effects"] if item["mode"] == "colocation"} == {"none"}


def test_the_quota_of_best_effort_is_in_the_summary_and_in_one_sentence(summarised):
    found = {item["mode"]: item for item in summarised(pods=True, modes=POD_MODES)["best_effort"]}
    assert list(found) == ["baseline", "colocation", "slo_aware"]
    assert found["slo_aware"]["sentence"] == (
        "Koordinator held best effort to 0.86 of a CPU (quota 86000 to 86200 µs of each 100000) while the service used"
        " 0.13 of a CPU; before the load it was 0.98 of a CPU (quota 98000 to 98200 µs of each 100000)."
    )
    assert found["colocation"]["sentence"] == (
        "Nothing limited best effort as a whole while the service used 0.13 of a CPU."
    )
    quota = found["slo_aware"]["quota"]
    assert (quota["before_load"]["samples"], quota["window"]["samples"]) == (16, 32)
    assert quota["window"]["greatest_us"] < quota["before_load"]["least_us"]


def test_a_run_of_processes_has_no_quota_of_best_effort(summarised):
    assert summarised(blocks=3)["best_effort"] == []


@pytest.mark.parametrize(
    ("window", "before", "engine", "sentence"),
    [
        (None, None, "koordinator", "The quota of best effort was not sampled in the window."),
        ((2000, 2000, None, 1), None, "static",
         "A quota held best effort to 0.02 of a CPU (quota 2000 to no limit µs of each 100000) in the window."),
        ((90_000, 120_000, 130_000, 0), (None, None, None, 4), "koordinator",
         "Koordinator held best effort to 1.20 CPUs (quota 90000 to 130000 µs of each 100000) in the window; before"
         " the load there was no limit."),
        ((2000, None, None, 3), None, "koordinator",
         "Koordinator held best effort to no limit (quota 2000 to no limit µs of each 100000) in the window."),
    ],
)  # fmt: skip
def test_sentence_about_best_effort(window, before, engine, sentence):
    def spread(values):
        names = ("least_us", "median_us", "greatest_us", "without_limit")
        return None if values is None else {**dict(zip(names, values, strict=True)), "samples": 4}

    figures = {
        "period_us": 100_000,
        "quota": {"window": spread(window), "before_load": spread(before)},
        "service_cpus": {"window": None, "before_load": None},
    }
    assert best_effort_rows.sentence(figures, engine) == sentence


def test_injection_that_is_not_known_is_no_proof_that_it_failed(tmp_path):
    run = synthetic_run.make_run(tmp_path / "run", dataclasses.replace(QUICK, pods=True, modes=POD_MODES))
    for path in run.path.glob("measurements/*/validity.json"):
        results = json.loads(path.read_text())
        for result in results:
            if result["guard"] == "pods_injected":
                result.update(figure=None, ok=False, text="nothing is stored")
        path.write_text(json.dumps(results))
    found = summary.summarise(rundir.RunDirectory.open(run.path))
    assert found["verdict"]["sentence"].startswith("This run does not count: pods not injected, or nothing known of it")


def test_pods_that_were_not_steady_are_measured_again(summarised):
    found = summarised(pods=True, modes=POD_MODES, faults={("slo_aware", 2): "evicted"}, repeat_cap=1)
    assert found["verdict"]["result"] == "invalid"
    row = guard(found, "pods_steady")
    assert (row["tripped"], row["measurements"]) == (2, 13)
    assert "batch was Failed (Evicted) after the window" in row["text"]


def test_windows_with_steal_are_measured_again_and_reported_with_and_without(summarised):
    found = summarised(steal=(("slo_aware", 2), ("slo_aware", 3)))
    assert found["verdict"]["result"] == "pass"
    row = guard(found, "steal")
    assert (row["tripped"], row["ok"], row["measurements"]) == (6, True, 18)
    assert all("slo_aware" in name for name in row["where"])
    item = effect(found, "slo_aware")
    assert item["change_pct"]["high"] < 5
    assert item["unfiltered"]["value"] > 50
    assert item["unfiltered"]["blocks"] == 4


def test_a_block_lost_to_noise_is_left_out(summarised):
    found = summarised(steal_always=(("slo_aware", 2),), repeat_cap=1)
    assert effect(found, "slo_aware")["blocks"] == 3
    assert effect(found, "colocation")["blocks"] == 4
    assert found["verdict"]["result"] != "invalid"
    assert any("slo_aware in block 2: noise spoiled every attempt" in text for text in found["verdict"]["reasons"])


def test_too_many_blocks_lost_to_noise_are_inconclusive(summarised):
    found = summarised(steal_always=(("slo_aware", 2), ("slo_aware", 3)), repeat_cap=0)
    assert effect(found, "slo_aware")["result"] == "inconclusive"
    assert found["verdict"]["result"] == "inconclusive"


def test_most_blocks_lost_are_inconclusive_even_when_three_are_left(summarised):
    lost = tuple(("slo_aware", block) for block in (1, 2, 3, 4))
    found = summarised(blocks=7, steal_always=lost, repeat_cap=0, peak_rps=250.0)
    assert effect(found, "slo_aware")["blocks"] == 3
    assert effect(found, "slo_aware")["result"] == "inconclusive"
    assert "only 3 of 7 blocks" in effect(found, "slo_aware")["reasons"][0]


@pytest.mark.parametrize("fault", ["policy_rewritten", "batch_dead"])
def test_a_cell_that_never_was_as_meant_is_invalid(summarised, fault):
    found = summarised(faults={("slo_aware", 1): fault}, repeat_cap=1)
    assert found["verdict"]["result"] == "invalid"
    assert effect(found, "slo_aware")["result"] == "invalid"
    assert effect(found, "colocation")["result"] == "none"


@pytest.mark.parametrize("fault", ["errors", "rate", "no_progress", "generator_cpu"])
def test_what_a_repeat_would_not_cure_counts_and_is_invalid(summarised, fault):
    found = summarised(faults={("slo_aware", 1): fault})
    assert found["verdict"]["result"] == "invalid"
    assert sum(cell["measured"] for cell in found["cells"]) == 12


def test_a_fault_in_a_baseline_concerns_every_mode(summarised):
    found = summarised(faults={("baseline", 1): "errors"})
    assert {item["result"] for item in found["effects"]} == {"invalid"}


def test_colocation_that_looks_quicker_is_invalid(summarised):
    modes = {**THREE_MODES, "slo_aware": dataclasses.replace(THREE_MODES["slo_aware"], latency_factor=0.9)}
    found = summarised(modes=modes)
    assert found["verdict"]["result"] == "invalid"
    assert "a colocated mode beats the baseline" in found["verdict"]["sentence"]
    assert effect(found, "slo_aware")["result"] == "invalid"
    assert effect(found, "colocation")["result"] == "none"


def test_default_colocation_that_starves_the_service_spoils_no_other_verdict(summarised):
    modes = {**THREE_MODES, "colocation": dataclasses.replace(THREE_MODES["colocation"], latency_factor=150.0)}
    found = summarised(modes=modes, faults={("colocation", block): "late" for block in range(1, 5)})
    assert found["verdict"]["result"] == "pass"
    assert any("could not keep up" in reason for reason in found["verdict"]["reasons"])
    assert "could not keep up in 4" in guard(found, "lateness")["text"]


def test_a_judged_mode_that_starves_the_service_fails(summarised):
    modes = {**THREE_MODES, "slo_aware": dataclasses.replace(THREE_MODES["slo_aware"], latency_factor=150.0)}
    found = summarised(modes=modes, faults={("slo_aware", block): "late" for block in range(1, 5)})
    assert found["verdict"]["result"] == "fail"


def test_a_mode_that_costs_more_than_allowed_fails(summarised):
    modes = {**THREE_MODES, "slo_aware": dataclasses.replace(THREE_MODES["slo_aware"], latency_factor=1.3)}
    found = summarised(modes=modes)
    assert found["verdict"]["result"] == "fail"
    sentence = found["verdict"]["sentence"]
    assert ". SLO-aware colocation misses its objective for P90: +" in sentence
    assert "allowed are +5 %" in sentence


def test_a_noisy_run_is_inconclusive_and_says_what_it_can_find(summarised):
    found = summarised(noise=0.04, limits={"baseline_spread": 50})
    item = effect(found, "slo_aware")
    assert found["verdict"]["result"] == "inconclusive"
    assert item["detectable_pct"] > 5
    assert "blocks can find" in found["verdict"]["sentence"]


def test_a_run_whose_baselines_disagree_cannot_pass(summarised):
    found = summarised(noise=0.15)
    assert found["verdict"]["result"] == "inconclusive"
    assert any("spreads over" in reason for reason in found["verdict"]["reasons"])
    assert not guard(found, "baseline_spread")["ok"]


def test_a_cost_beyond_the_noise_fails_all_the_same(summarised):
    modes = {**THREE_MODES, "slo_aware": dataclasses.replace(THREE_MODES["slo_aware"], latency_factor=6.0)}
    assert summarised(noise=0.15, modes=modes)["verdict"]["result"] == "fail"


@pytest.mark.parametrize("blocks", [1, 2])
def test_fewer_than_three_blocks_are_inconclusive(summarised, blocks):
    found = summarised(blocks=blocks)
    assert found["verdict"]["result"] == "inconclusive"
    assert {item["result"] for item in found["effects"]} == {"inconclusive"}


def test_a_partial_run_concludes_nothing(summarised):
    found = summarised(stop_after=7)
    assert found["partial"]
    assert found["verdict"]["result"] == "inconclusive"
    assert "7 of 12 cells" in found["verdict"]["sentence"]


def test_an_empty_run_is_summarised_too(summarised):
    found = summarised(stop_after=0)
    assert found["partial"]
    assert all(metric is None for cell in found["cells"] for metric in cell["metrics"].values())


def test_load_points_and_aggressors_share_their_baselines(summarised):
    found = summarised(load_points=(0.25, 0.5), aggressors=("ffmpeg", "stress-cpu"), blocks=3, peak_rps=250.0)
    assert len(found["cells"]) == 2 + 2 * 2 * 2
    assert len(found["gains"]) == 8
    assert all(item["blocks"] == 3 for item in found["effects"])
    assert "of the peak beside" in found["verdict"]["sentence"]


def test_a_closed_loop_is_judged_without_a_rate(summarised):
    found = summarised(load_kind="closed_loop", peak_rps=300.0)
    assert all(cell["rate_rps"] is None for cell in found["cells"])
    assert "load_rate_kept" not in {item["guard"] for item in found["guards"]}


def test_a_calibration_run_carries_its_calibration(summarised):
    found = summarised(modes=CALIBRATION_MODES, blocks=10, peak_rps=250.0)
    assert found["calibration"]["trusted"]
    assert len(found["calibration"]["sentences"]) == 5
    assert found["gains"] == []


def test_the_published_results_stand_beside(summarised):
    assert [row["p99_added_pct"] for row in summarised(blocks=1)["reference"]] == [None, 16.0, 3.2]


def test_an_unknown_objective_is_one_sentence(tmp_path):
    run = synthetic_run.make_run(tmp_path / "run", dataclasses.replace(QUICK, blocks=1))
    path = run.path / "manifest.json"
    document = json.loads(path.read_text())
    document["modes"]["slo_aware"]["objectives"] = {"p95_added_pct": 1}
    path.write_text(json.dumps(document))
    with pytest.raises(rundir.RunDirectoryError, match="'p95_added_pct' is unknown"):
        summary.summarise(rundir.RunDirectory.open(run.path))


def test_a_summary_that_breaks_its_schema_is_not_written(tmp_path):
    run = synthetic_run.make_run(tmp_path / "run", dataclasses.replace(QUICK, blocks=1))
    with pytest.raises(rundir.RunDirectoryError, match=r"summary\.schema\.json"):
        run.write_summary({"schema": "other"})
    assert run.summary() is None
    with pytest.raises(schemas.SchemaError):
        schemas.check("summary", {})
