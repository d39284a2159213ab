"""Koordinator is there and works: what the API says, and that everything is ours."""

import json
import os
import subprocess
from pathlib import Path

FACTS = json.loads((Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "facts.json").read_text(encoding="utf-8"))
DEPLOYED = FACTS["koordinator"]


def read(*arguments):
    argv = [*FACTS["cluster"]["kubectl"], "get", *arguments, "-o", "json"]
    return json.loads(subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout)


def test_every_rung_of_the_ladder_holds():
    assert [item["step"] for item in DEPLOYED["ladder"]][-1] == "best_effort_root"
    assert [item for item in DEPLOYED["ladder"] if not item["ok"]] == []
    assert (DEPLOYED["method"], DEPLOYED["version"], DEPLOYED["policy"]) == ("manifests", "1.8.0", "koordinator")
    assert all(DEPLOYED["components"].values())


def test_batch_resources_are_offered():
    offered = read("node", FACTS["cluster"]["node_name"])["status"]["allocatable"]
    assert int(offered["kubernetes.io/batch-cpu"]) > 0
    assert int(offered["kubernetes.io/batch-memory"]) > 0


def test_the_policy_is_in_the_nodes_slo():
    threshold = read("nodeslo", FACTS["cluster"]["node_name"])["spec"]["resourceUsedThresholdWithBE"]
    assert (threshold["enable"], threshold["cpuSuppressPolicy"]) == (True, "cfsQuota")


def test_images_came_from_the_registry_of_the_cluster():
    pods = read("-n", "koordinator-system", "pods")["items"]
    assert len(pods) == 3
    images = {container["image"] for pod in pods for container in pod["spec"]["containers"]}
    assert all(image.startswith(f"{FACTS['cluster']['registry']}/koordinator-sh/") for image in images)


def test_everything_carries_our_labels():
    chosen = "app.kubernetes.io/part-of=koordinator"
    found = read("crd,clusterrole,priorityclass,namespace", "-l", chosen)["items"]
    assert len(found) == 13 + 3 + 4 + 1
    for item in found:
        assert item["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "colocation-testbed"
        assert item["metadata"]["labels"]["colocation.testbed/run"] == "molecule"


def plain(value):
    """Return a value without the marks by which ansible-inventory tells text that is never taken for a template."""
    if isinstance(value, dict):
        return value.get("__ansible_unsafe") or {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def test_hosts_come_from_the_clusters_nodes(tmp_path):
    inventory = tmp_path / "lab.kubernetes_nodes.yml"
    options = {
        "plugin": "colocation.testbed.kubernetes_nodes",
        "kubectl": FACTS["cluster"]["kubectl"],
        "kubelet_configuration": True,
        "node_groups": {"tested": f"kubernetes.io/hostname={FACTS['cluster']['node_name']}"},
    }
    inventory.write_text(json.dumps(options), encoding="utf-8")
    argv = ["ansible-inventory", "-i", inventory, "--list"]
    listing = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout)
    assert listing["tested"]["hosts"] == [FACTS["cluster"]["node_name"]]
    told = plain(listing["_meta"]["hostvars"][FACTS["cluster"]["node_name"]])
    assert told["ansible_host"] == "198.18.67.1"
    assert told["kubernetes_node"]["cgroup_driver"] == FACTS["cluster"]["cgroup_driver"]
    assert told["kubernetes_node"]["kubelet_version"] == FACTS["cluster"]["server_version"]
