"""The pod through which a node is got at: asked for first, made, waited for, found, and taken away again."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import (
    access_manifests,
    node_access,
    objects,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.access_manifests import (
    NAMESPACE,
    Wanted,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import OWNER, OWNER_LABEL
from tests.support import access_pods
from tests.support.fake_cluster import FakeCluster

WANTED = Wanted(
    "n1", "registry.example/python:3.11", "/var/lib/testbed", "/var/lib/testbed/node", requests={"cpu": "1"}
)
NAME = "node-access-n1"
OURS = {OWNER_LABEL: OWNER}
READY = [{"type": "Ready", "status": "True"}]
NO_IMAGE = {
    "image": WANTED.image,
    "name": "node",
    "state": {"waiting": {"reason": "ErrImagePull", "message": "dial tcp: connection refused"}},
}
NO_PYTHON = {
    "name": "node",
    "restartCount": 3,
    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
    "lastState": {"terminated": {"exitCode": 1, "message": "the image has no python3; choose another\n"}},
}
PSA = 'pods "node-access-probe" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostPID=true)'


def node(name: str) -> dict[str, Any]:
    info = {"containerRuntimeVersion": "containerd://2.1.6", "kubeletVersion": "v1", "kernelVersion": "6"}
    status = {"nodeInfo": {**info, "architecture": "amd64"}, "conditions": READY}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def namespace(**labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


class Cluster(FakeCluster):
    """A cluster with two nodes, whose controller makes a pod of each DaemonSet in the state that a test wants."""

    def __init__(self, *more: dict[str, Any]) -> None:
        super().__init__([node("n1"), node("n2"), *more])
        self.status = access_pods.READY
        self.after = lambda: access_pods.control(self, self.status)

    def kinds(self) -> set[tuple[str, str]]:
        return {(kind, name) for kind, _space, name in self.objects}


def ensure(cluster: Cluster, wanted: Wanted = WANTED, predict: bool = False) -> node_access.Outcome:
    return node_access.ensure(cluster.kubectl, wanted, "run-1", 0.0, predict)


def remove(cluster: Cluster, name: str = "n1", force: bool = False, predict: bool = False) -> list[str]:
    gone = node_access.remove(cluster.kubectl, name, NAMESPACE, 5.0, force, predict)
    return [str(item["kind"]) for item in gone]


def test_a_pod_is_predicted_made_found_and_left_alone() -> None:
    cluster = Cluster()
    assert ensure(cluster, predict=True).changed
    assert cluster.changes() == []
    assert ensure(cluster).pod == f"{NAME}-x1"
    made = cluster.get("DaemonSet", NAME, NAMESPACE)
    assert made is not None
    assert made["metadata"]["labels"][OWNER_LABEL] == OWNER
    before = cluster.changes()
    again = ensure(cluster)
    assert (again.changed, again.pod) == (False, f"{NAME}-x1")
    assert cluster.changes() == before
    assert node_access.look(cluster.kubectl, "n1", NAMESPACE) == node_access.Found(True, f"{NAME}-x1", "")


def test_the_pod_has_the_nodes_processes_network_and_files() -> None:
    spec = access_manifests.daemon_set(WANTED)["spec"]["template"]["spec"]
    assert (spec["hostPID"], spec["hostNetwork"]) == (True, True)
    (container,) = spec["containers"]
    assert container["securityContext"] == {"privileged": True, "runAsUser": 0}
    assert container["resources"] == {"requests": {"cpu": "1"}}
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"]}
    places = {paths[mount["name"]]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert places["/sys"] == "/sys"
    assert places["/var/lib/testbed"] == "/var/lib/testbed"
    assert places["/var/lib"] not in ("/var/lib", "/var/lib/testbed")
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchFields"] == [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]


@pytest.mark.parametrize("name", ["n1", "cn-hangzhou.192.0.2.21", "n" * 200])
def test_every_nodes_name_makes_a_label(name: str) -> None:
    made = access_manifests.name_of(name)
    assert len(made) <= 63
    assert made != access_manifests.name_of(f"{name}0")


def test_what_is_missing_is_told_before_anything_is_made() -> None:
    cluster = Cluster()
    cluster.denied = {("create", "pods/exec"), ("create", "namespaces")}
    with pytest.raises(node_access.AccessError) as caught:
        ensure(cluster, dataclasses.replace(WANTED, node="n3"))
    told = str(caught.value).splitlines()
    assert told[0].startswith(f"right create pods/exec in namespace {NAMESPACE}: is missing")
    assert told[1].startswith("right create namespaces in all namespaces: is missing")
    assert told[2].startswith("node n3: is not in the cluster, which has n1, n2")
    assert cluster.changes() == []


@pytest.mark.parametrize("is_there", [True, False])
def test_pod_security_is_told_with_the_label_that_helps(is_there: bool) -> None:
    cluster = Cluster(*([namespace()] if is_there else []))

    def refuse(_pod: dict[str, Any]) -> dict[str, Any]:
        raise ValueError(PSA)

    cluster.admit = refuse
    with pytest.raises(node_access.AccessError) as caught:
        ensure(cluster, predict=is_there)
    assert "its pod security refuses privileged pods" in str(caught.value)
    wanted = f"kubectl label namespace {NAMESPACE} --overwrite pod-security.kubernetes.io/enforce=privileged"
    assert str(caught.value).endswith(wanted)
    assert cluster.get("DaemonSet", NAME, NAMESPACE) is None


def test_another_refusal_is_told_as_it_is() -> None:
    cluster = Cluster(namespace())

    def refuse(_pod: dict[str, Any]) -> dict[str, Any]:
        raise ValueError('admission webhook "policy.example" denied the request: no hostPID')

    cluster.admit = refuse
    with pytest.raises(node_access.AccessError, match=r"is refused .*no hostPID.*; let the cluster's administrator"):
        ensure(cluster)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"containerStatuses": [NO_IMAGE]}, "can't be pulled: the registry can't be reached"),
        ({"containerStatuses": [NO_PYTHON]}, "crashes (CrashLoopBackOff, exit status 1, 3 restarts): the image has no"),
        ({"conditions": [{"type": "PodScheduled", "status": "False", "message": "no room"}]}, "not scheduled: no room"),
    ],
)
def test_a_pod_that_does_not_come_up_says_why(status: dict[str, Any], words: str) -> None:
    cluster = Cluster()
    cluster.status = {"phase": "Pending", **status}
    with pytest.raises(node_access.AccessError) as caught:
        ensure(cluster)
    assert f"node n1: pod {NAMESPACE}/{NAME}-x1: " in str(caught.value)
    assert words in str(caught.value)
    assert f"look with: kubectl -n {NAMESPACE} describe pod {NAME}-x1" in str(caught.value)


def test_a_node_without_a_pod_says_what_to_run() -> None:
    found = node_access.look(Cluster().kubectl, "n1", NAMESPACE)
    assert not found.wanted
    assert found.why == f"has no pod of ours in namespace {NAMESPACE}; run playbook access, or provision"


def test_a_daemon_set_of_somebody_else_is_refused_and_stays() -> None:
    theirs = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": NAME, "namespace": NAMESPACE}}
    cluster = FakeCluster([node("n1"), namespace(**OURS), theirs])
    with pytest.raises(objects.ObjectsError, match=f"DaemonSet {NAMESPACE}/{NAME}: exists and is not ours"):
        node_access.ensure(cluster.kubectl, WANTED, "", 0.0, predict=False)
    node_access.remove(cluster.kubectl, "n1", NAMESPACE, 5.0, force=True, predict=True)
    assert cluster.get("DaemonSet", NAME, NAMESPACE) == theirs


def test_the_namespace_goes_with_the_last_pod() -> None:
    cluster = Cluster()
    ensure(cluster)
    ensure(cluster, dataclasses.replace(WANTED, node="n2"))
    assert remove(cluster, predict=True) == ["DaemonSet"]
    assert remove(cluster) == ["DaemonSet"]
    assert remove(cluster) == []
    assert remove(cluster, "n2") == ["DaemonSet", "Namespace"]
    assert cluster.kinds() == {("Node", "n1"), ("Node", "n2")}
    assert remove(cluster, "n2") == []


def test_a_namespace_of_somebody_else_is_used_and_stays() -> None:
    cluster = Cluster(namespace(team="shop"))
    ensure(cluster)
    assert remove(cluster) == ["DaemonSet"]
    assert cluster.get("Namespace", NAMESPACE) == namespace(team="shop")


def test_the_pod_stays_while_the_node_has_changes_to_undo() -> None:
    cluster = Cluster()
    ensure(cluster)
    cluster.in_pods = {"journal.json": "/var/lib/testbed/node/journal.json\n"}
    with pytest.raises(node_access.AccessError, match=r"node n1: /\S+/journal\.json says that there are"):
        remove(cluster)
    assert cluster.get("DaemonSet", NAME, NAMESPACE) is not None
    assert remove(cluster, force=True) == ["DaemonSet", "Namespace"]


@pytest.mark.parametrize(
    ("found", "status", "words"),
    [
        (
            node_access.Found(True, "", "pod a/b: its image can't be pulled"),
            0,
            "pulled. Whether there are changes to undo",
        ),
        (node_access.Found(True, "b", ""), 1, "can't say whether there are changes to undo .gone."),
    ],
)
def test_the_pod_stays_while_nobody_can_tell_whether_there_are_changes(
    monkeypatch: pytest.MonkeyPatch, found: node_access.Found, status: int, words: str
) -> None:
    cluster = Cluster()
    ensure(cluster)
    monkeypatch.setattr(node_access, "look", lambda *_given: found)
    monkeypatch.setattr(node_access, "_in_pod", lambda *_given: commands.Result((), status, "", "gone"))
    with pytest.raises(node_access.AccessError, match=words):
        remove(cluster)
    assert cluster.get("DaemonSet", NAME, NAMESPACE) is not None
    assert remove(cluster, force=True) == ["DaemonSet", "Namespace"]


def test_the_shared_directory_is_removed_from_outside_of_its_mount_before_the_pod_goes() -> None:
    cluster = Cluster()
    ensure(cluster)
    remove(cluster)
    verbs = [call for call in cluster.calls if call[0] in ("exec", "delete")]
    assert [call[0] for call in verbs] == ["exec", "exec", "delete", "delete"]
    assert verbs[1][-1] == access_manifests.TIDY


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"state_dir": "/var/lib/testbed"}, "node_state_dir /var/lib/testbed: is not below node_access_directory"),
        ({"directory": "/data", "state_dir": "/data/x"}, "node_access_directory /data: lies at the top of the file"),
    ],
)
def test_directories_that_can_not_be_are_refused(changed: dict[str, str], words: str) -> None:
    with pytest.raises(node_access.AccessError, match=words):
        ensure(Cluster(), dataclasses.replace(WANTED, **changed))
