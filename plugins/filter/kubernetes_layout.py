# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: kubernetes_layout
short_description: Say who is who in a cluster that is made, and where its files are
version_added: 0.1.0
description:
  - Returns all that role C(kubernetes) derives from its settings and from the hosts' variables, for the host that asks.
positional: _input, variables, place
options:
  _input:
    description: Names of the cluster's hosts in the inventory; the order decides about the networks of their pods.
    type: list
    elements: str
    required: true
  variables:
    description: Variables of all hosts, C(hostvars).
    type: dict
    required: true
  place:
    description:
      - The host that asks and settings of the role, with the keys V(host), V(control_plane_host), V(provider),
        V(pod_subnet), V(cgroup_parent), V(registry), V(registry_images), V(cache_dir) and V(urls).
    type: dict
    required: true
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Show how the API server is reached
  ansible.builtin.debug:
    msg: "{{ (['node1'] | colocation.testbed.kubernetes_layout(hostvars, place)).kubectl }}"
  vars:
    place:
      host: node1
      control_plane_host: node1
      provider: processes
      pod_subnet: 10.88.0.0/16
      cgroup_parent: ""
      registry: ""
      registry_images: []
      cache_dir: ~/.cache
      urls: []
"""

RETURN = r"""
_value:
  description:
    - C(own) and C(others) as P(colocation.testbed.cluster_nodes#filter) returns nodes, C(leads), the names of the
      C(parts) that are needed, C(kubectl) and C(kubeconfig), directories, and what comes before programs inside.
  type: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import cluster_nodes
from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import layout as layouts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def kubernetes_layout(
    hosts: Sequence[str], variables: Mapping[str, Mapping[str, Any]], place: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the layout. Raises AnsibleFilterError for hosts that make no cluster."""
    try:
        return layouts.layout(hosts, variables, layouts.Place(**place))
    except (layouts.LayoutError, cluster_nodes.ClusterNodesError) as exc:
        raise AnsibleFilterError(str(exc)) from exc
    except TypeError as exc:
        raise AnsibleFilterError(f"kubernetes_layout: place is not as it must be: {exc}") from exc


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"kubernetes_layout": kubernetes_layout}
