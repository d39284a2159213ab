"""The node is a real one: pods run in control groups of its kubelet, and what should reach them does."""

import json
import os
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

FACTS = json.loads((Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "facts.json").read_text(encoding="utf-8"))


def kubectl(*arguments):
    argv = [*FACTS["kubectl"], *arguments]
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout


def read(*arguments):
    return json.loads(kubectl("get", *arguments, "-o", "json"))


def test_the_node_is_ready_with_the_runtime_that_was_said():
    (node,) = read("nodes")["items"]
    assert node["metadata"]["name"] == FACTS["node_name"]
    assert {item["type"]: item["status"] for item in node["status"]["conditions"]}["Ready"] == "True"
    info = node["status"]["nodeInfo"]
    assert info["kubeletVersion"] == FACTS["server_version"]
    assert info["containerRuntimeVersion"] == f"containerd://{FACTS['runtime']['version']}"


def test_every_object_carries_our_labels():
    labels = read("-n", "colocation-testbed", "pod", "service")["metadata"]["labels"]
    assert labels["app.kubernetes.io/managed-by"] == "colocation-testbed"
    assert labels["colocation.testbed/run"] == "molecule"


@pytest.mark.parametrize(("pod", "shares"), [("service", 512), ("bridged", 102)])
def test_pods_are_in_groups_of_the_kubelet_with_their_requests(pod, shares):
    found = read("-n", "colocation-testbed", "pod", pod)
    assert found["status"]["qosClass"] == "Burstable"
    group = Path(f"/sys/fs/cgroup/cpu{FACTS['cgroup_root']}/burstable/pod{found['metadata']['uid']}")
    assert group.joinpath("cpu.shares").read_text(encoding="ascii").strip() == str(shares)
    assert [path for path in group.glob("*/cgroup.procs") if path.read_text(encoding="ascii")]


@pytest.mark.parametrize("url", ["http://198.18.67.1:8000/", "http://10.96.0.80/"])
def test_the_page_is_served_on_the_node(url):
    argv = ["nsenter", f"--net={FACTS['network_namespace']}", "python3", "-c"]
    argv.append(f"import urllib.request; print(urllib.request.urlopen('{url}', timeout=5).read().decode())")
    assert subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip() == "colocation.testbed"


def test_the_page_is_served_to_the_load_node():
    argv = ["nsenter", "--net=/run/netns/ctkube-load-node", "python3", "-c"]
    argv.append("import urllib.request; print(urllib.request.urlopen('http://198.18.67.1:8000/', timeout=5).status)")
    assert subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip() == "200"


def test_logs_and_exec_reach_the_kubelet():
    assert kubectl("-n", "colocation-testbed", "exec", "service", "--", "cat", "/var/www/index.html").strip() == (
        "colocation.testbed"
    )
    kubectl("-n", "colocation-testbed", "logs", "bridged")


def test_the_machine_itself_sees_no_rule_and_no_directory_content():
    assert not any(Path("/var/lib/kubelet").iterdir())
    assert not any(Path("/etc/kubernetes").iterdir())
    tables = subprocess.run(["nft", "list", "tables"], check=True, capture_output=True, text=True).stdout
    assert "kube-proxy" not in tables
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen("http://127.0.0.1:15000/v2/", timeout=2)
