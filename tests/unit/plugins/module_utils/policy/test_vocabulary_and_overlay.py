# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole vocabulary: what is refused, what one layer makes of another, and that nothing makes it stumble."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.policy import (
    effects,
    kernel_values,
    overlay,
    validation,
    vocabulary,
    vocabulary_types,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import BE, LS, POD, NodeFacts, Workload

SELECTOR = {"matchLabels": {"pool": "colocation"}}
LABELS = {"pool": "colocation"}
EVERYTHING: dict[str, Any] = {
    "description": "Every section, good",
    "colocation-config": {
        "enable": True,
        "metricAggregatePolicy": {"durations": ["5m", "1h30m"]},
        "metricMemoryCollectPolicy": "usageWithHotPageCache",
        "cpuReclaimThresholdPercent": 120,
        "resourceDiffThreshold": 0.1,
        "midReclaimMode": "static",
        "nodeConfigs": [{"name": "a", "nodeSelector": SELECTOR, "enable": False}],
    },
    "resource-threshold-config": {
        "clusterStrategy": {
            "enable": True,
            "memoryEvictThresholdPercent": 70,
            "memoryEvictLowerPercent": 65,
            "cpuEvictBESatisfactionLowerPercent": 60,
            "cpuEvictBESatisfactionUpperPercent": 60,
            "evictEnabledPriorityThreshold": -5,
        },
        "nodeStrategies": [
            {"nodeSelector": {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["x", "y"]}]}}
        ],
    },
    "resource-qos-config": {
        "clusterStrategy": {
            "policies": {"cpuPolicy": "coreSched", "netQOSPolicy": "terway-qos"},
            "lsClass": {"networkQOS": {"enable": True, "egressRequest": 50, "egressLimit": "50M"}},
            "beClass": {
                "networkQOS": {"enable": True, "egressRequest": 50},
                "blkioQOS": {"enable": True, "blocks": [{"name": "/dev/vda", "ioCfg": {"readBPS": 1}}]},
                "resctrlQOS": {"enable": True, "catRangeStartPercent": 0, "catRangeEndPercent": 30, "mbaPercent": 50},
            },
        }
    },
    "cpu-burst-config": {"clusterStrategy": {"policy": "auto", "cfsQuotaBurstPeriodSeconds": -1}},
    "system-config": {"clusterStrategy": {"totalNetworkBandwidth": "10G", "schedFeatures": {"ID_X": True}}},
    "host-application-config": {"applications": [{"name": "x", "qos": "LS", "priority": "koord-prod", "strategy": {}}]},
    "cpu-normalization-config": {"enable": True, "ratioModel": {"Xeon": {"baseRatio": 1.2}}},
    "resource-amplification-config": {"enable": True, "resourceAmplificationRatio": {"cpu": 1.5}},
}


def _with(path: str, value: Any) -> dict[str, Any]:
    policy: dict[str, Any] = {}
    place: Any = policy
    *parents, last = path.split("/")
    for name in parents:
        place = place.setdefault(name, {})
    place[last] = value
    return policy


@pytest.mark.parametrize("engine", vocabulary_types.LATER)
def test_a_policy_with_every_section_is_good(engine: str) -> None:
    assert validation.problems(EVERYTHING, "policy", engine) == []


