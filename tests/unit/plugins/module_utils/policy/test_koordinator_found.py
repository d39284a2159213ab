# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies as people have them: values of published ConfigMaps, and what Koordinator 1.8.0 makes of each.

Sources: koordinator-sh/koordinator (CHANGELOG, docs/proposals, issue 84), koordinator-sh/koordinator.sh (blog,
docs/user-manuals, docs/best-practices), Alibaba Cloud's manual of ACK. What is wanted was read from Koordinator's own
code, given the same ConfigMap.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.policy import (
    koordinator,
    koordinator_overrides,
    koordinator_text,
    koordinator_versions,
    overlay,
    validation,
    validation_pairs,
)

THRESHOLD, QOS, SYSTEM = "resource-threshold-config", "resource-qos-config", "system-config"
POOL = {"matchLabels": {"pool": "x"}}
HERE = {"pool": "x"}


def problems(data: dict[str, Any]) -> list[str]:
    policy = koordinator_text.read({name: json.dumps(value) for name, value in data.items()}, "p")
    return validation.problems(policy, "p", koordinator.ENGINE)


def cluster(section: str, **values: Any) -> dict[str, Any]:
    return {section: {"clusterStrategy": values}}


@pytest.mark.parametrize(
    "data",
    [
        # Issue 84, CHANGELOG 0.1, user manual of eviction by memory: one threshold alone.
        {"colocation-config": {"enable": True}, **cluster(THRESHOLD, enable=True, memoryEvictThresholdPercent=70)},
        # ACK: suppress, overcommitment.
        cluster(THRESHOLD, enable=True),
        {
            "colocation-config": {
                "enable": True,
                "metricAggregateDurationSeconds": 60,
                "cpuReclaimThresholdPercent": 60,
                "memoryReclaimThresholdPercent": 70,
                "memoryCalculatePolicy": "usage",
            }
        },
        # User manual of CPU QoS.
        cluster(
            QOS,
            lsClass={"cpuQOS": {"enable": True, "groupIdentity": 2}},
            beClass={"cpuQOS": {"enable": True, "groupIdentity": -1}},
        ),
        # User manual of cache isolation: one end of the range alone.
        cluster(
            QOS,
            lsClass={"resctrlQOS": {"enable": True, "catRangeEndPercent": 100, "mbaPercent": 100}},
            beClass={"resctrlQOS": {"enable": True, "catRangeEndPercent": 30, "mbaPercent": 100}},
        ),
        # Best practice of Hadoop YARN.
        {
            "host-application-config": {
                "applications": [
                    {
                        "name": "yarn-task",
                        "priority": "koord-batch",
                        "qos": "BE",
                        "cgroupPath": {"base": "KubepodsBesteffort", "relativePath": "hadoop-yarn/"},
                    }
                ]
            }
        },
        # Release 1.5: shares of the network.
        {
            **cluster(
                QOS,
                lsClass={"networkQOS": {"enable": True, "ingressRequest": "50M", "egressLimit": "200M"}},
                beClass={"networkQOS": {"enable": True, "ingressRequest": "10M", "egressLimit": 20}},
            ),
            **cluster(SYSTEM, totalNetworkBandwidth="600M"),
        },
        # Release 1.4: normalization by CPU model.
        {
            "cpu-normalization-config": {
                "enable": False,
                "ratioModel": {
                    "Intel(R) Xeon(R) Platinum 8269CY CPU @ 2.50GHz": {
                        "baseRatio": 1.29,
                        "hyperThreadEnabledRatio": 0.82,
                        "turboEnabledRatio": 1.52,
                        "hyperThreadTurboEnabledRatio": 1.0,
                    }
                },
            }
        },
    ],
)
def test_what_koordinator_acts_on_is_good(data: dict[str, Any]) -> None:
    assert problems(data) == []


