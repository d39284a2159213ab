#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bandwidth_info
short_description: Tell how bandwidth is divided on a host and what classes have had
version_added: 0.1.0
description:
  - Reads pools, classes and devices of an instance with their counters, from the maps of the loaded programs.
  - Changes nothing, and takes no lock.
extends_documentation_fragment:
  - colocation.testbed.attributes
  - colocation.testbed.bandwidth
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
seealso:
  - module: colocation.testbed.bandwidth_pool
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Read what classes have had
  colocation.testbed.bandwidth_info:
"""

RETURN = r"""
exists:
  description: Whether the instance exists.
  returned: success
  type: bool
  sample: true
variant:
  description: Which build of the programs is loaded.
  returned: success
  type: str
  sample: atomic
pools:
  description: The pools with settings and RV(pools.figures), rates in bytes a second, times in ns (CLOCK_MONOTONIC).
  returned: success
  type: dict
  sample: {"link": {"direction": "egress", "figures": {"state": "high", "online_rate": 0}}}
  contains:
    figures:
      description: State of the waterline, rates of the last window, changes of state, counters of unclassified traffic.
      type: dict
      returned: success
      sample: {"state": "high", "transitions": 0}
classes:
  description: The classes with settings and counters; bytes as their pool counts them.
  returned: success
  type: dict
  sample: {"batch": {"role": "offline", "figures": {"bytes": 1514, "packets": 1, "dropped": 0}}}
devices:
  description: The shaped devices by name and hook.
  returned: success
  type: dict
  sample: {"eth0/egress": {"pool": "link", "chosen": "edt"}}
programs:
  description: The loaded programs with id, and time and number of runs where the kernel counts those.
  returned: success
  type: dict
  sample: {"shape": {"id": 7, "tag": "10687e3404afb1fd", "run_time_ns": 0, "run_count": 0}}
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import (
    call,
    instance,
    plan,
    readings,
    reconcile,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import bpf


def _programs(place: instance.Place) -> dict[str, Any]:
    found = {}
    for name in instance.PROGRAMS:
        fd = bpf.get(os.path.join(place.pins, "programs", name))
        info = bpf.program_info(fd)
        os.close(fd)
        found[name] = {
            "id": info.id, "tag": info.tag, "run_time_ns": info.run_time_ns, "run_count": info.run_count
        }  # fmt: skip
    return found


def run(module: AnsibleModule) -> None:
    """Read and report."""
    place = call.place(module.params)
    state = instance.read_state(place)
    opened = reconcile.open_at(place) if state else None
    if state is None or opened is None:
        module.exit_json(changed=False, exists=False, variant="", pools={}, classes={}, devices={}, programs={})
    found = readings.figures(opened, state)
    result = plan.picture(state)
    for kind in ("pools", "classes"):
        for name in result[kind]:
            result[kind][name]["figures"] = found[kind][name]
    module.exit_json(changed=False, exists=True, variant=state.variant, programs=_programs(place), **result)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=dict(call.ARGUMENTS), supports_check_mode=True)
    try:
        run(module)
    except reconcile.ERRORS as exc:
        module.fail_json(msg=str(exc))


if __name__ == "__main__":
    main()