THRESHOLD = "resource-threshold-config/clusterStrategy"
CLASS = "resource-qos-config/clusterStrategy/beClass"


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (
            f"{CLASS}/resctrlQOS",
            {"catRangeStartPercent": 0, "catRangeEndPercent": 130},
            "EndPercent: 130 is above 100; ",
        ),
        (f"{CLASS}/resctrlQOS", {"catRangeStartPercent": 30}, "30 is not below catRangeEndPercent, which is 30"),
        (f"{CLASS}/resctrlQOS", {"catRangeStartPercent": 30, "catRangeEndPercent": 30}, "30 is not below catRangeEnd"),
        (f"{CLASS}/resctrlQOS", {"mbaPercent": 0}, "0 is accepted by Koordinator and never applied"),
        (f"{CLASS}/memoryQOS", {"wmarkMinAdj": -26}, "-26 is below -25; write a number from -25 to 50"),
        (f"{CLASS}/blkioQOS", {"blocks": [{"type": "device"}]}, "blocks[0].name: is missing; add it"),
        (f"{CLASS}/blkioQOS", {"blocks": [{"name": "a", "ioCfg": {"readBps": 1}}]}, "did you mean readBPS?"),
        (f"{CLASS}/blkioQOS", {"blocks": {"name": "a"}}, "blocks: is a mapping, not a list"),
        (f"{CLASS}/networkQOS", {"egressRequest": 101}, "101 is neither a percentage nor a quantity"),
        (f"{CLASS}/networkQOS", {"egressRequest": "50mb"}, "'50mb': 'mb' is not a suffix"),
        (f"{CLASS}/cpuQOS", {"groupIdentity": 3}, "3 is above 2"),
        (THRESHOLD, {"memoryEvictLowerPercent": 70}, "70 is not below memoryEvictThresholdPercent, which is 70"),
        (THRESHOLD, {"cpuEvictLowerPercent": 70}, "cpuEvictThresholdPercent: is missing beside cpuEvictLowerPercent"),
        (
            THRESHOLD,
            {"cpuEvictBESatisfactionLowerPercent": 50},
            "cpuEvictBESatisfactionUpperPercent: is missing beside",
        ),
        (THRESHOLD, {"evictEnabledPriorityThreshold": 2**31}, "2147483648 is above 2147483647"),
        (THRESHOLD, {"cpuAllocatableEvictThresholdPercent": 2**63, "cpuAllocatableEvictLowerPercent": 1}, "64 bits"),
        (THRESHOLD, {"cpuEvictThresholdPercent": 70, "cpuEvictLowerPercent": 70}, "70 is not below cpuEvictThreshold"),
        (
            THRESHOLD,
            {"cpuEvictBESatisfactionLowerPercent": 60, "cpuEvictBESatisfactionUpperPercent": 50},
            "60 is above cpuEvictBESatisfactionUpperPercent, which is 50",
        ),
        (THRESHOLD, {"allocatableEvictPriorityThreshold": 8000}, "8000 is above 7999"),
        (THRESHOLD, {"evictEnabledPriorityThreshold": "x"}, "'x' is not a whole number; write one"),
        (
            "resource-threshold-config",
            {"nodeConfigs": []},
            "nodeConfigs: is not a key of Koordinator; did you mean node",
        ),
        ("colocation-config", {"nodeStrategies": []}, "did you mean nodeConfigs?"),
        ("colocation-config", {"metricAggregatePolicy": {"durations": ["5"]}}, "durations[0]: '5': is not a duration"),
        ("colocation-config", {"resourceDiffThreshold": 0}, "0 is out of range; write a number above 0, up to 1"),
        ("colocation-config", {"resourceDiffThreshold": float("nan")}, "nan is not a number"),
        ("colocation-config", {"nodeConfigs": [{"enable": True}]}, "nodeConfigs[0].nodeSelector: is missing"),
        (
            "colocation-config",
            {"nodeConfigs": [{"nodeSelector": {}}]},
            "nodeSelector: is empty, so it would match every",
        ),
        (
            "colocation-config",
            {"nodeConfigs": [{"nodeSelector": {"matchLabels": {"a": True}}}]},
            "matchLabels.a: True is not the value of a label; write text in quotes",
        ),
        (
            "colocation-config",
            {"nodeConfigs": [{"nodeSelector": {"matchLabels": {"a b": "x"}}}]},
            "matchLabels: 'a b' is not the key of a label, so the entry would match no node",
        ),
        (
            "colocation-config",
            {"nodeConfigs": [{"nodeSelector": {"matchExpressions": [{"key": "/a", "operator": "Exists"}]}}]},
            "matchExpressions[0].key: '/a' is not the key of a label",
        ),
        (
            "colocation-config",
            {"nodeConfigs": [{"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}]},
            "operator In needs at least one value",
        ),
        (
            "colocation-config",
            {
                "nodeConfigs": [
                    {"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}
                ]
            },
            "operator Exists takes no values",
        ),
        (
            "cpu-burst-config/clusterStrategy",
            {"cfsQuotaBurstPercent": 99},
            "99 is below 100; write a number from 100 on",
        ),
        ("system-config/clusterStrategy", {"totalNetworkBandwidth": "-1"}, "'-1' is negative"),
        ("system-config/clusterStrategy", {"schedFeatures": {"A": 1}}, "schedFeatures.A: 1 is not a truth value"),
        ("host-application-config", {"applications": [{"name": "x"}]}, "applications[0].qos: is missing"),
        ("host-application-config", {"applications": [{"name": "a\nb", "qos": "LS"}]}, "not printable; write one line"),
        (
            "host-application-config",
            {"applications": [{"name": "x", "qos": "LS", "strategy": {"a": 1}}]},
            "strategy.a: is",
        ),
        ("resource-qos-config", {"clusterStrategy": {"BEClass": {}}}, "did you mean beClass?"),
    ],
)
def test_what_koordinator_would_ignore_or_refuse(path: str, value: Any, words: str) -> None:
    found = validation.problems(_with(path, value), "policy", "koordinator")
    assert len(found) == 1
    assert found[0].startswith("policy.")
    assert words in found[0]


def test_requests_for_the_network_are_of_one_whole() -> None:
    def policy(ls: Any, be: Any) -> dict[str, Any]:
        classes = {"lsClass": {"networkQOS": {"egressRequest": ls}}, "beClass": {"networkQOS": {"egressRequest": be}}}
        return {"resource-qos-config": {"clusterStrategy": classes}}

    (found,) = validation.problems(policy(60, 50), "p", "koordinator")
    assert "are 110 % together" in found
    (found,) = validation.problems(policy(60, "50M"), "p", "koordinator")
    assert "some are percentages and some are quantities" in found


def test_all_problems_are_told_at_once() -> None:
    policy = {"colocation-config": {"enable": 1, "enabled": True}, "other": {}, "cpu-burst-config": []}
    assert len(validation.problems(policy, "p", "koordinator")) == 4


@pytest.mark.parametrize(
    ("selector", "labels", "wanted"),
    [
        ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1"}}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, {"a": "1"}, True),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {"a": "1"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"a": ""}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {"a": ""}, False),
        ({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]}, {"a": "1"}, False),
    ],
)
def test_selectors(selector: dict[str, Any], labels: dict[str, str], wanted: bool) -> None:
    assert overlay.matches(selector, labels) is wanted


def test_the_first_matching_node_entry_counts_key_by_key() -> None:
    section = {
        "clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 50},
        "nodeStrategies": [
            {"nodeSelector": {"matchLabels": {"pool": "other"}}, "cpuSuppressThresholdPercent": 1},
            {"name": "first", "nodeSelector": SELECTOR, "cpuSuppressPolicy": "cfsQuota"},
            {"name": "second", "nodeSelector": SELECTOR, "cpuSuppressThresholdPercent": 2},
        ],
    }
    found = overlay.strategy({"resource-threshold-config": section}, "resource-threshold-config", LABELS)
    assert found.entry == 1
    assert found.get("enable") is True
    assert found.get("cpuSuppressThresholdPercent") == 50
    assert found.get("cpuSuppressPolicy") == "cfsQuota"
    assert found.get("memoryEvictThresholdPercent") == 70
    assert found.path("cpuSuppressPolicy") == "resource-threshold-config.nodeStrategies[1].cpuSuppressPolicy"
    assert found.path("enable") == "resource-threshold-config.clusterStrategy.enable"
    assert not {"name", "nodeSelector"} & set(found.values)


def test_lists_are_replaced() -> None:
    section = {
        "applications": [{"name": "a", "qos": "LS"}, {"name": "b", "qos": "LS"}],
        "nodeConfigs": [{"nodeSelector": SELECTOR, "applications": [{"name": "c", "qos": "BE"}]}],
    }
    policy = {"host-application-config": section}
    here = overlay.strategy(policy, "host-application-config", LABELS).get("applications")
    elsewhere = overlay.strategy(policy, "host-application-config", {}).get("applications")
    assert [item["name"] for item in here] == ["c"]
    assert [item["name"] for item in elsewhere] == ["a", "b"]


@pytest.mark.parametrize(
    ("cluster", "entry", "wanted"), [(False, True, False), (True, False, False), (True, True, True)]
)
def test_colocation_that_is_off_for_the_cluster_is_off_everywhere(cluster: bool, entry: bool, wanted: bool) -> None:
    section = {"enable": cluster, "nodeConfigs": [{"nodeSelector": SELECTOR, "enable": entry}]}
    assert overlay.strategy({"colocation-config": section}, "colocation-config", LABELS).get("enable") is wanted


def test_disabled_blocks_have_neutral_values_and_system_keeps_its_own() -> None:
    blocks = {"cpuQOS": {"enable": False, "groupIdentity": 2}}
    section = {"clusterStrategy": {"lsClass": blocks, "systemClass": blocks}}
    found = overlay.strategy({"resource-qos-config": section}, "resource-qos-config", {})
    assert found.get("lsClass", "cpuQOS", "groupIdentity") == 0
    assert found.get("systemClass", "cpuQOS", "groupIdentity") == 2
    assert found.get("beClass", "resctrlQOS", "catRangeEndPercent") == 100
    assert found.get("beClass", "memoryQOS", "wmarkScalePermill") == 50


def test_enabled_blocks_have_the_defaults_of_their_class() -> None:
    on = {"cpuQOS": {"enable": True}, "memoryQOS": {"enable": True}, "resctrlQOS": {"enable": True}}
    found = overlay.strategy(
        {"resource-qos-config": {"clusterStrategy": {"lsrClass": on, "lsClass": on, "beClass": on}}},
        "resource-qos-config",
        {},
    )
    classes = ("lsrClass", "lsClass", "beClass")
    assert [found.get(name, "cpuQOS", "groupIdentity") for name in classes] == [2, 2, -1]
    assert [found.get(name, "memoryQOS", "wmarkMinAdj") for name in classes] == [-25, -25, 50]
    assert [found.get(name, "resctrlQOS", "catRangeEndPercent") for name in classes] == [100, 100, 30]


def test_an_unknown_section_is_an_error() -> None:
    with pytest.raises(overlay.OverlayError, match="allowed: colocation-config, "):
        overlay.strategy({}, "colocation", {})


def _words(node: vocabulary_types.Node) -> set[str]:
    if isinstance(node, vocabulary_types.ListOf):
        return _words(node.item)
    if isinstance(node, (vocabulary_types.Leaf, vocabulary_types.MapOf)):
        return set()
    return {word for name, child in node.items() for word in (name, *_words(child))}


WORDS = sorted(_words(vocabulary.VOCABULARY))
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats()
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS) | st.text(), inner, max_size=5),
    max_leaves=12,
)