def test_letters_in_texts_are_those_of_the_keys_as_koordinator_reads_them() -> None:
    data = {
        # Blog of release 0.3, user manual of eviction by CPU.
        QOS: '{"clusterStrategy": {"beClass": {"resctrlQoS": {"enable": true, "MBAPercent": 50}}}}',
        THRESHOLD: '{"ClusterStrategy": {"Enable": true, "CPUEvictTimeWindowSeconds": 60}}',
        "colocation-config": '{"nodeConfigs": [{"NodeSelector": {"matchLabels": {"Pool": "x"}}, "Enable": false}]}',
    }
    found = koordinator_text.read(data, "p")
    assert found[QOS]["clusterStrategy"]["beClass"]["resctrlQOS"] == {"enable": True, "mbaPercent": 50}
    assert found[THRESHOLD]["clusterStrategy"] == {"enable": True, "cpuEvictTimeWindowSeconds": 60}
    # Keys of labels are the user's.
    entry = {"nodeSelector": {"matchLabels": {"Pool": "x"}}, "enable": False}
    assert found["colocation-config"] == {"nodeConfigs": [entry]}
    assert validation.problems(found, "p", koordinator.ENGINE) == []


def test_a_configmap_is_a_policy() -> None:
    told = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ack-slo-config"}}
    assert koordinator_text.read({**told, "data": {"system-config": "{}"}}, "p") == {"system-config": {}}
    assert koordinator_text.read(told, "p") == {}
    (found,) = validation.problems(koordinator_text.read({**told, "data": {"a-config": "{}"}}, "p"), "p", "koordinator")
    assert found.startswith("p.a-config: is not a key of Koordinator; ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # User manual of the ConfigMap: a comma is missing; proposal of network QoS: one too many.
        ('{"clusterStrategy": {"minFreeKbytesFactor": 100} "nodeStrategies": []}', "is not JSON (Expecting ',' delim"),
        ('{"clusterStrategy": {"minFreeKbytesFactor": 100,}}', "is not JSON ("),
        # Manual of ACK: comments between the keys.
        ('{\n  # the default is 65\n  "clusterStrategy": {}\n}', "its old values; JSON has no comments, remove them"),
        ("", "is not JSON ("),
        ("clusterStrategy: {}", "is not JSON ("),
        ("\ufeff{}", "is not JSON ("),
        ('{"clusterStrategy": {"minFreeKbytesFactor": NaN}}', "NaN is no number"),
        ('{"clusterStrategy": {}, "clusterStrategy": {}}', "has 'clusterStrategy' twice in one object"),
        ('{"clusterStrategy": {"enable": 1, "Enable": 2}, "ClusterStrategy": {}}', "has 'clusterStrategy' twice"),
    ],
)
def test_texts_that_koordinator_cannot_read_or_mixes(text: str, words: str) -> None:
    with pytest.raises(koordinator_text.TextError) as caught:
        koordinator_text.read({SYSTEM: text}, "policy")
    assert str(caught.value).startswith(f"policy.{SYSTEM}: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        # Proposal of node prediction: a key that no release has.
        ({"colocation-config": {"predictPolicy": "x"}}, "predictPolicy: is not a key of Koordinator; "),
        ({"colocation-config": {"extensions": {"a": 1}}}, "extensions: is not a key of Koordinator; "),
        (cluster(THRESHOLD, cpuSuppressThresholdPercent=None), "ThresholdPercent: None is not a whole number; write"),
        (cluster(THRESHOLD, cpuSuppressThresholdPercent="65"), "'65' is not a whole number; write one from 0 to 100"),
        (cluster(THRESHOLD, cpuSuppressThresholdPercent=65.0), "65.0 is not a whole number; write one from 0 to 100"),
        # Blog of a release, tests of the webhook.
        (cluster(QOS, lsClass={"cpuQOS": {"enable": "true"}}), "lsClass.cpuQOS.enable: 'true' is not a truth value"),
        (cluster(QOS, enable=True), "clusterStrategy.enable: is not a key of Koordinator; "),
        (cluster(THRESHOLD, cpuSuppressPolicy="cpuSet"), "'cpuSet' is not known; did you mean cpuset?"),
        (cluster(THRESHOLD, cpuSuppressPolicy=""), "'' is not known; allowed: cpuset, cfsQuota"),
        ({"colocation-config": {"enable": "true"}}, "'true' is not a truth value; write true or false, without quot"),
        ({THRESHOLD: None}, "resource-threshold-config: is nothing, not a mapping; "),
    ],
)
def test_what_koordinator_ignores_or_cannot_read_is_told(data: dict[str, Any], words: str) -> None:
    (found,) = problems(data)
    assert words in found


