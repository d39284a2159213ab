# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes of a cluster that the collection makes: names and addresses from the inventory, networks for their pods."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NODE_PREFIX = 24


class ClusterNodesError(Exception):
    """The inventory's hosts make no cluster; the text names the host and the variable."""


def cluster_nodes(
    hosts: Sequence[str], variables: Mapping[str, Mapping[str, Any]], pod_subnet: str
) -> list[dict[str, Any]]:
    """Return each host as a node: name, address, its kubelet as a user, and a network of 256 addresses for its pods.

    Raises ClusterNodesError for a subnet that is none or too small, and for names or addresses that are twice there.
    """
    try:
        network = ipaddress.IPv4Network(pod_subnet)
        subnets = [network] if network.prefixlen >= _NODE_PREFIX else network.subnets(new_prefix=_NODE_PREFIX)
        pairs = list(zip(hosts, subnets, strict=False))
    except ValueError as exc:
        raise ClusterNodesError(f"kubernetes_pod_subnet {pod_subnet!r}: {exc}; write one such as 10.88.0.0/16") from exc
    if len(pairs) < len(hosts):
        raise ClusterNodesError(
            f"kubernetes_pod_subnet {pod_subnet}: has room for {len(pairs)} nodes with a /{_NODE_PREFIX} each, and "
            f"there are {len(hosts)}; take a larger one"
        )
    nodes = [_node(host, variables.get(host) or {}, str(subnet)) for host, subnet in pairs]
    for key in ("name", "address"):
        values = [node[key] for node in nodes]
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            raise ClusterNodesError(f"kubernetes_nodes: two hosts have the {key} {twice[0]}; correct the inventory")
    return nodes


def _node(host: str, variables: Mapping[str, Any], subnet: str) -> dict[str, Any]:
    address = variables.get("kubernetes_node_address") or variables.get("ansible_host") or "127.0.0.1"
    name = variables.get("kubernetes_node_name") or host
    # The name by which the API server knows a kubelet: NodeRestriction and the Node authorizer go by it.
    user = {"name": f"kubelet-{name}", "client_name": f"system:node:{name}", "groups": ["system:nodes"]}
    route = {"destination": subnet, "via": str(address)}
    return {"host": host, "name": name, "address": str(address), "pod_subnet": subnet, "user": user, "route": route}
