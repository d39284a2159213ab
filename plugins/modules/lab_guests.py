#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_guests
short_description: Make test hosts that boot a kernel of their own
version_added: 0.1.0
description:
  - Makes one guest for each host, with systemd, ssh and control groups of version 2. With O(driver=uml) it is a Linux
    kernel that runs as a program, with O(driver=qemu) the release's own kernel on CPUs that QEMU translates. Neither
    needs virtualisation.
  - All guests boot from one image, which M(colocation.testbed.lab_image) makes, and write into files of their own. They
    hang on a bridge in a network namespace. No interface is put into the machine's own network, and the guests reach
    nothing but each other and this machine.
  - Returns when every guest answers over ssh and systemd has finished booting. A guest that does not get there fails
    the task with the end of its console.
  - Afterwards exactly these guests exist. One that runs with the same options and image is left alone, one that does
    not run is started with the disk that it had, one whose options have changed is made anew.
  - Everything is journalled before it is made. RV(ssh_config) is all that C(ssh -F) needs to reach the guests.
  - A guest runs on O(hosts[].cpus) of the machine, and numbers its own CPUs from 0. Of O(subnet) the highest free
    address is the machine's own.
extends_documentation_fragment:
  - colocation.testbed.attributes
  - colocation.testbed.lab
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  driver:
    description:
      - What runs the guests. V(uml) boots soon and has one CPU.
      - V(qemu) has several CPUs, cpusets, PSI and BTF, and takes several times as long for everything.
    type: str
    choices: [uml, qemu]
    default: uml
  image:
    description: Disk image of the guests, made for O(driver). Required unless O(state=absent).
    type: path
  program:
    description:
      - The program that runs a guest. Where it is not given, C(/usr/bin/linux.uml) or C(/usr/bin/qemu-system-x86_64).
    type: path
  cpu_count:
    description: CPUs that each guest sees. With O(driver=uml) it is always one.
    type: int
    default: 2
  memory_mib:
    description: Memory of each guest in MiB. Only what a guest touches is taken from the machine.
    type: int
    default: 512
  boot_timeout_s:
    description: Seconds in which all guests must have booted.
    type: int
    default: 180
  state:
    description:
      - With V(present) the guests exist and run, with V(restarted) those that ran before have booted once more.
      - V(absent) ends all guests, and removes them with all namespaces and interfaces in the journal.
    type: str
    choices: [present, restarted, absent]
    default: present
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Make a tested node and a load node
  colocation.testbed.lab_guests:
    image: /root/.cache/colocation-testbed/images/0123456789abcdef.img
    hosts:
      - {name: tested, address: 198.18.0.1, cpus: "0"}
      - {name: load, address: 198.18.0.2, cpus: "1"}

- name: Remove them
  colocation.testbed.lab_guests:
    state: absent
"""

RETURN = r"""
guests:
  description:
    - The guests. C(state) is systemd's, V(running) or V(degraded); then C(failed_units) says why. In check mode, what a
      boot would bring is left empty.
  returned: unless O(state=absent)
  type: list
  elements: dict
  sample:
    - name: tested
      address: 198.18.0.1
      pid: 4711
      state: running
      failed_units: []
      console: /var/lib/colocation-testbed/guests/tested/console.log
ssh_config:
  description: Configuration file with which C(ssh -F) reaches each guest by its name.
  returned: unless O(state=absent)
  type: str
  sample: /var/lib/colocation-testbed/ssh/config
changes:
  description: What was changed, or would be, in words.
  returned: always
  type: list
  elements: str
  sample: [add tap colocation-switch/ct1, make guest tested]
