"""Pods of an experiment: made, waited for, made again where there was no room, told when they end, taken away."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import kubectl, objects, workload_pods
from tests.support.fake_cluster import FakeCluster

READY = [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}]
RUNNING = {
    "phase": "Running",
    "qosClass": "Burstable",
    "podIP": "10.88.0.7",
    "conditions": READY,
    "containerStatuses": [{"name": "x", "containerID": "containerd://c0ffee", "restartCount": 2, "state": {}}],
}
NO_ROOM = {"phase": "Failed", "reason": "OutOfkubernetes.io/batch-cpu", "message": "no room"}


def pod(name: str = "batch-workload", **spec: Any) -> dict[str, Any]:
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ct"},
        "spec": {"nodeName": "n1", "containers": [{"name": "x"}], **spec},
    }
    return objects.labelled(manifest, "r1")


@pytest.fixture(autouse=True)
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubectl.time, "sleep", lambda _s: None)


class Kubelet:
    """Gives pods one status after the other, each time that the cluster is asked; the last one stays."""

    def __init__(self, *statuses: dict[str, Any]) -> None:
        self.cluster = FakeCluster()
        self.statuses = list(statuses)
        self.cluster.after = self.run

    def run(self) -> None:
        verb = self.cluster.calls[-1][0]
        for (kind, _namespace, _name), item in self.cluster.objects.items():
            if kind == "Pod" and verb == "apply" and "status" not in item:
                item["status"] = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]


def test_what_counts_of_a_pod_is_read() -> None:
    found = workload_pods.facts({**pod(), "status": RUNNING})
    assert (found.container_id, found.restarts, found.tier, found.address) == ("c0ffee", 2, "Burstable", "10.88.0.7")
    assert found.to_dict()["class"] == ""
    assert workload_pods.facts(pod()).container_id == ""


def test_pods_are_made_and_stay_when_they_are_the_same() -> None:
    kubelet = Kubelet(RUNNING)
    assert list(workload_pods.start(kubelet.cluster.kubectl, [pod()], 5)) == ["batch-workload"]
    before = len(kubelet.cluster.changes())
    workload_pods.start(kubelet.cluster.kubectl, [pod()], 5)
    assert len(kubelet.cluster.changes()) == before


def test_a_pod_without_room_is_made_again() -> None:
    kubelet = Kubelet(NO_ROOM, NO_ROOM, RUNNING)
    assert workload_pods.start(kubelet.cluster.kubectl, [pod()], 5)["batch-workload"]["status"]["phase"] == "Running"
    assert [call[0] for call in kubelet.cluster.changes()] == ["apply", "delete", "apply", "delete", "apply"]


def test_a_pod_that_ended_belongs_to_an_earlier_run() -> None:
    kubelet = Kubelet(RUNNING)
    kubelet.cluster.put({**pod(), "status": {"phase": "Succeeded"}})
    assert workload_pods.start(kubelet.cluster.kubectl, [pod()], 5)["batch-workload"]["status"]["phase"] == "Running"


def test_one_that_ends_at_once_is_told_and_not_tried_for_ever() -> None:
    kubelet = Kubelet({"phase": "Failed", "reason": "Evicted", "message": "node had disk pressure"})
    with pytest.raises(workload_pods.PodsError, match="batch-workload: was evicted: node had disk pressure; look with"):
        workload_pods.start(kubelet.cluster.kubectl, [pod()], 5)
    assert len(kubelet.cluster.changes()) == 1


def test_what_never_runs_is_told_with_the_clusters_reason() -> None:
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "no match for platform"}}
    status = {"phase": "Pending", "containerStatuses": [{"name": "x", "image": "i", "state": waiting}]}
    kubelet = Kubelet(status)
    with pytest.raises(workload_pods.PodsError, match=r"image i can't be pulled: there is none .*waited 0 s"):
        workload_pods.start(kubelet.cluster.kubectl, [pod()], 0)


def test_what_is_somebody_elses_is_neither_changed_nor_deleted() -> None:
    cluster = FakeCluster()
    cluster.put({**pod(), "metadata": {"name": "batch-workload", "namespace": "ct"}})
    with pytest.raises(objects.ObjectsError, match="not ours"):
        workload_pods.start(cluster.kubectl, [pod()], 1)
    with pytest.raises(workload_pods.PodsError, match="not ours"):
        workload_pods.stop(cluster.kubectl, [pod()], 1, check=False)
    assert cluster.changes() == []


def test_stopping_deletes_once_and_says_so() -> None:
    kubelet = Kubelet(RUNNING)
    workload_pods.start(kubelet.cluster.kubectl, [pod()], 5)
    assert workload_pods.stop(kubelet.cluster.kubectl, [pod()], 5, check=True) is True
    assert kubelet.cluster.get("Pod", "batch-workload", "ct")
    assert workload_pods.stop(kubelet.cluster.kubectl, [pod()], 5, check=False) is True
    assert workload_pods.stop(kubelet.cluster.kubectl, [pod()], 5, check=False) is False


def test_a_namespace_that_is_there_stays_as_it_is() -> None:
    cluster = FakeCluster()
    labels = {"colocation.testbed/workloads": "true"}
    cluster.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ct", "labels": labels}})
    assert workload_pods.ensure_namespaces(cluster.kubectl, [pod()], "r1") is False
    assert FakeCluster.get(cluster, "Namespace", "ct")["metadata"]["labels"] == labels
    assert workload_pods.ensure_namespaces(FakeCluster().kubectl, [pod()], "r1") is True


def test_what_the_webhook_did_not_give_is_told() -> None:
    assert workload_pods.lacks(pod(), "") == []
    assert workload_pods.lacks(pod(), "LS") == ["label koordinator.sh/qosClass=LS"]
    assert workload_pods.lacks(pod(), "BE")[:2] == ["label koordinator.sh/qosClass=BE", "priority class koord-batch"]


def test_what_a_node_offers_is_read_in_milli_cores_and_bytes() -> None:
    node = {
        "status": {
            "allocatable": {"kubernetes.io/batch-cpu": "70k", "kubernetes.io/batch-memory": "22Gi"},
            "conditions": [{"type": "Ready", "status": "True"}],
        }
    }
    assert workload_pods.batch_resources(node) == {"batch_cpu_milli": 70_000, "batch_memory_bytes": 22 << 30}
    assert workload_pods.is_ready(node)
    assert workload_pods.batch_resources(None) == {"batch_cpu_milli": 0, "batch_memory_bytes": 0}
    assert not workload_pods.is_ready(None)
