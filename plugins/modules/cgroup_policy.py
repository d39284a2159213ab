#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cgroup_policy
short_description: Apply a node policy to control groups that exist
version_added: 0.1.0
description:
  - Turns a policy in the words of Koordinator's C(slo-controller-config) into kernel values of groups that someone else
    makes, such as kubelet's, and sets them on cgroup v1, hybrid and v2. Groups are never made or removed.
  - The policy is checked as a whole before anything changes; unknown keys are errors. For each key the result says
    whether this host supports it, and where it does not, why.
  - Only what needs no readings at run time is applied. Cache and memory bandwidth, and settings of the host as a whole,
    are returned as data for M(colocation.testbed.resctrl_group) and M(colocation.testbed.host_tuning); so is what the
    link is to be divided into, for M(colocation.testbed.bandwidth_pool) and M(colocation.testbed.bandwidth_class).
  - A value that an earlier call set and that this one does not want is put back to what it was before.
  - Groups of systemd's units get the values that their units say again at every C(systemctl daemon-reload). A warning
    tells of such groups; apply the policy again after one.
  - Every change is recorded in the journal first. A call takes effect as a whole.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  state:
    description:
      - V(present) applies the policy. V(absent) puts all values back that this module has set, by the journal.
      - A value that M(colocation.testbed.cgroup) had set before is that module's in the journal, and is not put back
        here.
    type: str
    choices: [present, absent]
    default: present
  state_dir:
    description: The state directory of the host; the journal is C(journal.json) in it.
    type: path
    default: /var/lib/colocation-testbed
  policy:
    description: The policy, a mapping of sections such as V(resource-qos-config). Needed with O(state=present).
    type: dict
  node_labels:
    description: Labels of this node, by which the policy's node entries are chosen.
    type: dict
    default: {}
  cpus:
    description: CPU list that percentages of the node's CPUs are of. Empty means all that are online.
    type: str
    default: ""
  on_unsupported:
    description: Whether a key that this host cannot honour is reported in RV(states) alone, or fails before any change.
    type: str
    choices: [report, fail]
    default: report
  groups:
    description: The groups that the policy is applied to. Needed unless the policy has host applications or settings of
      the host.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description:
          - Path below each hierarchy, such as V(kubepods/besteffort/pod*).
          - C(*), C(?) and C([...]) match within one part of the path.
        type: str
        required: true
      qos:
        description: The class of service of what runs in the groups.
        type: str
        choices: [LSE, LSR, LS, BE, SYSTEM]
        required: true
      level:
        description:
          - What the groups are. V(host) holds processes of the host, V(tier) is the root of a class of pods, V(pod) and
            V(container) are what they say.
          - Weight and limits by requests are set for V(host), and for pods and containers of class V(BE); for others
            kubelet has set them.
        type: str
        choices: [host, tier, pod, container]
        default: host
      containers:
        description:
          - What the containers in each of the groups ask for, each C(requests) and C(limits) in Kubernetes' words
            (C(cpu), C(memory), C(kubernetes.io/batch-cpu), C(kubernetes.io/batch-memory)).
          - Weight and limits of a group of which nothing is said are left as they are.
          - Class V(BE) is read for its batch resources. The unit of batch-cpu is the milli-core, V(70k) is 70 CPUs.
          - A limit of V(1000) of batch-cpu gives a quota of 100000 us in 100 ms. Where C(cpuSuppressPolicy) is
            V(cfsQuota), quotas of pods and containers are lifted instead, as in Koordinator; RV(states) says so.
        type: list
        elements: dict
        default: []
      on_no_match:
        description: Whether it is an error that no group matches.
        type: str
        choices: [fail, skip]
        default: fail
seealso:
  - module: colocation.testbed.cgroup
  - module: colocation.testbed.journal_undo
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Hold best effort back, whatever pods run
  colocation.testbed.cgroup_policy:
    node_labels: {pool: colocation}
    policy:
      resource-threshold-config:
        clusterStrategy:
          enable: true
          cpuSuppressPolicy: cfsQuota
          cpuSuppressThresholdPercent: 65
      resource-qos-config:
        clusterStrategy:
          beClass:
            cpuQOS: {enable: true, schedIdle: 1}
            memoryQOS: {enable: true, throttlingPercent: 80}
    groups:
      - path: kubepods.slice/kubepods-besteffort.slice
        qos: BE
        level: tier
      - path: kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod*.slice
        qos: BE
        level: pod
        on_no_match: skip

- name: Put the groups back as they were
  colocation.testbed.cgroup_policy:
    state: absent
"""

RETURN = r"""
version:
  description: How control groups are mounted on this host.
  returned: always
  type: str
  sample: v1
states:
  description: For each key of the policy that counts for this node, its path, its state (supported, degraded or
    unsupported) and the reason.
  returned: with O(state=present)
  type: list
  elements: dict
  sample: [{"key": "resource-qos-config.clusterStrategy.beClass.cpuQOS.groupIdentity", "state": "unsupported",
    "reason": "needs a kernel of Alibaba Cloud Linux or Anolis; this host has cpu on v1 without cpu.bvt_warp_ns"}]
groups:
  description: For each group its class, its level, the options that the policy wants in the words of module
    M(colocation.testbed.cgroup), and the values as read back. In templates write C(['values']), since a dictionary has
    a method of the name C(values).
  returned: with O(state=present)
  type: dict
  sample: {"kubepods/besteffort": {"qos": "BE", "level": "tier", "options": {"cpu_quota_us": 130000},
    "values": {"cpu_quota_us": 130000}}}
