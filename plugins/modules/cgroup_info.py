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
  - Reads the layout of control groups on a host, and the values and processes of groups.
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
seealso:
  - module: colocation.testbed.cgroup
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Read the batch workload's group
  colocation.testbed.cgroup_info:
    names: [batch]
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
  description: The groups by name, with whether they exist, directory for each controller, values and processes.
  returned: success
  type: dict
  sample: {"batch": {"exists": true, "paths": {}, "values": {"cpu_idle": 1}, "pids": [4711]}}
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

import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cgroup_report


def run(module: AnsibleModule) -> None:
    """Read and report."""
    root, names = cgroup.check_name(module.params["root"]), module.params["names"]
    layout = cgroup.detect()
    groups = {}
    for name in names:
        paths = cgroup_report.paths(layout, root, name)
        groups[name] = {
            "exists": all(os.path.isdir(path) for path in paths.values()),
            "paths": paths,
            "values": cgroup_report.values(layout, cgroup.below(root, name)),
            "pids": cgroup.group_pids(layout, cgroup.below(root, name)),
        }
    found = cgroup_report.policy_files(layout, root, names)
    module.exit_json(
        changed=False,
        groups=groups,
        policy_files=found,
        policy_values=cgroup_report.policy_values(found),
        **cgroup_report.describe(layout),
    )


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "str", "default": "colocation-testbed"},
            "names": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    try:
        run(module)
    except cgroup.CgroupError as exc:
        module.fail_json(msg=str(exc))


if __name__ == "__main__":
    main()
