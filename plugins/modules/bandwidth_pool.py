#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bandwidth_pool
short_description: Divide a host's bandwidth between online and offline classes
version_added: 0.1.0
description:
  - Makes pools, which hold what classes of packets share - a total, a waterline, and what offline classes may have
    below and above it. Everything in one call takes effect at once, while packets flow.
  - The first pool loads the programs into the kernel. They pace packets by virtual clocks, and need no process.
  - Traffic that no class claims is counted as online and never held up.
extends_documentation_fragment:
  - colocation.testbed.attributes
  - colocation.testbed.bandwidth
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  pools:
    description: The pools. A pool that is not in the list is left as it is, unless O(purge) is set.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: The pool's name.
        type: str
        required: true
      state:
        description: Whether the pool exists. One that classes or devices belong to can't be removed.
        type: str
        choices: [present, absent]
        default: present
      direction:
        description: Whether the pool is for what leaves the host's workloads or for what they receive.
        type: str
        choices: [egress, ingress]
        default: egress
      total:
        description: What all classes have together, such as V(1Gbit/s). Needed for shares and the continuous mode.
        type: str
      waterline:
        description: Rate of all online classes together above which offline classes get O(pools[].low) only.
        type: str
      low:
        description: What all offline classes have together while online ones are over the waterline.
        type: str
      high:
        description: What all offline classes have together otherwise.
        type: str
      continuous:
        description: Give offline classes what online ones leave of the total, between low and high, not two steps.
        type: bool
        default: false
      shares:
        description:
          - How what requests leave of the total is divided between the three priorities.
          - V(none) divides nothing, so that requests and priorities have no effect. V(weights) divides by
            O(pools[].weights), V(strict) gives each priority all but a hundredth for each one below it.
        type: str
        choices: [none, weights, strict]
        default: none
      weights:
        description: Weights of priorities 0, 1 and 2.
        type: list
        elements: int
        default: [10, 20, 70]
      window:
        description: How long online bytes are counted before they are compared with the waterline, 1ms to 1s.
        type: str
        default: 10ms
      hold:
        description: Quiet windows after which offline classes get O(pools[].high) back.
        type: int
        default: 3
      hysteresis_pct:
        description: How far below the waterline a window must be to be a quiet one, in percent.
        type: int
        default: 5
      accounting:
        description:
          - What of a packet counts. V(wire) counts frames as sent, V(l1) also preamble, checksum and gap, V(skb) what
            the stack sends in one piece, V(payload) without any header.
        type: str
        choices: [wire, l1, skb, payload]
        default: wire
      overhead:
        description: Bytes that are added to each frame in V(wire) and V(l1), such as those of a tunnel.
        type: int
        default: 0
      burst:
        description:
          - Time at its rate that a class may be ahead after a pause.
          - Packets leave at the ends of halves of it, so that one timer serves all classes; rates stay exact.
        type: str
        default: 1ms
      horizon:
        description:
          - How long a packet may have to wait; beyond that it is dropped and costs nothing.
          - A slow class always has room for ten full frames, up to 2 s.
        type: str
        default: 50ms
      ecn:
        description: Wait from which on packets are marked for senders that understand it. V(0ms) marks none.
        type: str
        default: 5ms
  purge:
    description: Remove pools that are not in the list.
    type: bool
    default: false
seealso:
  - module: colocation.testbed.bandwidth_class
  - module: colocation.testbed.bandwidth_device
  - module: colocation.testbed.bandwidth_info
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Let batch work have 800 Mbit/s, and 160 Mbit/s while the service needs the link
  colocation.testbed.bandwidth_pool:
    pools:
      - name: link
        total: 1Gbit/s
        waterline: 200Mbit/s
        low: 160Mbit/s
        high: 800Mbit/s
"""

RETURN = r"""
elapsed_ms:
  description: Time that reading, checking, writing and reading back took, in ms; starting the module is not in it.
  returned: success
  type: float
  sample: 21.5
pools:
  description: All pools of the instance as they are now; rates in bytes a second, times in ns.
  returned: success
  type: dict
  sample: {"link": {"direction": "egress", "total": 125000000, "waterline": 25000000}}
variant:
  description: Which build of the programs is loaded, V(atomic) or V(spin).
  returned: success
  type: str
  sample: atomic
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import call, plan, reconcile, values

_TEXTS = ("total", "waterline", "low", "high")


def edit(wanted: plan.Wanted, raw: list[dict[str, Any]], purge: bool) -> plan.Wanted:
    """Return what is wanted with the listed pools as they shall be."""
    named = {item["name"] for item in raw}
    pools = {name: item for name, item in wanted.pools.items() if not purge or name in named}
    for item in raw:
        if item["state"] == "absent":
            pools.pop(item["name"], None)
        else:
            pools[item["name"]] = values.pool(item)
    return plan.Wanted(pools, wanted.classes, wanted.devices)


def run(module: AnsibleModule) -> None:
    """Bring the pools about and report."""
    params = module.params
    done = call.bring_about(
        params,
        lambda wanted: edit(wanted, params["pools"], params["purge"]),
        frozenset(),
        "bandwidth_pool",
        module.check_mode,
        plan.Host(),
    )
    for text in done.warnings:
        module.warn(text)
    result: dict[str, Any] = {
        "changed": done.changed,
        "pools": done.after["pools"],
        "variant": done.variant,
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
        "direction": {"type": "str", "choices": list(values.DIRECTIONS), "default": "egress"},
        **{name: {"type": "str"} for name in _TEXTS},
        "continuous": {"type": "bool", "default": False},
        "shares": {"type": "str", "choices": ["none", "weights", "strict"], "default": "none"},
        "weights": {"type": "list", "elements": "int", "default": [10, 20, 70]},
        "window": {"type": "str", "default": "10ms"},
        "hold": {"type": "int", "default": 3},
        "hysteresis_pct": {"type": "int", "default": 5},
        "accounting": {"type": "str", "choices": list(values.ACCOUNTING), "default": "wire"},
        "overhead": {"type": "int", "default": 0},
        "burst": {"type": "str", "default": "1ms"},
        "horizon": {"type": "str", "default": "50ms"},
        "ecn": {"type": "str", "default": "5ms"},
    }
    module = AnsibleModule(argument_spec=call.listed("pools", options), supports_check_mode=True)
    try:
        run(module)
    except reconcile.ERRORS as exc:
        module.fail_json(msg=str(exc))


if __name__ == "__main__":
    main()
