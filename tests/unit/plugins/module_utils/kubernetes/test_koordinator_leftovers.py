"""After an installation: what is left, whose it is, and what is taken away."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import (
    go_module,
    koordinator_leftovers,
    koordinator_names,
    koordinator_owner,
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


def definition(name: str, **metadata: Any) -> dict[str, Any]:
    return {**made("CustomResourceDefinition", name, **metadata), "spec": {"group": name.partition(".")[2]}}


def used_node() -> dict[str, Any]:
    found = made(
        "Node",
        "n1",
        labels={"kubernetes.io/os": "linux", "node.koordinator.sh/cpu-reclaim-ratio": "0.8"},
        annotations={"node.koordinator.sh/x": "1", "koordinator.sh/y": "2", "not-koordinator.sh/z": "3"},
    )
    both = {"cpu": "2", "kubernetes.io/batch-cpu": "1", "kubernetes.io/mid-memory": "1"}
    return {**found, "status": {"capacity": dict(both), "allocatable": dict(both)}}


def test_nodes_lose_what_koordinator_wrote_and_nothing_else() -> None:
    cluster = FakeCluster([used_node()])
    keep = ["node.koordinator.sh/cpu-reclaim-ratio"]
    patches = koordinator_leftovers.nodes(cluster.kubectl, keep)
    assert patches[0].texts() == [
        "node n1: annotation koordinator.sh/y removed",
        "node n1: annotation node.koordinator.sh/x removed",
        "node n1: capacity kubernetes.io/batch-cpu removed",
        "node n1: capacity kubernetes.io/mid-memory removed",
        "node n1: allocatable kubernetes.io/batch-cpu removed",
        "node n1: allocatable kubernetes.io/mid-memory removed",
    ]
    koordinator_leftovers.clean_nodes(cluster.kubectl, patches, keep, 0)
    left = cluster.get("Node", "n1")
    assert left is not None
    assert left["status"] == {"capacity": {"cpu": "2"}, "allocatable": {"cpu": "2"}}
    assert left["metadata"]["annotations"] == {"not-koordinator.sh/z": "3"}
    assert set(left["metadata"]["labels"]) == {"kubernetes.io/os", keep[0]}
    assert koordinator_leftovers.nodes(cluster.kubectl, keep) == []
    assert any("--subresource=status" in call for call in cluster.calls)


def test_what_comes_back_is_told() -> None:
    cluster = FakeCluster([used_node()])
    cluster.after = lambda: cluster.put(used_node())
    patches = koordinator_leftovers.nodes(cluster.kubectl)
    with pytest.raises(koordinator_leftovers.LeftoversError, match="came back; look who writes it"):
        koordinator_leftovers.clean_nodes(cluster.kubectl, patches, [], 0)


BY_MANIFESTS = koordinator_owner.Installation("manifests")
BY_HELM = koordinator_owner.Installation("helm", "koordinator", "default")


@pytest.mark.parametrize(
    ("installation", "metadata"), [(BY_MANIFESTS, {"labels": OURS}), (BY_HELM, {"annotations": RELEASE})]
)
def test_objects_that_are_ours_are_found(installation: Any, metadata: dict[str, Any]) -> None:
    items = [
        made("MutatingWebhookConfiguration", koordinator_names.MUTATING, **metadata),
        made("PriorityClass", "koord-batch", **metadata),
        definition("elasticquotas.scheduling.sigs.k8s.io", **metadata),
        definition("nodeslos.slo.koordinator.sh", **metadata),
        made("Namespace", SPACE, **metadata),
    ]
    cluster = FakeCluster([*items, made("PriorityClass", "system-node-critical"), definition("certs.example.org")])
    found = koordinator_leftovers.objects(cluster.kubectl, SPACE, installation)
    assert [item["metadata"]["name"] for item in found.ours] == [item["metadata"]["name"] for item in items]
    assert found.left == ()


@pytest.mark.parametrize("installation", [BY_MANIFESTS, BY_HELM])
def test_objects_of_others_are_left_and_named_with_their_owner(installation: Any) -> None:
    cluster = FakeCluster(
        [
            made("ValidatingWebhookConfiguration", koordinator_names.VALIDATING),
            made("PriorityClass", "koord-batch"),
            definition("nodeslos.slo.koordinator.sh"),
            definition("podgroups.scheduling.sigs.k8s.io", annotations=OTHER_RELEASE),
            made("Namespace", SPACE, labels={"controle-plane": "koordinator"}),
        ]
    )
    found = koordinator_leftovers.objects(cluster.kubectl, SPACE, installation)
    assert found.ours == ()
    assert found.left == (
        "ValidatingWebhookConfiguration koordinator-validating-webhook-configuration: left, as it is of somebody else",
        "PriorityClass koord-batch: left, as it is of somebody else",
        "CustomResourceDefinition nodeslos.slo.koordinator.sh: left, as it is of somebody else",
        "CustomResourceDefinition podgroups.scheduling.sigs.k8s.io: left, as it is of Helm release platform/koord",
        "Namespace koordinator-system: left, as it is of somebody else",
    )


def test_another_release_is_not_ours_without_helm() -> None:
    item = definition("nodeslos.slo.koordinator.sh", annotations=RELEASE)
    assert BY_HELM.owns(item)
    assert not BY_MANIFESTS.owns(item)
    assert not koordinator_owner.Installation("helm", "koordinator", "elsewhere").owns(item)


def test_who_still_runs_is_seen() -> None:
    cluster = FakeCluster([made("DaemonSet", "koordlet", SPACE), made("Deployment", "web", "x")])
    assert koordinator_leftovers.running(cluster.kubectl) == ["DaemonSet koordinator-system/koordlet"]
    cluster = FakeCluster([made("DaemonSet", "ack-koordlet", "kube-system")])
    assert koordinator_leftovers.platform(cluster.kubectl) == ["DaemonSet kube-system/ack-koordlet"]


def answer(status: int, out: str, err: str = "") -> Any:
    return lambda argv, **_more: commands.Result(tuple(argv), status, out, err)


def test_the_sources_are_known_by_their_checksum() -> None:
    known = f'{{"Dir": "/m", "Sum": "{go_module.SUMS["1.8.0"]}"}}'
    assert go_module.fetch("1.8.0", "go", 5, answer(0, known)).directory == "/m"
    with pytest.raises(go_module.GoModuleError, match="has checksum h1:other, not h1:CEMa"):
        go_module.fetch("1.8.0", "go", 5, answer(0, '{"Dir": "/m", "Sum": "h1:other"}'))
    with pytest.raises(go_module.GoModuleError, match="can't be fetched: 403 Forbidden; look at go env GOPROXY"):
        go_module.fetch("1.8.0", "go", 5, answer(1, '{"Error": "403 Forbidden"}'))
    with pytest.raises(go_module.GoModuleError, match=r"is not there; install it .* or give the directory"):
        go_module.fetch("1.8.0", "/nowhere/go", 5)
