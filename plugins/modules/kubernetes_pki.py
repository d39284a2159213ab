#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubernetes_pki
short_description: Make a cluster's certificates and kubeconfigs by the phases of kubeadm
version_added: 0.1.0
description:
  - Makes authorities, certificates and kubeconfigs as C(kubeadm init) would, below one directory, and starts nothing.
  - What is there stays. When the configuration changes, or certificates are due within two months, all that the
    authorities sign is made anew; the authorities and the key of service accounts are kept.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  kubeadm:
    description: The program.
    type: path
    required: true
  config:
    description: Text of kubeadm's configuration. Its C(certificatesDir) is C(pki) below O(directory).
    type: str
    required: true
  directory:
    description: Where everything is kept.
    type: path
    required: true
  users:
    description: Users beside C(admin), C(super-admin), C(controller-manager), C(scheduler) and C(kubelet).
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the file, without C(.conf).
        type: str
        required: true
      client_name:
        description: Name by which the API server knows the user.
        type: str
        required: true
      groups:
        description: Groups of the user.
        type: list
        elements: str
        default: []
  state_dir:
    description: State directory of the host; its journal records the directory.
    type: path
    default: /var/lib/colocation-testbed
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Make certificates
  colocation.testbed.kubernetes_pki:
    kubeadm: /usr/bin/kubeadm
    directory: /var/lib/colocation-testbed/control-plane
    config: "{{ lookup('ansible.builtin.template', 'kubeadm.yaml.j2') }}"
    users:
      - {name: kube-proxy, client_name: "system:kube-proxy"}
"""

RETURN = r"""
certificates:
  description: Directory of the certificates.
  returned: always
  type: str
  sample: /var/lib/colocation-testbed/control-plane/pki
kubeconfigs:
  description: Path of each user's kubeconfig.
  returned: always
  type: dict
  sample: {"admin": "/var/lib/colocation-testbed/control-plane/admin.conf"}
reason:
  description: Why they were made, or would be; an empty text where they are good.
  returned: always
  type: str
  sample: their configuration has changed
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, journal
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import pki

_BY = "kubernetes_pki"


def run(module: AnsibleModule) -> dict[str, Any]:
    """Look whether they are good, make them where they aren't."""
    params = module.params
    users = tuple(pki.User(item["name"], item["client_name"], tuple(item["groups"])) for item in params["users"])
    wanted = pki.Pki(params["kubeadm"], params["config"], params["directory"], users)
    pki.check(wanted)
    new = ", ".join(user.name for user in pki.new_users(wanted))
    why = pki.reason(wanted) or (f"new users: {new}" if new else "")
    before = files.read_text_or_none(os.path.join(wanted.directory, pki.CONFIG)) or ""
    if why and not module.check_mode:
        if not os.path.isdir(wanted.directory):
            book = journal.Journal(os.path.join(params["state_dir"], "journal.json"))
            book.record("directory", wanted.directory, {"tree": True}, _BY)
        pki.make(wanted)
    return {
        "changed": bool(why),
        "certificates": wanted.certificates,
        "kubeconfigs": wanted.kubeconfigs,
        "reason": why,
        "diff": {"before": before, "after": wanted.config if why else before},
    }


def main() -> None:
    """Run the module."""
    user: dict[str, Any] = {
        "name": {"type": "str", "required": True},
        "client_name": {"type": "str", "required": True},
        "groups": {"type": "list", "elements": "str", "default": []},
    }
    module = AnsibleModule(
        argument_spec={
            "kubeadm": {"type": "path", "required": True},
            "config": {"type": "str", "required": True},
            "directory": {"type": "path", "required": True},
            "users": {"type": "list", "elements": "dict", "default": [], "options": user},
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
        },
        supports_check_mode=True,
    )
    try:
        result = run(module)
    except (commands.CommandError, files.FilesError, journal.JournalError, pki.PkiError) as exc:
        module.fail_json(msg=str(exc))
    except OSError as exc:
        module.fail_json(msg=f"certificates: {exc.filename}: {exc.strerror}; check its mode and the free space")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
