# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: lab_hosts
short_description: Turn inventory hosts into the hosts that the lab has to make
version_added: 0.1.0
description:
  - Reads address (C(ansible_host)) and CPUs (C(lab_cpus), else C(node_cpus)) of each host from its own variables, so
    that an inventory says them once.
positional: _input, hostvars
options:
  _input:
    description: Names of the hosts, usually those of the group C(lab).
    type: list
    elements: str
    required: true
  hostvars:
    description: The variables of all hosts, which is always V(hostvars).
    type: dict
    required: true
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Make the hosts of the group lab
  colocation.testbed.lab_netns:
    hosts: "{{ groups['lab'] | colocation.testbed.lab_hosts(hostvars) }}"
"""

RETURN = r"""
_value:
  description: The hosts, as role lab and module M(colocation.testbed.lab_netns) take them.
  type: list
  elements: dict
  sample: [{name: tested, address: 198.18.0.1, cpus: "0"}]
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

from ansible_collections.colocation.testbed.plugins.plugin_utils import lab_inventory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def lab_hosts(names: Iterable[str], hostvars: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return name, address and CPU list of each host. Raises AnsibleFilterError where a host has no address."""
    try:
        return lab_inventory.hosts(names, hostvars)
    except lab_inventory.LabInventoryError as exc:
        raise AnsibleFilterError(str(exc)) from None  # Ansible would append the cause, said already


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"lab_hosts": lab_hosts}
