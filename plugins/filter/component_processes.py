# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: component_processes
short_description: Turn components of a cluster into processes
version_added: 0.1.0
description:
  - Turns components, each with program, flags, environment and health check as data, into the list that the module
    M(colocation.testbed.process) takes.
positional: _input, bin_dir, prefix, name_prefix, changes, state, group
options:
  _input:
    description:
      - Components by name. Each may have C(program) (by default its name), C(arguments), C(flags) and the keys C(env),
        C(cpus), C(config_files), C(ready), C(ready_timeout_s), C(stop_signal), C(stop_timeout_s), C(directory),
        C(port_setting), C(group) of the module.
      - C(flags) is a dictionary. Null or an empty dictionary leaves a flag out; a list is joined by commas, and so is a
        dictionary, C(key=value) each.
      - A component that is null is left out.
    type: dict
    required: true
  bin_dir:
    description: Directory of the programs; empty looks them up in PATH.
    type: str
    required: true
  prefix:
    description: Program and arguments that come before each, such as C(nsenter).
    type: list
    elements: str
    default: []
  name_prefix:
    description: What the names of the processes begin with.
    type: str
    default: ""
  changes:
    description: Changes by component, laid over the components key by key; null leaves a component or a flag out.
    type: dict
    default: {}
  state:
    description: State of all processes, as the module has it. With V(absent) the last component comes first.
    type: str
    default: ""
  group:
    description: Control group of the components that name none. Empty leaves them where their supervisor is.
    type: str
    default: ""
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Start etcd
  colocation.testbed.process:
    processes: "{{ components | colocation.testbed.component_processes('/usr/bin') }}"
  vars:
    components:
      etcd:
        flags: {data-dir: /var/lib/etcd, listen-client-urls: ["http://127.0.0.1:2379"]}
        ready: {tcp_port: 2379}
"""

RETURN = r"""
_value:
  description: The processes.
  type: list
  elements: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import components

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def component_processes(
    wanted: Mapping[str, Mapping[str, Any]],
    bin_dir: str,
    prefix: Sequence[str] = (),
    name_prefix: str = "",
    changes: Mapping[str, Any] | None = None,
    state: str = "",
    group: str = "",
) -> list[dict[str, Any]]:
    """Return components as processes. Raises AnsibleFilterError for what is wrong with one."""
    try:
        return components.processes(wanted, bin_dir, prefix, name_prefix, changes, state, group)
    except components.ComponentError as exc:
        raise AnsibleFilterError(str(exc)) from exc


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"component_processes": component_processes}
