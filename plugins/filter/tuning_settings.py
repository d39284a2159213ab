# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: tuning_settings
short_description: Say what a host is tuned to
version_added: 0.1.0
description:
  - Returns the settings of a profile for M(colocation.testbed.host_tuning), with a user's own laid over them.
  - What a profile sets may be missing on a host, and is then skipped. A setting of the same kind and name in the user's
    list takes its place.
positional: _input, settings, housekeeping_cpus, policy_settings
options:
  _input:
    description: Name of the profile, a file in C(files/tuning) of the collection.
    type: str
    required: true
  settings:
    description: The user's own settings.
    type: list
    elements: dict
    required: true
  housekeeping_cpus:
    description: CPU list that serves interrupts. With the empty one a profile leaves them alone.
    type: str
    required: true
  policy_settings:
    description: What a policy wants of the host. It takes the place of the profile's, and gives way to the user's own.
    type: list
    elements: dict
    default: []
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Show what a host would be tuned to
  ansible.builtin.debug:
    msg: "{{ 'latency' | colocation.testbed.tuning_settings([], '0') }}"
"""

RETURN = r"""
_value:
  description: Settings as M(colocation.testbed.host_tuning) takes them.
  type: list
  elements: dict
  sample:
    - {kind: governor, name: "", value: performance, on_missing: skip}
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

from ansible_collections.colocation.testbed.plugins.plugin_utils import tuning_profiles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_COLLECTION = Path(__file__).resolve().parents[2]


def tuning_settings(
    profile: str, settings: Sequence[Any], housekeeping_cpus: str, policy_settings: Sequence[Any] = ()
) -> list[dict[str, Any]]:
    """Return the settings of a host. Raises AnsibleFilterError for an unknown profile and what is no setting."""
    try:
        found = tuning_profiles.load(_COLLECTION, profile)
        return tuning_profiles.settings(found, settings, str(housekeeping_cpus), policy_settings)
    except tuning_profiles.TuningProfileError as exc:
        raise AnsibleFilterError(str(exc)) from None  # Ansible would append the cause, said already


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"tuning_settings": tuning_settings}
