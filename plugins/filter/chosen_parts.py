# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: chosen_parts
short_description: Return what data has for some parts
version_added: 0.1.0
description:
  - Joins the lists that data has for some parts, in the order of the parts, with each thing once.
positional: _input, parts
options:
  _input:
    description: Lists by the name of the part.
    type: dict
    required: true
  parts:
    description: Names of the parts. One that the data does not have adds nothing.
    type: list
    elements: str
    required: true
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Show the packages of a node with a registry
  ansible.builtin.debug:
    msg: "{{ packages | colocation.testbed.chosen_parts(['node', 'registry']) }}"
  vars:
    packages: {node: [runc], registry: [docker-registry], nginx: [nginx]}
"""

RETURN = r"""
_value:
  description: What was chosen.
  type: list
  elements: raw
"""

from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes.layout import chosen

if TYPE_CHECKING:
    from collections.abc import Callable


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"chosen_parts": chosen}
