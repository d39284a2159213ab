#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bandwidth_class
short_description: Say which packets belong together and what they may have
version_added: 0.1.0
description:
  - Makes classes of packets in the pools of M(colocation.testbed.bandwidth_pool). A call takes effect as a whole.
  - A packet belongs to the class of its cgroup (version 2) or the nearest one above it, else of its net_cls classid,
    else of the device that it came in by (egress) or leaves by (ingress), else of its own address. What the sender
    puts into the packet (TOS, priority) chooses nothing.
extends_documentation_fragment:
  - colocation.testbed.attributes
  - colocation.testbed.bandwidth
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  classes:
    description: The classes. A class that is not in the list is left as it is, unless O(purge) is set.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: The class's name.
        type: str
        required: true
      state:
        description: Whether the class exists.
        type: str
        choices: [present, absent]
        default: present
      pool:
        description: The pool that the class shares in. Required unless the class is removed.
        type: str
      role:
        description:
          - V(online) classes are counted against the waterline, V(offline) ones are held below what it leaves,
            V(exempt) ones are neither.
        type: str
        choices: [online, offline, exempt]
        default: online
      priority:
        description: From 0 to 2; what is left of the pool's total goes to 2 first. Needs shares in the pool.
        type: int
        default: 0
      request:
        description: What the class has in any case, such as V(100Mbit/s). Needs shares in the pool.
        type: str
      limit:
        description: What the class has at most.
        type: str
      burst:
        description: Time at its rate that the class may be ahead after a pause. The pool's by default.
        type: str
      horizon:
        description: How long a packet may have to wait before it is dropped instead. The pool's by default.
        type: str
      ecn:
        description: Wait from which on packets are marked. The pool's by default.
        type: str
      cgroups:
        description:
          - Paths of version 2 control groups, absolute or below their mount point; groups below them belong too.
          - What arrives is known by its socket once that has sent something by the same device.
        type: list
        elements: str
        default: []
      classids:
        description: Values of C(net_cls.classid), as numbers or as V(10:1) in hexadecimal.
        type: list
        elements: str
        default: []
      devices:
        description: The host's ends of the links of pods.
        type: list
        elements: str
        default: []
      prefixes:
        description:
          - IPv4 and IPv6 networks of the local side. They may lie within each other, also within those of other
            classes. Of those of a pool's direction that hold an address, the smallest counts.
        type: list
        elements: str
        default: []
      pods:
        description:
          - Values of C(metadata.uid) of Kubernetes pods in the host's network; their control groups are looked for, in
            version 2 or, where the group has a C(net_cls.classid), in version 1.
        type: list
        elements: str
        default: []
  purge:
    description: Remove classes that are not in the list.
    type: bool
    default: false
seealso:
  - module: colocation.testbed.bandwidth_pool
  - module: colocation.testbed.bandwidth_device
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Hold batch work to what the waterline leaves, and at most 500 Mbit/s
  colocation.testbed.bandwidth_class:
    classes:
      - name: batch
        pool: link
        role: offline
        limit: 500Mbit/s
        cgroups: [colocation-testbed/batch]
      - name: service
        pool: link
        prefixes: [10.0.0.0/24]
"""

RETURN = r"""
elapsed_ms:
  description: Time that reading, checking, writing and reading back took, in ms; starting the module is not in it.
  returned: success
  type: float
  sample: 21.5
classes:
  description: All classes of the instance as they are now; rates in bytes a second, times in ns.
  returned: success
  type: dict
  sample: {"batch": {"pool": "link", "role": "offline", "limit": 62500000}}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import call, plan, reconcile, values

_RATES = ("request", "limit")
_TIMES = ("burst", "horizon", "ecn")
_LISTS = ("cgroups", "classids", "devices", "prefixes", "pods")


def edit(wanted: plan.Wanted, raw: list[dict[str, Any]], purge: bool) -> plan.Wanted:
    """Return what is wanted with the listed classes as they shall be."""
    named = {item["name"] for item in raw}
    classes = {name: item for name, item in wanted.classes.items() if not purge or name in named}
    for item in raw:
        if item["state"] == "absent":
            classes.pop(item["name"], None)
        else:
            classes[item["name"]] = values.traffic_class(item)
    return plan.Wanted(wanted.pools, classes, wanted.devices)


def run(module: AnsibleModule) -> None:
    """Bring the classes about and report."""
    params = module.params
    done = call.bring_about(
        params,
        lambda wanted: edit(wanted, params["classes"], params["purge"]),
        frozenset(item["name"] for item in params["classes"]),
        "bandwidth_class",
        module.check_mode,
        plan.Host(),
        # Devices are the other module's.
        look=False,
    )
    for text in done.warnings:
        module.warn(text)
    result: dict[str, Any] = {
        "changed": done.changed,
        "classes": done.after["classes"],
        "elapsed_ms": done.elapsed_ms,
    }
    if module._diff:
        result["diff"] = {"before": done.before, "after": done.after}
    module.exit_json(**result)


def main() -> None:
    """Run the module."""
    options: dict[str, Any] = {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "pool": {"type": "str"},
        "role": {"type": "str", "choices": list(values.ROLES), "default": "online"},
        "priority": {"type": "int", "default": 0},
        **{name: {"type": "str"} for name in (*_RATES, *_TIMES)},
        **{name: {"type": "list", "elements": "str", "default": []} for name in _LISTS},
    }
    conditions = {"required_if": [("state", "present", ["pool"])]}
    module = AnsibleModule(argument_spec=call.listed("classes", options, **conditions), supports_check_mode=True)
    try:
        run(module)
    except reconcile.ERRORS as exc:
        module.fail_json(msg=str(exc))


if __name__ == "__main__":
    main()
