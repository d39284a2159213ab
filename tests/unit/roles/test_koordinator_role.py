"""Role koordinator from the first question to the last removal, on a cluster that others use too.

The cluster is a stand-in behind kubectl's command line, in which nobody acts on objects; so an installation ends where
a manager would be waited for. The plays, roles and modules are the real ones.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tooling import ROOT

from tests.support import kubectl_standin, small_play
from tests.unit.plugins.plugin_utils.kubernetes.test_koordinator_manifests import FILES

OURS = {"app.kubernetes.io/managed-by": "colocation-testbed", "colocation.testbed/run": "r1"}
ROLE = {"ansible.builtin.include_role": {"name": "colocation.testbed.koordinator"}}
RESET = {"ansible.builtin.include_role": {"name": "colocation.testbed.reset"}}
# What the sources of 1.8.0 are known by.
VERSION = {
    "scheduling.koordinator.sh_clusternetworktopologies.yaml": "",
    "slo.koordinator.sh_nodeslos.yaml": "# cpuAllocatableEvictThresholdPercent\n",
}
CPUSET = {"resource-threshold-config": {"clusterStrategy": {"enable": True, "cpuSuppressPolicy": "cpuset"}}}


def made(kind: str, name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **place}, **more}


NODE = made("Node", "n1", status={"capacity": {"cpu": "2"}, "conditions": [{"type": "Ready", "status": "True"}]})
THEIRS = [made("Namespace", "shop"), made("Deployment", "web", "shop"), made("PriorityClass", "shop-high"), NODE]


class Cluster:
    """A cluster of somebody else's, and a host that is its node."""

    def __init__(self, place: Path) -> None:
        self.place, self.state, self.state_dir = place, place / "cluster.json", place / "state"
        for name, text in FILES.items():
            path = place / "source" / "config" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"apiVersion: v1\n{text}" if text.startswith("kind:") else text, encoding="utf-8")
        for name, text in VERSION.items():
            with (place / "source/config/crd/bases" / name).open("a", encoding="utf-8") as file:
                file.write(text)
        kubectl_standin.write(self.state, THEIRS)

    def play(self, task: dict[str, Any], *words: str, **more: Any) -> tuple[int, str]:
        settings = {
            "koordinator_kubectl": [sys.executable, str(ROOT / "tests/support/kubectl_standin.py"), str(self.state)],
            "koordinator_node_name": "n1",
            "koordinator_read_node": False,
            "koordinator_build_images": False,
            "koordinator_image_host": "127.0.0.1:15000",
            "koordinator_source": str(self.place / "source"),
            "koordinator_components": ["manager", "koordlet"],
            "koordinator_run_id": "r1",
            "koordinator_deadline_s": 0,
            "node_state_dir": str(self.state_dir),
        }
        status, text = small_play.play(self.place, [task], {**settings, **more}, *words)
        return status, " ".join(text.split())

    def objects(self) -> dict[tuple[str, str], dict[str, Any]]:
        found = json.loads(self.state.read_text())["objects"]
        return {(item["kind"], item["metadata"]["name"]): item for item in found}

    def is_as_it_was(self) -> bool:
        return list(self.objects().values()) == list({(i["kind"], i["metadata"]["name"]): i for i in THEIRS}.values())


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_what_is_made_carries_label_and_run_and_goes_again(cluster: Cluster) -> None:
    status, text = cluster.play(ROLE, "--check")
    assert status == 0, text
    assert cluster.is_as_it_was()
    assert not cluster.state_dir.exists()
    status, text = cluster.play(ROLE)
    assert "NodeSLO n1 is not there: after 0 s the policy has not arrived" in text
    theirs = {(item["kind"], item["metadata"]["name"]): item for item in THEIRS}
    there = cluster.objects()
    assert {key: there[key] for key in theirs} == theirs
    new = [item for key, item in there.items() if key not in theirs]
    assert len(new) >= 8
    assert [item["metadata"]["name"] for item in new if not OURS.items() <= item["metadata"]["labels"].items()] == []
    status, text = cluster.play(RESET)
    assert status == 0, text
    assert cluster.is_as_it_was()
    assert not cluster.state_dir.exists()


def test_suppress_by_cpus_on_two_of_them_changes_nothing(cluster: Cluster) -> None:
    status, text = cluster.play(ROLE, koordinator_policy=CPUSET)
    assert status == 2
    assert "the node has 2, so it would do nothing; write cfsQuota" in text
    assert cluster.is_as_it_was()
    assert not cluster.state_dir.exists()


def test_a_namespace_of_somebody_elses_is_not_taken_for_the_experiment(cluster: Cluster) -> None:
    status, text = cluster.play(ROLE, koordinator_workload_namespace="shop")
    assert status == 2
    assert "namespace shop: exists and is not ours" in text
    assert cluster.is_as_it_was()
