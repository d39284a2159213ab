"""Groups of pods on a node: found under both drivers, waited for, and told apart from what the agent moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import Hierarchy, Layout
from ansible_collections.colocation.testbed.plugins.module_utils.node_policy import pod_values
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import NodeFacts

UID = "0b7c9d4e-1f2a-4b3c-8d5e-6f7a8b9c0d1e"
CPU = {"cpu.shares": "2\n", "cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"}
MEMORY = {"memory.limit_in_bytes": "9223372036854771712\n"}
SUPPRESS = {
    "colocation-config": {"enable": True},
    "resource-threshold-config": {"clusterStrategy": {"enable": True, "cpuSuppressPolicy": "cfsQuota"}},
}
RESOURCES = {"kubernetes.io/batch-cpu": "1000", "kubernetes.io/batch-memory": "2Gi"}


class Node:
    """A node's control groups, version 1, in a directory."""

    def __init__(self, root: Path, driver: str = "cgroupfs") -> None:
        self.root = root
        tier = "kubepods/besteffort" if driver == "cgroupfs" else "kubepods.slice/kubepods-besteffort.slice"
        pod = f"pod{UID}" if driver == "cgroupfs" else f"kubepods-besteffort-pod{UID.replace('-', '_')}.slice"
        container = "c0ffee" if driver == "cgroupfs" else "cri-containerd-c0ffee.scope"
        self.tier, self.pod, self.container = tier, f"{tier}/{pod}", f"{tier}/{pod}/{container}"
        parts = self.container.split("/")
        for count in range(len(parts) + 1):
            group = "/".join(parts[:count])
            for controller, values in (("cpu", CPU), ("memory", MEMORY), ("cpuset", {"cpuset.cpus": "0-1\n"})):
                place = root / controller / group
                place.mkdir(parents=True, exist_ok=True)
                for name, text in values.items():
                    (place / name).write_text(text)

    @property
    def layout(self) -> Layout:
        return Layout("v1", tuple(Hierarchy(str(self.root / name), 1, (name,)) for name in ("cpu", "memory", "cpuset")))

    def write(self, group: str, name: str, text: str) -> None:
        (self.root / name.split(".")[0] / group / name).write_text(f"{text}\n")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.fixture
def pods() -> list[pod_values.Pod]:
    asked = [{"requests": RESOURCES, "limits": RESOURCES}]
    return pod_values.pods_of(
        [{"key": "batch", "uid": UID, "container_id": "c0ffee", "qos": "BE", "containers": asked}]
    )


def watched(node: Node, pods: list[pod_values.Pod], moving: bool = True) -> pod_values.Watched:
    places = pod_values.find(node.layout, pods)
    want = pod_values.wanted(node.layout, SUPPRESS, NodeFacts(2, 8 << 30), pods, places)
    return pod_values.Watched(node.layout, pods, places, want, moving)


@pytest.mark.parametrize("driver", ["cgroupfs", "systemd"])
def test_a_pod_is_found_whatever_the_driver(tmp_path, pods, driver):
    node = Node(tmp_path, driver)
    assert pod_values.find(node.layout, pods) == {"batch": pod_values.Place(node.pod, node.container)}


def test_a_pod_without_its_container_is_not_there_yet(node, pods):
    other = [pod_values.Pod("batch", UID, "other")]
    assert pod_values.find(node.layout, other) == {}
    with pytest.raises(
        pod_values.PodValuesError, match=rf"no control group of pod batch \(uid {UID}\).*kubectl get pods"
    ):
        pod_values.await_places(node.layout, other, 0)


def test_a_bad_uid_and_unknown_resources_are_told_at_once():
    raw = {"key": "b", "uid": "../x", "container_id": "c", "qos": "BE", "containers": [{"requests": {"cpu": "1"}}]}
    with pytest.raises(pod_values.PodValuesError, match=r"pods\[0\].uid: '../x' is no uid.*pods\[0\].containers\[0\]"):
        pod_values.pods_of([raw])


def test_what_the_policy_wants_is_unsettled_until_the_agent_has_written_it(node, pods):
    looked = watched(node, pods)
    late = pod_values.settle(looked, 0.0, 0.0).unsettled
    assert late["batch/cpu.shares"] == "1024"
    assert late["batch/memory.limit_in_bytes"] == str(2 << 30)
    for group in (node.pod, node.container):
        node.write(group, "cpu.shares", "1024")
        node.write(group, "memory.limit_in_bytes", str(2 << 30))
    found = pod_values.settle(looked, 0.0, 5.0)
    assert found.unsettled == {}
    assert found.values["batch/container/cpu.shares"] == "1024"
    assert found.values["node/kubepods/cpu.shares"] == "2"


def test_what_the_agent_moves_is_told_apart_from_values(node, pods):
    found = pod_values.read(watched(node, pods))
    assert found.moving["best_effort/quota_us"].endswith(f"/cpu/{node.tier}/cpu.cfs_quota_us")
    assert found.moving["best_effort/cpus"].endswith(f"/cpuset/{node.tier}/cpuset.cpus")
    assert not set(found.moving.values()) & set(found.files.values())
    assert not [key for key in found.files if key.startswith("batch/") and "cpuset" in key]
    still = pod_values.read(watched(node, pods, moving=False))
    assert still.moving == {}
    assert "node/kubepods/besteffort/cpu.cfs_quota_us" in still.files
    assert "batch/cpuset.cpus" in still.files


def test_a_value_that_somebody_changes_starts_the_wait_again(node, pods, monkeypatch):
    clock = iter(range(1000))
    changes = iter(["900", "1024", "1024", "1024", "1024", "1024"])

    def moment(_s):
        node.write(node.pod, "cpu.shares", next(changes))

    monkeypatch.setattr(pod_values.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(pod_values.time, "sleep", moment)
    monkeypatch.setattr(pod_values._wait, "__defaults__", (lambda: 0.0,))
    looked = pod_values.Watched(node.layout, pods, pod_values.find(node.layout, pods))
    assert pod_values.settle(looked, 3.0, 60.0).values["batch/cpu.shares"] == "1024"
    assert next(changes) == "1024"


def test_pods_without_a_class_have_no_wishes(node):
    plain = [pod_values.Pod("batch", UID, "c0ffee")]
    places = pod_values.find(node.layout, plain)
    assert pod_values.wanted(node.layout, SUPPRESS, NodeFacts(2, 8 << 30), plain, places) == ()
    assert pod_values.read(pod_values.Watched(node.layout, plain, places)).moving == {}
