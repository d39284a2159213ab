# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: kubernetes_nodes
short_description: Take the hosts of an inventory from a cluster's nodes
version_added: 0.1.0
description:
  - Makes hosts out of a cluster's nodes, in groups by labels. The file's name must end in C(kubernetes_nodes.yml) or
    C(kubernetes_nodes.yaml).
  - Asks the cluster through C(kubectl), or through the Python client C(kubernetes) where there is no kubectl.
  - The host's name is the node's. How it is reached (user, key, C(become)) is said in C(group_vars), as for any host,
    or by O(connection).
author:
  - colocation.testbed contributors (@colocation-testbed)
options:
  plugin:
    description: Name of this plugin.
    type: str
    required: true
    choices: [colocation.testbed.kubernetes_nodes]
  kubectl:
    description: The program and its first arguments.
    type: list
    elements: str
    default: [kubectl]
  kubeconfig:
    description: The kubeconfig, or several with C(:) between them. Without it, the one that kubectl finds.
    type: pathspec
    env:
      - name: KUBECONFIG
  context:
    description: Context of the kubeconfig. Without it, the current one.
    type: str
  client:
    description: How the cluster is asked. V(auto) takes kubectl where it is installed.
    type: str
    choices: [auto, kubectl, python]
    default: auto
  node_groups:
    description:
      - Groups by name, each with the label selector of its nodes, in kubectl's notation. A group without a node is an
        error.
    type: dict
    default:
      tested: colocation.testbed/role=tested
      load: colocation.testbed/role=load
  address_types:
    description: Kinds of address that C(ansible_host) is taken from; the first that a node has.
    type: list
    elements: str
    default: [InternalIP, ExternalIP, Hostname]
  kubelet_configuration:
    description:
      - Whether each kubelet is asked for its configuration, for its cgroup driver among others. Takes the right to get
        C(nodes/proxy), which is more than reading nodes.
    type: bool
    default: false
  connection:
    description:
      - How Ansible reaches the hosts. V(inventory) leaves that to the inventory's variables. V(node_pod) is for nodes
        that nobody can log in to. It gives the hosts the connection P(colocation.testbed.node_pod#connection), and its
        variables C(kubernetes_kubectl), C(kubernetes_kubeconfig), C(kubernetes_context) and C(kubernetes_node_name) by
        the options here.
    type: str
    choices: [inventory, node_pod]
    default: inventory
  timeout_s:
    description: Seconds to wait for an answer.
    type: int
    default: 30
"""

EXAMPLES = r"""
# mycluster.kubernetes_nodes.yml
plugin: colocation.testbed.kubernetes_nodes
kubeconfig: ~/.kube/config
context: lab
node_groups:
  tested: colocation.testbed/role=tested
  load: colocation.testbed/role=load

# The same for nodes that nobody can log in to.
# plugin: colocation.testbed.kubernetes_nodes
# context: lab
# connection: node_pod
"""

import os
import shutil
from typing import Any

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import KubectlError
from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import node_inventory, node_sources

_ENDINGS = ("kubernetes_nodes.yml", "kubernetes_nodes.yaml")


class InventoryModule(BaseInventoryPlugin):
    """Hosts from nodes."""

    NAME = "colocation.testbed.kubernetes_nodes"

    def verify_file(self, path: str) -> bool:
        """Tell whether a file is meant for this plugin, by its name."""
        return bool(super().verify_file(path)) and path.endswith(_ENDINGS)

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Read the nodes and make hosts. Raises AnsibleParserError in one sentence."""
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        try:
            for host in self._hosts():
                for group in host.groups:
                    inventory.add_group(group)
                    inventory.add_host(host.name, group=group)
                for name, value in {**host.variables, **self._reach(host.name)}.items():
                    inventory.set_variable(host.name, name, value)
        except (KubectlError, node_inventory.NodeInventoryError) as exc:
            raise AnsibleParserError(f"{path}: {exc}") from exc

    def _hosts(self) -> list[node_inventory.Host]:
        source = self._source()
        nodes = source.nodes()
        groups = {str(name): str(text) for name, text in self.get_option("node_groups").items()}
        kinds = self.get_option("address_types")
        found = node_inventory.hosts(nodes, groups, kinds)
        if not self.get_option("kubelet_configuration"):
            return found
        told = {host.name: source.kubelet(host.name) for host in found}
        return node_inventory.hosts(nodes, groups, kinds, told)

    def _reach(self, node: str) -> dict[str, str]:
        """Return the variables that say how a host is reached."""
        if self.get_option("connection") == "inventory":
            return {}
        kubectl = list(self.get_option("kubectl"))
        if len(kubectl) > 1:
            raise node_inventory.NodeInventoryError(
                f"kubectl: {' '.join(kubectl)} is more than a program, which connection node_pod can't have; write a "
                "script that starts it, and name that"
            )
        place = {name: str(self.get_option(name) or "") for name in ("kubeconfig", "context")}
        return node_inventory.through_pod(node, kubectl[0], **place)

    def _source(self) -> node_sources.Source:
        kubectl, client = list(self.get_option("kubectl")), self.get_option("client")
        place = (os.pathsep.join(self.get_option("kubeconfig") or ()), self.get_option("context") or "")
        timeout_s = float(self.get_option("timeout_s"))
        if client == "kubectl" or (client == "auto" and shutil.which(kubectl[0])):
            return node_sources.by_kubectl(kubectl, *place, timeout_s)
        return node_sources.by_python(*place, timeout_s)
