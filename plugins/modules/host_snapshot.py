#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_snapshot
short_description: Take a canonical picture of a host's state
version_added: 0.1.0
description:
  - Pictures what the collection may change on a host, sorted and without what changes by itself, so that two pictures
    are equal exactly when the host is as it was.
  - Shows control groups and resctrl groups with their values, links with addresses, qdiscs, routes, network namespaces,
    mounts, sysctls, what M(colocation.testbed.host_tuning) sets below C(/sys), swap areas, files that are asked for,
    and processes of the collection. Network state is that of the namespace in which the module runs.
  - 'Sysctls that the kernel changes by itself are left out: C(fs.*-nr), C(fs.dentry-state), C(fs.inode-state),
    C(fs.quota.*), C(kernel.ns_last_pid), C(kernel.pty.nr), C(kernel.random.*), C(kernel.sched_domain.*),
    C(net.netfilter.nf_conntrack_count), C(vm.stat_refresh), C(dev.cdrom.info).'
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  paths:
    description: Files and directories to show with mode, owner and SHA-256; directories with all below them.
    type: list
    elements: path
    default: []
  cgroup_root:
    description: The group below each hierarchy whose processes count as the collection's.
    type: str
    default: colocation-testbed
  state_dir:
    description: Processes with this directory in their arguments count as the collection's.
    type: path
    default: /var/lib/colocation-testbed
  ignore:
    description:
      - Shell patterns of what is left out, matched against section, a slash, and the key.
      - For example V(cgroups//sys/fs/cgroup/*/user.slice*) or V(sysctls/net.ipv4.neigh.*).
    type: list
    elements: str
    default: []
  compare_to:
    description: A picture that was taken before; RV(differences) then tells what is not the same.
    type: dict
seealso:
  - module: colocation.testbed.journal_undo
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Picture the host before
  colocation.testbed.host_snapshot:
    paths: [/etc/nginx]
  register: before

- name: Picture the host after, and compare
  colocation.testbed.host_snapshot:
    paths: [/etc/nginx]
    compare_to: "{{ before.snapshot }}"
  register: after
"""

RETURN = r"""
snapshot:
  description: The picture by section and key. Sections are cgroups, files, links, mounts, netns, processes, qdiscs,
    resctrl, routes and sysctls.
  returned: success
  type: dict
  sample: {"netns": {"tested": ""}, "sysctls": {"vm.swappiness": "60"}}
digest:
  description: SHA-256 of the picture.
  returned: success
  type: str
  sample: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
differences:
  description: One line for each thing that differs from O(compare_to).
  returned: when O(compare_to) is given
  type: list
  elements: str
  sample: ["netns tested: is gone (was there)"]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import journal, snapshot


def run(module: AnsibleModule) -> None:
    """Take the picture, compare if asked."""
    params = module.params
    wanted = snapshot.Wanted(
        paths=tuple(params["paths"]),
        cgroup_root=params["cgroup_root"],
        state_dir=journal.check_state_dir(params["state_dir"]),
        ignore=tuple(params["ignore"]),
    )
    picture = snapshot.take(wanted)
    compared = {}
    if params["compare_to"] is not None:
        compared = {"differences": snapshot.differences(params["compare_to"], picture)}
    module.exit_json(changed=False, snapshot=picture, digest=snapshot.digest(picture), **compared)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "paths": {"type": "list", "elements": "path", "default": []},
            "cgroup_root": {"type": "str", "default": "colocation-testbed"},
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
            "ignore": {"type": "list", "elements": "str", "default": []},
            "compare_to": {"type": "dict"},
        },
        supports_check_mode=True,
    )
    try:
        run(module)
    except (journal.JournalError, snapshot.SnapshotError) as exc:
        module.fail_json(msg=str(exc))


if __name__ == "__main__":
    main()
