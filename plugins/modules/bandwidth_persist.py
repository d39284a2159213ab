#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bandwidth_persist
short_description: Divide a host's bandwidth again after each of its starts
version_added: 0.1.0
description:
  - Makes the host apply what the other modules on bandwidth made, by the node tool of role C(colocation.testbed.node).
    Control groups and devices are looked up anew; what is gone is left out with a warning.
  - Where systemd runs this is a unit, which can be reloaded too; elsewhere a start script in C(/etc/local.d) (OpenRC)
    or C(/etc/init.d), and where neither is known one in the state directory, which something else must call.
extends_documentation_fragment:
  - colocation.testbed.attributes
  - colocation.testbed.bandwidth
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  node_python:
    description: Interpreter of the node tool.
    type: path
    default: /usr/bin/python3
  state:
    description: Whether the host applies the instance when it starts.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: colocation.testbed.bandwidth_pool
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Keep the division over a start of the host
  colocation.testbed.bandwidth_persist:
"""

RETURN = r"""
starter:
  description: What starts programs on this host, V(systemd), V(openrc), V(sysv) or V(none).
  returned: success
  type: str
  sample: systemd
files:
  description: The files that were written or taken back, or would be.
  returned: success
  type: list
  elements: str
  sample: [/etc/systemd/system/colocation-testbed-bandwidth-main.service]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, journal
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import call, values
from ansible_collections.colocation.testbed.plugins.module_utils.node import bandwidth_boot

ERRORS = (
    bandwidth_boot.BootError,
    commands.CommandError,
    files.FilesError,
    journal.JournalError,
    values.BandwidthError,
    OSError,
)


def run(module: AnsibleModule) -> None:
    """Bring it about, or take it back, and report."""
    params = module.params
    name = values.check_name(params["instance"], "instance")
    wanted = bandwidth_boot.Wanted(name, params["bpffs"], params["state_dir"], params["node_python"])
    book = journal.of(params["state_dir"])
    act = bandwidth_boot.persist if params["state"] == "present" else bandwidth_boot.remove
    done = act(wanted, bandwidth_boot.Places(), book, module.check_mode)
    for text in done.warnings:
        module.warn(text)
    result: dict[str, Any] = {"changed": done.changed, "starter": done.starter, "files": list(done.files)}
    if module._diff:
        shown = "".join(f"{path}\n" for path in done.files)
        present = params["state"] == "present"
        result["diff"] = {"before": "" if present else shown, "after": shown if present else ""}
    module.exit_json(**result)


def main() -> None:
    """Run the module."""
    options: dict[str, Any] = {
        **call.ARGUMENTS,
        "node_python": {"type": "path", "default": "/usr/bin/python3"},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    }
    module = AnsibleModule(argument_spec=options, supports_check_mode=True)
    try:
        run(module)
    except ERRORS as exc:
        module.fail_json(msg=str(exc))


if __name__ == "__main__":
    main()
