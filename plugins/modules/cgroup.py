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
      - V(fail) names them and changes nothing. V(skip) lists them in RV(not_set).
    type: str
    choices: [fail, skip]
    default: fail
  cgroup2:
    description:
      - Make the groups in the hierarchy of version 2 too where it has no controller, as on hosts with both versions.
      - Packets are told apart by these groups, see M(colocation.testbed.bandwidth_class). Without such a hierarchy it
        is an error.
    type: bool
    default: false
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
      cpuset_partition:
        description:
          - Whether the group's CPUs are its own (v2 only, Linux 5.0). V(root) makes a scheduling domain of them,
            V(isolated) takes them out of load balancing (Linux 6.1), V(member) gives them back.
          - It takes effect when the kernel says so. A partition that the kernel calls invalid is an error, with the
            kernel's reason.
        type: str
        choices: [member, root, isolated]
      memory_max_bytes:
        description: Limit of memory in bytes, rounded down to pages by the kernel. V(-1) means no limit.
        type: int
      memory_min_bytes:
        description: Memory that is never reclaimed, in bytes (v2, and v1 of Alibaba's kernels).
        type: int
      memory_low_bytes:
        description: Memory that is reclaimed last, in bytes (v2, and v1 of Alibaba's kernels).
        type: int
      memory_high_bytes:
        description: Memory above which the group is throttled, in bytes (v2, and v1 of Alibaba's kernels). V(-1) means
          no limit.
        type: int
      memory_swap_max_bytes:
        description: Swap that the group may use, in bytes (v2 only). V(-1) means no limit. On v1 it is not supported,
          since C(memory.memsw.limit_in_bytes) limits memory and swap together.
        type: int
      memory_oom_group:
        description: Whether running out of memory ends the group as a whole (v2, and v1 of Alibaba's kernels).
        type: bool
      memory_wmark_ratio:
        description: Percentage of the limit from which memory is reclaimed in the background, from 0 to 100; V(0) is
          off (Alibaba's kernels).
        type: int
      memory_wmark_scale_factor:
        description: How far background reclaim goes, in ten-thousandths of the limit, from 1 to 1000 (Alibaba's
          kernels).
        type: int
      memory_wmark_min_adj:
        description: Shift of the machine's low watermark for this group in percent, from -25 to 50; a negative one has
          it reclaimed later (Alibaba's kernels).
        type: int
      memory_priority:
        description: Priority when memory runs out, from 0 to 12; lower ones are ended first (Alibaba's kernels).
        type: int
      memory_use_priority_oom:
        description: Whether O(groups[].memory_priority) decides what is ended (Alibaba's kernels).
        type: bool
      cpu_bvt_warp_ns:
        description: Group identity, from -1 (best effort) to 2 (latency sensitive) (Alibaba's kernels).
        type: int
      io_weight:
        description:
          - Relative weight of the group's I/O, from 1 to 10000, V(100) by default. C(io.weight) on v2.
          - Where that is missing, and on v1, it is translated to BFQ's weight (1 to 1000, equal up to 100) or to CFQ's
            (times 5), as systemd does it, and RV(translated) says so.
        type: int
      io_max:
        description:
          - Limits of each disk's bandwidth and operations. Disks that are not in the list stay as they are.
          - C(io.max) on v2, C(blkio.throttle.*_device) on v1.
        type: list
        elements: dict
        suboptions:
          device:
            description: The whole disk, as a path or as C(major:minor).
            type: str
            required: true
          rbps:
            description: Bytes read in a second. V(-1) means no limit; a limit that is not given stays.
            type: int
          wbps:
            description: Bytes written in a second.
            type: int
          riops:
            description: Read operations in a second.
            type: int
          wiops:
            description: Write operations in a second.
            type: int
      io_latency:
        description: Latency that each disk should keep for the group (v2 only).
        type: list
        elements: dict
        suboptions:
          device:
            description: The whole disk, as a path or as C(major:minor).
            type: str
            required: true
          target_us:
            description: The target in microseconds. V(-1) means none.
            type: int
            required: true
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
      units:
        description:
          - Systemd units whose processes are moved into the group, such as V(nginx.service); all that are in the unit's
            control group or below at the time. They are not moved back either.
          - On v2 they leave the group in which systemd counts them. A property of the unit is the better way there.
        type: list
        elements: str
        default: []
      process_names:
        description:
          - Programs whose processes are moved into the group, by the exact name in C(/proc/PID/comm).
          - Only processes that are in O(root) or below already are meant, in whatever group. So programs of the same
            name outside of this host's scope are left alone.
        type: list
        elements: str
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

- name: Limit what the batch workload writes to the first disk
  colocation.testbed.cgroup:
    groups:
      - name: batch
        io_weight: 10
        io_max:
          - device: /dev/vda
            wbps: 10485760

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
  description:
    - The present groups by name, with the directory for each controller and the values as read back.
    - In templates write C(groups['batch']['values']), since a dictionary has a method of the name C(values).
  returned: success
  type: dict
  sample: {"batch": {"paths": {"cpu": "/sys/fs/cgroup/cpu/colocation-testbed/batch"}, "values": {"cpu_idle": 1}}}
not_set:
  description: Values that were not set, each with group, key and reason.
  returned: success
  type: list
  elements: dict
  sample: [{"group": "batch", "key": "cpu_shares", "why": "cpu.idle is 1, which pins the weight at its minimum"}]
translated:
  description: Values that the kernel holds in another unit or rounded, each with group, key, what was wanted, file and
    text.
  returned: success
  type: list
  elements: dict
  sample: [{"group": "batch", "key": "io_weight", "wanted": 200, "text": "109",
    "file": "/sys/fs/cgroup/blkio/colocation-testbed/batch/blkio.bfq.weight"}]
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

from dataclasses import asdict, replace
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cgroup,
    cgroup_apply,
    cgroup_members,
    cgroup_options,
    cgroup_plan,
    cgroup_report,
    procfs,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import KEEP, Group, Plan, Step
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_tree import Tree

# A process that is being moved may have started others meanwhile; they are caught up with, as far as they ever end.
_ROUNDS = 5


def _missing(plan: Plan) -> str | None:
    """Return the sentence about values that this host lacks, or None."""
    lacking = [item for item in plan.skipped if item.why != cgroup_plan.PINNED]
    if not lacking:
        return None
    shown = "; ".join(f"{item.key} of group {item.group or '(root)'} {item.why}" for item in lacking)
    return f"cgroup values: {shown}: leave them out, or set on_missing to skip"


def _result(module: AnsibleModule, layout: cgroup.Layout, plan: Plan, names: list[str]) -> dict[str, Any]:
    root = module.params["root"]
    # What was read for a plan that changes nothing is what there is.
    tree = Tree() if plan.steps else plan.read
    found = cgroup_report.policy_files(layout, root, names, tree)
    groups = {
        name: {
            "paths": cgroup_report.directories(layout, cgroup.below(root, name)),
            "values": plan.after.get(name, {})
            if module.check_mode
            else cgroup_report.values(layout, cgroup.below(root, name), tree),
        }
        for name in names
    }
    return {
        "changed": any(step.kind != KEEP for step in plan.steps),
        "version": layout.version,
        "groups": groups,
        "not_set": [asdict(item) for item in plan.skipped],
        "translated": [asdict(item) for item in plan.translated],
        "policy_files": found,
        "policy_values": cgroup_report.policy_values(found, tree),
    }


def run(module: AnsibleModule) -> None:
    """Plan, then carry out unless in check mode, then read everything back."""
    root, strict = module.params["root"], module.params["on_missing"] == "fail"
    wanted = [cgroup_options.group(raw) for raw in module.params["groups"]]
    layout = cgroup.detect().with_version_2() if module.params["cgroup2"] else cgroup.detect()
    book = journal.of(module.params["state_dir"])
    ours = frozenset(entry.target for entry in book.entries() if entry.kind == "cgroup")
    groups = cgroup_members.resolve(wanted, layout, root)
    plan = cgroup_plan.plan(layout, root, groups, ours)
    missing = _missing(plan) if strict else None
    if missing:
        raise cgroup.CgroupError(missing)
    lacking: tuple[Step, ...] = ()
    if plan.steps and not module.check_mode:
        lacking = cgroup_apply.apply(plan.steps, book, "cgroup", ours, lenient=not strict)
        _catch_up(layout, root, wanted, book)
    result = _result(module, layout, plan, [group.name for group in groups if group.state == "present"])
    result["not_set"] += cgroup_report.lacking(layout, root, lacking)
    if module._diff:
        result["diff"] = cgroup_report.diff(layout, plan, root, groups)
    module.exit_json(**result)


def _catch_up(layout: cgroup.Layout, root: str, wanted: list[Group], book: journal.Journal) -> None:
    """Move the processes that those of a unit or program have started while they were being moved."""
    moving = [replace(group, values={}) for group in wanted if group.units or group.process_names]
    for _round in range(_ROUNDS if moving else 0):
        plan = cgroup_plan.plan(layout, root, cgroup_members.resolve(moving, layout, root))
        if not plan.steps:
            return
        cgroup_apply.apply(plan.steps, book, "cgroup", frozenset())


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
            "root": {"type": "str", "default": "colocation-testbed"},
            "on_missing": {"type": "str", "choices": ["fail", "skip"], "default": "fail"},
            "cgroup2": {"type": "bool", "default": False},
            "groups": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": cgroup_options.specification(),
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
