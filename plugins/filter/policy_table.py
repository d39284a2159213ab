# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: policy_table
short_description: Show which keys of a policy a host does not honour as Koordinator would
version_added: 0.1.0
description:
  - Turns the RV(colocation.testbed.cgroup_policy#module:states) of a policy into lines for people, the keys that are
    degraded or unsupported, each with its reason. Keys that are supported are counted.
positional: _input
options:
  _input:
    description: The states that module M(colocation.testbed.cgroup_policy) returns.
    type: list
    elements: dict
    required: true
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Show what this host does otherwise
  ansible.builtin.debug:
    msg: "{{ cgroup_policy_result.states | colocation.testbed.policy_table }}"
"""

RETURN = r"""
_value:
  description: The lines.
  type: list
  elements: str
  sample:
    - 4 keys supported, 1 degraded, 0 unsupported
    - "degraded     resource-threshold-config.clusterStrategy.cpuSuppressThresholdPercent"
    - "             a fixed ceiling for an idle node: without readings, what others use is not subtracted"
"""

from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import DEGRADED, SUPPORTED, UNSUPPORTED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_WIDTH = len(UNSUPPORTED) + 2


def policy_table(states: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines about a policy's states: how many there are of each, then what is not as it was asked for."""
    found = {state: [row for row in states if row["state"] == state] for state in (SUPPORTED, DEGRADED, UNSUPPORTED)}
    supported = quantity.counted(len(found[SUPPORTED]), "key")
    lines = [f"{supported} supported, {len(found[DEGRADED])} degraded, {len(found[UNSUPPORTED])} unsupported"]
    for state in (DEGRADED, UNSUPPORTED):
        for row in found[state]:
            lines += [f"{state:<{_WIDTH}}{row['key']}", f"{'':<{_WIDTH}}{row['reason']}"]
    return lines


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"policy_table": policy_table}
