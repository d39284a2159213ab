"""The summary of a bandwidth run: every objective both ways, guards with their consequences, and damaged runs."""

from __future__ import annotations

import json
import shutil

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils import rundir, schemas
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.summary import summarise
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_rundir import BandwidthRun, RunDirectoryError

from .conftest import KINDS


def objective(found, name, case=None):
    chosen = [item for item in found["objectives"] if item["objective"] == name and case in (None, item["case"])]
    assert len(chosen) == 1, chosen
    return chosen[0]


def cell(found, case, shaper="ebpf"):
    return next(item for item in found["cells"] if (item["case"], item["shaper"]) == (case, shaper))


def guard(found, name):
    return next(item for item in found["guards"] if item["guard"] == name)


@pytest.mark.parametrize("kind", KINDS)
def test_every_summary_follows_its_schema_and_is_the_same_again(kind, run_of, summary_of):
    schemas.check("bandwidth-summary", summary_of(kind))
    assert summarise(BandwidthRun.open(run_of(kind).path)) == summary_of(kind)


def test_every_file_of_a_run_follows_its_schema(run_of):
    run = run_of("single")
    assert run.validate() == 1 + 12 * 6
    assert run.finished


def test_a_good_run_passes_with_what_it_has_to_show(summary_of):
    found = summary_of("good")
    assert found["verdict"]["result"] == "pass"
    sentence = found["verdict"]["sentence"]
    assert sentence.startswith("On plane edt the programs kept all of 22 objectives: rates within 0.0")
    assert "offline traffic gives way within" in sentence
    assert "CPU per Gbit 12 % below HTB and 9 % below TBF." in sentence
    assert all(item["ok"] for item in found["guards"])
    assert {item["result"] for item in found["objectives"]} == {"pass"}
    assert found["partial"] is False


def test_cells_have_one_value_for_each_block_and_every_class(summary_of):
    found = summary_of("good")
    item = cell(found, "200_classes")
    assert (item["measured"], item["kept"], item["counts"]) == (3, 3, True)
    assert len(item["classes"]) == 200
    pod = item["classes"]["pod_007"]
    assert pod["expected_bps"] == 1e6
    assert abs(pod["error_pct"]["median"]) < 0.1
    assert len(pod["received_bps"]["values"]) == 3
    assert cell(found, "egress", "none")["metrics"]["accuracy_pct"] is None
    assert cell(found, "egress", "htb")["metrics"]["accuracy_pct"]["median"] == pytest.approx(97.6, abs=0.1)


def test_cases_come_in_the_order_in_which_people_read_them(summary_of):
    cases = list(dict.fromkeys((item["scenario"], item["case"]) for item in summary_of("good")["cells"]))
    assert [case for scenario, case in cases if scenario == "class_count"] == [
        "10_classes", "50_classes", "100_classes", "200_classes",
    ]  # fmt: skip
    assert [case for scenario, case in cases if scenario == "message_sizes"] == [
        "512B_x1", "512B_x64", "128KB_x1", "128KB_x64",
    ]  # fmt: skip
    assert cases[0] == ("single_priority", "egress")
    assert cases[-1] == ("latency", "offline_saturates")


@pytest.mark.parametrize(
    ("kind", "name", "result"),
    [
        ("inexact", "accuracy_pct_min", "fail"),
        ("over", "overshoot_pct_max", "fail"),
        ("costly", "cpu_ratio_htb_max", "fail"),
        ("costly", "cpu_ratio_tbf_max", "fail"),
        ("slow", "switch_p95_ms_max", "fail"),
        ("never", "switch_p95_ms_max", "fail"),
        ("few", "switch_p95_ms_max", "inconclusive"),
        ("flapping", "transitions_per_change_max", "fail"),
        ("noisy", "accuracy_pct_min", "inconclusive"),
        ("two_blocks", "cpu_ratio_htb_max", "inconclusive"),
        ("two_blocks", "accuracy_pct_min", "inconclusive"),
    ],
)
def test_each_objective_can_be_missed(kind, name, result, summary_of):
    found = summary_of(kind)
    cases = {"switch_p95_ms_max": "dynamic", "transitions_per_change_max": "dynamic"}
    assert objective(found, name, cases.get(name, "egress"))["result"] == result
    assert found["verdict"]["result"] == result


def test_the_sentence_names_what_was_missed(summary_of):
    sentence = summary_of("costly")["verdict"]["sentence"]
    assert sentence.startswith("On plane edt the programs missed 2 of 4 objectives: CPU per Gbit against HTB in ")
    assert "allowed are 1 (and 1 more)." in sentence
    assert "12 % below" not in sentence