def _value(leaf: vocabulary_types.Leaf) -> st.SearchStrategy[Any]:
    low = 0 if leaf.low is None else leaf.low
    high = low + 1000 if leaf.high is None else leaf.high
    good: dict[str, st.SearchStrategy[Any]] = {
        "bool": st.booleans(),
        "int": st.integers(low, high),
        "number": st.floats(0.01, 1),
        "choice": st.sampled_from(leaf.choices or ("",)),
        "text": st.sampled_from(["a", "/dev/vda"]),
        "label": st.sampled_from(["a", "b"]),
        "label_key": st.sampled_from(["a", "kubernetes.io/os"]),
        "duration": st.sampled_from(["10ms", "5m"]),
        "quantity": st.sampled_from(["1M", 5]),
        "share": st.integers(0, 20),
        "rate": st.sampled_from(["10Mbit/s", "1Gbit/s", "2MB/s"]),
    }
    return good[leaf.kind]


def _near(node: vocabulary_types.Node) -> st.SearchStrategy[Any]:
    """Values that are of the right kind throughout, so that many policies are good."""
    if isinstance(node, vocabulary_types.Leaf):
        return _value(node)
    if isinstance(node, vocabulary_types.ListOf):
        return st.lists(_near(node.item), max_size=2)
    if isinstance(node, vocabulary_types.MapOf):
        return st.dictionaries(st.sampled_from(["a", "b"]), _near(node.value), max_size=2)
    children = {name: _near(child) for name, child in node.items()}
    return st.fixed_dictionaries({}, optional=children)


