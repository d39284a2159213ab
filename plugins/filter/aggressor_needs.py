# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: aggressor_needs
short_description: Say what must be on the hosts before aggressors can run
version_added: 0.1.0
description:
  - Reads the definitions of aggressors and returns the packages that they need, and whether they need the clip.
positional: _input, definitions
options:
  _input:
    description: Names of the aggressors.
    type: list
    elements: str
    required: true
  definitions:
    description: Definitions by name beside the built-in ones, in the form of the files in C(files/aggressors).
    type: dict
    required: true
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Show what the network aggressor needs
  ansible.builtin.debug:
    msg: "{{ ['iperf3'] | colocation.testbed.aggressor_needs({}) }}"
"""

RETURN = r"""
_value:
  description:
    - C(packages) of the tested node, C(peer_packages) of the load node, and C(clip), whether a program reads the clip.
  type: dict
  sample: {packages: [iperf3], peer_packages: [iperf3], clip: false}
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

from ansible_collections.colocation.testbed.plugins.plugin_utils.definitions import DefinitionsError, load_definitions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_COLLECTION = Path(__file__).resolve().parents[2]


def aggressor_needs(names: Sequence[str], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the needs of all these aggressors together. Raises AnsibleFilterError for what is wrong with one."""
    try:
        loaded = load_definitions(_COLLECTION, aggressors=names, aggressor_definitions=definitions)
    except DefinitionsError as exc:
        raise AnsibleFilterError(str(exc)) from None  # Ansible would append the cause, said already
    needs = loaded.needs(names)
    return {"packages": list(needs.packages), "peer_packages": list(needs.peer_packages), "clip": needs.clip}


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"aggressor_needs": aggressor_needs}
