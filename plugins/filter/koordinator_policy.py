# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: koordinator_policy
short_description: Return a policy by its name, for Koordinator
version_added: 0.1.0
description:
  - Looks a policy up among the collection's own and the user's, the same ones that modes of the matrix name, and checks
    it in Koordinator's words. A mapping is a policy itself.
  - A mapping may also be the ConfigMap C(slo-controller-config) of a cluster, or its data, with JSON texts as sections.
positional: _input, definitions, version
options:
  _input:
    description: Name of a policy, or a policy. The empty name is the empty policy.
    type: raw
    required: true
  definitions:
    description: The user's own policies by name, laid over the collection's key by key.
    type: dict
    default: {}
  version:
    description: Version of Koordinator that the policy is for. Keys that it does not know yet are errors.
    type: str
    default: 1.8.0
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Show what Koordinator gets
  ansible.builtin.debug:
    msg: "{{ 'koordinator' | colocation.testbed.koordinator_policy }}"
"""

RETURN = r"""
_value:
  description: The policy, a mapping of sections.
  type: dict
  sample: {"colocation-config": {"enable": true}}
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

from ansible_collections.colocation.testbed.plugins.module_utils.policy import (
    koordinator,
    koordinator_text,
    koordinator_versions,
    validation,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils import definitions as library

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_COLLECTION = Path(__file__).resolve().parents[2]


def koordinator_policy(
    policy: Any, definitions: Mapping[str, Any] | None = None, version: str = koordinator_versions.NEWEST
) -> dict[str, Any]:
    """Return the policy. Raises AnsibleFilterError for an unknown name and for what is wrong in it."""
    where = f"policy {policy}" if isinstance(policy, str) else "policy"
    try:
        if isinstance(policy, str):
            found = library.policy_named(_COLLECTION, policy, definitions or {})
        else:
            found = koordinator_text.read(policy, where)
        if found:
            validation.check(found, where, koordinator.ENGINE)
            koordinator_versions.check(found, where, version)
    except (library.DefinitionsError, validation.PolicyError, koordinator_text.TextError) as exc:
        raise AnsibleFilterError(str(exc)) from exc
    return dict(found)


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"koordinator_policy": koordinator_policy}
