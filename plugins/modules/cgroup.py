#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cgroup
short_description: Make control groups and give them their values
version_added: 0.1.0
description:
  - Brings a set of control groups and their values about in one call, on cgroup v1, hybrid and v2.
  - Values are compared with what the kernel says, written in an order that the kernel accepts, and read back.
  - A call takes effect as a whole. When the kernel refuses a value, what the call changed before is taken back.
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
  root:
    description: The group below each hierarchy in which all groups of this host are.
    type: str
    default: colocation-testbed
  on_missing:
    description:
      - What happens with values that the kernel or the hierarchy of this host does not have.
      - V(fail) names them and changes nothing. V(skip) lists them in RV(skipped).
    type: str
    choices: [fail, skip]
    default: fail
  groups:
    description: The groups. A group that is not in the list is left as it is.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: The path of the group below O(root). The empty name is O(root) itself.
        type: str
        required: true
      state:
        description:
          - Whether the group exists. Missing parents are made, with their own parent's CPUs and memory nodes.
          - V(absent) removes the group and the groups in it, which must have been made by this module and be empty.
        type: str
        choices: [present, absent]
        default: present
      cpu_shares:
        description:
          - Relative weight as on cgroup v1, from 2 to 262144. On v2 it is translated as Koordinator does,
            1 + (shares - 2) * 9999 / 262142.
          - Not written while O(groups[].cpu_idle) is in effect, since the kernel pins it then.
        type: int
      cpu_weight:
        description: Relative weight as on cgroup v2, from 1 to 10000; translated back on v1. Excludes
          O(groups[].cpu_shares).
        type: int
      cpu_idle:
        description: Whether the group runs only when nothing else wants the CPU (SCHED_IDLE for the group, Linux 5.15).
        type: bool
      cpu_quota_us:
        description: CPU time for each period in microseconds, at least 1000. V(-1) means no limit.
        type: int
      cpu_period_us:
        description: The period of the quota in microseconds, from 1000 to 1000000.
        type: int
      cpu_burst_us:
        description: Unused quota that may be saved up, in microseconds; not above the quota (Linux 5.14).
        type: int
      cpuset_cpus:
        description: CPUs as a list such as V(0-3,8). They must be within the parent's. On v2 the empty list means the
          parent's.
        type: str
      cpuset_mems:
        description: Memory nodes as a list.
        type: str
      memory_max_bytes:
        description: Limit of memory in bytes, rounded down to pages by the kernel. V(-1) means no limit.
        type: int
      memory_min_bytes:
        description: Memory that is never reclaimed, in bytes (v2 only).
        type: int
      memory_low_bytes:
        description: Memory that is reclaimed last, in bytes (v2 only).
        type: int
      memory_high_bytes:
        description: Memory above which the group is throttled, in bytes (v2 only). V(-1) means no limit.
        type: int
      pids_max:
        description: How many tasks may be in the group. V(-1) means no limit.
        type: int
      pids:
        description:
          - Processes to move into the group, in every hierarchy.
          - They are not moved back by M(colocation.testbed.journal_undo), which never removes a group that is in use.
        type: list
        elements: int
        default: []
seealso:
  - module: colocation.testbed.cgroup_info
  - module: colocation.testbed.journal_undo
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Make the groups of a tested node, with the batch workload as best effort
  colocation.testbed.cgroup:
    root: colocation-testbed
    groups:
      - name: ""
        cpuset_cpus: "0"
      - name: service
        cpu_shares: 1024
      - name: batch
        cpu_idle: true
        cpu_quota_us: 95000
        memory_max_bytes: 1073741824

- name: Remove the batch workload's group
  colocation.testbed.cgroup:
    groups:
      - name: batch
        state: absent
"""

RETURN = r"""
version:
  description: How control groups are mounted on this host.
  returned: always
  type: str
  sample: v1
groups:
  description: The present groups by name, with the directory for each controller and the values as read back.
  returned: success
  type: dict
  sample: {"batch": {"paths": {"cpu": "/sys/fs/cgroup/cpu/colocation-testbed/batch"}, "values": {"cpu_idle": 1}}}
skipped:
  description: Values that were not set, each with group, key and reason.
  returned: success
  type: list
  elements: dict
  sample: [{"group": "batch", "key": "cpu_shares", "why": "cpu.idle is 1, which pins the weight at its minimum"}]
policy_files:
  description: The file of every value of the groups and of all their ancestors, by the key that samples use.
  returned: success
  type: dict
  sample: {"batch/cpu.idle": "/sys/fs/cgroup/cpu/colocation-testbed/batch/cpu.idle"}
