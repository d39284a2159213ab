# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.policy import (
    cpu,
    suppress,
    translation,
    validation,
    vocabulary,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy.translation import Facts

GIB = 2**30
REQUESTS = {"service": {"cpu": "500m", "memory": "64Mi"}, "batch": {"cpu": "500m", "memory": "512Mi"}}
POLICY: dict[str, Any] = {
    "colocation-config": {"enable": True, "memoryReclaimThresholdPercent": 65, "memoryCalculatePolicy": "request"},
    "resource-threshold-config": {
        "clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 95, "cpuSuppressPolicy": "cfsQuota"}
    },
    "resource-qos-config": {"clusterStrategy": {"beClass": {"cpuQOS": {"enable": True, "schedIdle": 1}}}},
}


def _changed(path: str, value: Any) -> dict[str, Any]:
    policy = copy.deepcopy(POLICY)
    place: Any = policy
    *parents, last = path.split("/")
    for name in parents:
        place = place.setdefault(name, {})
    place[last] = value
    return policy


def test_without_a_policy_groups_are_as_kubernetes_makes_them() -> None:
    found = translation.translate(None, {"service": {"cpu": "1500m"}, "batch": {"cpu": ""}}, Facts(1, GIB))
    assert found["service"] == {**translation.NEUTRAL, "cpu_shares": 1536}
    assert found["batch"] == {**translation.NEUTRAL, "cpu_shares": 2}


def test_the_policy_becomes_options_of_the_groups() -> None:
    found = translation.translate(POLICY, REQUESTS, Facts(2, 4 * GIB))
    assert found["service"] == {**translation.NEUTRAL, "cpu_shares": 512}
    assert found["batch"] == {
        "cpu_shares": 2,
        "cpu_idle": True,
        "cpu_quota_us": 190_000,
        "cpu_period_us": 100_000,
        "cpu_burst_us": 0,
        "memory_max_bytes": GIB // 2,
    }


def test_every_mode_sets_the_same_options() -> None:
    for policy in (None, POLICY, {"colocation-config": {"enable": False}}):
        found = translation.translate(policy, REQUESTS, Facts(1, 4 * GIB))
        assert {frozenset(options) for options in found.values()} == {frozenset([*translation.NEUTRAL, "cpu_shares"])}


def test_without_a_request_batch_gets_what_the_node_offers() -> None:
    found = translation.translate(POLICY, {"service": {"memory": "1Gi"}}, Facts(1, 4 * GIB))
    assert found["batch"]["memory_max_bytes"] == 4 * GIB * 65 // 100 - GIB


def test_a_request_beyond_the_offer_is_refused_with_the_figures() -> None:
    with pytest.raises(
        validation.PolicyError, match=r"requests.batch.memory: 536870912 bytes are more than the 0 that"
    ):
        translation.translate(POLICY, REQUESTS, Facts(1, 2**20))


def _ceiling_us(cpus: int, threshold: int, minimum: int | None) -> int:
    return suppress.quota_us(suppress.target_milli(cpus * 1000, threshold, min_percent=minimum))


# Koordinator's vectors: 32 CPUs at 65 % idle; floor of 2000 µs; shares of batch requests.
@pytest.mark.parametrize(
    ("cpus", "threshold", "minimum", "quota"),
    [
        (32, 65, None, 2_080_000),
        (1, 95, None, 95_000),
        (1, 0, None, 2_000),
        (4, 10, 50, 200_000),
        (1, 100, None, 100_000),
    ],
)
def test_quota(cpus: int, threshold: int, minimum: int | None, quota: int) -> None:
    assert _ceiling_us(cpus, threshold, minimum) == quota


