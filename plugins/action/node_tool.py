# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the node tool on the controller, and transfer it only to hosts that have another one."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.colocation.testbed.plugins.plugin_utils import node_bundle

_COLLECTION_ROOT = Path(__file__).resolve().parents[2]
_MODULE = "colocation.testbed.node_tool"


class ActionModule(ActionBase):
    """Controller side of module node_tool."""

    TRANSFERS_FILES = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask the host which tool it has, and send ours where that is another one."""
        super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        if arguments.get("state", "present") != "present":
            return self._ask(arguments, task_vars)
        try:
            bundle = node_bundle.build(_COLLECTION_ROOT)
        except node_bundle.BundleError as exc:
            raise AnsibleActionFail(f"node tool: {exc}") from None  # Ansible would append the cause, said already
        arguments["sha256"] = bundle.sha256
        result = self._ask(arguments, task_vars)
        if result.get("failed") or not result.get("needs_transfer") or self._task.check_mode:
            return result
        remote_dir = self._make_tmp_path()
        try:
            arguments["src"] = self._send(bundle, remote_dir)
            return self._ask(arguments, task_vars)
        finally:
            self._remove_tmp_path(remote_dir)

    def _ask(self, arguments: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        return dict(self._execute_module(module_name=_MODULE, module_args=arguments, task_vars=task_vars))

    def _send(self, bundle: node_bundle.Bundle, remote_dir: str) -> str:
        remote = self._connection._shell.join_path(remote_dir, "node.pyz")
        with tempfile.NamedTemporaryFile() as local:
            local.write(bundle.content)
            local.flush()
            self._transfer_file(local.name, remote)
        self._fixup_perms2([remote_dir, remote])
        return str(remote)
