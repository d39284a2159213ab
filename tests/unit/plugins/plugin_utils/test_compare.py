"""Comparing runs: what changed, what is a regression, and what must not be compared."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ElementTree

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils import compare, rundir
from tests.support import synthetic_run
from tests.support.synthetic_readings import THREE_MODES, Options

BASE = Options(run_id="before", blocks=4, peak_rps=400.0, noise=0.004)
SLOWER = {**THREE_MODES, "slo_aware": dataclasses.replace(THREE_MODES["slo_aware"], latency_factor=1.2)}


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")

    def _make(name, **changes):
        options = dataclasses.replace(BASE, run_id=name, **changes)
        return synthetic_run.make_run(folder / name, options)

    return _make


@pytest.fixture(scope="module")
def before(make):
    return make("before")


@pytest.fixture(scope="module")
def after(make):
    return make("after", modes=SLOWER)


def change(found, mode, metric):
    return next(item for item in found["changes"] if (item["mode"], item["metric"]) == (mode, metric))


def test_a_regression_is_found_where_it_is(before, after):
    found = compare.compare([before, after], {"p99_us": 5, "throughput_rps": 2})
    slo = change(found, "slo_aware", "p99_us")
    assert slo["change_pct"]["low"] < 18.6 < slo["change_pct"]["high"]
    assert (found["result"], len(found["failures"])) == ("fail", 1)
    assert "after: slo_aware at 40 % of the peak beside ffmpeg: p99_us changed by" in found["failures"][0]
    assert change(found, "baseline", "p99_us")["result"] == "pass"
    assert change(found, "slo_aware", "p50_us")["result"] == "none"


def test_without_thresholds_nothing_fails(before, after):
    found = compare.compare([before, after])
    assert (found["result"], found["failures"]) == ("none", [])


@pytest.mark.parametrize(("count", "words"), [(0, "0 runs in compare_run_dirs"), (1, "1 run in compare_run_dirs")])
def test_too_few_runs_name_the_variable(before, count, words):
    with pytest.raises(compare.CompareError, match=words):
        compare.compare([before][:count])


def test_several_runs_are_compared_with_the_first(before, after):
    found = compare.compare([before, after, after], {"p90_us": 5})
    assert len(found["failures"]) == 2
    assert [run["run_id"] for run in found["runs"]] == ["before", "after", "after"]


def test_less_throughput_is_worse_and_more_is_not(before, make):
    slower = {**THREE_MODES, "colocation": dataclasses.replace(THREE_MODES["colocation"], frames_per_s=60.0)}
    poorer = make("poorer", modes=slower)
    assert compare.compare([before, poorer], {"batch_work_per_s": 5})["result"] == "fail"
    assert compare.compare([poorer, before], {"batch_work_per_s": 5})["result"] == "pass"


def test_too_few_blocks_prove_nothing(before, make):
    short = make("short", blocks=2, modes=SLOWER)
    found = compare.compare([before, short], {"p99_us": 5})
    assert change(found, "slo_aware", "p99_us")["result"] == "inconclusive"
    assert found["result"] == "inconclusive"


def test_junit_names_each_threshold(before, after, make):
    document = compare.junit_xml(compare.compare([before, after], {"p99_us": 5, "p90_us": 18}))
    suite = ElementTree.fromstring(document)
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("6", "1", "0")
    failed = [case for case in suite if case.find("failure") is not None]
    assert [case.get("name") for case in failed] == ["p99_us at 40 % of the peak beside ffmpeg"]
    assert failed[0].get("classname") == "after.slo_aware"
    assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped"))


REFUSED = {
    "other kernel": ({"kernel": "6.12.0"}, "the kernel of the tested node is '6.1.0-example'"),
    "other rate": ({"peak_rps": 440.0}, "the rate at load point 0.4 is 160/s in one and 176/s in the other"),
    "other load kind": ({"load_kind": "closed_loop"}, "load kind is 'open_loop' in one and 'closed_loop'"),
    "other window": ({"window_s": 6.0}, "the window is 8.0 in one and 6.0"),
    "invalid": ({"pm_qos_held": False}, "does not count: idle states were not held off"),
    "partial": ({"stop_after": 4}, "was cut short"),
    "nothing in common": ({"load_points": (0.6,)}, "nothing to compare"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_compared_is_refused_with_its_reason(before, make, case):
    changes, named = REFUSED[case]
    other = make(f"refused-{list(REFUSED).index(case)}", **changes)
    with pytest.raises(compare.CompareError) as caught:
        compare.compare([before, other])
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("part", "key", "value", "named"),
    [
        ("load", "page_bytes", 1, "page size"),
        ("service", "page_bytes", 1, "page size"),
        ("load", "connections", 7, "load connections"),
        ("load", "compression_level", 9, "compression level"),
    ],
)
def test_other_work_is_refused(before, part, key, value, named):
    manifest = {**before.manifest, part: {**before.manifest[part], key: value}}
    with pytest.raises(compare.CompareError, match=named):
        compare.compare([before, rundir.RunDirectory(before.path, manifest)])


def test_pods_are_not_compared_with_processes(before):
    with pytest.raises(compare.CompareError, match="workloads run as process in one and as pod in the other"):
        compare.compare([before, rundir.RunDirectory(before.path, {**before.manifest, "substrate": "pod"})])


def test_other_cpu_model_is_refused(before):
    hosts = {name: {**host, "cpu_model": "Other"} for name, host in before.manifest["hosts"].items()}
    with pytest.raises(compare.CompareError, match="CPU model of the tested node"):
        compare.compare([before, rundir.RunDirectory(before.path, {**before.manifest, "hosts": hosts})])


def test_invalid_and_partial_runs_are_compared_when_allowed(before, make):
    invalid, partial = make("invalid", pm_qos_held=False), make("partial", stop_after=11)
    assert compare.compare([before, invalid], allow_invalid=True)["changes"]
    assert compare.compare([before, partial], allow_partial=True)["changes"]


@pytest.mark.parametrize(
    ("thresholds", "named"), [({"p98_us": 5}, "'p98_us': known metrics"), ({"p99_us": "5"}, "p99_us is '5'"),
                              ({"p99_us": -1}, "0 or more")]
)  # fmt: skip
def test_wrong_threshold_is_named(before, thresholds, named):
    with pytest.raises(compare.CompareError, match=named):
        compare.compare([before, before], thresholds)


def test_one_run_is_not_enough(before):
    with pytest.raises(compare.CompareError, match="name two run directories"):
        compare.compare([before])
