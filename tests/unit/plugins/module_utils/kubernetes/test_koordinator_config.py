"""A policy on its way: what is written into the ConfigMap, how it arrives, and what is refused before."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import (
    koordinator_config,
    koordinator_names,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy import koordinator
from ansible_collections.colocation.testbed.plugins.module_utils.policy import koordinator_gates as gates
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation import PolicyError
from tests.support.fake_cluster import FakeCluster

LOOKS = "/kubepods.slice and /kubepods"
OURS = {"app.kubernetes.io/managed-by": "colocation-testbed"}
RELEASE = {"meta.helm.sh/release-name": "koordinator", "meta.helm.sh/release-namespace": "default"}
OTHER_RELEASE = {"meta.helm.sh/release-name": "koord", "meta.helm.sh/release-namespace": "platform"}
SPACE = koordinator_names.NAMESPACE


def made(kind: str, name: str, namespace: str = "", **metadata: Any) -> dict[str, Any]:
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": "x/v1", "kind": kind, "metadata": {"name": name, **place, **metadata}}


def node(ready: str = "True") -> dict[str, Any]:
    found = made("Node", "n1", labels={"pool": "colocation"})
    return {**found, "status": {"conditions": [{"type": "Ready", "status": ready, "message": "kubelet is dead"}]}}


def sized(cpus: str) -> dict[str, Any]:
    found = node()
    return {**found, "status": {**found["status"], "capacity": {"cpu": cpus}}}


POLICY: dict[str, Any] = {
    "colocation-config": {"enable": True},
    "resource-threshold-config": {"clusterStrategy": {"enable": True, "cpuSuppressPolicy": "cfsQuota"}},
}


class Manager:
    """What Koordinator's manager does with the ConfigMap, after each call."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        cluster.after = self.reconcile

    def reconcile(self) -> None:
        held = self.cluster.get("ConfigMap", koordinator_names.CONFIG_MAP, SPACE) or {}
        policy = koordinator.parse(held.get("data") or {})
        self.cluster.put({**made("NodeSLO", "n1"), "spec": koordinator.node_slo(policy, {"pool": "colocation"})})


def order(policy: dict[str, Any], **more: Any) -> koordinator_config.Order:
    return koordinator_config.Order(
        policy, SPACE, ["n1"], more.pop("features", ""), more.pop("host", gates.Host()), **more
    )


def write(cluster: FakeCluster, what: koordinator_config.Order) -> koordinator_config.Task:
    task = koordinator_config.prepare(cluster.kubectl, what)
    koordinator_config.carry_out(cluster.kubectl, task)
    assert koordinator_config.late(cluster.kubectl, what, 0) == ""
    return task


def config(cluster: FakeCluster) -> dict[str, Any]:
    found = cluster.get("ConfigMap", koordinator_names.CONFIG_MAP, SPACE)
    assert found is not None
    return found


def test_the_number_of_cpus_is_the_nodes_where_nobody_has_looked() -> None:
    assert koordinator_config.completed(gates.Host(), sized("2")).cpus == 2
    assert koordinator_config.completed(gates.Host(cpus=8), sized("2")).cpus == 8
    assert koordinator_config.completed(gates.Host(), node()).cpus is None


def test_the_configmap_carries_label_and_run() -> None:
    cluster = FakeCluster([node()])
    Manager(cluster)
    write(cluster, order(POLICY, run_id="r1"))
    assert config(cluster)["metadata"]["labels"] == {**OURS, "colocation.testbed/run": "r1"}


def test_a_policy_arrives_once_and_goes_again() -> None:
    cluster = FakeCluster([node()])
    Manager(cluster)
    assert write(cluster, order(POLICY)).changed
    assert config(cluster)["metadata"]["labels"] == OURS
    assert not write(cluster, order(POLICY)).changed
    assert write(cluster, order({})).changed
    assert config(cluster)["data"] == {}
    assert not write(cluster, order({})).changed


def test_what_the_chart_wrote_is_the_policys_and_other_keys_stay() -> None:
    chart = {**made("ConfigMap", koordinator_names.CONFIG_MAP, SPACE), "data": {"colocation-config": "{}", "own": "x"}}
    chart["data"]["cpu-burst-config"] = "{}"
    cluster = FakeCluster([node(), chart])
    Manager(cluster)
    task = write(cluster, order(POLICY, validated=True))
    assert task.before != task.after
    assert config(cluster)["data"] == {**koordinator.render(POLICY), "own": "x"}
    assert config(cluster)["metadata"]["labels"]["koordinator.sh/configmap-type"] == "slo-controller-config"
    write(cluster, order(POLICY))
    assert "koordinator.sh/configmap-type" not in config(cluster)["metadata"]["labels"]


def test_koordinators_own_validation_gets_what_it_looks_for() -> None:
    cluster = FakeCluster([node()])
    Manager(cluster)
    classes = {"resource-qos-config": {"clusterStrategy": {"beClass": {"resctrlQOS": {"enable": False}}}}}
    write(cluster, order(classes, validated=True))
    assert config(cluster)["data"] == {**koordinator.render(classes), "system-config": "{}"}
    assert not write(cluster, order(classes, validated=True)).changed
    write(cluster, order(classes))
    assert config(cluster)["data"] == koordinator.render(classes)
    one_end = {"resource-threshold-config": {"clusterStrategy": {"memoryEvictThresholdPercent": 70}}}
    with pytest.raises(PolicyError, match="memoryEvictLowerPercent: is missing beside memoryEvictThresholdPercent"):
        koordinator_config.prepare(cluster.kubectl, order(one_end, validated=True))


def test_a_policy_that_would_do_nothing_is_refused_before_anything_changes() -> None:
    cluster = FakeCluster([node()])
    cpuset = {"resource-threshold-config": {"clusterStrategy": {"enable": True}}}
    with pytest.raises(PolicyError, match=r"policy\.resource-threshold-config.*it would do nothing; write cfsQuota"):
        koordinator_config.prepare(cluster.kubectl, order(cpuset, host=gates.Host(cpus=2)))
    with pytest.raises(PolicyError, match="did you mean cpuSuppressPolicy"):
        koordinator_config.prepare(
            cluster.kubectl, order({"resource-threshold-config": {"clusterStrategy": {"cpusuppresspolicy": "cpuset"}}})
        )
    with pytest.raises(koordinator_config.ConfigError, match="node n1: is not in the cluster"):
        koordinator_config.prepare(FakeCluster().kubectl, order(POLICY))
    assert cluster.changes() == []


def test_a_policy_that_does_not_arrive_is_told_with_its_values() -> None:
    for cluster, told in (
        (
            FakeCluster([node(), {**made("NodeSLO", "n1"), "spec": {}}]),
            r'cpuSuppressPolicy is "cpuset", wanted "cfsQuota".*has not',
        ),
        (FakeCluster([node()]), "NodeSLO n1 is not there"),
    ):
        task = koordinator_config.prepare(cluster.kubectl, order(POLICY))
        koordinator_config.carry_out(cluster.kubectl, task)
        assert re.search(told, koordinator_config.late(cluster.kubectl, order(POLICY), 0))


def test_somebody_else_who_writes_the_configmap_is_noticed() -> None:
    cluster = FakeCluster([node()])

    def overwrite() -> None:
        held = cluster.get("ConfigMap", koordinator_names.CONFIG_MAP, SPACE)
        if held:
            held["data"]["colocation-config"] = "{}"

    cluster.after = overwrite
    with pytest.raises(koordinator_config.ConfigError, match="colocation-config was written and is something else now"):
        write(cluster, order(POLICY))
