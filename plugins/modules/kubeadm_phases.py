#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubeadm_phases
short_description: Run phases of kubeadm once for a configuration
version_added: 0.1.0
description:
  - Runs a list of calls of kubeadm, each with the same configuration, and notes in a file that all of them succeeded.
  - With that note, and with the files of O(creates) there, nothing is run. A changed configuration or list is run.
  - Between two lists a kubelet can be started by any means, where no service manager does it for kubeadm.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  kubeadm:
    description: Program and what comes before it, such as C(nsenter) and its arguments.
    type: list
    elements: str
    required: true
  config:
    description: File with the configuration, by its path where kubeadm runs; it is the same path for this module.
    type: path
    required: true
  phases:
    description: Arguments of each call.
    type: list
    elements: list
    required: true
  record:
    description: File in which success is noted. It lies in a directory that is in the journal already.
    type: path
    required: true
  creates:
    description: Files that are there after the calls.
    type: list
    elements: path
    default: []
  timeout_s:
    description: Seconds that one call may take.
    type: int
    default: 300
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Make certificates and kubeconfigs
  colocation.testbed.kubeadm_phases:
    kubeadm: [kubeadm]
    config: /root/kubeadm.yaml
    phases: [[init, phase, certs, all], [init, phase, kubeconfig, all]]
    record: /var/lib/colocation-testbed/kubeadm.done
    creates: [/etc/kubernetes/admin.conf]
"""

RETURN = r"""
ran:
  description: The calls that were made, or would be.
  returned: always
  type: list
  elements: str
  sample: [init phase certs all]
"""

import hashlib
import json
import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files


def digest(config: str | None, phases: list[list[str]]) -> str:
    """Return what is noted of calls that succeeded."""
    return hashlib.sha256(json.dumps([config, phases]).encode()).hexdigest()


def run(module: AnsibleModule) -> dict[str, Any]:
    """Compare with the note, make the calls, note them."""
    params = module.params
    phases = [[str(word) for word in phase] for phase in params["phases"]]
    wanted = digest(files.read_text_or_none(params["config"]), phases)
    noted = (files.read_text_or_none(params["record"]) or "").strip()
    changed = noted != wanted or not all(os.path.exists(path) for path in params["creates"])
    if changed and not module.check_mode:
        files.restore(params["record"], None)
        for phase in phases:
            argv = [*params["kubeadm"], *phase, "--config", params["config"]]
            commands.run(argv, timeout_s=float(params["timeout_s"]))
        lacking = [path for path in params["creates"] if not os.path.exists(path)]
        if lacking:
            raise commands.CommandError(f"{lacking[0]}: kubeadm did not make it; run the phases by hand with -v=5")
        files.write_atomic(params["record"], f"{wanted}\n")
    return {"changed": changed, "ran": [" ".join(phase) for phase in phases] if changed else []}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "kubeadm": {"type": "list", "elements": "str", "required": True},
            "config": {"type": "path", "required": True},
            "phases": {"type": "list", "elements": "list", "required": True},
            "record": {"type": "path", "required": True},
            "creates": {"type": "list", "elements": "path", "default": []},
            "timeout_s": {"type": "int", "default": 300},
        },
        supports_check_mode=True,
    )
    try:
        result = run(module)
    except (commands.CommandError, files.FilesError) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
