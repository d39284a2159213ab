# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: cluster_nodes
short_description: Return hosts of the inventory as nodes of one cluster
version_added: 0.1.0
description:
  - Gives each host a name and an address as a node, from C(kubernetes_node_name) and C(kubernetes_node_address) or
    C(ansible_host) in its variables, and a network for its pods.
positional: _input, variables, pod_subnet
options:
  _input:
    description: Names of hosts in the inventory; the order decides about the networks.
    type: list
    elements: str
    required: true
  variables:
    description: Variables of all hosts, C(hostvars).
    type: dict
    required: true
  pod_subnet:
    description: Network that is divided among the nodes.
    type: str
    required: true
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Show the nodes
  ansible.builtin.debug:
    msg: "{{ groups['tested'] | colocation.testbed.cluster_nodes(hostvars, '10.88.0.0/16') }}"
"""

RETURN = r"""
_value:
  description:
    - The nodes, with C(host), C(name), C(address) and C(pod_subnet). C(route) is the way to its pods for other
      nodes, and C(user) its kubelet as a user of the API server.
  type: list
  elements: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import cluster_nodes as nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def cluster_nodes(
    hosts: Sequence[str], variables: Mapping[str, Mapping[str, Any]], pod_subnet: str
) -> list[dict[str, Any]]:
    """Return hosts as nodes. Raises AnsibleFilterError for what is wrong with the inventory."""
    try:
        return nodes.cluster_nodes(hosts, variables, pod_subnet)
    except nodes.ClusterNodesError as exc:
        raise AnsibleFilterError(str(exc)) from exc


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"cluster_nodes": cluster_nodes}
