#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubernetes_host
short_description: Make a host ready for a kubelet, and write down what it will leave
version_added: 0.1.0
description:
  - Checks that a kubelet can run on the host before anything changes, and names all that is wrong at once.
  - Writes into the journal what kubelet, kube-proxy and network plugins make by themselves, so that it can be taken
    back. These are control groups of pods in every hierarchy, tables of nftables and bridges.
  - Sets sysctls that kubelet would rewrite, so that their old values come back too.
  - Adds a route to the addresses of services where no other one covers them.
  - With O(state=absent) ends what is left of pods and takes all of this back, as M(colocation.testbed.journal_undo)
    does.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
    details: Programs that are missing are no error in check mode, as an earlier task may only have predicted them.
  diff_mode:
    support: full
options:
  state:
    description: Whether the host is ready for a kubelet.
    type: str
    choices: [present, absent]
    default: present
  cgroup_root:
    description: Path of the pods' control group in each hierarchy, as the kubelet makes it. Groups above are made.
    type: str
    default: kubepods
  sysctls:
    description: Values by name.
    type: dict
    default: {}
  nft_tables:
    description: Tables that programs will make, each as family and name.
    type: list
    elements: str
    default: []
  links:
    description: Interfaces that programs will make.
    type: list
    elements: str
    default: []
  node_address:
    description: Address of the node on one of its interfaces; the route leads there.
    type: str
    default: ""
  service_subnet:
    description: Addresses of services. Where it is empty, no route is looked for.
    type: str
    default: ""
  routes:
    description: Ways to other networks, such as those of other nodes' pods.
    type: list
    elements: dict
    default: []
    suboptions:
      destination:
        description: The network.
        type: str
        required: true
      via:
        description: Address of the neighbour that leads there.
        type: str
        required: true
  ports:
    description: TCP ports that must be free the first time.
    type: list
    elements: int
    default: []
  programs:
    description: Programs that must be there, by path or by name.
    type: list
    elements: str
    default: []
  state_dir:
    description: State directory of the host; its journal records all changes.
    type: path
    default: /var/lib/colocation-testbed
seealso:
  - module: colocation.testbed.journal_undo
  - module: colocation.testbed.mount_namespace
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Make the host ready
  colocation.testbed.kubernetes_host:
    node_address: 198.18.0.1
    service_subnet: 10.96.0.0/16
    sysctls: {vm.overcommit_memory: "1"}
    nft_tables: [ip kube-proxy, ip6 kube-proxy]
    links: [cni0]
    ports: [6443, 10250]
    programs: [runc, nft]
"""

RETURN = r"""
facts:
  description: What decides how programs are configured here.
  returned: O(state=present)
  type: dict
  contains:
    cap_sys_resource: {description: Whether root may lower oom_score_adj., type: bool}
    oom_score_adj: {description: What kubelet must be given as its own; null where it may choose., type: int}
    root_is_shared: {description: Whether mounts below / are seen by other mount namespaces., type: bool}
    cgroup: {description: Version of control groups., type: str, sample: v1}
    swap: {description: Whether swap is in use., type: bool}
changes:
  description: What was changed, or would be, in words.
  returned: always
  type: list
  elements: str
  sample: [sysctl vm.overcommit_memory = 1]
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import (
    commands,
    files,
    journal,
    own_changes,
    undo,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, mounts
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import host, leftovers

ROUTE: dict[str, Any] = {"destination": {"type": "str", "required": True}, "via": {"type": "str", "required": True}}


def wanted_of(params: dict[str, Any]) -> host.Wanted:
    """Return what the options ask for."""
    cgroup.check_name(params["cgroup_root"])
    return host.Wanted(
        cgroup_root=params["cgroup_root"],
        sysctls={str(name): str(value) for name, value in params["sysctls"].items()},
        nft_tables=tuple(params["nft_tables"]),
        links=tuple(params["links"]),
        service_subnet=params["service_subnet"],
        node_address=params["node_address"],
        routes=tuple(host.Route(item["destination"], item["via"]) for item in params["routes"]),
        ports=tuple(params["ports"]),
        programs=tuple(params["programs"]),
    )


def in_words(todo: host.Plan) -> list[str]:
    """Return what a plan does."""
    words = [f"note {change.kind} {change.target}" for change in todo.changes]
    words += [f"sysctl {name} = {value}" for name, value in todo.sysctls.items()]
    words += [f"control group {path}" for path in todo.groups]
    return words + [f"route to {route.destination}" for route in todo.routes]


def present(module: AnsibleModule, book: journal.Journal) -> dict[str, Any]:
    """Check, write down, set."""
    here = host.Host()
    wanted = wanted_of(module.params)
    ours = {(entry.kind, entry.target) for entry in book.entries()}
    needed = host.Wanted(**{**vars(wanted), "programs": ()}) if module.check_mode else wanted
    found = host.problems(needed, here, ours)
    if found:
        raise host.HostError("; ".join(found))
    todo = host.plan(wanted, here, ours)
    if not todo.empty and not module.check_mode:
        host.apply(todo, wanted, here, book)
    changes = in_words(todo)
    diff = {"before": "", "after": "".join(f"{line}\n" for line in changes)}
    return {"changed": not todo.empty, "facts": here.facts(), "changes": changes, "diff": diff}


def absent(module: AnsibleModule, book: journal.Journal) -> dict[str, Any]:
    """Take back what this module wrote down."""
    actions = undo.Undo()
    done = own_changes.undo(book, host.BY, {**actions.handlers(), **leftovers.handlers()}, module.check_mode)
    changes = [item.outcome.text for item in done]
    diff = {"before": "".join(f"{item.entry.kind} {item.entry.target}\n" for item in done), "after": ""}
    return {"changed": bool(done), "changes": changes, "diff": diff}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "cgroup_root": {"type": "str", "default": "kubepods"},
            "sysctls": {"type": "dict", "default": {}},
            "nft_tables": {"type": "list", "elements": "str", "default": []},
            "links": {"type": "list", "elements": "str", "default": []},
            "node_address": {"type": "str", "default": ""},
            "service_subnet": {"type": "str", "default": ""},
            "routes": {"type": "list", "elements": "dict", "default": [], "options": ROUTE},
            "ports": {"type": "list", "elements": "int", "default": []},
            "programs": {"type": "list", "elements": "str", "default": []},
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
        },
        supports_check_mode=True,
    )
    book = journal.Journal(os.path.join(module.params["state_dir"], "journal.json"))
    try:
        result = present(module, book) if module.params["state"] == "present" else absent(module, book)
    except (
        cgroup.CgroupError,
        commands.CommandError,
        files.FilesError,
        host.HostError,
        journal.JournalError,
        mounts.MountsError,
        own_changes.OwnChangesError,
    ) as exc:
        module.fail_json(msg=str(exc))
    except OSError as exc:
        module.fail_json(msg=f"{exc.filename}: {exc.strerror}; run as root")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