POLICIES = st.sampled_from(sorted(vocabulary.VOCABULARY)).flatmap(
    lambda section: st.fixed_dictionaries({section: _near(vocabulary.VOCABULARY[section])})
)
LAYERS = st.recursive(
    st.integers(0, 2), lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner)
)
LAYER = st.dictionaries(st.sampled_from("abc"), LAYERS)


@given(st.dictionaries(st.sampled_from(sorted(vocabulary.VOCABULARY)), JSON) | JSON)
def test_validation_never_stumbles(policy: Any) -> None:
    for engine in vocabulary_types.ENGINES:
        assert all(isinstance(line, str) and line.startswith("p") for line in validation.problems(policy, "p", engine))


@given(POLICIES, st.booleans())
def test_whatever_is_good_has_values_and_a_state_for_each_key(policy: dict[str, Any], labelled: bool) -> None:
    assume(not validation.problems(policy, "p", "agent"))
    node = NodeFacts(4, 2**33, labels={"a": "a"} if labelled else {})
    found = kernel_values.wanted(policy, node, [Workload("a", BE), Workload("b", LS, POD)])
    assert {state for _key, state, _reason in found.states} <= {"supported", "degraded", "unsupported"}
    told = [key for key, _state, _reason in found.states]
    assert len(told) == len(set(told))
    for section in policy:
        strategy = overlay.strategy(policy, section, node.labels)
        assert {path for path in strategy.given.values() if not path.endswith("Class")} - set(told) <= {
            path for names, path in strategy.given.items() if isinstance(strategy.get(*names), (dict, type(None)))
        }


@given(LAYER)
def test_laying_a_policy_over_itself_changes_nothing(policy: dict[str, Any]) -> None:
    before = copy.deepcopy(policy)
    assert overlay.merge(policy, policy) == policy == before


@given(LAYER, LAYER)
def test_the_upper_layer_wins_and_layers_are_not_changed(lower: dict[str, Any], upper: dict[str, Any]) -> None:
    merged = overlay.merge(lower, upper)
    assert overlay.merge(merged, upper) == merged
    assert set(merged) == {*lower, *upper}


def test_all_keys_of_all_sections_are_told_in_the_table() -> None:
    count = sum(1 for section in vocabulary.SECTIONS for _names in effects.keys(section))
    assert count > 250
