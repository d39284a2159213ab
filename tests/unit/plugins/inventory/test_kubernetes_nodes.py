"""Hosts from a cluster's nodes: groups, variables, and what is wrong in one sentence."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible import constants
from ansible.errors import AnsibleParserError
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.inventory.kubernetes_nodes import DOCUMENTATION, InventoryModule
from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import node_inventory, node_sources

DEFINITIONS = yaml.safe_load(DOCUMENTATION)["options"]
ROLE = "colocation.testbed/role"


def node(name: str, address: str, **labels: str) -> dict[str, Any]:
    """A node in the shape that the API has it."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {},
        "status": {
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "nodeInfo": {
                "kubeletVersion": "v1.34.4",
                "containerRuntimeVersion": "containerd://2.1.6",
                "kernelVersion": "6.1.0",
                "osImage": "Debian GNU/Linux 12 (bookworm)",
                "architecture": "amd64",
            },
            "capacity": {"cpu": "4"},
            "allocatable": {"cpu": "3900m"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


NODES = [
    node("node-b", "192.0.2.12", **{ROLE: "load"}),
    node("node-a", "192.0.2.11", **{ROLE: "tested"}),
    node("node-c", "192.0.2.13"),
]
CONFIGZ = {"kubeletconfig": {"cgroupDriver": "systemd", "cgroupRoot": "/", "cpuManagerPolicy": "none"}}
SCRIPT = """#!/bin/sh
case "$*" in
  *configz*) cat {directory}/configz.json ;;
  *) cat {directory}/nodes.json ;;
esac
"""


@pytest.fixture
def inventory(tmp_path: Path) -> Any:
    """Return a function that reads an inventory file with options; kubectl is a script that answers from files."""
    (tmp_path / "nodes.json").write_text(json.dumps({"kind": "List", "items": NODES}), encoding="utf-8")
    (tmp_path / "configz.json").write_text(json.dumps(CONFIGZ), encoding="utf-8")
    script = tmp_path / "kubectl"
    script.write_text(SCRIPT.format(directory=tmp_path), encoding="utf-8")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)

    def read(**options: Any) -> InventoryManager:
        path = tmp_path / "lab.kubernetes_nodes.yml"
        plugin = {"plugin": "colocation.testbed.kubernetes_nodes", "kubectl": [str(script)], **options}
        path.write_text(json.dumps(plugin), encoding="utf-8")
        manager = InventoryManager(DataLoader())
        module = InventoryModule()
        module._load_name = "colocation.testbed.kubernetes_nodes"
        module._redirected_names = [module._load_name]
        constants.config.initialize_plugin_configuration_definitions("inventory", module._load_name, DEFINITIONS)
        assert module.verify_file(str(path))
        module.parse(manager._inventory, DataLoader(), str(path))
        return manager

    return read


def test_groups_and_variables_come_from_the_nodes(inventory: Any) -> None:
    found = inventory()
    assert [host.name for host in found.groups["tested"].hosts] == ["node-a"]
    assert [host.name for host in found.groups["load"].hosts] == ["node-b"]
    assert "node-c" not in found.hosts
    variables = found.hosts["node-a"].vars
    assert variables["ansible_host"] == "192.0.2.11"
    told = variables["kubernetes_node"]
    assert (told["kubelet_version"], told["runtime"]) == ("v1.34.4", {"name": "containerd", "version": "2.1.6"})
    assert told["addresses"] == {"InternalIP": ["192.0.2.11"], "Hostname": ["node-a"]}
    assert (told["ready"], told["schedulable"], told["cgroup_driver"]) == (True, True, "")


def test_kubelets_are_asked_when_it_is_wanted(inventory: Any) -> None:
    told = inventory(kubelet_configuration=True).hosts["node-a"].vars["kubernetes_node"]
    assert (told["cgroup_driver"], told["cgroup_root"], told["cpu_manager_policy"]) == ("systemd", "/", "none")


def test_hosts_may_be_reached_through_pods(inventory: Any) -> None:
    variables = inventory(connection="node_pod", context="lab").hosts["node-a"].vars
    assert variables["ansible_connection"] == "colocation.testbed.node_pod"
    assert (variables["kubernetes_node_name"], variables["kubernetes_context"]) == ("node-a", "lab")
    assert variables["kubernetes_kubectl"].endswith("/kubectl")
    assert "kubernetes_kubeconfig" not in variables
    assert "ansible_connection" not in inventory().hosts["node-a"].vars


def test_own_groups_and_address_types(inventory: Any) -> None:
    groups = {"tested": f"{ROLE} in (tested,load)", "others": f"!{ROLE}"}
    found = inventory(node_groups=groups, address_types=["Hostname"])
    assert sorted(host.name for host in found.groups["tested"].hosts) == ["node-a", "node-b"]
    assert found.hosts["node-c"].vars["ansible_host"] == "node-c"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"node_groups": {"tested": f"{ROLE}=none"}}, "no node of node-a, node-b, node-c has labels"),
        ({"node_groups": {"tested": "a b"}}, "node_groups.tested: 'a b' is no label selector"),
        (
            {"address_types": ["ExternalIP"]},
            "node node-a: has no address of type ExternalIP (it has InternalIP, Hostname)",
        ),
        ({"address_types": ["IP"]}, "address_types: 'IP' is not known; allowed: InternalIP"),
        ({"client": "python"}, "the Python package kubernetes"),
        ({"kubectl": ["/nowhere/kubectl"], "client": "kubectl"}, "/nowhere/kubectl is not there; install it"),
        ({"kubectl": ["false"], "client": "kubectl"}, "kubectl get nodes --all-namespaces: it printed no error"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    inventory: Any, options: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(node_sources.importlib, "import_module", missing)
    with pytest.raises(AnsibleParserError) as caught:
        inventory(**options)
    assert words in str(caught.value)


def test_several_kubeconfigs_reach_kubectl_as_its_variable_has_them(
    inventory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in KUBECONFIG where several clusters are at hand, the second path relative to a home."""
    program, told = tmp_path / "told-kubectl", tmp_path / "told"
    items = json.dumps({"kind": "List", "items": NODES})
    program.write_text(f"#!/bin/sh\necho \"$KUBECONFIG $*\" > {told}\necho '{items}'\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("KUBECONFIG", "/one:~/two")
    monkeypatch.setenv("HOME", str(tmp_path))
    inventory(kubectl=[str(program)])
    assert told.read_text(encoding="utf-8").startswith(f"/one:{tmp_path}/two --request-timeout=")
    inventory(kubectl=[str(program)], kubeconfig="/three", context="lab")
    assert told.read_text(encoding="utf-8").startswith("/three --context lab ")


def test_files_of_others_are_left_to_others(tmp_path: Path) -> None:
    path = tmp_path / "hosts.yml"
    path.write_text("all: {}\n", encoding="utf-8")
    assert not InventoryModule().verify_file(str(path))


class Answer:
    def __init__(self, value: Any) -> None:
        self.data = json.dumps(value).encode()


class Api:
    def call_api(self, path: str, _verb: str, **_more: Any) -> Answer:
        return Answer(CONFIGZ if "configz" in path else {"items": NODES})


def test_the_python_client_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    class Client:
        ApiException = RuntimeError

    class Config:
        new_client_from_config = staticmethod(lambda **_kw: Api())

    monkeypatch.setattr(
        node_sources.importlib, "import_module", lambda name: Client if name.endswith("client") else Config
    )
    source = node_sources.by_python("/kubeconfig", "", 5)
    assert source.nodes() == NODES
    assert source.kubelet("node-a") == CONFIGZ["kubeletconfig"]


LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"))


@given(LABELS, st.sampled_from("abc"), st.sampled_from("xyz"))
def test_selectors_mean_what_kubectl_means(labels: dict[str, str], key: str, value: str) -> None:
    def meets(text: str) -> bool:
        return node_inventory.selector(text, "x")(labels)

    assert meets(f"{key}={value}") == meets(f"{key} in ({value})") == (labels.get(key) == value)
    assert meets(f"{key}!={value}") == meets(f"{key} notin ({value})") != meets(f"{key}=={value}")
    assert meets(key) == (key in labels) != meets(f"!{key}")
    assert meets(f"{key},{key} in (x, y),{key}!=x") == (labels.get(key) == "y")
    assert not meets("")
