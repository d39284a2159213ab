"""Hosts of an inventory become nodes with networks of their own."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes.cluster_nodes import (
    ClusterNodesError,
    cluster_nodes,
)

HOSTS: dict[str, dict[str, Any]] = {
    "a": {"ansible_host": "198.18.0.1"},
    "b": {"ansible_host": "198.18.0.2", "kubernetes_node_name": "second", "kubernetes_node_address": "10.0.0.2"},
}


def test_each_host_gets_a_network() -> None:
    first, second = cluster_nodes(["a", "b"], HOSTS, "10.88.0.0/16")
    assert (first["name"], first["address"], first["pod_subnet"]) == ("a", "198.18.0.1", "10.88.0.0/24")
    assert (second["host"], second["name"], second["address"]) == ("b", "second", "10.0.0.2")
    assert second["pod_subnet"] == "10.88.1.0/24"
    assert second["user"]["client_name"] == "system:node:second"
    assert cluster_nodes(["a"], HOSTS, "10.88.0.0/26")[0]["pod_subnet"] == "10.88.0.0/26"


@pytest.mark.parametrize(
    ("hosts", "subnet", "text"),
    [
        (["a", "b"], "10.88.0.0/24", "has room for 1 nodes with a /24 each, and there are 2"),
        (["a"], "10.88.0.1/16", "has host bits set; write one such as"),
        (["a", "c", "d"], "10.88.0.0/16", r"two hosts have the address 127\.0\.0\.1"),
    ],
)
def test_what_is_wrong_is_one_sentence(hosts: list[str], subnet: str, text: str) -> None:
    with pytest.raises(ClusterNodesError, match=text):
        cluster_nodes(hosts, HOSTS, subnet)
