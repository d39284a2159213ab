#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: resctrl_group
short_description: Give groups of processes their share of L3 cache and memory bandwidth
version_added: 0.1.0
description:
  - Brings a set of resctrl groups about in one call, with cache ways, memory bandwidth, CPUs, threads and monitoring
    groups. resctrl must be mounted (M(colocation.testbed.resctrl_mount)).
  - Percentages are turned into cache ways and bandwidth as Koordinator does it. Every cache of the host gets the same
    value. Lines of C(schemata) that are not about L3 or memory bandwidth are left alone.
  - A call takes effect as a whole. When the kernel refuses a value, what the call changed before is taken back, and the
    error carries the kernel's own words from C(info/last_cmd_status).
  - Every change is recorded in the journal first, so that M(colocation.testbed.journal_undo) can take it back.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  state_dir:
    description: The state directory of the host; the journal is C(journal.json) in it.
    type: path
    default: /var/lib/colocation-testbed
  mount_point:
    description: Where resctrl is mounted.
    type: path
    default: /sys/fs/resctrl
  on_missing:
    description:
      - What happens with values that this host does not have hardware or a mount option for, and where resctrl is not
        mounted at all.
      - V(fail) names them and changes nothing. V(skip) lists them in RV(not_set).
    type: str
    choices: [fail, skip]
    default: fail
  purge:
    description:
      - Take back what this module did with groups that the list does not name, as V(absent) does, by the journal of
        this host. Groups that others made stay.
    type: bool
    default: false
  groups:
    description: The groups. A group that is not in the list is left as it is, unless O(purge) is set.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the group. The empty name is the root group, which has all threads and CPUs that are in no
          other group.
        type: str
        required: true
      state:
        description:
          - Whether the group exists.
          - V(absent) takes back what this module did. A group that it made is removed, its threads and CPUs go to the
            root group. A group that was there before gets back the values and CPUs that the journal has of it.
        type: str
        choices: [present, absent]
        default: present
      l3_cat_range_start_percent:
        description: First part of the L3 cache that the group may fill, in percent of its ways; needs
          O(groups[].l3_cat_range_end_percent). Excludes O(groups[].l3_mask).
        type: int
      l3_cat_range_end_percent:
        description: End of that part in percent, above the start. Both are rounded up to whole ways.
        type: int
      l3_mask:
        description: The L3 ways as a hexadecimal mask, such as V(7f0).
        type: str
      mba_percent:
        description:
          - Memory bandwidth from 1 to 100 percent, rounded up to the steps of the hardware. On AMD it becomes units of
            1/8 GB/s of each L3 cache, 160 being 100 percent, and V(100) is no limit.
          - Not possible where resctrl is mounted with the option C(mba_MBps).
        type: int
      mba_mb_per_s:
        description: Memory bandwidth in MB/s (10^6 bytes). Needs the mount option C(mba_MBps), where it is rounded down
          to MiB/s, which the kernel counts in, or an AMD processor, where it is rounded down to 125 MB/s. Excludes
          O(groups[].mba_percent).
        type: int
      cpus:
        description: CPUs as a list such as V(0-3,8). Threads of the root group that run on them count as the group's.
          Other groups lose these CPUs. The root group can only be given CPUs.
        type: str
      pids:
        description:
          - Processes to move into the group with all their threads. Those that have ended are listed in RV(gone).
          - Threads and processes that they start later are in the group too.
        type: list
        elements: int
        default: []
      monitor_groups:
        description: Groups in this one whose cache occupancy and memory traffic are counted apart.
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description: Name of the monitoring group.
            type: str
            required: true
          pids:
            description: Processes to move into it with all their threads.
            type: list
            elements: int
            default: []
seealso:
  - module: colocation.testbed.resctrl_info
  - module: colocation.testbed.resctrl_mount
  - module: colocation.testbed.journal_undo
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Keep best-effort work out of 70 percent of the cache and slow its memory traffic down
  colocation.testbed.resctrl_group:
    groups:
      - name: LS
        l3_cat_range_start_percent: 0
        l3_cat_range_end_percent: 100
        mba_percent: 100
      - name: BE
        l3_cat_range_start_percent: 0
        l3_cat_range_end_percent: 30
        mba_percent: 50

- name: Take both groups away
  colocation.testbed.resctrl_group:
    groups:
      - {name: LS, state: absent}
      - {name: BE, state: absent}
"""

RETURN = r"""
mounted:
  description: Whether resctrl is mounted on O(mount_point).
  returned: success
  type: bool
options:
  description: Options of the mount that change what values mean.
  returned: success
  type: list
  elements: str
  sample: [mba_MBps]
groups:
  description: The present groups by name, as read back. In check mode, as they would be.
  returned: success
  type: dict
  sample: {"BE": {"L3": "L3:0=f", "MB": "MB:0=50", "cpus": "", "monitor_groups": []}}
