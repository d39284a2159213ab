"""Each guard passes on a clean window, trips on what it is there for, and trips without data."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.measure import guards, limits
from tests.support.synthetic_readings import FAULTS, Behaviour, Options
from tests.support.synthetic_run import readings

#: fault: mode, guard that must trip, whether the window is measured again
EXPECTED = {
    "service_dead": ("slo_aware", "processes_alive", True),
    "batch_dead": ("slo_aware", "processes_alive", True),
    "policy_rewritten": ("slo_aware", "policy_in_effect", True),
    "errors": ("slo_aware", "no_errors", False),
    "rate": ("slo_aware", "load_rate_kept", False),
    "late": ("slo_aware", "lateness", True),
    "foreign_batch": ("baseline", "no_foreign_batch", True),
    "foreign_cpu": ("slo_aware", "foreign_cpu", True),
    "foreign_burst": ("slo_aware", "foreign_burst", True),
    "no_samples": ("slo_aware", "samples_complete", True),
    "no_progress": ("slo_aware", "batch_progress", False),
    "generator_cpu": ("slo_aware", "generator_cpu", False),
    "clock_step": ("slo_aware", "clocks_monotonic", True),
}


def tripped(results):
    return {name for name, result in results.items() if not result.ok}


@pytest.mark.parametrize("mode", ["baseline", "colocation", "slo_aware"])
def test_a_clean_window_trips_nothing(mode):
    found = readings(Options(), mode)
    results = found.evaluate()
    assert tripped(results) == set()
    assert guards.judged(found.record, tuple(results.values())).kept
    assert ("no_foreign_batch" in results) == (mode == "baseline")
    assert set(results) == set(guards.applicable("open_loop", mode != "baseline"))


def test_every_fault_has_an_expectation():
    assert set(EXPECTED) == set(FAULTS)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_trips_its_guard(fault):
    mode, guard, repeated = EXPECTED[fault]
    found = readings(Options(faults={(mode, 1): fault}), mode)
    results = found.evaluate()
    assert guard in tripped(results), results[guard]
    record = guards.judged(found.record, tuple(results.values()))
    assert record.kept is not repeated
    assert any(reason.startswith(f"{guard}: ") for reason in record.reasons)


def test_steal_trips_as_noise():
    result = readings(Options(steal=(("baseline", 1),)), "baseline").evaluate()["steal"]
    assert (result.ok, result.repeatable, result.noise) == (False, True, True)
    assert result.figure == pytest.approx(1.0, abs=0.3)
    assert "tested1, CPU 0" in result.text


def test_the_last_attempt_of_a_hit_cell_is_clean():
    assert readings(Options(steal=(("baseline", 1),)), "baseline", attempt=4).evaluate()["steal"].ok


@pytest.mark.parametrize("mode", ["baseline", "slo_aware"])
def test_pm_qos_not_held_makes_invalid_and_burns_no_repeat(mode):
    found = readings(Options(pm_qos_held=False), mode)
    results = found.evaluate()
    assert tripped(results) == {"pm_qos_held"}
    assert results["pm_qos_held"].repeatable is False
    assert guards.judged(found.record, tuple(results.values())).kept
    assert "not 0" in results["pm_qos_held"].text


def test_pm_qos_value_alone_does_not_do_where_deep_idle_states_are_entered():
    found = readings(Options(), "baseline")
    for index, sample in enumerate(found.samples["load1"]):
        sample["idle"]["1"]["deep_entries"] = 50 * index
    result = found.evaluate()["pm_qos_held"]
    assert not result.ok
    assert "load1: CPU 1 entered deep idle states 50 times" in result.text


@pytest.mark.parametrize("idle", [{}, None, {"0": {"deep_entries": None, "deep_s": None}}])
def test_pm_qos_says_when_a_host_shows_no_idle_states(idle):
    found = readings(Options(), "baseline")
    for sample in found.samples["tested1"]:
        sample["idle"] = idle
    result = found.evaluate()["pm_qos_held"]
    assert result.ok
    assert "tested1 show no idle states, only the value could be read" in result.text


def test_idle_states_that_cannot_be_read_now_and_then_trip():
    found = readings(Options(), "baseline")
    found.samples["tested1"][5]["idle"]["0"]["deep_entries"] = None
    result = found.evaluate()["pm_qos_held"]
    assert not result.ok
    assert "idle states of CPU 0 could not be read" in result.text


@pytest.mark.parametrize("value", [None, 1, 2_000_000_000])
def test_one_sample_without_the_hold_is_enough(value):
    found = readings(Options(), "baseline")
    found.samples["tested1"][5]["pm_qos_us"] = value
    assert not found.evaluate()["pm_qos_held"].ok


@pytest.mark.parametrize("host", ["tested1", "load1"])
def test_without_a_hosts_samples_every_guard_on_it_trips_and_has_no_figure(host):
    found = readings(Options(), "slo_aware")
    found.samples[host] = []
    results = found.evaluate()
    every = {"pm_qos_held", "steal", "clocks_monotonic"}
    on_tested = {"processes_alive", "batch_progress", "policy_in_effect", "foreign_cpu", "foreign_burst"}
    expected = every | (on_tested if host == "tested1" else set())
    assert tripped(results) == expected | {"samples_complete"}
    assert all(results[name].figure is None for name in expected)
    assert results["samples_complete"].figure == 100.0


def test_an_empty_load_result_trips_every_guard():
    found = readings(Options(), "slo_aware")
    results = guards.evaluate(found.manifest, found.record, {}, found.samples, found.policy)
    assert not any(result.ok for result in results)


READINGS = [
    ("pm_qos_held", ("pm_qos_us",)),
    ("processes_alive", ("processes",)),
    ("batch_progress", ("work",)),
    ("policy_in_effect", ("policy",)),
    ("steal", ("cpus",)),
    ("foreign_cpu", ("groups", "service", "cpu_s")),
    ("foreign_burst", ("groups", "service", "cpu_s")),
    ("clocks_monotonic", ("mono_s",)),
]


@pytest.mark.parametrize(("guard", "path"), READINGS)
@pytest.mark.parametrize("gone", ["null", "missing"])
def test_a_guard_without_its_reading_trips(guard, path, gone):
    found = readings(Options(), "slo_aware")
    for sample in found.samples["tested1"]:
        holder = sample
        for key in path[:-1]:
            holder = holder[key]
        if gone == "null":
            holder[path[-1]] = None
        else:
            del holder[path[-1]]
    assert not found.evaluate()[guard].ok


def test_one_missing_second_of_eight_passes_and_two_do_not():
    found = readings(Options(), "baseline")
    del found.samples["load1"][6]
    assert found.evaluate()["samples_complete"].ok
    del found.samples["load1"][6]
    assert not found.evaluate()["samples_complete"].ok


def test_first_differing_policy_key_is_named_with_both_values():
    text = (
        readings(Options(faults={("slo_aware", 1): "policy_rewritten"}), "slo_aware")
        .evaluate()["policy_in_effect"]
        .text
    )
    assert "batch/cpu.idle is '0', applied was '1'" in text


def test_a_value_that_is_not_what_was_wanted_trips_the_policy_guard():
    found = readings(Options(), "slo_aware")
    found.policy["wanted"]["batch/cpu.idle"] = "0"
    result = found.evaluate()["policy_in_effect"]
    assert (result.ok, result.figure) == (False, 1.0)
    assert "batch/cpu.idle was '1' after applying, wanted was '0'" in result.text


def test_no_values_at_all_are_no_proof_of_a_policy():
    found = readings(Options(), "slo_aware")
    found.policy.update(wanted={}, applied={})
    result = found.evaluate()["policy_in_effect"]
    assert (result.ok, result.figure) == (False, None)


def test_an_ancestor_that_changes_trips_the_policy_guard():
    found = readings(Options(), "baseline")
    found.samples["tested1"][5]["policy"]["../cpu.shares"] = "512"
    assert not found.evaluate()["policy_in_effect"].ok


def test_what_no_sample_has_is_compared_after_the_window():
    found = readings(Options(), "slo_aware")
    link = {"link/pools/link/low": "20000000", "link/kernel": "as applied"}
    for name in ("wanted", "applied"):
        found.policy[name].update(link)
    found.policy["after"] = dict(link)
    assert found.evaluate()["policy_in_effect"].ok
    found.policy["after"]["link/kernel"] = "filter replace dev ct0 egress"
    result = found.evaluate()["policy_in_effect"]
    assert (result.ok, result.figure) == (False, 1.0)
    assert "after the window link/kernel was 'filter replace dev ct0 egress', applied was 'as applied'" in result.text


def test_a_value_that_came_during_the_window_trips():
    found = readings(Options(), "slo_aware")
    found.policy["after"] = {"link/devices/ct0/egress/pool": "link"}
    assert not found.evaluate()["policy_in_effect"].ok


def test_a_wanted_value_that_was_never_read_back_trips():
    found = readings(Options(), "slo_aware")
    del found.policy["applied"]["batch/cpu.idle"]
    result = found.evaluate()["policy_in_effect"]
    assert (result.ok, result.figure) == (False, None)


def test_batch_in_the_wrong_group_is_not_alive_there():
    found = readings(Options(), "slo_aware")
    for sample in found.samples["tested1"]:
        sample["processes"]["batch"]["group"] = "service"
    assert "no process in group batch" in found.evaluate()["processes_alive"].text


def test_a_process_that_dies_beside_another_of_its_group_is_seen():
    found = readings(Options(), "baseline")
    for index, sample in enumerate(found.samples["tested1"]):
        sample["processes"]["worker"] = {"alive": index < 6, "group": "service" if index < 6 else None}
    assert "worker is no longer alive" in found.evaluate()["processes_alive"].text


def test_lateness_of_a_saturated_service_is_no_noise():
    slow = Options(modes={"baseline": Behaviour(latency_factor=40.0, batch=False)}, faults={("baseline", 1): "late"})
    result = readings(slow, "baseline").evaluate()["lateness"]
    assert (result.ok, result.repeatable, result.noise) == (False, False, False)
    assert "too slow for this rate" in result.text
    assert not result.collapse


def test_a_colocated_mode_that_starves_the_service_is_a_finding():
    slow = Options(modes={"colocation": Behaviour(latency_factor=40.0)}, faults={("colocation", 1): "late"})
    result = readings(slow, "colocation").evaluate()["lateness"]
    assert (result.ok, result.repeatable, result.noise, result.collapse) == (False, False, False, True)


def test_work_in_a_mode_without_batch_is_left_over_and_worth_a_repeat():
    found = readings(Options(), "baseline")
    for index, sample in enumerate(found.samples["tested1"]):
        sample["work"] = {"batch": {"unit": "frames", "done": index}}
    result = found.evaluate()["batch_progress"]
    assert (result.ok, result.repeatable) == (False, True)


def test_batch_work_may_come_in_steps():
    found = readings(Options(), "slo_aware")
    for index, sample in enumerate(found.samples["tested1"]):
        sample["work"]["batch"]["done"] = index // 2 * 100
    assert found.evaluate()["batch_progress"].ok


def test_a_closed_loop_keeps_no_schedule():
    names = readings(Options(load_kind="closed_loop"), "baseline").evaluate()
    assert "load_rate_kept" not in names
    assert "lateness" not in names
    assert names["generator_cpu"].ok


def test_limits_are_the_users_to_change():
    found = readings(Options(steal=(("baseline", 1),), limits={"steal": 5}), "baseline")
    result = found.evaluate()["steal"]
    assert (result.ok, result.limit) == (True, 5.0)


def test_deep_entries_limit_is_the_users_to_change():
    options = Options(limits={"pm_qos_deep_entries_per_s": 60})
    found = readings(options, "baseline")
    for index, sample in enumerate(found.samples["load1"]):
        sample["idle"]["1"]["deep_entries"] = 50 * index
    assert found.evaluate()["pm_qos_held"].ok


@pytest.mark.parametrize(
    ("overrides", "named"),
    [({"stael": 1}, "'stael' is no guard"), ({"steal": True}, "steal is True"), ({"steal": -1}, "number from 0 up")],
)
def test_wrong_limit_is_named(overrides, named):
    with pytest.raises(limits.LimitsError, match=named):
        limits.check(overrides)


def test_limits_table_names_each_guard_once_and_gives_reasons():
    names = [guard.name for guard in limits.GUARDS]
    assert len(names) == len(set(names))
    assert all(guard.why and guard.broken and guard.unit for guard in limits.GUARDS)
    limits.check({name: 1 for name in [*names, *limits.AUXILIARY]})


def test_a_baseline_whose_batch_group_does_not_exist_is_clean():
    found = readings(Options(), "baseline")
    for sample in found.samples["tested1"]:
        sample["groups"]["batch"] = dict.fromkeys(sample["groups"]["batch"])
    assert tripped(found.evaluate()) == set()


def test_evaluating_changes_nothing():
    found = readings(Options(), "slo_aware")
    before = copy.deepcopy(found)
    found.evaluate()
    assert found == before
