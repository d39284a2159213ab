"""Who is who in a cluster: by provider, for the host that leads and the others, in the lab and elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.colocation.testbed.plugins.filter.chosen_parts import FilterModule as Chosen
from ansible_collections.colocation.testbed.plugins.filter.kubernetes_layout import FilterModule as Layout

HOSTS = ["a", "b"]
PLACE: dict[str, Any] = {
    "host": "a",
    "control_plane_host": "a",
    "provider": "processes",
    "pod_subnet": "10.88.0.0/16",
    "cgroup_parent": "",
    "registry": "127.0.0.1:15000",
    "registry_images": ["pause", "nginx"],
    "cache_dir": "/cache",
    "urls": [],
}


def variables(connection: str = "local", **more: Any) -> dict[str, dict[str, Any]]:
    return {
        name: {
            "ansible_host": f"198.18.0.{number}",
            "ansible_connection": connection,
            "ansible_netns": f"ns-{name}",
            "node_deployed": {"state_dir": f"/s/{name}"},
            "__kubernetes_bin_dir": "/bin-of-" + name,
            **more,
        }
        for number, name in enumerate(HOSTS, 1)
    }


def layout(connection: str = "local", hosts: list[str] | None = None, **place: Any) -> dict[str, Any]:
    call = Layout().filters()["kubernetes_layout"]
    found: dict[str, Any] = call(hosts or HOSTS, variables(connection), {**PLACE, **place})
    return found


@pytest.mark.parametrize(
    ("place", "credentials", "authority"),
    [
        ({}, "/s/a/control-plane", "/s/a/control-plane/pki/ca.crt"),
        ({"host": "b"}, "/s/b/kubernetes/node", "/s/b/kubernetes/node/ca.crt"),
        ({"provider": "kubeadm"}, "/s/a/kubernetes/node", "/etc/kubernetes/pki/ca.crt"),
        ({"provider": "kubeadm", "host": "b"}, "/s/b/kubernetes/node", "/s/b/kubernetes/node/ca.crt"),
    ],
)
def test_where_a_node_finds_its_credentials(place: dict[str, Any], credentials: str, authority: str) -> None:
    found = layout(**place)
    assert (found["credentials"], found["client_ca"]) == (credentials, authority)
    assert found["leads"] is ("host" not in place)


@pytest.mark.parametrize(
    ("provider", "inside", "outside"),
    [
        ("processes", "/s/a/control-plane/admin.conf", "/s/a/control-plane/admin.conf"),
        ("kubeadm", "/etc/kubernetes/admin.conf", "/s/a/kubernetes/root/etc/kubernetes/admin.conf"),
    ],
)
def test_how_the_api_server_is_reached(provider: str, inside: str, outside: str) -> None:
    found = layout("colocation.testbed.netns", provider=provider, host="b")
    enter = ["nsenter", "--net=/run/netns/ns-a", "--mount=/s/a/kubernetes/ns/mnt"]
    kubectl = ["/bin-of-a/kubectl", "--cache-dir", "/s/a/kubernetes/kubectl", "--kubeconfig", inside]
    assert found["kubectl"] == [*enter, *kubectl]
    assert found["kubeconfig"] == outside
    assert found["network_namespace"] == "/run/netns/ns-b"
    assert found["prefix"] == ["nsenter", "--mount=/s/b/kubernetes/ns/mnt"]
    assert found["sign"][len(enter) :] == [
        *("/bin-of-a/kubeadm", "kubeconfig", "user", "--client-name", "system:node:b", "--org", "system:nodes"),
        *("--config", "/s/a/kubernetes/kubeadm/config.yaml"),
    ]


def test_outside_of_the_lab_nobody_has_a_network_of_his_own() -> None:
    found = layout()
    assert found["enter"] == ["nsenter", "--mount=/s/a/kubernetes/ns/mnt"]
    assert found["network_namespace"] == ""


def test_who_the_others_are() -> None:
    found = layout()
    assert [item["host"] for item in found["others"]] == ["b"]
    assert [item["name"] for item in found["users"]] == ["kube-proxy", "kubelet-b"]
    assert found["own"]["pod_subnet"] == "10.88.0.0/24"


@pytest.mark.parametrize(("parent", "group"), [("", "kubepods"), ("/second", "second/kubepods")])
def test_the_pods_group_below_the_hierarchy(parent: str, group: str) -> None:
    assert layout(cgroup_parent=parent)["cgroup_root"] == group


@pytest.mark.parametrize(
    ("place", "parts"),
    [
        ({}, ["node", "processes", "registry", "pause", "nginx", "processes_registry"]),
        ({"provider": "kubeadm"}, ["node", "kubeadm", "registry", "pause", "nginx", "kubeadm_registry"]),
        ({"registry": "", "provider": "kubeadm"}, ["node", "kubeadm"]),
    ],
)
def test_which_parts_are_needed(place: dict[str, Any], parts: list[str]) -> None:
    assert layout(**place)["parts"] == parts


def test_another_list_of_addresses_is_another_directory() -> None:
    one, other = ([{"name": "kubelet", "url": url, "sha256": "0"}] for url in ("http://a", "http://b"))
    assert layout(urls=one)["fetched_dir"] != layout(urls=other)["fetched_dir"]
    assert layout(urls=one)["fetched_dir"].startswith("/cache/url-")


def test_what_makes_no_cluster_is_one_sentence() -> None:
    call = Layout().filters()["kubernetes_layout"]
    unprepared = {**variables(), "b": {"ansible_host": "198.18.0.2"}}
    with pytest.raises(AnsibleFilterError, match=r"b: is not prepared, .* don't leave it out with --limit"):
        call(HOSTS, unprepared, {**PLACE, "control_plane_host": "b"})
    with pytest.raises(AnsibleFilterError, match="must have c and a among them"):
        layout(host="c")
    with pytest.raises(AnsibleFilterError, match="write one such as"):
        layout(pod_subnet="10.88.0.1/16")
    with pytest.raises(AnsibleFilterError, match="place is not as it must be"):
        layout(colour="red")


def test_data_is_chosen_by_part_and_each_thing_once() -> None:
    chosen = Chosen().filters()["chosen_parts"]
    data = {"node": ["runc", "gcc"], "pause": ["gcc", "libc"], "nginx": ["nginx"]}
    assert chosen(data, ["node", "kubeadm", "pause"]) == ["runc", "gcc", "libc"]
