"""Guards on pods: each passes where pods are what the mode means, and trips on what it is there for."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.measure import guards, limits
from tests.support.synthetic_pods import POD_FAULTS, POD_MODES
from tests.support.synthetic_readings import Options
from tests.support.synthetic_run import readings

ONLY_PODS = {"pods_injected", "pods_steady", "pods_unthrottled", "batch_resources"}

#: fault: guard that trips, its figure, what its text says, whether the window is measured again
EXPECTED = {
    "not_injected": ("pods_injected", 2.0, "pods not injected: batch lacks label koordinator.sh/qosClass=BE, ", False),
    "evicted": ("pods_steady", 1.0, "batch was Failed (Evicted) after the window", True),
    "restarted": ("pods_steady", 2.0, "batch was restarted, 0 times before the window and 1 after it", True),
    "replaced": ("pods_steady", 1.0, "batch was another pod after the window", True),
    "other_class": ("pods_steady", 1.0, "batch had class LSR after the window, expected was BE", True),
    "node_not_ready": ("pods_steady", 1.0, "the node was not ready after the window", True),
    "pod_gone": ("pods_steady", 1.0, "the pod of batch was gone after the window", True),
    "throttled": ("pods_unthrottled", 30.0, "service was throttled in 30.0 % of periods, and has no CPU limit", False),
    "resources_gone": ("batch_resources", 100.0, "batch resources vanished (the agent was silent for degradeT", True),
}


def pods(mode="slo_aware", **changes):
    return readings(Options(pods=True, modes=POD_MODES, **changes), mode)


def tripped(results):
    return {name for name, result in results.items() if not result.ok}


@pytest.mark.parametrize("mode", POD_MODES)
def test_a_clean_window_of_pods_trips_nothing(mode):
    found = pods(mode)
    results = found.evaluate()
    assert tripped(results) == set()
    assert set(results) >= ONLY_PODS - ({"batch_resources"} if mode == "baseline" else set())
    assert ("batch_resources" in results) == (mode != "baseline")
    assert set(results) == set(guards.applicable("open_loop", mode != "baseline", pods=True))


@pytest.mark.parametrize("mode", POD_MODES)
def test_guards_on_pods_do_not_look_at_processes(mode):
    manifest = {**readings(Options(), mode).manifest, "substrate": "process"}
    found = readings(Options(), mode)
    results = guards.evaluate(manifest, found.record, found.load, found.samples, found.policy)
    assert not {result.guard for result in results} & ONLY_PODS


def test_every_fault_has_an_expectation():
    assert set(EXPECTED) == set(POD_FAULTS)


@pytest.mark.parametrize("fault", POD_FAULTS)
def test_a_fault_trips_its_guard_alone(fault):
    guard, figure, text, repeated = EXPECTED[fault]
    found = pods(faults={("slo_aware", 1): fault})
    results = found.evaluate()
    assert tripped(results) == {guard}
    assert results[guard].figure == pytest.approx(figure, abs=2.5 if fault == "throttled" else 1e-6)
    assert text.replace("30.0", f"{results[guard].figure:.1f}") in results[guard].text
    assert not results[guard].noise
    assert guards.judged(found.record, tuple(results.values())).kept is not repeated


@pytest.mark.parametrize("gone", ["policy", "pods", "cluster", "one"])
def test_a_guard_on_pods_without_data_trips_and_has_no_figure(gone):
    found = pods()
    policy = None if gone == "policy" else found.policy
    if gone == "one":
        del found.policy["pods"]["batch"]
    elif policy:
        del found.policy[gone]
    results = {
        result.guard: result
        for result in guards.evaluate(found.manifest, found.record, found.load, found.samples, policy)
    }
    expected = {
        "policy": ONLY_PODS,
        "pods": ONLY_PODS - {"batch_resources"},
        "one": ONLY_PODS - {"batch_resources"},
        "cluster": {"pods_steady", "batch_resources"},
    }[gone]
    assert tripped(results) & ONLY_PODS == expected
    assert all(results[name].figure is None for name in expected)


@pytest.mark.parametrize("lacks", [None, "label", 3])
def test_what_a_pod_lacks_must_be_known(lacks):
    found = pods()
    found.policy["pods"]["service"]["lacks"] = lacks
    result = found.evaluate()["pods_injected"]
    assert (result.ok, result.figure) == (False, None)
    assert "it is not stored what the pod of service lacks" in result.text
    assert limits.foremost([result]) is None


def test_every_pod_that_lacks_something_is_named_and_long_lists_are_cut():
    found = pods()
    found.policy["pods"]["service"]["lacks"] = ["label a", "label b", "label c", "label d", "label e", "label f"]
    found.policy["pods"]["batch"]["lacks"] = ["label g"]
    result = found.evaluate()["pods_injected"]
    assert result.figure == 7.0
    assert result.text == (
        "pods not injected: service lacks label a, label b, label c, label d and 2 more; batch lacks label g"
    )


def test_without_injection_no_window_is_repeated_whatever_else_trips():
    found = pods(faults={("slo_aware", 1): "not_injected"})
    found.policy["pods"]["batch"]["after"]["phase"] = "Failed"
    results = found.evaluate()
    assert tripped(results) == {"pods_injected", "pods_steady"}
    assert guards.judged(found.record, tuple(results.values())).kept


@pytest.mark.parametrize(
    ("moment", "change", "text"),
    [
        ("before", {"phase": "Pending"}, "batch was Pending before the window"),
        ("before", {"phase": ""}, "batch was in no phase before the window"),
        ("after", {"phase": "Succeeded"}, "batch was Succeeded after the window"),
        ("after", {"node": "load-node"}, "batch moved from node tested-node to load-node"),
        ("after", {"tier": "Burstable"}, "batch had tier Burstable after the window, expected was BestEffort"),
        ("before", {"class": None}, "batch had class none before the window, expected was BE"),
        ("after", {"container_id": "containerd://other"}, "batch was another container after the window"),
        ("after", {"container_id": None}, "batch was another container after the window"),
        ("after", {"restarts": None}, "restarts of batch are not stored"),
        ("before", {"restarts": 2}, "batch was restarted, 2 times before the window and 0 after it"),
    ],
)
def test_what_changes_of_a_pod_is_named(moment, change, text):
    found = pods()
    found.policy["pods"]["batch"][moment].update(change)
    result = found.evaluate()["pods_steady"]
    assert not result.ok
    assert text in result.text


def test_a_pod_that_should_be_koordinators_no_more_than_any_other_may_have_no_class():
    found = pods("colocation")
    found.policy["pods"]["batch"]["after"]["class"] = "BE"
    assert "batch had class BE after the window, expected was none" in found.evaluate()["pods_steady"].text


def test_throttling_of_a_pod_with_a_limit_is_no_fault():
    found = pods(faults={("slo_aware", 1): "throttled"})
    found.policy["pods"]["service"]["expected"]["limited"] = True
    assert found.evaluate()["pods_unthrottled"].ok
    found.policy["pods"]["batch"]["expected"]["limited"] = True
    assert found.evaluate()["pods_unthrottled"].text == "every pod has a CPU limit of its own"


@pytest.mark.parametrize("reading", [None, "missing"])
def test_throttled_periods_that_cannot_be_read_trip(reading):
    found = pods()
    for sample in found.samples["tested1"]:
        sample["groups"]["batch"]["throttled_periods"] = None
        if reading == "missing":
            del sample["groups"]["batch"]["throttled_periods"]
    result = found.evaluate()["pods_unthrottled"]
    assert (result.ok, result.figure) == (False, None)
    assert "throttled periods of batch could not be read" in result.text


def test_throttling_before_the_window_does_not_count():
    found = pods()
    for sample in found.samples["tested1"][:3]:
        sample["groups"]["service"]["throttled_periods"] = 0
    for sample in found.samples["tested1"][3:]:
        sample["groups"]["service"]["throttled_periods"] = 7
    assert found.evaluate()["pods_unthrottled"].ok


@pytest.mark.parametrize(
    ("offer", "ok", "figure"),
    [
        ({"asked": 800, "before": 800, "after": 800}, True, 0.0),
        ({"asked": 800, "before": 900, "after": 799}, False, 0.125),
        ({"asked": 800, "before": 400, "after": 900}, False, 50.0),
        ({"asked": 800, "before": 900, "after": None}, False, 100.0),
        ({"asked": 800, "before": 900}, False, 100.0),
        ({"before": 900, "after": 900}, False, None),
        ({}, False, None),
        (None, False, None),
    ],
)
def test_batch_resources_are_compared_with_what_is_asked(offer, ok, figure):
    found = pods()
    found.policy["cluster"]["batch_cpu_milli"] = offer
    result = found.evaluate()["batch_resources"]
    assert (result.ok, result.figure) == (ok, figure)


def test_a_pod_that_asks_for_no_batch_resources_needs_none():
    assert pods("colocation").evaluate()["batch_resources"].text == "the batch pod asks for no batch resources"


def test_what_is_known_and_not_foreign_is_subtracted():
    found = pods()
    for index, sample in enumerate(found.samples["tested1"]):
        sample["groups"]["cluster"]["cpu_s"] = 10 + 0.2 * index
        sample["cpus"]["0"]["system_s"] += 0.2 * index
        sample["cpus"]["0"]["idle_s"] -= 0.2 * index
    assert found.evaluate()["foreign_cpu"].ok
    for sample in found.samples["tested1"]:
        del sample["groups"]["cluster"]
    assert not found.evaluate()["foreign_cpu"].ok


def test_evaluating_pods_changes_nothing():
    found = pods()
    before = copy.deepcopy(found)
    found.evaluate()
    assert found == before
