"""Both hosts are nodes, kubeadm's pods run, and pods of one node reach those of the other."""

import json
import os
import subprocess
from pathlib import Path

import pytest

FACTS = json.loads((Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "facts.json").read_text(encoding="utf-8"))


def read(*arguments):
    argv = [*FACTS["kubectl"], "get", *arguments, "-o", "json"]
    return json.loads(subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout)


def test_both_are_ready():
    nodes = {item["metadata"]["name"]: item for item in read("nodes")["items"]}
    assert sorted(nodes) == ["load-node", "tested-node"]
    for node in nodes.values():
        assert {item["type"]: item["status"] for item in node["status"]["conditions"]}["Ready"] == "True"
    assert "node-role.kubernetes.io/control-plane" in nodes["tested-node"]["metadata"]["labels"]


def test_the_control_plane_is_of_static_pods():
    names = {item["metadata"]["name"] for item in read("pods", "-n", "kube-system")["items"]}
    assert {f"{part}-tested-node" for part in ("etcd", "kube-apiserver", "kube-scheduler")} <= names
    assert sum(name.startswith("kube-proxy-") for name in names) == 2


@pytest.mark.parametrize("pod", ["first", "second"])
@pytest.mark.parametrize("host", ["tested-node", "load-node"])
def test_pods_are_reached_from_both_nodes(host, pod):
    address = read("pod", pod)["status"]["podIP"]
    argv = ["nsenter", f"--net=/run/netns/ctnodes-{host}", "python3", "-c"]
    argv.append(f"import urllib.request; print(urllib.request.urlopen('http://{address}:8000/', timeout=5).status)")
    assert subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip() == "200"


def test_each_node_has_its_own_tree_of_pods():
    for root in ("kubepods", "colocation-testbed-nodes-second/kubepods"):
        assert Path("/sys/fs/cgroup/cpu", root, "besteffort").is_dir() or Path("/sys/fs/cgroup", root).is_dir()