policy_values:
  description: The content of RV(policy_files), as read after the change.
  returned: success
  type: dict
  sample: {"batch/cpu.idle": "1"}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cgroup,
    cgroup_apply,
    cgroup_keys,
    cgroup_plan,
    cgroup_report,
    procfs,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import KEEP, Group, Plan

_INTEGERS = [key.name for key in cgroup_keys.KEYS if key.low is not None and key.name != "cpu_idle"]


def _group(raw: dict[str, Any]) -> Group:
    values = {name: raw[name] for name in cgroup_keys.BY_NAME if raw.get(name) is not None}
    if "cpu_idle" in values:
        values["cpu_idle"] = int(values["cpu_idle"])
    return Group(raw["name"], raw["state"], values, tuple(raw["pids"]))


def _missing(plan: Plan) -> str | None:
    """Return the sentence about values that this host lacks, or None."""
    lacking = [item for item in plan.skipped if item.why != cgroup_plan.PINNED]
    if not lacking:
        return None
    shown = "; ".join(f"{item.key} of group {item.group or '(root)'} {item.why}" for item in lacking)
    return f"cgroup values: {shown}: leave them out, or set on_missing to skip"


def _result(module: AnsibleModule, layout: cgroup.Layout, plan: Plan, names: list[str]) -> dict[str, Any]:
    root = module.params["root"]
    found = cgroup_report.policy_files(layout, root, names)
    groups = {
        name: {
            "paths": cgroup_report.paths(layout, root, name),
            "values": plan.after.get(name, {}) if module.check_mode else cgroup_report.values(layout, root, name),
        }
        for name in names
    }
    return {
        "changed": any(step.kind != KEEP for step in plan.steps),
        "version": layout.version,
        "groups": groups,
        "skipped": [{"group": item.group, "key": item.key, "why": item.why} for item in plan.skipped],
        "policy_files": found,
        "policy_values": cgroup_report.policy_values(found),
    }


def _diff(layout: cgroup.Layout, plan: Plan, root: str, groups: list[Group]) -> dict[str, Any]:
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    made = {step.path for step in plan.steps if step.kind == "make"}
    removed = {step.path for step in plan.steps if step.kind == "remove"}
    for group in groups:
        shown = f"{root}/{group.name}" if group.name else root
        directories = set(layout.directories(shown))
        if not directories & made and (group.state == "present" or directories & removed):
            before[shown] = dict(plan.before.get(group.name, {}))
        if group.state == "present":
            after[shown] = dict(plan.after.get(group.name, {}))
    return {"before": before, "after": after}


def run(module: AnsibleModule) -> None:
    """Plan, then carry out unless in check mode, then read everything back."""
    root = module.params["root"]
    groups = [_group(raw) for raw in module.params["groups"]]
    layout = cgroup.detect()
    book = journal.Journal(f"{module.params['state_dir']}/journal.json")
    ours = frozenset(entry.target for entry in book.entries() if entry.kind == "cgroup")
    plan = cgroup_plan.plan(layout, root, groups, ours)
    missing = _missing(plan) if module.params["on_missing"] == "fail" else None
    if missing:
        raise cgroup.CgroupError(missing)
    if plan.steps and not module.check_mode:
        cgroup_apply.apply(plan.steps, book, "cgroup", ours)
    names = [group.name for group in groups if group.state == "present"]
    result = _result(module, layout, plan, names)
    if module._diff:
        result["diff"] = _diff(layout, plan, root, groups)
    module.exit_json(**result)


def main() -> None:
    """Run the module."""
    options: dict[str, Any] = {name: {"type": "int"} for name in _INTEGERS}
    options.update(
        name={"type": "str", "required": True},
        state={"type": "str", "choices": ["present", "absent"], "default": "present"},
        cpu_idle={"type": "bool"},
        cpuset_cpus={"type": "str"},
        cpuset_mems={"type": "str"},
        pids={"type": "list", "elements": "int", "default": []},
    )
    module = AnsibleModule(
        argument_spec={
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
            "root": {"type": "str", "default": "colocation-testbed"},
            "on_missing": {"type": "str", "choices": ["fail", "skip"], "default": "fail"},
            "groups": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": options,
                "mutually_exclusive": [("cpu_shares", "cpu_weight")],
            },
        },
        supports_check_mode=True,
    )
    try:
        run(module)
    except (cgroup.CgroupError, journal.JournalError, procfs.ProcError) as exc:
        module.fail_json(msg=str(exc))


if __name__ == "__main__":
    main()