@pytest.mark.parametrize(
    ("milli", "shares"), [(1500, 1536), (500, 512), (0, 2), (1, 2), (70_000, 71_680), (10**6, 262_144)]
)
def test_shares(milli: int, shares: int) -> None:
    assert cpu.shares(milli) == shares


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("resource-threshold-config/clusterStrategy/cpuSuppressThresholdPercent", 130, "is above 100"),
        ("resource-threshold-config/clusterStrategy/cpuSuppressThresholdPercent", -1, "is below 0"),
        ("resource-threshold-config/clusterStrategy/cpuSuppressThresholdPercent", "95", "is not a whole number"),
        ("resource-threshold-config/clusterStrategy/cpuSuppressThresholdPercent", True, "is not a whole number"),
        ("resource-threshold-config/clusterStrategy/enable", "true", "is not a truth value"),
        ("resource-threshold-config/clusterStrategy/cpuSuppressPolicy", "cpuset", "needs readings at run time"),
        ("resource-threshold-config/clusterStrategy/cpuSuppressPolicy", "quota", "did you mean cfsQuota"),
        ("resource-threshold-config/clusterStrategy/memoryEvictThresholdPercent", 70, "needs readings at run time"),
        ("resource-threshold-config/nodeConfigs", [], "is not a key of Koordinator"),
        ("resource-threshold-config/nodeStrategies", [], "but not yet to engine static"),
        ("resource-qos-config/clusterStrategy/beClass/cpuQOS/schedIdel", 1, "did you mean schedIdle"),
        ("resource-qos-config/clusterStrategy/beClass/cpuQOS/schedidle", 1, "is not a key of Koordinator"),
        ("resource-qos-config/clusterStrategy/beClass/cpuQOS/groupIdentity", -1, "but not yet to engine static"),
        ("resource-qos-config/clusterStrategy/beClass/resctrlQOS", {"enable": True}, "but not yet to engine static"),
        (
            "resource-qos-config/clusterStrategy/beClass/cpuQOS",
            1,
            "is a whole number, not a mapping; allowed: enable, schedIdle",
        ),
        ("colocation-config/memoryCalculatePolicy", "usage", "allowed: request"),
        ("cpu-burst-config", {}, "but not yet to engine static"),
        ("resource-thresholds-config", {}, "did you mean resource-threshold-config"),
        ("description", 7, "is not text"),
    ],
)
def test_problems_name_path_and_remedy(path: str, value: Any, words: str) -> None:
    found = validation.problems(_changed(path, value), "policies.mine")
    assert len(found) == 1
    assert found[0].startswith(f"policies.mine.{path.replace('/', '.')}: ")
    assert words in found[0]
    with pytest.raises(validation.PolicyError):
        translation.translate(_changed(path, value), REQUESTS, Facts(1, 4 * GIB))


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (None, "is nothing, not a mapping"),
        ({}, "has no section"),
        ({"description": "x"}, "has no section"),
        ({"colocation-config": {"enable": True}}, "memoryCalculatePolicy: is missing"),
        ({"resource-threshold-config": {"clusterStrategy": {"enable": True}}}, "cpuSuppressPolicy: is missing"),
        ({"resource-threshold-config": {"clusterStrategy": None}}, "not a mapping"),
        ({3: 4}, "is not a key"),
    ],
)
def test_policies_that_would_do_nothing_or_something_else(policy: Any, words: str) -> None:
    assert any(words in line for line in validation.problems(policy, "p"))


@pytest.mark.parametrize("value", ["0.5m", "x", "-1", 1.5, True])
def test_requests_that_are_no_quantities(value: Any) -> None:
    with pytest.raises(validation.PolicyError, match=r"^requests\.service\.cpu: "):
        translation.translate(None, {"service": {"cpu": value}}, Facts(1, GIB))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*vocabulary.VOCABULARY, "clusterStrategy", "beClass", "cpuQOS", "enable"]), inner
        )
    ),
    max_leaves=8,
)


@given(JSON)
def test_whatever_is_accepted_can_be_translated(policy: Any) -> None:
    if not validation.problems(policy, "p"):
        found = translation.translate(policy, REQUESTS, Facts(1, 4 * GIB))
        assert found["batch"]["cpu_quota_us"] == -1 or found["batch"]["cpu_quota_us"] >= 2000


@given(st.integers(1, 512), st.integers(0, 100), st.integers(0, 100))
def test_a_higher_threshold_never_gives_less(cpus: int, one: int, other: int) -> None:
    low, high = sorted((one, other))
    quotas = [_ceiling_us(cpus, percent, None) for percent in (low, high)]
    assert quotas[0] <= quotas[1] <= max(2000, cpus * 100_000)
