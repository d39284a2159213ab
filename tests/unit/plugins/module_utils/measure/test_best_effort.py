"""The quota of best effort: read from either version's file, before the load and in the window."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.measure import best_effort
from ansible_collections.colocation.testbed.plugins.module_utils.measure.best_effort import Quota
from tests.support.synthetic_pods import POD_MODES
from tests.support.synthetic_readings import Options
from tests.support.synthetic_run import readings


def sampled(mode="slo_aware", change=None, **options):
    found = readings(Options(pods=True, modes=POD_MODES, **options), mode)
    if change:
        change(found)
    return best_effort.of(found.manifest, found.load, found.samples)


@pytest.mark.parametrize(
    ("text", "quota"),
    [
        ("max 100000", Quota(None, 100_000)),
        ("12000 100000", Quota(12_000, 100_000)),
        ("12000 50000", Quota(12_000, 50_000)),
        ("-1", Quota(None, 100_000)),
        ("12000", Quota(12_000, 100_000)),
        ("12000\n", Quota(12_000, 100_000)),
        ("", None),
        (None, None),
        (12_000, None),
        ("much", None),
        ("12000 0", None),
        ("12000 -1", None),
        ("-5", None),
        ("1 2 3", None),
        ("\u0663 100000", None),
    ],
)
def test_quota_of_both_versions(text, quota):
    assert best_effort.parse_quota(text) == quota


@given(st.one_of(st.text(max_size=20), st.integers(), st.none()))
def test_quota_of_any_text(text):
    found = best_effort.parse_quota(text)
    assert found is None or found.quota_us is None or found.quota_us >= 0


def test_the_first_samples_come_before_the_load_and_only_the_windows_count_as_such():
    found = sampled()
    assert (found.load_s, found.window_s, found.limited) == (-2.0, 8.0, True)
    assert [round(moment.t_s, 1) for moment in found.before_load] == [-5.6, -4.6, -3.6, -2.6]
    assert [round(moment.t_s, 1) for moment in found.inside] == [0.4, 1.4, 2.4, 3.4, 4.4, 5.4, 6.4, 7.4]
    assert min(moment.quota.quota_us for moment in found.before_load) == 98_000
    assert max(moment.quota.quota_us for moment in found.inside) < 61_000
    assert found.before_load[0].service_cpus is None
    assert found.before_load[1].service_cpus == pytest.approx(0.001, abs=1e-6)
    assert found.inside[0].service_cpus == pytest.approx(0.392, abs=0.001)
    assert found.inside[0].quota.cpus == pytest.approx(0.606, abs=0.002)


def test_figures_of_several_measurements_are_pooled():
    figures = best_effort.pooled([sampled(), sampled(seed=2)])
    assert figures["period_us"] == 100_000
    assert figures["quota"]["before_load"] == {
        "least_us": 98_000, "median_us": 98_050.0, "greatest_us": 98_200, "samples": 8, "without_limit": 0,
    }  # fmt: skip
    assert figures["quota"]["window"]["samples"] == 16
    assert figures["quota"]["window"]["least_us"] <= figures["quota"]["window"]["median_us"] < 61_000
    assert figures["service_cpus"]["window"] == pytest.approx(0.392, abs=0.001)


def test_no_limit_is_more_than_every_limit():
    def lift(found):
        for sample in found.samples["tested1"][:3]:
            sample["policy"]["best_effort/quota_us"] = "max 100000"

    figures = best_effort.spread(sampled(change=lift).before_load)
    assert figures == {
        "least_us": 98_000, "median_us": None, "greatest_us": None, "samples": 4, "without_limit": 3
    }  # fmt: skip


def test_a_mode_that_nothing_limits_is_sampled_and_says_so():
    found = sampled("colocation")
    assert not found.limited
    assert best_effort.pooled([found])["quota"]["window"]["without_limit"] == 8


def test_without_readings_there_is_nothing():
    def forget(found):
        for sample in found.samples["tested1"]:
            sample["policy"] = {"best_effort/quota_us": None}

    assert sampled(change=forget) is None
    assert best_effort.pooled([]) is None
    assert best_effort.spread([]) is None
    assert best_effort.service_cpus([]) is None
    processes = readings(Options(), "slo_aware")
    assert best_effort.of(processes.manifest, processes.load, processes.samples) is None
    assert best_effort.of(processes.manifest, {}, processes.samples) is None


def test_a_sample_that_lacks_the_quota_or_the_services_time_is_left_out_of_that_alone():
    def damage(found):
        found.samples["tested1"][8]["policy"]["best_effort/quota_us"] = None
        found.samples["tested1"][9]["groups"]["service"]["cpu_s"] = None

    found = sampled(change=damage)
    assert len(found.moments) == len(sampled().moments) - 1
    assert [moment.service_cpus is None for moment in found.moments].count(True) == 3


def test_the_load_nodes_clock_decides_what_was_before_the_load():
    assert len(sampled(clock_offset_s=12.5).before_load) == 4
