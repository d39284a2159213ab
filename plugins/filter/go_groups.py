# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: go_groups
short_description: Return groups of programs with the pins that they are built from
version_added: 0.1.0
description:
  - Reads what C(files/kubernetes) says about groups of programs, for the module M(colocation.testbed.go_programs).
options:
  _input:
    description: Names of the groups, such as V(etcd), V(kubernetes), V(containerd), V(crictl), V(helm), V(koordinator).
    type: list
    elements: str
    required: true
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Build etcd
  colocation.testbed.go_programs:
    groups: "{{ ['etcd'] | colocation.testbed.go_groups }}"
"""

RETURN = r"""
_value:
  description: The groups, each as M(colocation.testbed.go_programs) takes it.
  type: list
  elements: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import go_pins

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def go_groups(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return groups by their names. Raises AnsibleFilterError for an unknown one."""
    try:
        return go_pins.load(names)
    except go_pins.GoPinsError as exc:
        raise AnsibleFilterError(str(exc)) from exc


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"go_groups": go_groups}
