"""Before and after an installation: what stands in the way, how a policy arrives, what is left and taken away."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import (
    koordinator_names,
    koordinator_preflight,
)
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


def definition(name: str, **metadata: Any) -> dict[str, Any]:
    return {**made("CustomResourceDefinition", name, **metadata), "spec": {"group": name.partition(".")[2]}}


def judge(*items: dict[str, Any], method: str = "manifests", version: str = "v1.34.4", **order: Any) -> Any:
    cluster = FakeCluster(items or [node()])
    cluster.version = version
    what = koordinator_preflight.Order(
        method,
        "koordinator",
        order.get("release_namespace", "default"),
        ["n1"],
        ["workloads"],
        order.get("removal", False),
        order.get("crds", {}),
        order.get("policy", {}),
        order.get("features", ""),
        order.get("cgroup_root", ""),
    )
    cluster.configz = order.get("kubelet", {})
    found = koordinator_preflight.judge(koordinator_preflight.read(cluster.kubectl, ["n1"]), what)
    assert cluster.changes() == []
    return found


@pytest.mark.parametrize("method", ["manifests", "helm"])
def test_an_empty_cluster_is_ready(method: str) -> None:
    assert judge(method=method) == koordinator_preflight.Found("", (), ())


@pytest.mark.parametrize(
    ("items", "method", "words"),
    [
        ([made("Node", "other")], "manifests", "node n1: is not in the cluster, which has other"),
        ([node("False")], "manifests", "node n1: is not ready (kubelet is dead); look with: kubectl describe node n1"),
        (
            [node(), definition("nodeslos.slo.koordinator.sh")],
            "manifests",
            "definition nodeslos.slo.koordinator.sh: there already, of somebody else; leave it out of the installation "
            "with crds.nodeslos: false among koordinator_values, or remove it; look with: kubectl get crd nodeslos.slo",
        ),
        (
            [node(), definition("nodeslos.slo.koordinator.sh"), definition("devices.scheduling.koordinator.sh")],
            "helm",
            "definition devices.scheduling.koordinator.sh, nodeslos.slo.koordinator.sh: there already, of",
        ),
        (
            [node(), definition("podgroups.scheduling.sigs.k8s.io", annotations=RELEASE)],
            "manifests",
            "there already, of Helm release default/koordinator",
        ),
        (
            [node(), definition("podgroups.scheduling.sigs.k8s.io", annotations=OTHER_RELEASE)],
            "helm",
            "there already, of Helm release platform/koord",
        ),
        (
            [node(), definition("nodeslos.slo.koordinator.sh", labels=OURS)],
            "helm",
            "there already, of an installation by manifests",
        ),
        (
            [node(), made("PriorityClass", "koord-batch")],
            "helm",
            "PriorityClass koord-batch: there already, of somebody else; remove that installation first",
        ),
        (
            [node(), made("MutatingWebhookConfiguration", koordinator_names.MUTATING)],
            "manifests",
            "MutatingWebhookConfiguration koordinator-mutating-webhook-configuration: there already, of somebody else",
        ),
        (
            [node(), made("Namespace", "workloads")],
            "manifests",
            "namespace workloads: exists and is not ours, and what is in it would not be left alone",
        ),
        (
            [node(), made("Namespace", SPACE)],
            "helm",
            "namespace koordinator-system: exists without belonging to the release",
        ),
        ([node(), made("Namespace", SPACE)], "manifests", "namespace koordinator-system: exists and is not ours"),
        (
            [node(), {**made("Namespace", SPACE), "status": {"phase": "Terminating"}}],
            "manifests",
            "is being deleted; wait until it is gone",
        ),
        (
            [node(), made("Namespace", "workloads", labels={"control-plane": "x"})],
            "manifests",
            "namespace workloads: has label control-plane, so webhooks skip its pods",
        ),
        (
            [node(), made("Deployment", "koord-manager", SPACE, annotations=RELEASE)],
            "manifests",
            "is installed by helm, not by manifests",
        ),
        ([node(), made("DaemonSet", "koordlet", SPACE)], "helm", "somebody else has installed Koordinator by hand"),
    ],
)
def test_what_stands_in_the_way_is_told(items: list[dict[str, Any]], method: str, words: str) -> None:
    assert any(words in text for text in judge(*items, method=method).problems)


def test_the_charts_own_namespace_is_not_the_releases() -> None:
    found = judge(method="helm", release_namespace=SPACE)
    assert any("so Helm would stop; choose another one" in text for text in found.problems)


def test_removing_only_asks_whose_it_is() -> None:
    terminating = {**made("Namespace", SPACE), "status": {"phase": "Terminating"}}
    assert judge(terminating, removal=True) == koordinator_preflight.Found("", (), ())
    helms = made("DaemonSet", "koordlet", SPACE, annotations=RELEASE)
    assert "is installed by helm" in judge(helms, removal=True).problems[0]


def test_old_and_new_clusters_are_told() -> None:
    assert "Koordinator needs 1.20 or newer" in judge(version="v1.18.2").problems[0]
    assert "was tried up to 1.35" in judge(version="v1.36.0-alpha").remarks[0]


def test_what_an_installation_brought_itself_is_no_obstacle() -> None:
    ours = [definition("nodeslos.slo.koordinator.sh", labels=OURS), made("Namespace", SPACE, labels=OURS)]
    agent = made("DaemonSet", "koordlet", SPACE, labels=OURS)
    assert judge(node(), *ours, agent) == koordinator_preflight.Found("manifests", (), ())
    theirs = [
        definition("nodeslos.slo.koordinator.sh", annotations=RELEASE),
        made("Namespace", SPACE, annotations=RELEASE),
        made("PriorityClass", "koord-batch", annotations=RELEASE),
        made("DaemonSet", "koordlet", SPACE, annotations=RELEASE),
    ]
    assert judge(node(), *theirs, method="helm") == koordinator_preflight.Found("helm", (), ())


def test_a_platforms_own_is_left_alone() -> None:
    found = judge(node(), made("DaemonSet", "ack-koordlet", "kube-system"), definition("nodeslos.slo.koordinator.sh"))
    assert (found.owner, found.problems) == ("platform", ())
    assert "which is left alone" in found.remarks[0]


@pytest.mark.parametrize("method", ["manifests", "helm"])
def test_definitions_that_are_left_out_may_be_anothers(method: str) -> None:
    theirs = [definition("nodeslos.slo.koordinator.sh"), definition("podgroups.scheduling.sigs.k8s.io")]
    (left,) = judge(node(), *theirs, method=method, crds={"nodeslos": False, "podgroups": True}).problems
    assert left.startswith("definition podgroups.scheduling.sigs.k8s.io: there already")
    assert judge(node(), *theirs, method=method, crds={"managed": False}).problems == ()


@pytest.mark.parametrize("method", ["manifests", "helm"])
def test_all_definitions_of_one_owner_are_refused_in_one_sentence(method: str) -> None:
    groups = [*koordinator_names.SHARED_CRDS, *(f"things.{group}" for group in koordinator_names.CRD_GROUPS)]
    (problem,) = judge(node(), *(definition(name) for name in groups), method=method).problems
    assert all(name in problem for name in groups)


def sized(cpus: str) -> dict[str, Any]:
    found = node()
    return {**found, "status": {**found["status"], "capacity": {"cpu": cpus}}}


SUPPRESS = {"resource-threshold-config": {"clusterStrategy": {"enable": True, "cpuSuppressPolicy": "cpuset"}}}


@pytest.mark.parametrize("method", ["manifests", "helm"])
def test_suppress_by_cpus_on_two_of_them_is_refused_before_anything_is_installed(method: str) -> None:
    (problem,) = judge(sized("2"), method=method, policy=SUPPRESS).problems
    assert problem.startswith("node n1: policy.resource-threshold-config")
    assert problem.endswith(
        "cpuset never leaves best effort fewer than 2 CPUs, and the node has 2, so it would do nothing; write cfsQuota"
    )
    assert judge(sized("4"), method=method, policy=SUPPRESS).problems == ()
    # Other nodes of the cluster are not tested.
    other = {**sized("2"), "metadata": {"name": "n2"}}
    assert judge(sized("4"), other, method=method, policy=SUPPRESS).problems == ()


def test_a_policy_without_its_feature_gate_is_refused_before_too() -> None:
    (problem,) = judge(sized("8"), policy=SUPPRESS, features="BECPUSuppress=false").problems
    assert "has no effect while the agent's feature gate BECPUSuppress is off" in problem


@pytest.mark.parametrize(
    ("root", "is_refused"),
    [("", False), ("/kubepods", False), ("/kubepods.slice", False), ("/kubelet/kubepods", True)],
)
def test_kubelets_root_must_be_where_the_agent_looks(root: str, is_refused: bool) -> None:
    found = judge(node(), cgroup_root=root).problems
    assert [text.partition(";")[0] for text in found] == (
        [f"node n1: kubelet has its pods in the control group {root}, and Koordinator's agent looks only in {LOOKS}"]
        if is_refused
        else []
    )


def test_a_kubelet_that_may_be_asked_says_where_its_pods_are() -> None:
    (problem,) = judge(node(), kubelet={"cgroupRoot": "/kubelet", "cgroupDriver": "cgroupfs"}).problems
    assert "kubelet has its pods in the control group /kubelet/kubepods" in problem
    assert judge(node(), kubelet={"cgroupRoot": "/", "cgroupDriver": "systemd"}).problems == ()


def test_a_static_cpu_manager_beside_suppress_by_cpus_is_remarked() -> None:
    (remark,) = judge(sized("8"), policy=SUPPRESS, kubelet={"cpuManagerPolicy": "static"}).remarks
    assert remark.endswith("write cfsQuota, or set kubelet's cpuManagerPolicy to none")
    assert judge(sized("8"), policy=SUPPRESS, kubelet={"cpuManagerPolicy": "none"}).remarks == ()


def test_what_users_wrote_on_nodes_before_is_known() -> None:
    marked = {**node(), "metadata": {**node()["metadata"], "labels": {"node.koordinator.sh/cpu-reclaim-ratio": "0.8"}}}
    assert judge(marked).node_keys == ("node.koordinator.sh/cpu-reclaim-ratio",)
    # Those of a Koordinator that runs are its own.
    assert judge(marked, made("DaemonSet", "koordlet", SPACE, labels=OURS)).node_keys == ()
