#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_tool
short_description: Install the node tool on a host
version_added: 0.1.0
description:
  - The node tool supervises processes, samples counters, sends load and holds PM QoS. It is one file, C(node.pyz), that
    the action plugin of this name builds from the collection on the controller. It is copied only when the host has
    another one.
  - Makes the state directory with its journal, so that reset can take both away.
attributes:
  check_mode:
    description: Can run in check mode and return changed status prediction without modifying target.
    support: full
  diff_mode:
    description: Returns details on what has changed in diff mode.
    support: full
options:
  state_dir:
    description: State directory of the host.
    type: path
    default: /var/lib/colocation-testbed
  node_python:
    description: Interpreter of the node tool, Python 3.9 or newer; it is tried.
    type: path
    default: /usr/bin/python3
  state:
    description:
      - V(absent) removes the tool and what processes left in the state directory, and the directory itself when the
        collection made it and nothing else is recorded in its journal. A process that still runs is an error.
    type: str
    choices: [present, absent]
    default: present
  sha256:
    description: Hash of the wanted tool. The action plugin sets it.
    type: str
  src:
    description: The tool on the host, as transferred. The action plugin sets it.
    type: path
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Install the node tool
  colocation.testbed.node_tool:
    state_dir: /var/lib/colocation-testbed
"""

RETURN = r"""
path:
  description: Where the tool is.
  returned: always
  type: str
  sample: /var/lib/colocation-testbed/node.pyz
sha256:
  description: Hash of the tool on the host afterwards, null where there is none.
  returned: always
  type: str
needs_transfer:
  description: Whether the host has another tool or none, and nothing was transferred yet.
  returned: always
  type: bool
python:
  description: Version of the interpreter that runs the tool, null in check mode and when absent.
  returned: always
  type: str
  sample: 3.11.2
"""

import hashlib
import os
import shutil
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, journal
from ansible_collections.colocation.testbed.plugins.module_utils.node import control, spec

_BY = "node"


class NodeToolError(Exception):
    """The tool does not run on this host, or is still in use."""


def installed_sha256(path: str) -> str | None:
    """Return the hash of the installed tool, or None."""
    return hashlib.sha256(files.read_bytes(path)).hexdigest() if os.path.exists(path) else None


def try_tool(manager: control.Manager) -> str:
    """Run the tool, which imports everything that it will need; returns the interpreter's version."""
    argv = [manager.python, *control.PYTHON_FLAGS, manager.tool, "check"]
    try:
        return commands.run(argv, timeout_s=30.0).stdout.strip()
    except commands.CommandError as exc:
        raise NodeToolError(
            f"node tool: does not run on this host: {exc}; set node_python to a Python 3.9 or newer with its whole "
            "standard library (Debian: package python3)"
        ) from exc


def install(manager: control.Manager, book: journal.Journal, src: str, sha256: str) -> None:
    """Put the transferred tool into its place. Raises NodeToolError where it was damaged on its way."""
    content = files.read_bytes(src)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise NodeToolError(f"{src}: is not what the controller sent; run again")
    known = any(entry.kind == "file" and entry.target == manager.tool for entry in book.entries())
    book.record("file", manager.tool, None if known else files.capture(manager.tool), _BY)
    files.write_atomic(manager.tool, content)


def remove(manager: control.Manager, book: journal.Journal) -> None:
    """Remove the tool and what processes left, and forget both; refuses while a process runs."""
    folder = os.path.join(manager.state_dir, "processes")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    pid_files = [name[: -len(".pid")] for name in names if name.endswith(".pid")]
    running = [name for name in pid_files if control.status(spec.Paths(manager.state_dir, name)).running]
    if running:
        raise NodeToolError(
            f"node tool: {', '.join(running)} still runs under it; stop it first, or run playbook reset"
        )
    entry = next((item for item in book.entries() if item.kind == "file" and item.target == manager.tool), None)
    files.restore(manager.tool, entry.previous if entry else None)
    if os.path.isdir(folder):
        shutil.rmtree(folder)
    ended = [("process", item.target) for item in book.entries() if os.path.dirname(item.target) == folder]
    book.forget_many([("file", manager.tool), ("directory", folder), *ended])
    if book.exists() and all(item.kind == "directory" and item.by == "journal" for item in book.entries()):
        book.undo({})


def run(module: AnsibleModule) -> dict[str, Any]:
    """Compare by hash, install or remove, read back."""
    params = module.params
    manager = control.Manager("supervised", params["state_dir"], params["node_python"])
    book = journal.Journal(os.path.join(params["state_dir"], "journal.json"))
    before = installed_sha256(manager.tool)
    wanted = params["sha256"] if params["state"] == "present" else None
    result: dict[str, Any] = {"path": manager.tool, "sha256": before, "python": None, "changed": before != wanted}
    result["needs_transfer"] = wanted is not None and before != wanted and params["src"] is None
    result["diff"] = {"before": f"{before or 'absent'}\n", "after": f"{wanted or 'absent'}\n"}
    if module.check_mode or result["needs_transfer"]:
        return result
    if wanted is None:
        remove(manager, book)
    else:
        if result["changed"]:
            install(manager, book, params["src"], wanted)
        result["python"] = try_tool(manager)
    result["sha256"] = installed_sha256(manager.tool)
    return result


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
            "node_python": {"type": "path", "default": "/usr/bin/python3"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "sha256": {"type": "str"},
            "src": {"type": "path"},
        },
        required_if=[("state", "present", ("sha256",))],
        supports_check_mode=True,
    )
    try:
        module.exit_json(**run(module))
    except (NodeToolError, files.FilesError, journal.JournalError, control.ControlError) as exc:
        module.fail_json(msg=str(exc))


if __name__ == "__main__":
    main()
