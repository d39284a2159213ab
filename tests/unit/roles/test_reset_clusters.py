"""Role reset on a host whose journal says that Koordinator was put into a cluster of somebody else's.

The cluster is a stand-in behind kubectl's command line; the plays, roles and modules are the real ones.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.module_utils import journal
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import cluster_record, koordinator_node
from tests.support import kubectl_standin, small_play

OURS = {"app.kubernetes.io/managed-by": "colocation-testbed"}
PART = {**OURS, "app.kubernetes.io/part-of": "koordinator"}
SPACE, WORKLOADS = "koordinator-system", "colocation-testbed"
REFUSED = "The connection to the server 192.0.2.1:6443 was refused - did you specify the right host or port?"
TASKS = [{"ansible.builtin.include_role": {"name": "colocation.testbed.reset"}}]


def made(kind: str, name: str, namespace: str = "", **metadata: Any) -> dict[str, Any]:
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": "x/v1", "kind": kind, "metadata": {"name": name, **place, **metadata}}


THEIRS = [
    made("Namespace", "shop", labels={"team": "shop"}),
    made("Deployment", "web", "shop"),
    made("PriorityClass", "shop-high"),
    made("CustomResourceDefinition", "podgroups.scheduling.sigs.k8s.io"),
]
NODE = made("Node", "n1", annotations={"node.koordinator.sh/x": "1"}, labels={"node.koordinator.sh/by-hand": "1"})
INSTALLED = [
    made("Namespace", WORKLOADS, labels=OURS),
    made("Pod", "batch", WORKLOADS, labels=OURS),
    made("Namespace", SPACE, labels=PART),
    made("DaemonSet", "koordlet", SPACE, labels=PART),
    made("ConfigMap", "slo-controller-config", SPACE, labels=OURS),
    made("PriorityClass", "koord-batch", labels=PART),
    made("CustomResourceDefinition", "nodeslos.slo.koordinator.sh", labels=PART),
    {**NODE, "status": {"capacity": {"cpu": "2", "kubernetes.io/batch-cpu": "1"}}},
]
# The order in which tasks must come.
ORDER = (
    "Remove the experiment's namespace and profiles",
    "Remove what the manifests made, and what is left in the cluster",
    "Forget that it was in the cluster",
    "Undo everything in the journal",
)


class Host:
    """A host with a journal, and the cluster that it is a node of."""

    def __init__(self, place: Path) -> None:
        self.place, self.cluster, self.state_dir = place, place / "cluster.json", place / "state"
        self.left_by_agent, self.own_file = place / "koordlet", place / "tuned"
        self.kubectl = (sys.executable, str(ROOT / "tests/support/kubectl_standin.py"), str(self.cluster))
        self.book = journal.of(str(self.state_dir))
        kubectl_standin.write(self.cluster, [*THEIRS, *INSTALLED])

    def record(self, provider: str = "existing", **settings: Any) -> None:
        known = {"api_host": "node1", "method": "manifests", "helm": "helm", "release": "koordinator"}
        known |= {"release_namespace": "default", "workload_namespace": WORKLOADS, "read_node": "false"}
        more = {"keep": ["node.koordinator.sh/by-hand"], "cluster": {"kubeconfig": "", "context": ""}}
        record = cluster_record.Record("koordinator", self.kubectl, provider, {**known, **more, **settings})
        self.book.record_many([record.change()], cluster_record.BY)
        for place, by in ((self.left_by_agent, koordinator_node.BY), (self.own_file, "host_tuning")):
            self.book.record("directory", str(place), None, by)
            place.mkdir()

    def reset(self, *words: str, **variables: Any) -> tuple[int, str]:
        return small_play.play(self.place, TASKS, {"node_state_dir": str(self.state_dir), **variables}, *words)

    def objects(self) -> set[tuple[str, str]]:
        known = json.loads(self.cluster.read_text())["objects"]
        return {(item["kind"], item["metadata"]["name"]) for item in known}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_all_that_is_ours_goes_and_nothing_else(host: Host) -> None:
    host.record()
    status, text = host.reset("--check")
    assert status == 0, text
    assert host.objects() == {(item["kind"], item["metadata"]["name"]) for item in [*THEIRS, *INSTALLED]}
    status, text = host.reset()
    assert status == 0, text
    assert host.objects() == {(item["kind"], item["metadata"]["name"]) for item in [*THEIRS, NODE]}
    (node,) = [item for item in json.loads(host.cluster.read_text())["objects"] if item["kind"] == "Node"]
    assert node["status"]["capacity"] == {"cpu": "2"}
    assert node["metadata"]["annotations"] == {}
    assert node["metadata"]["labels"] == NODE["metadata"]["labels"]
    assert "podgroups.scheduling.sigs.k8s.io: left, as it is of somebody else" in " ".join(text.split())
    assert not host.state_dir.exists()
    assert not host.own_file.exists()
    places = [text.index(name) for name in ORDER]
    assert places == sorted(places)


def test_a_cluster_that_does_not_answer_keeps_what_belongs_to_it_and_nothing_else(host: Host) -> None:
    host.record()
    kubectl_standin.write(host.cluster, [*THEIRS, *INSTALLED], fail=REFUSED)
    status, text = host.reset()
    assert status == 2
    assert "could not be removed: kubectl version: the API server does not answer" in text
    assert "correct that and reset again, or, where the cluster is gone for good, reset with reset_forget" in text
    # What an agent may still use stays; the rest of the host is put back.
    assert host.left_by_agent.is_dir()
    assert not host.own_file.exists()
    assert {entry.kind for entry in host.book.entries() if entry.by != "journal"} == {"cluster", "directory"}
    kubectl_standin.write(host.cluster, [*THEIRS, *INSTALLED])
    status, text = host.reset()
    assert status == 0, text
    assert not host.state_dir.exists()


def test_a_cluster_that_is_gone_for_good_can_be_forgotten(host: Host) -> None:
    host.record()
    kubectl_standin.write(host.cluster, [], fail=REFUSED)
    status, text = host.reset(reset_forget_clusters=True)
    assert status == 0, text
    assert not host.left_by_agent.exists()
    assert not host.state_dir.exists()


def test_a_cluster_that_was_made_here_is_not_asked(host: Host) -> None:
    host.record(provider="processes")
    kubectl_standin.write(host.cluster, [], fail=REFUSED)
    status, text = host.reset()
    assert status == 0, text
    assert json.loads(host.cluster.read_text())["calls"] == []
    assert not host.state_dir.exists()
