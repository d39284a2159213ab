# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ConfigMap that a policy becomes, what the manager must make of it, and the values of a BE pod."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.policy import koordinator, overlay, validation
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import NodeFacts, RequestsError

ROOT = Path(__file__).resolve().parents[5]
LABELS = {"pool": "colocation"}
SELECTOR = {"matchLabels": LABELS}
POLICY: dict[str, Any] = {
    "description": "for people",
    "colocation-config": {
        "enable": True,
        "metricReportIntervalSeconds": 10,
        "nodeConfigs": [{"name": "here", "nodeSelector": SELECTOR, "cpuReclaimThresholdPercent": 150}],
    },
    "resource-threshold-config": {
        "clusterStrategy": {"enable": True, "cpuSuppressPolicy": "cfsQuota"},
        "nodeStrategies": [{"name": "here", "nodeSelector": SELECTOR, "cpuSuppressThresholdPercent": 80}],
    },
    "resource-qos-config": {"clusterStrategy": {"beClass": {"cpuQOS": {"enable": True, "groupIdentity": -1}}}},
    "system-config": {"clusterStrategy": {"totalNetworkBandwidth": "10000M"}},
    "host-application-config": {"applications": [{"name": "x", "qos": "LS", "priority": "koord-prod"}]},
}
# As koord-manager 1.8.0 writes a node's NodeSLO when the ConfigMap is missing.
EMPTY_SPEC: dict[str, Any] = {
    "resourceUsedThresholdWithBE": {
        "enable": False,
        "cpuSuppressThresholdPercent": 65,
        "cpuSuppressPolicy": "cpuset",
        "memoryEvictThresholdPercent": 70,
        "cpuEvictPolicy": "evictByRealLimit",
    },
    "cpuBurstStrategy": {
        "policy": "none",
        "cpuBurstPercent": 1000,
        "cfsQuotaBurstPercent": 300,
        "cfsQuotaBurstPeriodSeconds": -1,
        "sharePoolThresholdPercent": 50,
    },
    "systemStrategy": {"totalNetworkBandwidth": "0"},
    "extensions": {},
}


def test_sections_become_json_and_come_back() -> None:
    data = koordinator.render(POLICY)
    assert sorted(data) == sorted(name for name in POLICY if name != "description")
    assert json.loads(data["colocation-config"]) == POLICY["colocation-config"]
    assert koordinator.parse(data) == {name: value for name, value in POLICY.items() if name != "description"}


def test_the_built_in_policies_are_rendered_too() -> None:
    files = sorted((ROOT / "files/policies").glob("*.yml"))
    assert files
    policies = {path.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in files}
    # What is said of the link are words of our own, on which Koordinator does not act.
    theirs = {name: policy for name, policy in policies.items() if "bandwidth" not in policy}
    assert theirs
    for name, policy in policies.items():
        if name in theirs:
            assert koordinator.render(policy, name)
        else:
            with pytest.raises(validation.PolicyError, match="is not a section of Koordinator"):
                koordinator.render(policy, name)


def test_what_koordinator_would_ignore_is_refused() -> None:
    with pytest.raises(validation.PolicyError, match="did you mean nodeStrategies"):
        koordinator.render({"resource-threshold-config": {"nodeConfigs": []}})


def test_text_that_is_no_json_is_told_with_its_key() -> None:
    with pytest.raises(koordinator.KoordinatorError, match=r"data\.system-config: is not JSON"):
        koordinator.parse({"system-config": '{"clusterStrategy": {"a": 1 "b": 2}}'})
    with pytest.raises(koordinator.KoordinatorError, match="is no JSON object"):
        koordinator.parse({"system-config": "[]"})
    assert koordinator.parse({"gpu-config": "{"}) == {}


def test_an_empty_policy_wants_the_managers_defaults() -> None:
    assert koordinator.slo_differences(EMPTY_SPEC, {}, {}) == ()
    assert koordinator.slo_differences({}, {}, {}) == ()


def test_the_manager_leaves_disabled_blocks_as_they_are_written() -> None:
    policy = {"resource-qos-config": {"clusterStrategy": {"beClass": {"resctrlQOS": {"enable": False}}}}}
    wanted = koordinator.node_slo(policy, {})
    assert wanted["resourceQOSStrategy"]["beClass"]["resctrlQOS"]["catRangeEndPercent"] == 30
    assert koordinator.slo_differences(wanted, policy, {}) == ()


