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
  - Makes one network namespace for each host, and joins them. Two hosts get one veth pair between them, more hosts, or
    two with O(link_rate), a bridge in a namespace of its own. No interface is put into the machine's own namespace.
  - Afterwards exactly these hosts exist. Those made for an earlier O(hosts) are removed.
  - Everything is journalled before it is made. A namespace or interface of the same name that is not in the journal
    belongs to somebody else, and the module fails without touching it.
  - A namespace is called O(namespace_prefix) followed by the host's name, and its own interface O(link_prefix) followed
    by V(0). O(hosts[].cpus) are only checked; the host's CPU set itself is a control group.
  - Only the network is separate. Files, processes, users and kernel settings are those of the machine.
extends_documentation_fragment:
  - colocation.testbed.attributes
  - colocation.testbed.lab
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  state:
    description: Whether the hosts should exist. V(absent) removes all namespaces and interfaces in the journal.
    type: str
    choices: [present, absent]
    default: present
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Make a tested node and a load node
  colocation.testbed.lab_netns:
    hosts:
      - {name: tested, address: 198.18.0.1, cpus: "0"}
      - {name: load, address: 198.18.0.2, cpus: "1"}

- name: Join them by a switch whose ports send 1 Gbit/s
  colocation.testbed.lab_netns:
    hosts:
      - {name: tested, address: 198.18.0.1, cpus: "0"}
      - {name: load, address: 198.18.0.2, cpus: "1"}
    link_rate: 1Gbit/s

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

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import commands, journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cpu_list, netns
from ansible_collections.colocation.testbed.plugins.module_utils.lab import guests, network, options, plan, topology


def wanted_topology(params: dict[str, Any]) -> topology.Topology:
    """Return the lab that is asked for; nothing is touched before all of it is known to be possible."""
    topology.check_cpus({host["name"]: host["cpus"] for host in params["hosts"]})
    hosts = [topology.Host(host["name"], host["address"]) for host in params["hosts"]]
    queue = topology.port_queue(params["link_rate"], params["link_buffer_kib"])
    names = topology.Names(params["namespace_prefix"], params["link_prefix"])
    return topology.build(hosts, params["subnet"], names, params["mtu_bytes"], queue)


def present(module: AnsibleModule, book: journal.Journal) -> dict[str, Any]:
    """Make the lab as asked for and read it back."""
    wanted = wanted_topology(module.params)
    made = network.make(wanted, book, module.check_mode)
    addresses = {end.namespace: (end.name, address) for end, address in wanted.addresses}
    hosts = []
    for host in module.params["hosts"]:
        namespace = module.params["namespace_prefix"] + host["name"]
        interface, address = addresses[namespace]
        hosts.append({"name": host["name"], "namespace": namespace, "interface": interface, "address": address})
    return {**shown(made), "hosts": hosts, "groups": cpu_groups(module.params["hosts"])}


def cpu_groups(hosts: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the control group of each host; without CPUs of its own a host may use all."""
    return [{"name": host["name"], **({"cpuset_cpus": host["cpus"]} if host["cpus"] else {})} for host in hosts]


def shown(outcome: network.Outcome) -> dict[str, Any]:
    """Return the part of the result that says what changed."""
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (outcome.before, outcome.after))
    title = {"before_header": "network namespaces", "after_header": "network namespaces"}
    return {
        "changed": bool(outcome.changes),
        "changes": list(outcome.changes),
        "diff": {"before": before, "after": after, **title},
    }


def run(module: AnsibleModule) -> None:
    """Compare, act, report."""
    book = journal.of(module.params["state_dir"])
    if module.params["state"] == "present":
        result = present(module, book)
    else:
        # A network of guests goes with them, so where they are only predicted to go there is nothing left for this one.
        with_guests = module.check_mode and guests.present(module.params["state_dir"])
        result = shown(network.Outcome((), (), ()) if with_guests else network.remove(book, module.check_mode))
    if not module._diff:
        del result["diff"]
    module.exit_json(**result)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            **options.NETWORK,
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    try:
        run(module)
    except (
        commands.CommandError,
        cpu_list.CpuListError,
        journal.JournalError,
        netns.NetnsError,
        network.NetworkError,
        plan.ForeignError,
        topology.TopologyError,
    ) as exc:
        module.fail_json(msg=str(exc))


if __name__ == "__main__":
    main()
