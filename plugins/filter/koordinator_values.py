# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: koordinator_values
short_description: Say what an installation of Koordinator is set to
version_added: 0.1.0
description:
  - Returns the values of Koordinator's Helm chart for some settings, checked as a whole. Both methods of installing it
    take them.
  - Keys that the chart's version does not know are errors, since Helm ignores them; so are values of another kind,
    names of feature gates that the version lacks, and what the method of installing it has no use for.
positional: _input
options:
  _input:
    description:
      - The settings, with the keys V(version), V(image_host), V(image_tag), V(components), V(replicas), V(features),
        V(manager_gates), V(host_dirs), V(resources), V(extra), V(method), V(validated) and V(source), as role
        C(koordinator) has them.
    type: dict
    required: true
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Show what would be installed
  ansible.builtin.debug:
    msg: "{{ {'version': '1.8.0', 'image_host': '127.0.0.1:15000'} | colocation.testbed.koordinator_values }}"
"""

RETURN = r"""
_value:
  description: The chart's C(values), and C(workloads), kind and name of all that must be ready.
  type: dict
  sample: {"values": {"imageRepositoryHost": "127.0.0.1:15000"}, "workloads": ["Deployment/koord-manager"]}
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import koordinator_manifests
from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import koordinator_values as chart

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def koordinator_values(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return values and workloads. Raises AnsibleFilterError with all that is wrong."""
    try:
        found = chart.Settings(**settings)
        result = {"values": chart.values(found), "workloads": chart.workloads(found)}
        if found.source and found.method == "manifests":
            koordinator_manifests.check_version(Path(found.source), found.version)
    except (chart.ValuesError, koordinator_manifests.ManifestsError) as exc:
        raise AnsibleFilterError(str(exc)) from exc
    except TypeError as exc:
        raise AnsibleFilterError(f"koordinator_values: settings are not as they must be: {exc}") from exc
    return result


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"koordinator_values": koordinator_values}
