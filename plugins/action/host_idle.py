# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of host_idle: the claims of running experiments lie with the user who started them."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.colocation.testbed.plugins.modules import host_idle
from ansible_collections.colocation.testbed.plugins.plugin_utils import documented
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import claim

OPTIONS = documented.argument_spec(host_idle.DOCUMENTATION)


class ActionModule(ActionBase):
    """Look for claims; nothing runs on a host."""

    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Fail with the sentence of the first host that is in use."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _unused, given = self.validate_argument_spec(argument_spec=OPTIONS)
        try:
            for name in given["hosts"]:
                claim.require_free(name, claim.directory())
        except claim.ClaimError as exc:
            raise AnsibleActionFail(str(exc)) from exc
        return {**result, "changed": False, "hosts": given["hosts"]}
