#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: resctrl_mount
short_description: Mount resctrl, now and at every start
version_added: 0.1.0
description:
  - Mounts the kernel's file system for L3 cache and memory bandwidth control.
  - For the next starts it writes a systemd unit where systemd runs, and a line of C(/etc/fstab) elsewhere.
  - A resctrl that is mounted already with the same options is left as it is. With other options it is an error, since
    unmounting would remove all groups, also those of other programs.
  - Every change is recorded in the journal first, so that M(colocation.testbed.journal_undo) can take it back.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  state:
    description:
      - Whether resctrl is mounted.
      - V(absent) takes back what this module did. What others have mounted stays. A mount in which there are groups of
        others stays too, with an error.
    type: str
    choices: [mounted, absent]
    default: mounted
  mount_point:
    description: Where resctrl is mounted. The directory must exist.
    type: path
    default: /sys/fs/resctrl
  options:
    description:
      - Options of the mount. V(cdp) and V(cdpl2) keep code and data apart, which halves the number of groups. With
        V(mba_MBps) the kernel regulates bandwidth, and values are MB/s. V(debug) shows more files.
    type: list
    elements: str
    choices: [cdp, cdpl2, mba_MBps, debug]
    default: []
  persist:
    description: Whether it is mounted at every start too.
    type: bool
    default: true
  state_dir:
    description: The state directory of the host; the journal is C(journal.json) in it.
    type: path
    default: /var/lib/colocation-testbed
seealso:
  - module: colocation.testbed.resctrl_info
  - module: colocation.testbed.resctrl_group
  - module: colocation.testbed.journal_undo
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Mount resctrl with bandwidth in MB/s
  colocation.testbed.resctrl_mount:
    options: [mba_MBps]

- name: Unmount it again
  colocation.testbed.resctrl_mount:
    state: absent
"""

RETURN = r"""
actions:
  description: One line for each thing that was done, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["mounted on /sys/fs/resctrl with no options"]
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import mounts, procfs, resctrl_mount
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl import ResctrlError


def run(module: AnsibleModule) -> None:
    """Find out what has to be done, and do it unless in check mode."""
    params = module.params
    book = journal.of(params["state_dir"])
    places = resctrl_mount.Places()
    point = os.path.realpath(params["mount_point"])
    mounter = resctrl_mount.Mounter(point, params["options"], book, "resctrl_mount", places)
    tasks = mounter.mounting(params["persist"]) if params["state"] == "mounted" else mounter.unmounting()
    if not module.check_mode:
        for task in tasks:
            task.do()
    actions = [task.text for task in tasks]
    result: dict[str, Any] = {"changed": bool(tasks), "actions": actions}
    if module._diff:
        result["diff"] = {"before": "", "after": "".join(f"{line}\n" for line in actions)}
    module.exit_json(**result)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["mounted", "absent"], "default": "mounted"},
            "mount_point": {"type": "path", "default": "/sys/fs/resctrl"},
            "options": {
                "type": "list",
                "elements": "str",
                "choices": list(resctrl_mount.OPTIONS),
                "default": [],
            },
            "persist": {"type": "bool", "default": True},
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
        },
        supports_check_mode=True,
    )
    try:
        run(module)
    except (
        ResctrlError,
        commands.CommandError,
        files.FilesError,
        journal.JournalError,
        mounts.MountsError,
        procfs.ProcError,
    ) as exc:
        module.fail_json(msg=str(exc))


if __name__ == "__main__":
    main()
