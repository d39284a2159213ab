# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run modules on any host of the inventory from inside one action plugin.

The matrix decides after each measurement what comes next (a window spoiled by steal is repeated), which a fixed
list of tasks cannot express. So one action owns the loop and reaches each host through that host's own connection.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.loader import become_loader, connection_loader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ansible.plugins.action import ActionBase
    from ansible.plugins.connection import ConnectionBase


class HostExecutorError(Exception):
    """A host could not be reached, or a module on it failed."""


class HostExecutor:
    """Runs modules on one host, with the variables, connection and privileges that the inventory gives it."""

    def __init__(
        self,
        action: ActionBase,
        name: str,
        task_vars: Mapping[str, Any],
        instead: Mapping[str, Any] | None = None,
    ) -> None:
        """Prepare the connection to the host ``name`` (it is opened by the first module).

        :param instead: variables that replace the inventory's, such as another connection.
        """
        if name not in task_vars["hostvars"]:
            raise HostExecutorError(f"{name}: no such host in the inventory; add it to inventories/…/hosts.yml")
        self.name = name
        self._variables = dict(task_vars["hostvars"].raw_get(name))
        self._variables.setdefault("inventory_hostname", name)
        self._variables.update(instead or {})
        self._templar = action._templar.copy_with_new_env(available_variables=self._variables)
        self._inner = self._sub_action(action)

    def variable(self, name: str, default: Any = None) -> Any:
        """Return an inventory variable or fact of the host, templated for it."""
        return self._templar.template(self._variables[name]) if name in self._variables else default

    def variables(self, wanted: Callable[[str], bool]) -> dict[str, Any]:
        """Return the variables of the host whose names are wanted, templated for it.

        :raises HostExecutorError: where one cannot be templated; the text names it.
        """
        found = {}
        for name in sorted(filter(wanted, self._variables)):
            try:
                found[name] = self.variable(name)
            except AnsibleError as exc:
                raise HostExecutorError(f"{self.name}: {name}: {exc}") from exc
        return found

    def run(self, module: str, args: Mapping[str, Any], check_mode: bool | None = None) -> dict[str, Any]:
        """Run a module of this collection and return its result.

        :raises HostExecutorError: where the host cannot be reached or the module fails; the text is the module's own.
        """
        usual = self._inner._task.check_mode
        self._inner._task.check_mode = usual if check_mode is None else check_mode
        try:
            result = self._inner._execute_module(
                module_name=f"colocation.testbed.{module}", module_args=dict(args), task_vars=self._variables
            )
        except Exception as exc:
            raise HostExecutorError(f"{self.name}: {exc}") from exc
        finally:
            self._inner._task.check_mode = usual
        if result.get("failed"):
            detail = str(result.get("msg") or result.get("module_stderr") or result)
            raise HostExecutorError(f"{self.name}: {detail.strip()}")
        return dict(result)

    def _sub_action(self, action: ActionBase) -> ActionBase:
        play_context = action._play_context.copy()
        task = action._task.copy()
        connection = self._connection(action, play_context, task)
        inner: ActionBase = action._shared_loader_obj.action_loader.get(
            "ansible.legacy.normal",
            task=task,
            connection=connection,
            play_context=play_context,
            loader=action._loader,
            templar=self._templar,
            shared_loader_obj=action._shared_loader_obj,
        )
        inner._task.async_val = 0
        return inner

    def _connection(self, action: ActionBase, play_context: Any, task: Any) -> ConnectionBase:
        kind = str(self.variable("ansible_connection", "ssh"))
        play_context.connection = kind
        play_context.remote_addr = str(self.variable("ansible_host", self.name))
        connection: ConnectionBase | None = connection_loader.get(
            kind, play_context, task_uuid=task._uuid, ansible_playbook_pid=str(os.getppid())
        )
        if connection is None:
            raise HostExecutorError(f"{self.name}: no connection plugin {kind!r}; correct ansible_connection there")
        keys = {**task.dump_attrs(), "timeout": play_context.timeout}
        keys.pop("retries", None)
        if play_context.password:
            keys["password"] = play_context.password
        self._become(connection, play_context, task)
        connection.set_options(task_keys=keys, var_options=self._options_of(connection, "connection"))
        connection._shell.set_options(task_keys=keys, var_options=self._options_of(connection._shell, "shell"))
        if connection.become is not None:
            if play_context.become_pass:
                keys["become_pass"] = play_context.become_pass
            connection.become.set_options(task_keys=keys, var_options=self._options_of(connection.become, "become"))
        play_context.set_attributes_from_plugin(connection)
        return connection

    def _become(self, connection: ConnectionBase, play_context: Any, task: Any) -> None:
        wanted = self.variable("ansible_become", task.become)
        if wanted is None or not boolean(wanted):
            connection.set_become_plugin(None)  # type: ignore[arg-type]  # ansible-core itself passes None
            play_context.become = False
            return
        method = str(self.variable("ansible_become_method", task.become_method) or "sudo")
        plugin = become_loader.get(method)
        if plugin is None:
            raise HostExecutorError(f"{self.name}: no become plugin {method!r}; correct ansible_become_method there")
        play_context.become = True
        connection.set_become_plugin(plugin)
        play_context.set_become_plugin(plugin.name)

    def _options_of(self, plugin: Any, kind: str) -> dict[str, Any]:
        from ansible import constants

        names = constants.config.get_plugin_vars(kind, plugin._load_name)
        return {name: self.variable(name) for name in names if name in self._variables}
