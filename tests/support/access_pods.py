"""What controllers and kubelets make of the DaemonSets of role node_access, for a cluster in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.access_manifests import ACCESS_LABEL

if TYPE_CHECKING:
    from tests.support.fake_cluster import FakeCluster

READY: dict[str, Any] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def control(cluster: FakeCluster, status: dict[str, Any] | None = None) -> None:
    """Give each DaemonSet its pod, in a status, and take pods away whose DaemonSet is gone."""
    sets = [item for key, item in cluster.objects.items() if key[0] == "DaemonSet" and _label(item)]
    names = {item["metadata"]["name"] for item in sets}
    for key, item in list(cluster.objects.items()):
        if key[0] == "Pod" and _label(item) and _label(item) not in names:
            del cluster.objects[key]
    for item in sets:
        metadata = item["metadata"]
        item["status"] = {"observedGeneration": metadata["generation"], "updatedNumberScheduled": 1}
        labels = item["spec"]["template"]["metadata"]["labels"]
        pod = {"name": f"{metadata['name']}-x1", "namespace": metadata["namespace"], "labels": labels}
        cluster.put({"kind": "Pod", "metadata": pod, "spec": {}, "status": status or READY})


def _label(item: dict[str, Any]) -> str:
    return str((item["metadata"].get("labels") or {}).get(ACCESS_LABEL, ""))
