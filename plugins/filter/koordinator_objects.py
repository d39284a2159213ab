# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: koordinator_objects
short_description: Make objects out of Koordinator's own manifests
version_added: 0.1.0
description:
  - Reads the directory C(config) of Koordinator's sources on the controller, and returns its objects under the names
    and with the values that the Helm chart gives them. The ConfigMap of policies is not among them.
positional: _input, values, pull_policy
options:
  _input:
    description: Directory of the sources.
    type: str
    required: true
  values:
    description: Values of the chart, as the filter P(colocation.testbed.koordinator_values#filter) returns them.
    type: dict
    required: true
  pull_policy:
    description: When images are pulled, V(Always), V(IfNotPresent) or V(Never).
    type: str
    default: IfNotPresent
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Install Koordinator from its own manifests
  colocation.testbed.kubernetes_objects:
    objects: "{{ '/opt/koordinator' | colocation.testbed.koordinator_objects(chosen['values']) }}"
  vars:
    chosen: "{{ {'version': '1.8.0', 'image_host': '127.0.0.1:15000'} | colocation.testbed.koordinator_values }}"
"""

RETURN = r"""
_value:
  description: The objects, as M(colocation.testbed.kubernetes_objects) takes them.
  type: list
  elements: dict
  sample: [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "koordinator-system"}}]
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import koordinator_manifests

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def koordinator_objects(
    source: str, values: Mapping[str, Any], pull_policy: str = "IfNotPresent"
) -> list[dict[str, Any]]:
    """Return the objects. Raises AnsibleFilterError for a directory that isn't one of Koordinator's sources."""
    try:
        return koordinator_manifests.render(Path(source), values, pull_policy)
    except koordinator_manifests.ManifestsError as exc:
        raise AnsibleFilterError(str(exc)) from exc


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"koordinator_objects": koordinator_objects}