def test_fewer_than_three_blocks_conclude_nothing(summary_of):
    found = summary_of("two_blocks")
    assert "2 of the 3 blocks that it takes at least" in found["verdict"]["sentence"]
    assert {item["result"] for item in found["objectives"]} == {"inconclusive"}


def test_cost_is_paired_by_block(summary_of):
    found = summary_of("single")
    compared = {item["against"]: item for item in found["comparisons"] if item["metric"] == "cpu_s_per_gbit"}
    assert set(compared) == {"htb", "tbf", "none"}
    # All windows of a block are up to 8 % quicker or slower together; only pairs show less than that.
    assert compared["htb"]["ratio"]["value"] == pytest.approx(0.330 / 0.375, rel=0.01)
    assert compared["htb"]["ratio"]["high"] - compared["htb"]["ratio"]["low"] < 0.06
    assert compared["none"]["difference"]["value"] == pytest.approx(0.03, abs=0.01)
    assert (compared["htb"]["result"], compared["none"]["result"]) == ("pass", "none")


def test_cost_compares_at_about_the_same_rate_only(summary_of):
    found = summary_of("unpaced")
    costs = {item["against"]: item for item in found["comparisons"] if item["metric"] == "cpu_s_per_gbit"}
    assert (costs["none"]["ratio"], costs["none"]["difference"], costs["none"]["other_rate"]) == (None, None, True)
    assert costs["htb"]["other_rate"] is False
    assert found["verdict"]["result"] == "pass"
    open_ = objective(summary_of("faster"), "cpu_ratio_htb_max")
    assert open_["result"] == "inconclusive"
    assert "what a Gbit costs compares at one rate only" in open_["reasons"][0]


def test_windows_spoiled_by_noise_are_measured_again(summary_of):
    found = summary_of("repeated")
    assert found["verdict"]["result"] == "pass"
    row = guard(found, "steal")
    assert (row["tripped"], row["ok"], row["measurements"]) == (1, True, 13)
    assert (cell(found, "egress")["measured"], cell(found, "egress")["kept"]) == (4, 3)


def test_a_shaper_lost_to_noise_leaves_its_comparison_open(summary_of):
    found = summary_of("lost")
    assert found["verdict"]["result"] == "inconclusive"
    assert objective(found, "cpu_ratio_htb_max")["result"] == "inconclusive"
    assert objective(found, "cpu_ratio_tbf_max")["result"] == "pass"
    assert any("noise spoiled every attempt" in reason for reason in found["verdict"]["reasons"])


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("not_in_effect", "shaping_in_effect", "the shaping that was asked for was not in effect"),
        ("silent", "traffic_complete", "classes have no figures"),
        ("no_packets", "traffic_complete", "classes have no figures"),
        ("busy", "receiver_cpu", "a receiver was short of CPU"),
    ],
)
def test_what_is_no_evidence_makes_the_run_invalid(kind, name, words, summary_of):
    found = summary_of(kind)
    assert found["verdict"]["result"] == "invalid"
    assert found["verdict"]["sentence"] == f"This run does not count: {words}."
    assert not guard(found, name)["ok"]
    assert not cell(found, "egress")["counts"]
    assert cell(found, "egress", "tbf")["counts"]
    assert objective(found, "accuracy_pct_min")["result"] == "invalid"


def test_a_guard_where_nothing_is_judged_takes_only_those_figures(summary_of):
    found = summary_of("busy_other")
    assert found["verdict"]["result"] == "pass"
    assert any("with htb: its figures are no evidence" in reason for reason in found["verdict"]["reasons"])
    assert not cell(found, "10_classes", "htb")["counts"]
    assert {item["result"] for item in found["comparisons"]} == {"invalid"}


def test_no_figure_is_invented_for_a_class_that_was_not_counted(summary_of):
    found = summary_of("silent")
    assert cell(found, "egress")["kept"] == 0
    assert cell(found, "egress")["metrics"]["accuracy_pct"] is None
    assert cell(found, "egress")["classes"]["bulk"]["received_bps"] is None


def test_a_run_that_was_cut_short_says_so(summary_of):
    found = summary_of("partial")
    assert found["partial"] is True
    assert (
        found["verdict"]["sentence"] == "This run was cut short: 5 of 12 cells were measured; run it again to resume."
    )
    assert found["verdict"]["result"] == "inconclusive"
    assert summary_of("empty")["verdict"]["result"] == "inconclusive"


