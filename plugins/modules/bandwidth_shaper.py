#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bandwidth_shaper
short_description: Shape a device in one of several ways, to compare them
version_added: 0.1.0
description:
  - Puts one shaper on a device instead of another - the programs of M(colocation.testbed.bandwidth_pool), a tree of
    HTB, a bucket of TBF, or nothing - from one description of classes. M(colocation.testbed.bandwidth_matrix) measures
    with it; to divide bandwidth in earnest, use the modules for that.
  - HTB and TBF are set up as a careful operator does it, with bursts of 2 ms and queues of 20 ms, and classes are found
    by a hash table. What arrives is sent through an intermediate device (ifb) for them.
  - A root queueing discipline that somebody chose is never replaced. Every change is in the journal first, and what was
    there comes back with O(state=absent) or reset.
  - In check mode it also tells whether everything is in effect as given, and what was counted since.
extends_documentation_fragment:
  - colocation.testbed.attributes
  - colocation.testbed.bandwidth
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  kind:
    description: What shapes. V(tbf) has one rate for all of a device, so one class of each direction may be limited.
    type: str
    choices: [ebpf, htb, tbf, none]
    default: none
  state:
    description: With V(absent) shapers, programs and groups of this module are removed.
    type: str
    choices: [present, absent]
    default: present
  device:
    description: The device. Without it, the one that leads to O(to).
    type: str
  to:
    description: Address of the host at the other end. Its family, IPv4 or IPv6, is that of the packets that are shaped.
    type: str
  load_programs:
    description: Load the programs also where nothing is shaped by them, so that later calls need not.
    type: bool
    default: false
  fresh:
    description:
      - Take off what is there first, even where it is as wanted, so that counters begin at 0 and RV(apply_ms) is the
        whole. Has no effect in check mode.
    type: bool
    default: false
  program_statistics:
    description: Let the kernel count time and runs of programs (kernel.bpf_stats_enabled).
    type: bool
    default: false
  plane:
    description: The plane of V(ebpf) for what is sent.
    type: str
    choices: [auto, edt, htb, police]
    default: auto
  pool:
    description: What the classes share.
    type: dict
    default: {}
    suboptions:
      total: {description: What all have together., type: str}
      waterline: {description: Rate of online classes above which offline ones get C(low)., type: str}
      low: {description: What offline classes have above the waterline., type: str}
      high: {description: What offline classes have below it., type: str}
      shares: {description: How what requests leave is divided., type: str, choices: [none, weights, strict]}
      accounting: {description: What of a packet counts., type: str, choices: [wire, l1, skb, payload]}
  classes:
    description: The classes of packets.
    type: list
    elements: dict
    default: []
    suboptions:
      name: {description: Name of the class., type: str, required: true}
      direction: {description: Whether its data is sent or received here., type: str, choices: [egress, ingress],
        default: egress}
      role: {description: Whether the class is protected., type: str, choices: [online, offline], default: online}
      priority: {description: Level of its share of what requests leave., type: int, default: 0}
      request: {description: What it has in any case., type: str}
      limit: {description: What it has at most., type: str}
      group: {description: 'Control group of version 2 that its sockets are made in, below the mount point. It is made.
        What is received is known by it once its socket has answered.', type: str}
      address: {description: 'Address of this host that receives its data, instead of a group.', type: str}
      ports: {description: Destination ports of its data., type: list, elements: int, default: []}
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Hold what one group sends to 500 Mbit/s by HTB
  colocation.testbed.bandwidth_shaper:
    kind: htb
    to: 192.0.2.12
    classes:
      - name: bulk
        role: offline
        limit: 500Mbit/s
        group: colocation-testbed/bandwidth/bulk
        ports: [5201]
"""

RETURN = r"""
device:
  description: The device that is shaped.
  returned: success
  type: str
  sample: ct0
mtu_bytes:
  description: Its MTU.
  returned: success
  type: int
  sample: 1500
link_bps:
  description: What the link can carry in bits a second, where O(to) was given and the device is one of hardware.
  returned: success
  type: int
  sample: 1000000000
planes:
  description: What holds packets back, by direction.
  returned: success
  type: dict
  sample: {"egress": "htb"}
apply_ms:
  description: Time that putting the shaper on took inside this module, in ms, without taking the one before off.
  returned: success
  type: float
  sample: 31.5
wanted:
  description: Settings by key.
  returned: success
  type: dict
  sample: {"egress/port 5201": "class 10"}
applied:
  description: The same settings as they were read back from the kernel.
  returned: success
  type: dict
  sample: {"egress/port 5201": "class 10"}
counted:
  description: Figures of pools, classes and programs, packets that the shaper dropped, and those that it marked.
  returned: success
  type: dict
  sample: {"pools": {}, "classes": {}, "programs": {}, "drops": 0, "ecn_marks": null}
stack_drops:
  description: Packets that devices and processors of this host dropped since boot.
  returned: success
  type: int
  sample: 0
commands:
  description: The lines for C(tc -batch) that were carried out, or would be.
  returned: success
  type: list
  elements: str
  sample: ["qdisc add dev ct0 root handle b102: tbf rate 500000000bit burst 131072 limit 1250000"]
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import journal
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import call, values
from ansible_collections.colocation.testbed.plugins.module_utils.shaping import apply, wanted

_POOL = {
    **{name: {"type": "str"} for name in ("total", "waterline", "low", "high")},
    "shares": {"type": "str", "choices": ["none", "weights", "strict"]},
    "accounting": {"type": "str", "choices": list(values.ACCOUNTING)},
}
_CLASS = {
    "name": {"type": "str", "required": True},
    "direction": {"type": "str", "choices": list(values.DIRECTIONS), "default": "egress"},
    "role": {"type": "str", "choices": ["online", "offline"], "default": "online"},
    "priority": {"type": "int", "default": 0},
    **{name: {"type": "str"} for name in ("request", "limit", "group", "address")},
    "ports": {"type": "list", "elements": "int", "default": []},
}
OPTIONS: dict[str, Any] = {
    **call.ARGUMENTS,
    "kind": {"type": "str", "choices": list(wanted.KINDS), "default": "none"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    **{name: {"type": "str"} for name in ("device", "to")},
    **{name: {"type": "bool", "default": False} for name in ("fresh", "load_programs", "program_statistics")},
    "plane": {"type": "str", "choices": ["auto", *values.PLANES], "default": "auto"},
    "pool": {"type": "dict", "default": {}, "options": _POOL},
    "classes": {"type": "list", "elements": "dict", "default": [], "options": _CLASS},
}


def run(module: AnsibleModule) -> dict[str, Any]:
    """Bring the shaper about, or take everything off, and report."""
    params = module.params
    book = journal.Journal(os.path.join(params["state_dir"], "journal.json"))
    here = apply.Here(call.place(params), book, module.check_mode)
    way = apply.route(params["to"]) if params["to"] else {"device": params["device"], "mtu_bytes": 0, "link_bps": None}
    device = params["device"] or way["device"]
    if params["state"] == "absent":
        return {"changed": apply.remove(device, here), "device": device}
    asked = wanted.parse(params, device)
    names = [item.group for item in asked.classes if item.group]
    set_up = apply.set_up(names, params["program_statistics"], here)
    cleared = params["fresh"] and apply.start_afresh(asked, params["load_programs"], here)
    outcome = apply.apply(asked, params["load_programs"], here)
    result = {
        "changed": set_up or cleared or outcome.changed,
        "device": device,
        "mtu_bytes": way["mtu_bytes"],
        "link_bps": way["link_bps"],
        "planes": dict(outcome.planes),
        "apply_ms": round(outcome.apply_ms, 3),
        "commands": list(outcome.lines),
        **apply.report(asked, outcome, here),
    }
    if module._diff:
        result["diff"] = {"before": "", "after": "".join(f"{line}\n" for line in outcome.lines)}
    return result


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=OPTIONS, required_one_of=[("device", "to")], supports_check_mode=True)
    try:
        result = run(module)
    except apply.ERRORS as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