unmatched:
  description: Patterns, and groups of host applications of the policy, that no group matches.
  returned: with O(state=present)
  type: list
  elements: str
  sample: []
not_set:
  description: Values that were not set, each with group, key and reason.
  returned: with O(state=present)
  type: list
  elements: dict
  sample: []
translated:
  description: Values that the kernel holds in another unit or rounded, each with group, key, what was wanted, file and
    text.
  returned: with O(state=present)
  type: list
  elements: dict
  sample: []
restored:
  description: One sentence for each value that was (in check mode, would be) put back.
  returned: always
  type: list
  elements: str
  sample: ["/sys/fs/cgroup/cpu/kubepods/besteffort/cpu.cfs_quota_us: 130000 put back to -1"]
resctrl_groups:
  description: What the policy wants of cache and memory bandwidth, as option C(groups) of module
    M(colocation.testbed.resctrl_group) takes it, with the processes that are in groups of each class.
  returned: with O(state=present)
  type: list
  elements: dict
  sample: [{"name": "BE", "l3_cat_range_start_percent": 0, "l3_cat_range_end_percent": 30, "mba_percent": 100,
    "pids": [4711]}]
bandwidth_pools:
  description: What the policy wants of the link, as M(colocation.testbed.bandwidth_pool) takes it in option C(pools).
  returned: with O(state=present)
  type: list
  elements: dict
  sample: [{"name": "link", "total": "1Gbit/s", "waterline": "200Mbit/s", "low": "160Mbit/s", "high": "800Mbit/s"}]
bandwidth_classes:
  description:
    - Whose packets are whose, as option C(classes) of module M(colocation.testbed.bandwidth_class) takes it.
    - Groups of class V(BE) are offline, others online.
  returned: with O(state=present)
  type: list
  elements: dict
  sample: [{"name": "batch", "pool": "link", "role": "offline", "cgroups": ["kubepods/besteffort"]}]
host_settings:
  description: What the policy wants of the host as a whole, as option C(settings) of module
    M(colocation.testbed.host_tuning) takes it.
  returned: with O(state=present)
  type: list
  elements: dict
  sample: [{"kind": "sysctl", "name": "vm.watermark_scale_factor", "value": "150", "persist": false}]
"""

from dataclasses import asdict
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cpu_list, procfs, resctrl
from ansible_collections.colocation.testbed.plugins.module_utils.node_policy import apply, facts, groups
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation import PolicyError


def _present(module: AnsibleModule, book: journal.Journal) -> dict[str, Any]:
    layout = cgroup.detect()
    wanted = groups.entries(module.params["groups"])
    labels = {str(name): str(value) for name, value in module.params["node_labels"].items()}
    policy = apply.check(module.params["policy"])
    found = groups.match(layout, wanted)
    node = facts.collect(layout, facts.Given(labels, module.params["cpus"]))
    task = apply.prepare(layout, policy, node, found)
    apply.refuse_idle(task, wanted)
    if module.params["on_unsupported"] == "fail":
        apply.refuse_unsupported(task)
    done = apply.carry_out(layout, task, book, module.check_mode)
    for text in groups.overwritten(group.name for group in task.groups if group.values):
        module.warn(text)
    result: dict[str, Any] = {
        "changed": done.changed,
        "version": layout.version,
        "states": [{"key": key, "state": state, "reason": reason} for key, state, reason in task.wanted.states],
        "groups": apply.shown(layout, task, done, module.check_mode),
        "unmatched": list(task.unmatched),
        "not_set": [asdict(item) for item in done.plan.skipped],
        "translated": [asdict(item) for item in done.plan.translated],
        "restored": list(done.restored),
        "resctrl_groups": groups.with_processes(layout, task.wanted.resctrl, task.workloads),
        **{f"bandwidth_{kind}": items for kind, items in task.wanted.bandwidth.items()},
        "host_settings": [dict(item) for item in task.wanted.host],
    }
    if module._diff:
        result["diff"] = apply.diff(done)
    return result


def _absent(module: AnsibleModule, book: journal.Journal) -> dict[str, Any]:
    done = apply.take_back(book, module.check_mode)
    result: dict[str, Any] = {"changed": bool(done), "version": cgroup.detect().version, "restored": list(done)}
    if module._diff:
        result["diff"] = {"before": "".join(f"{line}\n" for line in done), "after": ""}
    return result


def main() -> None:
    """Run the module."""
    entry = {
        "path": {"type": "str", "required": True},
        "qos": {"type": "str", "choices": ["LSE", "LSR", "LS", "BE", "SYSTEM"], "required": True},
        "level": {"type": "str", "choices": ["host", "tier", "pod", "container"], "default": "host"},
        "containers": {"type": "list", "elements": "dict", "default": []},
        "on_no_match": {"type": "str", "choices": ["fail", "skip"], "default": "fail"},
    }
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
            "policy": {"type": "dict"},
            "node_labels": {"type": "dict", "default": {}},
            "cpus": {"type": "str", "default": ""},
            "on_unsupported": {"type": "str", "choices": ["report", "fail"], "default": "report"},
            "groups": {"type": "list", "elements": "dict", "default": [], "options": entry},
        },
        required_if=[("state", "present", ("policy",))],
        supports_check_mode=True,
    )
    try:
        book = journal.of(module.params["state_dir"])
        result = (_present if module.params["state"] == "present" else _absent)(module, book)
    except (PolicyError, groups.GroupsError) as exc:
        module.fail_json(msg=str(exc), problems=list(exc.problems))
    except (
        apply.ApplyError,
        cgroup.CgroupError,
        cpu_list.CpuListError,
        journal.JournalError,
        procfs.ProcError,
        resctrl.ResctrlError,
    ) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
