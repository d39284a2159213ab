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
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
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
  manager:
    description:
      - How processes are to run on this host. V(auto) is V(systemd) where that manages the host and this host is not a
        network namespace of it, since units would run outside of the namespace; else V(supervised).
    type: str
    choices: [auto, supervised, systemd]
    default: auto
  cgroup_root:
    description: Path of the host's control groups below each hierarchy; only checked.
    type: str
    default: colocation-testbed
  cpus:
    description: CPU list of the workloads; only checked, that all are online.
    type: str
    default: ""
  housekeeping_cpus:
    description: CPU list of samplers and supervisors; only checked, that all are online.
    type: str
    default: ""
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
manager:
  description: How processes are to run on this host, V(supervised) or V(systemd).
  returned: always
  type: str
python:
  description: Version of the interpreter that runs the tool, null in check mode and when absent.
  returned: always
  type: str
  sample: 3.11.2
"""

import hashlib
import os
import shutil
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cpu_list
from ansible_collections.colocation.testbed.plugins.module_utils.node import control, spec

_BY = "node"


class NodeToolError(Exception):
    """The tool does not run on this host, or is still in use."""


ERRORS = (
    NodeToolError,
    cgroup.CgroupError,
    control.ControlError,
    cpu_list.CpuListError,
    files.FilesError,
    journal.JournalError,
)


def choose_manager(wanted: str, run_root: str = "/run", proc_root: str = "/proc") -> str:
    """Return how processes run here; `auto` looks for systemd and for its network namespace being ours."""
    if wanted != "auto":
        return wanted
    if not os.path.isdir(f"{run_root}/systemd/system"):
        return "supervised"
    try:
        same = os.stat(f"{proc_root}/1/ns/net").st_ino == os.stat(f"{proc_root}/self/ns/net").st_ino
    except OSError:
        return "supervised"
    return "systemd" if same else "supervised"


def check_settings(params: Mapping[str, Any]) -> None:
    """Raise CpuListError or CgroupError where a setting of the host cannot be used on it."""
    cpu_list.require_online(params["cpus"], "node_cpus")
    cpu_list.require_online(params["housekeeping_cpus"], "node_housekeeping_cpus")
    cgroup.check_name(params["cgroup_root"])


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
    check_settings(params)
    manager = control.Manager("supervised", params["state_dir"], params["node_python"])
    book = journal.of(params["state_dir"])
    before = installed_sha256(manager.tool)
    wanted = params["sha256"] if params["state"] == "present" else None
    result: dict[str, Any] = {"path": manager.tool, "sha256": before, "python": None, "changed": before != wanted}
    result["manager"] = choose_manager(params["manager"])
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
            "manager": {"type": "str", "choices": ["auto", "supervised", "systemd"], "default": "auto"},
            "cgroup_root": {"type": "str", "default": "colocation-testbed"},
            "cpus": {"type": "str", "default": ""},
            "housekeeping_cpus": {"type": "str", "default": ""},
            "sha256": {"type": "str"},
            "src": {"type": "path"},
        },
        required_if=[("state", "present", ("sha256",))],
        supports_check_mode=True,
    )
    try:
        result = run(module)
    except ERRORS as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