not_set:
  description: Values that were not set, each with group, key and reason.
  returned: success
  type: list
  elements: dict
  sample: [{"group": "BE", "key": "mba_percent", "why": "this host has no control of memory bandwidth"}]
gone:
  description: Processes that have ended and were not moved.
  returned: success
  type: list
  elements: int
  sample: []
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    procfs,
    resctrl,
    resctrl_apply,
    resctrl_facts,
    resctrl_plan,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl import ResctrlError, State
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl_model import Model
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl_steps import Plan
from ansible_collections.colocation.testbed.plugins.module_utils.node_policy import resctrl_wanted

_BY = "resctrl_group"


def _unmounted(module: AnsibleModule) -> None:
    """End the module where resctrl is not mounted: as a failure, or with everything skipped."""
    lacks = resctrl_facts.missing(resctrl_facts.read_host(), None, module.params["mount_point"])
    why = "; ".join(f"{item.why}: {item.advice}" for item in lacks)
    wanted = [raw["name"] for raw in module.params["groups"] if raw["state"] == "present"]
    if wanted and module.params["on_missing"] == "fail":
        raise ResctrlError(f"resctrl is not mounted on {module.params['mount_point']}: {why}")
    skipped = [{"group": name, "key": "name", "why": why} for name in wanted]
    result = {"changed": False, "mounted": False, "options": [], "groups": {}, "not_set": skipped, "gone": []}
    module.exit_json(**result)


def _require_all(skipped: list[dict[str, str]]) -> None:
    if skipped:
        shown = "; ".join(f"{item['key']} of group {item['group'] or '(root)'}: {item['why']}" for item in skipped)
        raise ResctrlError(f"resctrl values: {shown}; leave them out, or set on_missing to skip")


def _result(module: AnsibleModule, state: State, plan: Plan, skipped: list[dict[str, str]]) -> dict[str, Any]:
    groups = dict(plan.after)
    if not module.check_mode:
        now = resctrl.read_state(state.mount_point) or state
        groups = {name: shown for name in plan.after if (shown := Model(now).shown(name)) is not None}
    result = {
        "changed": bool(plan.steps),
        "mounted": True,
        "options": list(state.options),
        "groups": groups,
        "not_set": skipped,
        "gone": list(plan.gone),
    }
    if module._diff:
        moved = {step.directory: [item.tid for item in step.moves] for step in plan.steps if step.kind == "move"}
        after: dict[str, Any] = dict(plan.after)
        if moved:
            after["threads moved"] = moved
        result["diff"] = {"before": dict(plan.before), "after": after}
    return result


def run(module: AnsibleModule) -> None:
    """Plan, then carry out unless in check mode, then read everything back."""
    params = module.params
    # The table of mounts, and so the journal, know no links.
    state = resctrl.read_state(os.path.realpath(params["mount_point"]))
    if state is None:
        _unmounted(module)
        return
    resolver = resctrl_wanted.Resolver(state)
    wanted = resctrl_wanted.wanted(resolver, params["groups"])
    if params["on_missing"] == "fail":
        _require_all(resolver.skipped)
    book = journal.of(params["state_dir"])
    if params["purge"]:
        owned = resctrl_apply.owned(book, _BY, state.mount_point)
        wanted += resctrl_wanted.no_longer_wanted(owned, wanted)
    plan = resctrl_plan.plan(state, wanted, resctrl_apply.recorded(book))
    if not module.check_mode and (plan.steps or plan.forget):
        resctrl_apply.Apply(state.mount_point, book, _BY).run(plan)
    module.exit_json(**_result(module, state, plan, resolver.skipped))


def _group_options() -> dict[str, Any]:
    pids = {"type": "list", "elements": "int", "default": []}
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "l3_cat_range_start_percent": {"type": "int"},
        "l3_cat_range_end_percent": {"type": "int"},
        "l3_mask": {"type": "str"},
        "mba_percent": {"type": "int"},
        "mba_mb_per_s": {"type": "int"},
        "cpus": {"type": "str"},
        "pids": pids,
        "monitor_groups": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {"name": {"type": "str", "required": True}, "pids": pids},
        },
    }


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
            "mount_point": {"type": "path", "default": "/sys/fs/resctrl"},
            "on_missing": {"type": "str", "choices": ["fail", "skip"], "default": "fail"},
            "purge": {"type": "bool", "default": False},
            "groups": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": _group_options(),
                "required_together": [("l3_cat_range_start_percent", "l3_cat_range_end_percent")],
                "mutually_exclusive": [
                    ("l3_mask", "l3_cat_range_start_percent"),
                    ("l3_mask", "l3_cat_range_end_percent"),
                    ("mba_percent", "mba_mb_per_s"),
                ],
            },
        },
        supports_check_mode=True,
    )
    try:
        run(module)
    except (ResctrlError, journal.JournalError, procfs.ProcError) as exc:
        module.fail_json(msg=str(exc))


if __name__ == "__main__":
    main()
