"""From a cell to what is to be done, and from what came of it to a record."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import Cell, GuardResult
from ansible_collections.colocation.testbed.plugins.plugin_utils import definitions
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import bench, deployed, orders, preparation

HOSTS = {
    "tested": {"role": "tested", "measured_cpus": "0", "memory_bytes": 8 << 30},
    "loader": {"role": "load", "measured_cpus": "1", "memory_bytes": 8 << 30},
}


@pytest.fixture
def found():
    return definitions.load_definitions(preparation.COLLECTION_ROOT, aggressors=["ffmpeg"])


def manifest(found, kind="open_loop"):
    return {
        "modes": found.modes,
        "policies": found.policies,
        "aggressors": found.aggressors,
        "load": {"kind": kind, "peak_rps": 1300.0},
    }


def resolved(found, testbed, mode, aggressor=None, kind="open_loop"):
    cell = Cell(mode, 1, 0.4, aggressor, seed=7)
    return orders.resolve(cell, "label", manifest(found, kind), found, testbed, HOSTS)


def test_the_rate_is_the_share_of_the_peak(found, testbed):
    order = resolved(found, testbed, "baseline")
    assert order.rate_rps == 520.0
    assert order.seed == 7
    assert order.aggressor is None
    assert order.url == "http://198.18.0.1:8000/page"


def test_a_closed_loop_has_no_rate(found, testbed):
    assert resolved(found, testbed, "baseline", kind="closed_loop").rate_rps is None


def test_every_mode_says_every_value_so_that_none_is_left_behind(found, testbed):
    keys = [
        [(group["name"], sorted(group)) for group in resolved(found, testbed, mode, "ffmpeg").groups]
        for mode in ("baseline", "colocation", "slo_aware")
    ]
    assert keys[0] == keys[1] == keys[2]


def test_the_policy_reaches_the_groups(found, testbed):
    groups = {group["name"]: group for group in resolved(found, testbed, "slo_aware", "ffmpeg").groups}
    assert groups[""]["cpuset_cpus"] == "0"
    assert groups["batch"]["cpu_idle"] is True
    assert groups["batch"]["cpu_quota_us"] == 95_000
    assert groups["service"]["cpu_shares"] == 512


def test_a_slowed_mode_asks_for_the_dearer_page(found, testbed):
    assert resolved(found, testbed, "slow_5").url.endswith("/slow-5")
    with pytest.raises(deployed.DeployedError, match=r"service_slowdown_pct 20.*deployed for: 5.*slow_pages_pct"):
        resolved(found, testbed, "slow_20")


@pytest.mark.parametrize(
    ("rates_rps", "believed"),
    [([], False), ([1300], False), ([1300, 1290], True), ([600, 1300], False), ([600, 1300, 1310], True)],
)
def test_a_peak_is_believed_when_its_best_two_agree(rates_rps, believed):
    assert orders.peak_found(rates_rps) is believed


@pytest.mark.parametrize(("peak_rps", "rounded"), [(1318.4, 1320.0), (97.26, 97.3), (25310, 25300)])
def test_peaks_are_rounded_to_three_digits(peak_rps, rounded):
    assert orders.rounded_rps(peak_rps) == rounded


def test_only_what_is_used_goes_into_the_manifest(found, matrix_settings):
    used = orders.used_definitions(matrix_settings, found)
    assert sorted(used["modes"]) == ["baseline", "slo_aware"]
    assert sorted(used["policies"]) == ["slo_aware"]
    assert sorted(used["aggressors"]) == ["ffmpeg"]


@pytest.mark.parametrize(
    ("asked_s", "wall_s", "answered_s", "offset_s"), [(10, 10.4, 10.5, 0), (10, 12.5, 10.5, 2.0), (10, 7, 10.5, -3)]
)
def test_a_clock_is_off_only_as_far_as_is_certain(asked_s, wall_s, answered_s, offset_s):
    assert preparation.clock_offset_s(asked_s, wall_s, answered_s) == pytest.approx(offset_s)


def test_only_a_policy_with_a_section_for_it_divides_the_link(found, testbed):
    assert resolved(found, testbed, "slo_aware", "ffmpeg").link is None
    assert not orders.divides_link(["baseline", "colocation", "slo_aware"], found)
    assert orders.divides_link(["baseline", "slo_aware_network"], found)
    wanted = resolved(found, testbed, "slo_aware_network", "ffmpeg").link
    assert [(item["name"], item["cgroups"]) for item in wanted["classes"]] == [
        ("batch", ["ct/batch"]),
        ("service", ["ct/service"]),
    ]
    assert wanted["pools"][0]["total"] == "1Gbit/s"


def test_the_two_aware_policies_differ_in_the_link_alone(found):
    network = {key: value for key, value in found.policies["slo_aware_network"].items() if key != "bandwidth"}
    assert {**network, "description": ""} == {**found.policies["slo_aware"], "description": ""}


def test_the_words_of_a_process_reach_the_guard_that_missed_it():
    said = "batch ended by itself with status 8, its log ends with: Unknown encoder"
    raw = bench.Raw({}, {}, {}, ended=(said,))
    dead = GuardResult("processes_alive", 3.0, 0.0, "readings", False, "3 of 20 readings differ")
    assert orders._told(dead, raw).text.endswith(
        "differ; batch ended by itself with status 8, its log ends with: Unknown encoder"
    )
    for other in (dataclasses.replace(dead, ok=True), dataclasses.replace(dead, guard="steal")):
        assert orders._told(other, raw) == other