def test_the_first_matching_entry_counts_for_a_node() -> None:
    assert koordinator.node_slo(POLICY, LABELS)["resourceUsedThresholdWithBE"]["cpuSuppressThresholdPercent"] == 80
    assert koordinator.node_slo(POLICY, {})["resourceUsedThresholdWithBE"]["cpuSuppressThresholdPercent"] == 65


def test_a_difference_names_place_values_and_key() -> None:
    spec = koordinator.node_slo(POLICY, LABELS)
    spec["resourceUsedThresholdWithBE"]["cpuSuppressPolicy"] = "cpuset"
    spec["hostApplications"] = []
    found = koordinator.slo_differences(spec, POLICY, LABELS)
    assert [item.path for item in found] == [
        "spec.resourceUsedThresholdWithBE.cpuSuppressPolicy",
        "spec.hostApplications",
    ]
    assert found[0].text() == (
        'spec.resourceUsedThresholdWithBE.cpuSuppressPolicy is "cpuset", wanted "cfsQuota" '
        "(by resource-threshold-config.clusterStrategy.cpuSuppressPolicy)"
    )
    assert "and 1 more" in koordinator.names_of(found, 1)


def test_a_policy_that_went_away_is_a_difference() -> None:
    spec = koordinator.node_slo(POLICY, LABELS)
    paths = [item.path for item in koordinator.slo_differences(spec, {}, LABELS)]
    assert "spec.resourceUsedThresholdWithBE.enable" in paths
    assert "spec.resourceQOSStrategy.beClass.cpuQOS.enable" in paths


def test_quantities_are_compared_by_what_they_mean() -> None:
    spec = koordinator.node_slo(POLICY, LABELS)
    spec["systemStrategy"]["totalNetworkBandwidth"] = "10G"
    assert koordinator.slo_differences(spec, POLICY, LABELS) == ()
    spec["systemStrategy"]["totalNetworkBandwidth"] = "1G"
    assert len(koordinator.slo_differences(spec, POLICY, LABELS)) == 1


def test_how_often_the_agent_reports_is_compared_too() -> None:
    spec = {"metricCollectPolicy": {"aggregateDurationSeconds": 300, "reportIntervalSeconds": 60}}
    assert koordinator.collect_differences(spec, {}, {}) == ()
    (found,) = koordinator.collect_differences(spec, POLICY, LABELS)
    assert (found.found, found.wanted) == (60, 10)
    assert koordinator.report_age_limit_s(POLICY, LABELS) == 20


LEAVES = [
    ("resource-threshold-config", "cpuSuppressThresholdPercent", st.integers(0, 100)),
    ("resource-threshold-config", "enable", st.booleans()),
    ("cpu-burst-config", "policy", st.sampled_from(["none", "auto", "cpuBurstOnly"])),
    ("cpu-burst-config", "cpuBurstPercent", st.integers(1, 10000)),
    ("system-config", "watermarkScaleFactor", st.integers(1, 400)),
]


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    """Return policies of some keys, for the cluster and for nodes of a pool."""
    found: dict[str, Any] = {}
    for section, key, values in LEAVES:
        for place in draw(st.lists(st.sampled_from(["clusterStrategy", "nodeStrategies"]), unique=True)):
            value = draw(values)
            if place == "clusterStrategy":
                found.setdefault(section, {}).setdefault(place, {})[key] = value
            else:
                entries = found.setdefault(section, {}).setdefault(place, [{"nodeSelector": SELECTOR}])
                entries[0][key] = value
    return found


@given(policies(), st.sampled_from([{}, LABELS]))
def test_what_the_manager_must_write_is_never_different_and_survives_the_configmap(
    policy: dict[str, Any], labels: dict[str, str]
) -> None:
    again = koordinator.parse(koordinator.render(policy)) if policy else {}
    assert again == policy
    spec = json.loads(json.dumps(koordinator.node_slo(policy, labels)))
    assert koordinator.slo_differences(spec, policy, labels) == ()


@given(policies(), policies(), st.sampled_from([{}, LABELS]))
def test_two_policies_differ_exactly_where_their_specs_do(
    one: dict[str, Any], other: dict[str, Any], labels: dict[str, str]
) -> None:
    spec = koordinator.node_slo(one, labels)
    found = koordinator.slo_differences(spec, other, labels)
    assert bool(found) == (spec != koordinator.node_slo(other, labels))
    for item in found:
        place: Any = {"spec": spec}
        for name in item.path.split("."):
            place = place.get(name) if isinstance(place, dict) else None
        assert place == item.found
        assert item.found != item.wanted