def entry(section: str, below: dict[str, Any], **values: Any) -> dict[str, Any]:
    return {section: {"clusterStrategy": below, "nodeStrategies": [{"nodeSelector": POOL, **values}]}}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            entry(SYSTEM, {"totalNetworkBandwidth": "10G"}, watermarkScaleFactor=150),
            "nodeStrategies[0].totalNetworkBandwidth: is missing, and Koordinator takes 0 for these nodes then",
        ),
        (
            entry(
                QOS,
                {"beClass": {"blkioQOS": {"blocks": [{"name": "/dev/vda", "ioCfg": {"readBPS": 1}}]}}},
                beClass={"blkioQOS": {"blocks": [{"name": "/dev/vdb", "ioCfg": {"writeBPS": 2}}]}},
            ),
            "nodeStrategies[0].beClass.blkioQOS.blocks: are there beside those of the cluster, and Koordinator mixes",
        ),
        (
            entry(THRESHOLD, {"memoryEvictLowerPercent": 65}, memoryEvictThresholdPercent=60),
            "nodeStrategies[0].memoryEvictLowerPercent: 65 is not below memoryEvictThresholdPercent, which is 60",
        ),
    ],
)
def test_what_an_entry_does_to_the_clusters_values_is_told(data: dict[str, Any], words: str) -> None:
    (found,) = problems(data)
    assert words in found
    del data[next(iter(data))]["clusterStrategy"]
    assert problems(data) == []


def test_an_entry_of_host_applications_stands_for_the_clusters() -> None:
    named = [{"name": "nginx", "qos": "LS", "cgroupPath": {"parentDir": "", "relativePath": "web/"}}]
    policy = {"host-application-config": {"applications": named, "nodeConfigs": [{"name": "a", "nodeSelector": POOL}]}}
    assert koordinator.node_slo(policy, HERE)["hostApplications"] == []
    assert koordinator.node_slo(policy, {})["hostApplications"] == named
    # The manager leaves out what is empty.
    live = {"hostApplications": [{"name": "nginx", "qos": "LS", "cgroupPath": {"relativePath": "web/"}}]}
    assert koordinator.slo_differences(live, policy, {}) == ()
    (found,) = koordinator.slo_differences(live, policy, HERE)
    assert found.wanted == []


def test_disks_are_the_same_with_and_without_what_is_empty() -> None:
    policy = cluster(QOS, beClass={"blkioQOS": {"enable": True, "blocks": [{"name": "/dev/vda"}]}}, lsClass={})
    live = {"beClass": {"blkioQOS": {"enable": True, "blocks": [{"name": "/dev/vda", "ioCfg": {}}]}}}
    assert koordinator.slo_differences({"resourceQOSStrategy": live}, policy, {}) == ()
    empty = cluster(QOS, beClass={"blkioQOS": {"enable": True, "blocks": []}})
    without = {"resourceQOSStrategy": {"beClass": {"blkioQOS": {"enable": True}}}}
    assert koordinator.slo_differences(without, empty, {}) == ()
    assert koordinator.slo_differences(without, policy, {}) != ()