def test_published_figures_that_cannot_be_say_why(summary_of):
    rows = summary_of("single")["reference"]
    wrong = [(item["shaper"], item["value"]) for item in rows if not item["possible"]]
    assert wrong == [("oncn-bwm", 7840.0), ("oncn-bwm", 980.0), ("htb", 950.0)]
    why = {item["why_impossible"] for item in rows if not item["possible"]}
    assert why == {
        "a link of 1 Gbit/s carries at most 941.5 Mbit/s of TCP payload in packets of 1500 bytes",
    }
    assert all(item["why_impossible"] is None for item in rows if item["possible"])


@pytest.fixture
def copy(run_of, tmp_path):
    shutil.copytree(run_of("single").path, tmp_path / "copy")
    return tmp_path / "copy"


def edit(path, change):
    value = json.loads(path.read_text(encoding="utf-8"))
    change(value)
    path.write_text(json.dumps(value), encoding="utf-8")


def first(copy):
    return next(path for path in sorted((copy / "measurements").iterdir()) if ".ebpf-" in path.name)


def test_without_a_measure_of_what_senders_could_offer_nothing_passes(copy):
    def change(manifest):
        scenario = manifest["scenarios"]["single_priority"]
        scenario["cases"]["egress"]["capacity_bps"] = None
        scenario["cases"]["egress"]["classes"]["bulk"]["offered_bps"] = 900e6

    edit(copy / "manifest.json", change)
    found = summarise(BandwidthRun.open(copy))
    assert objective(found, "accuracy_pct_min")["result"] == "inconclusive"
    assert "what senders could offer was not measured" in objective(found, "accuracy_pct_min")["reasons"][-1]
    assert objective(found, "cpu_ratio_htb_max")["result"] == "pass"


def test_senders_at_their_own_limit_prove_nothing(copy):
    def change(manifest):
        manifest["scenarios"]["single_priority"]["cases"]["egress"]["capacity_bps"] = 510e6

    edit(copy / "manifest.json", change)
    found = summarise(BandwidthRun.open(copy))
    assert found["verdict"]["sentence"] == "This run does not count: senders could not offer more than the limit."
    assert guard(found, "sender_headroom")["worst"] == pytest.approx(98.0, abs=0.1)


def test_unshaped_windows_stand_in_for_what_senders_can_do(copy):
    def change(manifest):
        manifest["scenarios"]["single_priority"]["cases"]["egress"]["capacity_bps"] = None

    edit(copy / "manifest.json", change)
    found = summarise(BandwidthRun.open(copy))
    assert guard(found, "sender_headroom")["worst"] == pytest.approx(100.0, abs=2.0)
    assert objective(found, "accuracy_pct_min")["result"] == "invalid"


def no_traffic(copy):
    (first(copy) / "traffic.json").unlink()


def no_classes(copy):
    edit(first(copy) / "traffic.json", lambda value: value.pop("classes"))


def half_a_file(copy):
    (first(copy) / "traffic.json").write_text('{"classes": ')


def unknown_experiment(copy):
    edit(copy / "manifest.json", lambda value: value.update(experiment="colocation"))


def no_experiment(copy):
    edit(copy / "manifest.json", lambda value: value.pop("experiment"))


def unknown_objective(copy):
    def change(manifest):
        manifest["scenarios"]["single_priority"]["cases"]["egress"]["objectives"]["speed_max"] = 1

    edit(copy / "manifest.json", change)


def other_scenario(copy):
    def change(manifest):
        manifest["scenarios"] = {"other": manifest["scenarios"]["single_priority"]}

    edit(copy / "manifest.json", change)


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (no_traffic, r"traffic\.json: cannot be read: No such file"),
        (no_classes, r"traffic\.json: does not follow docs/schemas/traffic\.schema\.json: 'classes' is a required"),
        (half_a_file, r"traffic\.json"),
        (unknown_experiment, r"experiment is 'colocation'; this version knows matrix, bandwidth; use the version"),
        (no_experiment, r"is of the experiment 'matrix', and only 'bandwidth' can be used here"),
        (unknown_objective, r"single_priority\.egress: objective 'speed_max' is unknown; .*; restore the run from a"),
        (other_scenario, r"'single_priority' is missing; restore the run from a copy or measure again"),
    ],
)
def test_damage_is_one_sentence(damage, text, copy):
    damage(copy)
    with pytest.raises(RunDirectoryError, match=text) as caught:
        summarise(BandwidthRun.open(copy))
    assert "\n" not in str(caught.value)


def test_the_matrix_refuses_a_bandwidth_run(run_of):
    with pytest.raises(RunDirectoryError, match="is of the experiment 'bandwidth', and only 'matrix' can be used here"):
        rundir.RunDirectory.open(run_of("single").path)
