# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of preflight: look at everything, show one table, fail once with all problems."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ansible.plugins.action import ActionBase

from ansible_collections.colocation.testbed.plugins.modules import preflight
from ansible_collections.colocation.testbed.plugins.plugin_utils import documented
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import preparation
from ansible_collections.colocation.testbed.plugins.plugin_utils.host_executor import HostExecutor
from ansible_collections.colocation.testbed.plugins.plugin_utils.preflight import rows, survey, variables

if TYPE_CHECKING:
    from collections.abc import Mapping

OPTIONS = documented.argument_spec(preflight.DOCUMENTATION)


class ActionModule(ActionBase):
    """Check inventory, variables and hosts."""

    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Look, show, and fail where something is missing."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        known = task_vars or {}
        _unused, given = self.validate_argument_spec(argument_spec=OPTIONS)
        options = variables.role_options(preparation.COLLECTION_ROOT / "roles")
        looking = survey.Survey(
            known["groups"], options, lambda name: self._reach(name, known), int(given["min_free_mib"])
        )
        found = [*looking.of_controller(self._own_variables(known, options)), *looking.of_inventory()]
        if not rows.problems(found):
            found += looking.of_lab(known["hostvars"])
        if not rows.problems(found):
            for role in ("tested", "load"):
                found += looking.of_host(known["groups"][role][0], role)
        self._display.display("\n" + rows.table(found))
        problems = rows.problems(found)
        if problems:
            return {**result, "failed": True, "msg": "\n".join(problems)}
        return {**result, "changed": False, "rows": [dataclasses.asdict(row) for row in found]}

    def _own_variables(self, known: Mapping[str, Any], options: variables.Options) -> dict[str, Any]:
        """Return the variables that are a role's, or might be meant as one, templated."""
        roles = survey.role_names()
        own = [name for name in known if variables.concerns(name, options, roles)]
        return {name: self._templar.template(known[name]) for name in own}

    def _reach(self, name: str, known: Mapping[str, Any]) -> HostExecutor:
        """Return a host of the inventory; a namespace of the lab is asked on the machine that carries it."""
        host = HostExecutor(self, name, known)
        if name in known["groups"].get("lab", ()) and host.variable("lab_driver", "netns") == "netns":
            return HostExecutor(self, name, known, {"ansible_connection": "local"})
        return host
