#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cgroup_info
short_description: Tell how control groups are mounted and what groups have
version_added: 0.1.0
description:
  - Reads the layout of control groups on a host, and the values, processes and pressure of groups.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  root:
    description: The group below each hierarchy in which the groups are.
    type: str
    default: colocation-testbed
  names:
    description: Names of groups below O(root). The empty name is O(root) itself.
    type: list
    elements: str
    default: []
  recursive:
    description: Whether all groups below O(root) are told besides O(names), O(root) itself among them.
    type: bool
    default: false
  patterns:
    description:
      - Shell patterns of paths below the hierarchies, for groups that others made, such as
        V(kubepods*/**/cri-containerd-*). V(**) is any number of parts. What matches is in RV(matches).
    type: list
    elements: str
    default: []
seealso:
  - module: colocation.testbed.cgroup
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Read the batch workload's group
  colocation.testbed.cgroup_info:
    names: [batch]
  register: found

- name: Show its quota
  ansible.builtin.debug:
    msg: "{{ found.groups['batch']['values']['cpu_quota_us'] }}"

- name: Read the groups of all best-effort pods
  colocation.testbed.cgroup_info:
    patterns: ["kubepods*/*besteffort*/**"]
"""

RETURN = r"""
version:
  description: V(v1), V(v2), or V(hybrid) when both are mounted.
  returned: success
  type: str
  sample: v1
hierarchies:
  description: Each hierarchy with mount point, version and controllers.
  returned: success
  type: list
  elements: dict
  sample: [{"mount": "/sys/fs/cgroup/cpu", "version": 1, "controllers": ["cpu"]}]
groups:
  description:
    - The groups by name.
    - In templates write C(groups['batch']['values']), since a dictionary has a method of the name C(values).
    - C(exists) tells whether the group is there in every hierarchy, C(paths) has its directory for each controller,
      C(values) what the options of M(colocation.testbed.cgroup) are, C(pids) its processes, C(tasks) its threads.
    - C(effective) is what ancestors leave of it. CPUs and memory nodes as the kernel says, the smallest of the limits,
      and C(cpu_limit_milli), the smallest share of CPUs that a quota gives, in thousandths.
    - C(pressure) is for how many microseconds some or all of its tasks waited for a resource, null where the kernel
      does not tell (v1).
  returned: success
  type: dict
  sample: {"batch": {"exists": true, "paths": {}, "values": {"cpu_idle": 1}, "pids": [4711], "tasks": 4,
    "effective": {"cpuset_cpus": "0", "cpu_limit_milli": 950, "memory_max_bytes": -1},
    "pressure": {"cpu": {"some_us": 12, "full_us": 0}, "memory": null, "io": null}}}
matches:
  description: The groups that match O(patterns), by path below the hierarchies, as RV(groups).
  returned: success
  type: dict
  sample: {}
policy_files:
  description: The file of every value of the groups and of all their ancestors, by the key that samples use.
  returned: success
  type: dict
  sample: {"batch/cpu.idle": "/sys/fs/cgroup/cpu/colocation-testbed/batch/cpu.idle"}
policy_values:
  description: The content of RV(policy_files).
  returned: success
  type: dict
  sample: {"batch/cpu.idle": "1"}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cgroup_report, cgroup_state
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_tree import Tree


def run(module: AnsibleModule) -> None:
    """Read and report."""
    root, names = cgroup.check_name(module.params["root"]), module.params["names"]
    layout = cgroup.detect()
    tree = Tree()
    wanted = list(dict.fromkeys([*names, *(cgroup_state.below(layout, root) if module.params["recursive"] else [])]))
    matches = cgroup_state.matching(layout, module.params["patterns"])
    found = cgroup_report.policy_files(layout, root, wanted, tree)
    module.exit_json(
        changed=False,
        groups={name: cgroup_state.describe(layout, cgroup.below(root, name), tree) for name in wanted},
        matches={full: cgroup_state.describe(layout, full, tree) for full in matches},
        policy_files=found,
        policy_values=cgroup_report.policy_values(found, tree),
        **cgroup_report.describe(layout),
    )


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "str", "default": "colocation-testbed"},
            "names": {"type": "list", "elements": "str", "default": []},
            "recursive": {"type": "bool", "default": False},
            "patterns": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    try:
        run(module)
    except cgroup.CgroupError as exc:
        module.fail_json(msg=str(exc))


if __name__ == "__main__":
    main()