"""

import ipaddress
import os
import time
from collections.abc import Sequence
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cpu_list, netns, processes, procfs
from ansible_collections.colocation.testbed.plugins.module_utils.lab import (
    boot,
    drivers,
    guest,
    guests,
    image,
    network,
    options,
    plan,
    topology,
)

ERRORS = (
    boot.BootError,
    commands.CommandError,
    cpu_list.CpuListError,
    files.FilesError,
    guest.GuestError,
    journal.JournalError,
    netns.NetnsError,
    network.NetworkError,
    plan.ForeignError,
    processes.ProcessError,
    procfs.ProcError,
    topology.TopologyError,
)


def wanted_lab(params: dict[str, Any]) -> tuple[guests.Lab, topology.Topology]:
    """Return the lab that is asked for, and its network; nothing is touched before it is known to be possible."""
    topology.check_cpus({host["name"]: host["cpus"] for host in params["hosts"]})
    hosts = [topology.Host(host["name"], host["address"]) for host in params["hosts"]]
    queue = topology.port_queue(params["link_rate"], params["link_buffer_kib"])
    names = topology.Names(params["namespace_prefix"], params["link_prefix"])
    wanted = topology.build_for_guests(hosts, params["subnet"], names, params["mtu_bytes"], queue)
    machine = guest.Machine(
        driver=params["driver"],
        program=params["program"] or drivers.DRIVERS[params["driver"]].program,
        image=params["image"],
        memory_mib=params["memory_mib"],
        cpu_count=params["cpu_count"],
        namespace=wanted.namespaces[0],
        prefix_length=ipaddress.IPv4Network(params["subnet"]).prefixlen,
        mtu_bytes=params["mtu_bytes"],
    )
    guest.check(machine, params["state_dir"])
    listed = tuple(
        guest.Guest(host["name"], host["address"], tap.name, host["cpus"])
        for host, tap in zip(params["hosts"], wanted.taps)
    )
    return guests.Lab(params["state_dir"], machine, listed), wanted


def require_files(machine: guest.Machine) -> None:
    """Raise GuestError where the program, the image or its kernel is missing."""
    driver = drivers.DRIVERS[machine.driver]
    names = image.KERNEL_FILES if driver.kernel_package else ()
    images = [machine.image, *(image.beside(machine.image, name) for name in names)]
    for path, advice in (
        (machine.program, f"install package {driver.package}, or set lab_install to true"),
        *((path, f"make it with module lab_image and driver {driver.name}, which role lab does") for path in images),
    ):
        if not os.path.isfile(path):
            raise guest.GuestError(f"{path}: is not there; {advice}")


def apply(lab: guests.Lab, actions: Sequence[guests.Action], wanted: topology.Topology, book: journal.Journal) -> None:
    """End what must go, make the network, make and start guests."""
    guests.end_surplus(lab, actions, book)
    network.make(wanted, book, check=False)
    guests.prepare(lab, book)
    guests.start(lab, actions, book)


def ask_all(lab: guests.Lab, before: dict[str, str], timeout_s: float) -> dict[str, boot.System]:
    """Wait for all guests; they boot side by side, so one deadline serves all."""
    deadline_s = time.monotonic() + timeout_s
    return {
        item.name: boot.wait_up(lab.access, item.name, lab.paths(item.name), deadline_s, before.get(item.name, ""))
        for item in lab.guests
    }


def present(module: AnsibleModule, book: journal.Journal) -> dict[str, Any]:
    """Make the lab as asked for, restart what is to be restarted, and wait until all of it is up."""
    lab, wanted = wanted_lab(module.params)
    actions = guests.plan(lab)
    links = network.make(wanted, book, check=True)
    there, begun = guests.present(lab.state_dir), {action.name for action in actions}
    restarted = [g.name for g in lab.guests if g.name not in begun] if module.params["state"] == "restarted" else []
    changes = [*links.changes, *(action.text for action in actions), *(f"restart guest {name}" for name in restarted)]
    systems: dict[str, boot.System] = {}
    if not module.check_mode:
        require_files(lab.machine)
        if actions or links.changes:
            apply(lab, actions, wanted, book)
        before = boot.reboot(lab.access, restarted)
        systems = ask_all(lab, before, module.params["boot_timeout_s"])
    return {
        "changed": bool(changes),
        "changes": changes,
        "guests": [describe(lab, item, systems.get(item.name)) for item in lab.guests],
        "ssh_config": lab.access.config,
        "diff": diff(
            [*links.before, *(f"guest {name}" for name in there if name not in begun)],
            [*links.after, *sorted(f"guest {item.name}" for item in lab.guests)],
        ),
    }


def describe(lab: guests.Lab, item: guest.Guest, system: boot.System | None) -> dict[str, Any]:
    """Return what a user wants to know of a guest."""
    paths = lab.paths(item.name)
    return {
        "name": item.name,
        "address": item.address,
        "pid": boot.pid(paths),
        "state": system.state if system else "",
        "failed_units": list(system.failed_units) if system else [],
        "console": paths.console,
    }


def absent(module: AnsibleModule, book: journal.Journal) -> dict[str, Any]:
    """End all guests and remove the lab's entries of the journal, with what they stand for."""
    state_dir = module.params["state_dir"]
    there = guests.present(state_dir)
    links = network.Outcome((), (), ())
    if not module.check_mode:
        guests.remove_all(state_dir, book)
        # Without guests the network is that of namespaces, which are module lab_netns's to remove.
        links = network.remove(book, check=False) if there else links
    changes = [*(f"remove guest {name}" for name in there), *links.changes]
    before = [*links.before, *(f"guest {name}" for name in there)]
    return {"changed": bool(changes), "changes": changes, "diff": diff(before, [])}


def diff(before: Sequence[str], after: Sequence[str]) -> dict[str, str]:
    """Return what Ansible shows with --diff."""
    texts = ("".join(f"{line}\n" for line in lines) for lines in (before, after))
    return {**dict(zip(("before", "after"), texts)), "before_header": "guests", "after_header": "guests"}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            **options.NETWORK,
            "image": {"type": "path"},
            "driver": {"type": "str", "choices": sorted(drivers.DRIVERS, reverse=True), "default": drivers.UML.name},
            "program": {"type": "path"},
            "cpu_count": {"type": "int", "default": 2},
            "memory_mib": {"type": "int", "default": 512},
            "boot_timeout_s": {"type": "int", "default": 180},
            "state": {"type": "str", "choices": ["present", "restarted", "absent"], "default": "present"},
        },
        required_if=[("state", "present", ("image",)), ("state", "restarted", ("image",))],
        supports_check_mode=True,
    )
    try:
        book = journal.of(module.params["state_dir"])
        result = absent(module, book) if module.params["state"] == "absent" else present(module, book)
    except ERRORS as exc:
        module.fail_json(msg=str(exc))
    for item in result.get("guests", []):
        if item["failed_units"]:
            module.warn(f"guest {item['name']} is {item['state']}: failed units are {', '.join(item['failed_units'])}")
    if not module._diff:
        del result["diff"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
