"""Comparing bandwidth runs: what changed, what is proven, and what does not compare."""

from __future__ import annotations

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils import compare, comparing
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.compare import METRICS
from ansible_collections.colocation.testbed.plugins.plugin_utils.report import comparison
from tests.support.synthetic_bandwidth_run import COST, Options, make_bandwidth_run
from tests.support.synthetic_bandwidth_scenarios import only
from tests.support.synthetic_readings import Options as MatrixOptions
from tests.support.synthetic_run import make_run

SINGLE = only("single_priority")
KINDS = {
    "base": Options(run_id="base", scenarios=SINGLE),
    "same": Options(run_id="same", scenarios=SINGLE, seed=2),
    "costly": Options(run_id="costly", scenarios=SINGLE, seed=3, cost_s_per_gbit={**COST, "ebpf": 0.45}),
    "other_plane": Options(run_id="other_plane", scenarios=SINGLE, plane="htb"),
    "other_kernel": Options(run_id="other_kernel", scenarios=SINGLE, kernel="6.18.0-example"),
    "longer": Options(run_id="longer", scenarios=SINGLE, window_s=4.0),
    "invalid": Options(run_id="invalid", scenarios=SINGLE, faults={("single_priority", "ebpf", 1): "no_cpu"}),
    "partial": Options(run_id="partial", scenarios=SINGLE, stop_after=3),
    "elsewhere": Options(run_id="elsewhere", scenarios=only("waterline")),
}


@pytest.fixture(scope="module")
def path_of(tmp_path_factory):
    made = {}

    def make(kind):
        if kind not in made:
            made[kind] = str(make_bandwidth_run(tmp_path_factory.mktemp("runs") / kind, KINDS[kind]).path)
        return made[kind]

    return make


def compared(path_of, *kinds, **thresholds):
    return comparing.compare_directories([path_of(kind) for kind in kinds], thresholds)


def test_the_same_again_is_no_regression(path_of):
    found = compared(path_of, "base", "same", cpu_s_per_gbit=15, accuracy_pct=0.5)
    assert found["result"] == "pass"
    assert found["failures"] == []
    judged = [entry for entry in found["changes"] if entry["result"] != "none"]
    assert {entry["metric"] for entry in judged} == {"cpu_s_per_gbit", "accuracy_pct"}
    assert {(entry["scenario"], entry["case"]) for entry in judged} == {("single_priority", "egress")}


def test_what_became_dearer_is_proven(path_of):
    found = compared(path_of, "base", "costly", cpu_s_per_gbit=15)
    assert found["result"] == "fail"
    assert len(found["failures"]) == 1
    assert found["failures"][0].startswith("costly: single_priority.egress with ebpf: cpu_s_per_gbit changed by +")
    assert "single_priority.egress with ebpf" in found["failures"][0]
    text = "\n".join(line.text for line in comparison.render(found, 110))
    assert "1 regression" in text
    assert "single_priority.egress, ebpf" in text
    assert 'name="cpu_s_per_gbit with ebpf"' in compare.junit_xml(found)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("other_plane", "the plane is 'edt' in one and 'htb' in the other"),
        ("other_kernel", "the kernel of the tested node is '6.1.0-example' in one"),
        ("longer", "the window is 3.0 in one and 4.0 in the other"),
        ("invalid", "This run does not count: a receiver was short of CPU"),
        ("partial", "Resume it, or allow partial runs"),
        ("elsewhere", "the runs have no case and shaper in common"),
    ],
)
def test_what_does_not_compare_is_refused_in_one_sentence(kind, text, path_of):
    with pytest.raises(compare.CompareError) as caught:
        compared(path_of, "base", kind)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_runs_of_two_experiments_do_not_compare(path_of, tmp_path):
    matrix = make_run(tmp_path / "matrix", MatrixOptions(blocks=1, window_s=2.0))
    with pytest.raises(compare.CompareError, match=r"name runs of one experiment$"):
        comparing.compare_directories([path_of("base"), str(matrix.path)], {})


def test_an_unknown_metric_is_refused(path_of):
    with pytest.raises(compare.CompareError, match="threshold for 'p99_us': known metrics are accuracy_pct, "):
        compared(path_of, "base", "same", p99_us=5)
    assert "cpu_s_per_gbit" in METRICS
