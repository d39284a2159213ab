#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bandwidth_device
short_description: Shape the packets of network devices by the pools of the host
version_added: 0.1.0
description:
  - Attaches the programs of M(colocation.testbed.bandwidth_pool) to devices, and gives these the queueing discipline
    that the programs need. All devices of a call are shaped or none.
  - Programs of others at the same hook go on working. A root queueing discipline that the kernel did not choose by
    itself is never replaced. What is removed comes back when the device is no longer shaped.
extends_documentation_fragment:
  - colocation.testbed.attributes
  - colocation.testbed.bandwidth
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  devices:
    description: The devices. A device that is not in the list is left as it is, unless O(purge) is set.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: The device's name, or a shell pattern such as V(ens*) for all that are here now.
        type: str
      default_route:
        description: Take the devices of the default routes instead of O(devices[].name).
        type: bool
        default: false
      state:
        description: Whether the device is shaped.
        type: str
        choices: [present, absent]
        default: present
      pool:
        description:
          - The pool of packets that no class claims. Required unless the device is to be left alone.
          - With a pool for ingress at hook V(egress) the device is the host's end of a pod's link.
        type: str
      hook:
        description:
          - Where packets are held back. Those that arrive (V(ingress)) pass a device of ours (ifb), as nothing can
            wait where they arrive. Where the kernel has no such devices, they are dropped above the rate.
          - At V(pod), for the host's end of a pod's link, packets are only marked with their class, so that a device
            behind a bridge still knows it.
        type: str
        choices: [egress, ingress, pod]
        default: egress
      plane:
        description:
          - What holds packets back. V(edt) gives each its time of departure, kept by sch_fq. V(htb) steers them into
            a tree of classes of sch_htb. V(police) drops what is over the rate.
          - V(auto) takes the first of these that the kernel has. At hook V(ingress), V(edt) and V(htb) need C(ifb) and
            C(act_mirred).
        type: str
        choices: [auto, edt, htb, police]
        default: auto
      replace_qdisc:
        description: Whether the root queueing discipline may be replaced when it is the kernel's default.
        type: bool
        default: true
  purge:
    description: Leave devices alone that are not in the list.
    type: bool
    default: false
seealso:
  - module: colocation.testbed.bandwidth_pool
  - module: colocation.testbed.bandwidth_class
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Shape what leaves by eth0
  colocation.testbed.bandwidth_device:
    devices:
      - name: eth0
        pool: link
"""

RETURN = r"""
elapsed_ms:
  description: Time that reading, checking, writing and reading back took, in ms; starting the module is not in it.
  returned: success
  type: float
  sample: 21.5
devices:
  description: All shaped devices by name and hook, with the plane that was chosen.
  returned: success
  type: dict
  sample: {"eth0/egress": {"pool": "link", "hook": "egress", "plane": "auto", "chosen": "edt"}}
commands:
  description: The lines for C(tc -batch), and for C(ip -batch) those about links, that were carried out or would be.
  returned: success
  type: list
  elements: str
  sample: ["qdisc add dev eth0 root handle b000: fq limit 100000 flow_limit 10000"]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import call, devices, plan, reconcile, values


def _key(raw: dict[str, Any]) -> str:
    return f"{raw['name']}/{raw['hook']}"


def expand(raw: list[dict[str, Any]], host: plan.Host) -> list[dict[str, Any]]:
    """Return one entry for each device that patterns and default routes mean."""
    found = []
    for item in raw:
        names = (
            devices.default_route(host.run) if item["default_route"] else devices.expand(item["name"], host.indexes())
        )
        found += [{**item, "name": name} for name in names]
    return found


def edit(wanted: plan.Wanted, raw: list[dict[str, Any]], purge: bool) -> plan.Wanted:
    """Return what is wanted with the listed devices as they shall be."""
    named = {_key(item) for item in raw}
    found = {key: item for key, item in wanted.devices.items() if not purge or key in named}
    for item in raw:
        if item["state"] == "absent":
            found.pop(_key(item), None)
        else:
            found[_key(item)] = values.Device(
                values.check_device(item["name"]), item["pool"], item["hook"], item["plane"], item["replace_qdisc"]
            )
    return plan.Wanted(wanted.pools, wanted.classes, found)


def run(module: AnsibleModule) -> None:
    """Bring the devices about and report."""
    params, host = module.params, plan.Host()
    found = expand(params["devices"], host)
    done = call.bring_about(
        params,
        lambda wanted: edit(wanted, found, params["purge"]),
        frozenset(_key(item) for item in found),
        "bandwidth_device",
        module.check_mode,
        host,
    )
    for text in done.warnings:
        module.warn(text)
    result: dict[str, Any] = {
        "changed": done.changed,
        "devices": done.after["devices"],
        "commands": list(done.lines),
        "elapsed_ms": done.elapsed_ms,
    }
    if module._diff:
        result["diff"] = {"before": done.before, "after": {**done.after, "commands": list(done.lines)}}
    module.exit_json(**result)


def main() -> None:
    """Run the module."""
    options: dict[str, Any] = {
        "name": {"type": "str"},
        "default_route": {"type": "bool", "default": False},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "pool": {"type": "str"},
        "hook": {"type": "str", "choices": list(devices.CHOICES), "default": "egress"},
        "plane": {"type": "str", "choices": ["auto", *values.PLANES], "default": "auto"},
        "replace_qdisc": {"type": "bool", "default": True},
    }
    conditions = {"required_if": [("state", "present", ["pool"]), ("default_route", False, ["name"])]}
    module = AnsibleModule(argument_spec=call.listed("devices", options, **conditions), supports_check_mode=True)
    try:
        run(module)
    except reconcile.ERRORS as exc:
        module.fail_json(msg=str(exc))


if __name__ == "__main__":
    main()
