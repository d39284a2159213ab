# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of compare: read runs, show what changed, write JUnit XML, fail by thresholds."""

from __future__ import annotations

import os
import shutil
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.modules import compare as module
from ansible_collections.colocation.testbed.plugins.plugin_utils import compare, comparing, documented, rundir
from ansible_collections.colocation.testbed.plugins.plugin_utils.report import comparison

OPTIONS = documented.argument_spec(module.DOCUMENTATION)


class ActionModule(ActionBase):
    """Compare run directories; nothing runs on a host."""

    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Compare, show, write what was asked for."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _unused, given = self.validate_argument_spec(argument_spec=OPTIONS)
        try:
            found = comparing.compare_directories(given["run_dirs"], given["thresholds"])
            changed = self._write(given["junit_file"], compare.junit_xml(found))
        except (compare.CompareError, rundir.RunDirectoryError, files.FilesError) as exc:
            raise AnsibleActionFail(str(exc)) from None  # Ansible would append the cause, said already
        width = min(shutil.get_terminal_size((110, 24)).columns, 120)
        self._display.display("")
        for line in comparison.render(found, width, unicode=os.environ.get("TERM") != "dumb"):
            self._display.display(line.text)
        outcome = {**result, "changed": changed, "comparison": found}
        if found["result"] == "fail":
            return {**outcome, "failed": True, "msg": "\n".join(found["failures"])}
        return outcome

    def _write(self, path: str, text: str) -> bool:
        """Write the JUnit file where one is wanted and differs; return whether that changed it."""
        if not path:
            return False
        target = os.path.abspath(os.path.expanduser(path))
        if files.read_text_or_none(target) == text:
            return False
        if not self._task.check_mode:
            files.write_atomic(target, text)
        return True
