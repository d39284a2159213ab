#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_netns
short_description: Make test hosts out of network namespaces
version_added: 0.1.0
description:
  - Makes one network namespace for each host, and joins them. Two hosts get one veth pair between them, more hosts a
    bridge in a namespace of its own. No interface is put into the machine's own namespace.
  - Afterwards exactly these hosts exist. Those made for an earlier O(hosts) are removed.
  - Everything is journalled before it is made. A namespace or interface of the same name that is not in the journal
    belongs to somebody else, and the module fails without touching it.
  - Only the network is separate. Files, processes, users and kernel settings are those of the machine.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  hosts:
    description: The hosts. Required when O(state=present).
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the host. The namespace is called O(namespace_prefix) followed by it.
        type: str
        required: true
      address:
        description: IPv4 address of the host in O(subnet), without a prefix length.
        type: str
        required: true
      cpus:
        description:
          - CPU list of the host, for example V(0-3,8). It is only checked here, against the CPUs that are online.
          - The host's CPU set itself is a control group.
        type: str
        default: ""
  subnet:
    description: Network of all hosts.
    type: str
    default: 198.18.0.0/24
  namespace_prefix:
    description: What the names of the namespaces begin with.
    type: str
    default: colocation-
  link_prefix:
    description: What the names of the interfaces begin with. A host's own interface is this followed by V(0).
    type: str
    default: ct
  mtu_bytes:
    description: MTU of all interfaces.
    type: int
    default: 1500
  state:
    description: Whether the hosts should exist. V(absent) removes all namespaces and interfaces in the journal.
    type: str
    choices: [present, absent]
    default: present
  state_dir:
    description: State directory of the machine; its journal records what is made.
    type: path
    default: /var/lib/colocation-testbed
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Make a tested node and a load node
  colocation.testbed.lab_netns:
    hosts:
      - {name: tested, address: 198.18.0.1, cpus: "0"}
      - {name: load, address: 198.18.0.2, cpus: "1"}

- name: Remove them
  colocation.testbed.lab_netns:
    state: absent
"""

RETURN = r"""
hosts:
  description: The hosts with their namespaces and interfaces.
  returned: when O(state=present)
  type: list
  elements: dict
  sample: [{name: tested, namespace: colocation-tested, interface: ct0, address: 198.18.0.1/24}]
groups:
  description: The control group of each host with its CPUs, in the form of M(colocation.testbed.cgroup).
  returned: when O(state=present)
  type: list
  elements: dict
  sample: [{name: tested, cpuset_cpus: "0"}]
changes:
  description: What was changed, or would be, in words.
  returned: always
  type: list
  elements: str
  sample: [add network namespace colocation-tested]
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import commands, journal, undo
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cpu_list, netns, procfs
from ansible_collections.colocation.testbed.plugins.module_utils.lab import plan, topology

_BY = "lab"
_KINDS = (plan.NETNS, plan.LINK)


class LabError(Exception):
    """The lab is not as it should be; the text says what and what to do."""


def run_ip(argv: netns.Argv) -> str:
    """Run a program of iproute2 and return its output. Raises CommandError."""
    return commands.run(argv).stdout


def require_idle(name: str) -> None:
    """Raise LabError where processes are in a namespace that is to go: it would live on with them, without a name.

    They are named and never ended: what the collection started is undone by the journal of its host, and all others
    belong to somebody else.
    """
    found = netns.pids(name)
    if found:
        shown = ", ".join(f"{pid} ({' '.join(procfs.read_command(pid)[:1]) or 'unknown'})" for pid in found)
        raise LabError(
            f"network namespace {name} is in use by process {shown}: run the playbook reset, which stops the "
            "workloads, or end these processes, then repeat"
        )


def wanted_topology(params: dict[str, Any]) -> topology.Topology:
    """Return the lab that is asked for; nothing is touched before all of it is known to be possible."""
    owner: dict[int, str] = {}
    for host in params["hosts"]:
        for cpu in cpu_list.require_online(host["cpus"], f"lab host {host['name']}: node_cpus in the inventory"):
            other = owner.setdefault(cpu, host["name"])
            if other != host["name"]:
                raise LabError(
                    f"lab hosts {other} and {host['name']} share CPU {cpu}: they would disturb each other; give each "
                    "CPUs of its own (node_cpus), or none"
                )
    hosts = [topology.Host(host["name"], host["address"]) for host in params["hosts"]]
    names = topology.Names(params["namespace_prefix"], params["link_prefix"])
    return topology.build(hosts, params["subnet"], names, params["mtu_bytes"])


def owned(book: journal.Journal) -> frozenset[tuple[str, str]]:
    """Return (kind, target) of all namespaces and interfaces that the collection made."""
    return frozenset((entry.kind, entry.target) for entry in book.entries() if entry.kind in _KINDS)


def read_state(wanted: topology.Topology | None, own: frozenset[tuple[str, str]]) -> plan.State:
    """Return the interfaces of all namespaces that exist among the wanted ones and our own."""
    candidates = {*(wanted.namespaces if wanted else ()), *(target for kind, target in own if kind == plan.NETNS)}
    state = {}
    for name in sorted(candidates & set(netns.names())):
        if not netns.exists(name):
            raise LabError(
                f"{netns.path(name)}: is a file without a namespace, left over by something else than "
                f"'ip netns delete'; remove it with: ip netns delete {name}"
            )
        state[name] = netns.read_interfaces(name, run_ip)
    return state


