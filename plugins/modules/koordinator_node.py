#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: koordinator_node
short_description: Keep what Koordinator's agent changes on a node, and put it back
version_added: 0.1.0
description:
  - Koordinator's agent limits the control group of best effort, and leaves it limited when it is removed. It also makes
    directories on the node.
  - Before it is installed, O(state=present) records in the journal what the group must have when nobody limits it,
    and the directories that are not there yet. A limit that an earlier installation left is put back at once.
  - After it is removed, O(state=absent) lifts the quota of the group, gives it and all groups below it every CPU again,
    and removes the directories.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  state:
    description: V(present) records before an installation, V(absent) puts back after a removal.
    type: str
    choices: [present, absent]
    default: present
  state_dir:
    description: The state directory of the host; the journal is C(journal.json) in it.
    type: path
    default: /var/lib/colocation-testbed
  directories:
    description: Directories that the agent makes on the node. Those that exist before stay.
    type: list
    elements: path
    default: [/var/run/koordlet, /etc/runtime/hookserver.d, /usr/local/vgpu/containers]
  cgroup_driver:
    description: The driver that kubelet is configured with. Empty where it isn't known.
    type: str
    choices: ["", cgroupfs, systemd]
    default: ""
  lift:
    description:
      - Whether a limit that is found with O(state=present) is put back. V(false) while the agent runs, whose it is.
    type: bool
    default: true
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Record what Koordinator's agent will change
  colocation.testbed.koordinator_node:
    cgroup_driver: systemd

- name: Put it back when the agent is gone
  colocation.testbed.koordinator_node:
    state: absent
"""

RETURN = r"""
root:
  description: The control group of best effort, with its quota in µs (-1 for none), its CPUs, and those of all pods.
  returned: always
  type: dict
  sample: {"group": "kubepods/besteffort", "quota_us": -1, "cpus": "0-1", "all_cpus": "0-1", "writable": true,
    "problem": ""}
host:
  description: What decides which parts of a policy have an effect here, as M(colocation.testbed.koordinator_policy)
    takes it.
  returned: always
  type: dict
  sample: {"cpus": 2, "cgroup_v2": false, "group_identity": false, "burst_above_quota": false,
    "cpu_manager": null, "cgroup_driver": null}
restored:
  description: One sentence for each thing that was (in check mode, would be) put back.
  returned: always
  type: list
  elements: str
  sample: ["/sys/fs/cgroup/cpu/kubepods/besteffort/cpu.cfs_quota_us: 2000 put back to -1"]
"""

from dataclasses import asdict
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import files, journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cpu_list
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import best_effort_root, koordinator_node


def _run(module: AnsibleModule) -> dict[str, Any]:
    params, layout = module.params, cgroup.detect()
    book = journal.Journal(f"{params['state_dir']}/journal.json")
    if params["state"] == "present":
        root = best_effort_root.read(layout, params["cgroup_driver"])
        if root.problem:
            raise best_effort_root.RootError(root.problem)
        done = koordinator_node.record(book, layout, params["directories"], params["lift"], module.check_mode)
    else:
        done = koordinator_node.take_back(book, layout, module.check_mode)
    result: dict[str, Any] = {
        "changed": done.changed,
        "restored": list(done.restored),
        "root": asdict(best_effort_root.read(layout, params["cgroup_driver"])),
        "host": asdict(koordinator_node.host(layout)),
    }
    if module._diff:
        lines = [*done.recorded, *done.restored]
        result["diff"] = {"before": "", "after": "".join(f"{line}\n" for line in lines)}
    return result


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
            "directories": {
                "type": "list",
                "elements": "path",
                "default": ["/var/run/koordlet", "/etc/runtime/hookserver.d", "/usr/local/vgpu/containers"],
            },
            "cgroup_driver": {"type": "str", "choices": ["", "cgroupfs", "systemd"], "default": ""},
            "lift": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    try:
        result = _run(module)
    except (
        best_effort_root.RootError,
        koordinator_node.NodeError,
        cgroup.CgroupError,
        cpu_list.CpuListError,
        files.FilesError,
        journal.JournalError,
    ) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
