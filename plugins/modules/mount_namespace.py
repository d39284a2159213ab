#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: mount_namespace
short_description: Keep a mount namespace with directories of its own
version_added: 0.1.0
description:
  - Makes a mount namespace that lives without processes, kept by a file, as C(unshare --mount=FILE) does it. Programs
    enter it with C(nsenter --mount=FILE).
  - Mounts that are made inside are seen by all processes inside, and by nobody outside; removing the namespace removes
    all of them at once.
  - Directories can be laid over those of the host, so that programs with fixed paths leave nothing on the host.
    A directory of the host that is missing is made, and removed again.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  path:
    description: The file that keeps the namespace. It has a directory of its own, which becomes a mount point.
    type: path
    required: true
  paths:
    description: Directories that the namespace has for itself. Each lies below O(root), and is made when it is missing.
    type: list
    elements: path
    default: []
  root:
    description: Directory below which those of O(paths) really are. Needed with O(paths).
    type: path
  state:
    description: Whether the namespace should exist. With V(absent), processes that are still inside are killed.
    type: str
    choices: [present, absent]
    default: present
  state_dir:
    description: State directory of the host; its journal records what is made.
    type: path
    default: /var/lib/colocation-testbed
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Let programs write below /var/lib/kubelet without touching the host's
  colocation.testbed.mount_namespace:
    path: /var/lib/colocation-testbed/kubernetes/ns/mnt
    root: /var/lib/colocation-testbed/kubernetes/root
    paths: [/var/lib/kubelet]
"""

RETURN = r"""
prefix:
  description: What to put before a command so that it runs inside.
  returned: always
  type: list
  elements: str
  sample: [nsenter, --mount=/var/lib/colocation-testbed/kubernetes/ns/mnt]
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import commands, journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import mounts, processes
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import mount_namespace


def lines(space: mount_namespace.Space, binds: list[mount_namespace.Bind]) -> str:
    """Return what the diff shows of a namespace with these directories."""
    return "".join([f"{space.path}\n", *(f"{bind.target} <- {bind.source}\n" for bind in binds)])


def run(module: AnsibleModule) -> dict[str, Any]:
    """Compare, make or remove, report."""
    params = module.params
    space = mount_namespace.Space(params["path"])
    binds = [mount_namespace.Bind(f"{params['root']}{path}", path) for path in params["paths"]]
    mount_namespace.check(space, binds)
    book = journal.Journal(os.path.join(params["state_dir"], "journal.json"))
    exists = space.exists()
    missing = mount_namespace.missing(space, binds)
    there = [bind for bind in binds if bind not in missing]
    before = lines(space, there) if exists else ""
    if params["state"] == "present":
        changed, after = bool(missing) or not exists, lines(space, binds)
        if changed and not module.check_mode:
            mount_namespace.make(space, binds, book)
    else:
        recorded = any(entry.by == mount_namespace.BY for entry in book.entries())
        changed, after = exists or recorded, ""
        if changed and not module.check_mode:
            mount_namespace.remove(space, binds, book)
    return {"changed": changed, "prefix": list(space.prefix), "diff": {"before": before, "after": after}}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "paths": {"type": "list", "elements": "path", "default": []},
            "root": {"type": "path"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
        },
        supports_check_mode=True,
    )
    if module.params["paths"] and not module.params["root"]:
        module.fail_json(msg="mount_namespace: paths needs root, the directory below which they really are")
    try:
        result = run(module)
    except (
        commands.CommandError,
        journal.JournalError,
        mount_namespace.MountNamespaceError,
        mounts.MountsError,
        processes.ProcessError,
    ) as exc:
        module.fail_json(msg=str(exc))
    except OSError as exc:
        module.fail_json(msg=f"mount namespace: {exc.filename}: {exc.strerror}; run as root")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