def apply(steps: tuple[plan.Step, ...], book: journal.Journal) -> None:
    """Take the steps, each journalled before it is taken."""
    for step in steps:
        for kind, target in step.forgets:
            if kind == plan.NETNS:
                require_idle(target)
    if not netns.is_mount():
        # iproute2 makes the directory and binds it to itself when it adds the first namespace, and never takes it back.
        book.record("directory", netns.RUN_ROOT, None, _BY, "existed" if os.path.isdir(netns.RUN_ROOT) else "made")
    for step in steps:
        if step.records:
            book.record_many([journal.Change(kind, target) for kind, target in step.records], _BY)
        run_ip(step.argv)
        book.forget_many(step.forgets)


def present(module: AnsibleModule, book: journal.Journal) -> dict[str, Any]:
    """Make the lab as asked for and read it back."""
    wanted = wanted_topology(module.params)
    own = owned(book)
    state = read_state(wanted, own)
    steps = plan.to_topology(wanted, state, own)
    if steps and not module.check_mode:
        apply(steps, book)
        own = owned(book)
        left = plan.to_topology(wanted, read_state(wanted, own), own)
        if left:
            raise LabError(
                f"the lab is not as asked for: '{left[0].text}' had no effect; try: {' '.join(left[0].argv)}"
            )
    addresses = {end.namespace: (end.name, address) for end, address in wanted.addresses}
    hosts = []
    for host in module.params["hosts"]:
        namespace = module.params["namespace_prefix"] + host["name"]
        interface, address = addresses[namespace]
        hosts.append({"name": host["name"], "namespace": namespace, "interface": interface, "address": address})
    return {
        "changed": bool(steps),
        "changes": [step.text for step in steps],
        "hosts": hosts,
        "groups": cpu_groups(module.params["hosts"]),
        **_diff(plan.describe_state(state, own), plan.describe(wanted)),
    }


def cpu_groups(hosts: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the control group of each host; without CPUs of its own a host may use all."""
    return [{"name": host["name"], **({"cpuset_cpus": host["cpus"]} if host["cpus"] else {})} for host in hosts]


def absent(module: AnsibleModule, book: journal.Journal) -> dict[str, Any]:
    """Undo the lab's entries of the journal, and leave all others."""
    own = owned(book)
    if not own:
        return {"changed": False, "changes": [], **_diff([], [])}
    before = plan.describe_state(read_state(None, own), own)
    for kind, target in own:
        if kind == plan.NETNS:
            require_idle(target)
    known = undo.Undo().handlers()
    handlers = {kind: known[kind] if kind in _KINDS else keep for kind in journal.KINDS}
    done = book.undo({**handlers, "directory": undo_run_root}, check=module.check_mode)
    failed = [item.outcome.text for item in done if item.outcome.result == "failed"]
    if failed:
        raise LabError("; ".join(failed))
    changes = [item.outcome.text for item in done if item.entry.kind in _KINDS]
    return {"changed": True, "changes": changes, **_diff(before, [])}


def keep(entry: journal.Entry, check: bool) -> journal.Outcome:
    """Leave an entry of another part alone."""
    return journal.Outcome("kept", f"{entry.target}: not part of the lab's network")


def undo_run_root(entry: journal.Entry, check: bool) -> journal.Outcome:
    """Unmount and remove the directory of the namespaces when the lab's first one had brought it about."""
    path = entry.target
    if path != netns.RUN_ROOT:
        return keep(entry, check)
    if netns.names():
        return journal.Outcome("undone", f"{path}: left, as others have namespaces there")
    if not check:
        while netns.is_mount():
            commands.run(["umount", path])
        if entry.note == "made" and os.path.isdir(path):
            os.rmdir(path)
    return journal.Outcome("undone", f"{path}: as it was")


def _diff(before: list[str], after: list[str]) -> dict[str, Any]:
    shown = {key: "".join(f"{line}\n" for line in lines) for key, lines in (("before", before), ("after", after))}
    return {"diff": {**shown, "before_header": "network namespaces", "after_header": "network namespaces"}}


def run(module: AnsibleModule) -> None:
    """Compare, act, report."""
    book = journal.Journal(os.path.join(module.params["state_dir"], "journal.json"))
    result = present(module, book) if module.params["state"] == "present" else absent(module, book)
    if not module._diff:
        del result["diff"]
    module.exit_json(**result)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "hosts": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "name": {"type": "str", "required": True},
                    "address": {"type": "str", "required": True},
                    "cpus": {"type": "str", "default": ""},
                },
            },
            "subnet": {"type": "str", "default": "198.18.0.0/24"},
            "namespace_prefix": {"type": "str", "default": "colocation-"},
            "link_prefix": {"type": "str", "default": "ct"},
            "mtu_bytes": {"type": "int", "default": 1500},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
        },
        supports_check_mode=True,
    )
    try:
        run(module)
    except (
        LabError,
        commands.CommandError,
        cpu_list.CpuListError,
        journal.JournalError,
        netns.NetnsError,
        plan.ForeignError,
        topology.TopologyError,
    ) as exc:
        module.fail_json(msg=str(exc))


if __name__ == "__main__":
    main()