def test_one_end_of_a_range_is_refused_where_koordinators_own_validation_is_used() -> None:
    (found,) = validation_pairs.alone(cluster(THRESHOLD, memoryEvictThresholdPercent=70), "p")
    assert "memoryEvictLowerPercent: is missing beside memoryEvictThresholdPercent, and Koordinator's own vali" in found
    cache = cluster(QOS, beClass={"resctrlQOS": {"catRangeEndPercent": 30}})
    assert "beClass.resctrlQOS.catRangeStartPercent: is missing beside" in validation_pairs.alone(cache, "p")[0]
    assert validation_pairs.alone(cluster(THRESHOLD, enable=True), "p") == []


@pytest.mark.parametrize(
    "data",
    [
        {"colocation-config": {"midReclaimMode": "static"}},
        {"colocation-config": {"nodeConfigs": [{"nodeSelector": POOL, "midStaticCPUReservedPercent": 10}]}},
        cluster(THRESHOLD, cpuAllocatableEvictThresholdPercent=110, cpuAllocatableEvictLowerPercent=100),
    ],
)
def test_keys_are_those_of_the_version(data: dict[str, Any]) -> None:
    assert problems(data) == []
    koordinator_versions.check(data, "p", "1.8.0")
    with pytest.raises(
        validation.PolicyError, match=r"is a key of Koordinator from 1\.8\.0 on, and 1\.7\.0 ignores it"
    ):
        koordinator_versions.check(data, "p", "1.7.0")


def test_defaults_below_a_key_are_those_that_koordinator_adds() -> None:
    found = overlay.strategy(cluster(THRESHOLD, enable=True), THRESHOLD, {}).values
    wanted = {"cpuSuppressThresholdPercent": 65, "cpuSuppressPolicy": "cpuset", "memoryEvictThresholdPercent": 70}
    assert {name: found[name] for name in wanted} == wanted


def node(labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    return {"metadata": {"name": "n1", "labels": labels or {}, "annotations": annotations or {}}}


RATIO, STRATEGY = "node.koordinator.sh/cpu-reclaim-ratio", "node.koordinator.sh/colocation-strategy"
BANDWIDTH = "node.koordinator.sh/network-bandwidth"
RECLAIM = {"colocation-config": {"enable": True, "cpuReclaimThresholdPercent": 80}}
TOTAL = cluster(SYSTEM, totalNetworkBandwidth="10G")


@pytest.mark.parametrize(
    ("policy", "found", "words"),
    [
        (
            RECLAIM,
            node({RATIO: "0.6"}),
            "cpuReclaimThresholdPercent: 80 does not count on node n1, whose label node.ko",
        ),
        (RECLAIM, node({"node.koordinator.sh/memory-reclaim-ratio": "0.7"}), "memoryReclaimThresholdPercent: 65 does"),
        (RECLAIM, node(annotations={STRATEGY: '{"enable": false}'}), "colocation-config.enable: True does not count"),
        (TOTAL, node(annotations={BANDWIDTH: "1G"}), "totalNetworkBandwidth: '10G' does not count on node n1, whose"),
    ],
)
def test_what_a_node_says_of_itself_counts_more(policy: dict[str, Any], found: dict[str, Any], words: str) -> None:
    (finding,) = koordinator_overrides.findings(policy, found)
    assert finding.kind == "fail"
    assert words in finding.text


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        (RECLAIM, node({RATIO: "0.8"})),
        (RECLAIM, node({RATIO: "much"})),
        (RECLAIM, node({RATIO: "-1"})),
        (RECLAIM, node({RATIO: "nan"})),
        (RECLAIM, node(annotations={STRATEGY: "{", BANDWIDTH: "1G"})),
        (RECLAIM, node(annotations={STRATEGY: "[]"})),
        ({"colocation-config": {"enable": False}}, node({RATIO: "0.6"})),
        (TOTAL, node(annotations={BANDWIDTH: "10000M"})),
        ({}, {}),
    ],
)
def test_what_a_node_says_and_nobody_reads_is_left_alone(policy: dict[str, Any], found: dict[str, Any]) -> None:
    assert koordinator_overrides.findings(policy, found) == ()