@given(policies())
def test_a_missing_field_has_its_default(policy: dict[str, Any]) -> None:
    spec = koordinator.node_slo(policy, LABELS)
    thinned = copy.deepcopy(spec)
    defaults = overlay.defaults(koordinator.SECTIONS["resource-threshold-config"].strategy)
    block = thinned["resourceUsedThresholdWithBE"]
    for name in [name for name, value in block.items() if defaults.get(name) == value]:
        del block[name]
    assert koordinator.slo_differences(thinned, policy, LABELS) == ()


NODE = NodeFacts(104, 512 * 2**30)


def _pod(cpu: str | int, limit: str | int | None = None, memory: str | None = "22Gi") -> dict[str, dict[str, Any]]:
    requests = {"kubernetes.io/batch-cpu": cpu}
    limits: dict[str, Any] = {} if limit is None else {"kubernetes.io/batch-cpu": limit}
    if memory:
        requests["kubernetes.io/batch-memory"] = limits["kubernetes.io/batch-memory"] = memory
    return {"ffmpeg": {"requests": requests, "limits": limits}}


@pytest.mark.parametrize(
    ("containers", "shares", "quota", "memory"),
    [
        (_pod("70k", "70k"), 71680, 7_000_000, 22 * 2**30),
        (_pod(1500, 3000, None), 1536, 300_000, -1),
        (_pod(500, 500, None), 512, 50_000, -1),
        (_pod(0, 5, None), 2, 1000, -1),
        (_pod(1000, None, "2Gi"), 1024, -1, 2 * 2**30),
    ],
)
def test_values_of_a_be_pod(containers: dict[str, Any], shares: int, quota: int, memory: int) -> None:
    wanted = {"cpu_shares": shares, "cpu_quota_us": quota, "memory_max_bytes": memory}
    found = koordinator.best_effort_pod({}, NODE, containers)
    assert found == {"": wanted, "ffmpeg": wanted}


def test_under_suppress_by_quota_the_root_limits_and_pods_do_not() -> None:
    policy = {"resource-threshold-config": {"clusterStrategy": {"enable": True, "cpuSuppressPolicy": "cfsQuota"}}}
    found = koordinator.best_effort_pod(policy, NODE, _pod(1000, 1000, "2Gi"))
    assert found["ffmpeg"] == {"cpu_shares": 1024, "cpu_quota_us": -1, "memory_max_bytes": 2**31}
    off = {"resource-threshold-config": {"clusterStrategy": {"enable": False, "cpuSuppressPolicy": "cfsQuota"}}}
    assert koordinator.best_effort_pod(off, NODE, _pod(1000, 1000))["ffmpeg"]["cpu_quota_us"] == 100_000


def test_a_pod_has_the_sums_and_no_limit_where_a_container_has_none() -> None:
    containers = {**_pod(1000, 2000, "1Gi"), "other": _pod(500, None, None)["ffmpeg"]}
    found = koordinator.best_effort_pod(POLICY | {"resource-threshold-config": {}}, NODE, containers)
    assert found[""] == {"cpu_shares": 1536, "cpu_quota_us": -1, "memory_max_bytes": -1}
    assert set(found) == {"", "ffmpeg", "other"}


def test_plain_cpu_in_a_be_pod_is_refused() -> None:
    with pytest.raises(RequestsError, match=r"cpu: is not read for class BE; write kubernetes\.io/batch-cpu"):
        koordinator.best_effort_pod({}, NODE, {"ffmpeg": {"requests": {"cpu": 1}}})


def test_what_the_real_manager_wrote_is_what_the_policy_wants() -> None:
    """Koordinator 1.8.0 made this spec out of this policy, with the API server's defaults of NodeSLO."""
    path = Path(__file__).parent / "data/koordinator-1.8.0-nodeslo.json"
    recorded = json.loads(path.read_text(encoding="utf-8"))
    policy, spec = recorded["policy"], recorded["spec"]
    assert koordinator.slo_differences(spec, policy, recorded["labels"]) == ()
    (found,) = koordinator.slo_differences(spec, policy, {})
    assert (found.path, found.found) == ("spec.resourceUsedThresholdWithBE.cpuSuppressThresholdPercent", 80)
