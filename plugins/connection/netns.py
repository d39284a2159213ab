# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: netns
short_description: Run tasks in a named network namespace of the controller
version_added: 0.1.0
description:
  - Runs each command through C(nsenter --net), so that one machine can stand in for several test hosts.
  - Does not use C(ip netns exec), which mounts a new C(/sys) and so hides control groups and resctrl.
  - Only the network is separate. Files, processes and users are those of the controller.
author:
  - colocation.testbed contributors (@colocation-testbed)
extends_documentation_fragment:
  - ansible.builtin.connection_pipelining
options:
  netns:
    description: Name of the namespace. Where it is empty, V(colocation-) followed by the host's name in the inventory.
    type: str
    default: ""
    vars:
      - name: ansible_netns
  inventory_name:
    description: The host's name in the inventory.
    type: str
    default: ""
    vars:
      - name: inventory_hostname
  cpus:
    description:
      - CPU list that Ansible's own work on the host runs on, for example V(1).
      - Set it to the housekeeping CPUs, so that modules never take time from the CPUs that are measured.
      - The empty value leaves the choice to the kernel.
    type: str
    default: ""
    vars:
      - name: ansible_netns_cpus
  optional:
    description:
      - Whether commands run in the network of the controller where the namespace does not exist, instead of failing.
      - Meant for C({{ ansible_check_mode }}), as a lab that is only predicted has no namespaces that its hosts could be
        asked in.
    type: bool
    default: false
    vars:
      - name: ansible_netns_optional
  outside:
    description:
      - Whether commands run in the network of the controller although the namespace exists, and on all CPUs.
      - Meant for tasks that fetch or build something, since the lab's networks lead nowhere.
    type: bool
    default: false
    vars:
      - name: ansible_netns_outside
  become_success_timeout:
    description: Seconds to wait for privilege escalation.
    type: int
    default: 10
    vars:
      - name: ansible_local_become_success_timeout
  become_strip_preamble:
    description: Strip the output of privilege escalation.
    type: bool
    default: true
    vars:
      - name: ansible_local_become_strip_preamble
"""

import os
import shlex

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection.local import Connection as LocalConnection

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cpu_list, netns

_PREFIX = "colocation-"


class Connection(LocalConnection):
    """The local connection, moved into a network namespace."""

    transport = "colocation.testbed.netns"
    has_pipelining = True

    def _connect(self) -> Connection:
        """Check that commands can run there: with a namespace missing they would fail one by one without saying why."""
        name, cpus = self._namespace(), self.get_option("cpus")
        if os.geteuid() != 0:
            raise AnsibleConnectionFailure(
                f"Entering network namespace {name} needs root on the controller: run ansible-playbook as root, or set "
                "another ansible_connection for this host."
            )
        if not netns.exists(name) and not self.get_option("optional"):
            raise AnsibleConnectionFailure(
                f"Network namespace {name} does not exist: run the playbook provision, which makes the hosts of the "
                "lab, or correct ansible_netns of this host."
            )
        try:
            cpu_list.require_online(cpus, "ansible_netns_cpus")
        except cpu_list.CpuListError as exc:
            raise AnsibleConnectionFailure(str(exc)) from exc
        super()._connect()
        return self

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """Run a command in the namespace."""
        if not self._connected:
            self._connect()
        prefix = [] if self.get_option("outside") else self._prefix()
        result: tuple[int, bytes, bytes] = super().exec_command(
            " ".join([*map(shlex.quote, prefix), cmd]), in_data=in_data, sudoable=sudoable
        )
        return result

    def _prefix(self) -> list[str]:
        name, cpus = self._namespace(), self.get_option("cpus")
        on_cpus = ["taskset", "--cpu-list", cpus] if cpus else []
        if netns.exists(name) or not self.get_option("optional"):
            return [*on_cpus, "nsenter", f"--net={netns.path(name)}"]
        return on_cpus

    def _namespace(self) -> str:
        return str(self.get_option("netns") or _PREFIX + self.get_option("inventory_name"))
