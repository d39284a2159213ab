#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pod_values
short_description: Wait until the control groups of pods have the values that they should, and tell which files to watch
version_added: 0.1.0
description:
  - Finds the control groups of pods on the node that it runs on, whichever version of control groups and whichever
    driver kubelet uses, by uid and container.
  - Waits until their values are what a policy makes of them and nothing has changed for a while, as kubelet and
    Koordinator's agent write one after the other. What is not as wanted by then is told, not an error.
  - Returns the files and contents of the groups and their ancestors, as a sampler compares them during a window. Quota
    and CPUs of best effort as a whole, which the agent moves all the time, are told apart.
  - Changes nothing.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  pods:
    description: The pods.
    type: list
    elements: dict
    required: true
    suboptions:
      key:
        description: What the pod is called in the result.
        type: str
        required: true
      uid:
        description: Its C(metadata.uid).
        type: str
        required: true
      container_id:
        description: Id of its container, without the runtime's name.
        type: str
        required: true
      qos:
        description: Its class, by which the policy chooses. Empty where the policy says nothing about it.
        type: str
        choices: ["", LSE, LSR, LS, BE]
        default: ""
      containers:
        description: What its containers ask for, as in M(colocation.testbed.cgroup_policy).
        type: list
        elements: dict
        default: []
  others:
    description: Uids and containers of further pods, by name, whose groups are told where they are there.
    type: dict
    default: {}
  policy:
    description: The policy whose values are waited for, a mapping of sections. Empty waits for quiet alone.
    type: dict
    default: {}
  node_labels:
    description: Labels of this node, by which the policy's node entries are chosen.
    type: dict
    default: {}
  moving:
    description:
      - Whether quota and CPUs of best effort as a whole are moved all the time, as by Koordinator's agent. Otherwise
        they are values like all others.
    type: bool
    default: true
  quiet_s:
    description: Seconds for which nothing may have changed.
    type: float
    default: 1.0
  deadline_s:
    description: Seconds to wait at most.
    type: int
    default: 30
seealso:
  - module: colocation.testbed.workload_pods
  - module: colocation.testbed.cgroup_policy
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Wait until best effort has what its batch resources come to
  colocation.testbed.pod_values:
    policy: {colocation-config: {enable: true}}
    pods:
      - key: batch
        uid: 0b7c9d4e-1f2a-4b3c-8d5e-6f7a8b9c0d1e
        container_id: 5f0c2a
        qos: BE
        containers:
          - requests: {kubernetes.io/batch-cpu: "1000", kubernetes.io/batch-memory: 2Gi}
            limits: {kubernetes.io/batch-cpu: "1000", kubernetes.io/batch-memory: 2Gi}
"""

RETURN = r"""
groups:
  description: For each pod, and each of O(others) that is there, the group of the pod and of its container.
  returned: always
  type: dict
  sample: {"batch": {"pod": "kubepods/besteffort/pod0b7c", "container": "kubepods/besteffort/pod0b7c/5f0c"}}
policy_files:
  description: The files with values, by the key that a sample has them under.
  returned: always
  type: dict
  sample: {"batch/cpu.shares": "/sys/fs/cgroup/cpu/kubepods/besteffort/pod0b7c/cpu.shares"}
policy_values:
  description: Their contents.
  returned: always
  type: dict
  sample: {"batch/cpu.shares": "1024"}
moving_files:
  description: Files that are written all the time by design.
  returned: always
  type: dict
  sample: {"best_effort/quota_us": "/sys/fs/cgroup/cpu/kubepods/besteffort/cpu.cfs_quota_us"}
unsettled:
  description: What should have been in files that held something else at the deadline.
  returned: always
  type: dict
  sample: {}
waited_s:
  description: Seconds until all of it was so.
  returned: always
  type: float
  sample: 1.1
"""

import time
from dataclasses import asdict
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cpu_list, procfs, resctrl
from ansible_collections.colocation.testbed.plugins.module_utils.node_policy import apply, facts, pod_values
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation import PolicyError


def _run(module: AnsibleModule) -> dict[str, Any]:
    params, begin = module.params, time.monotonic()
    layout = cgroup.detect()
    pods = pod_values.pods_of(params["pods"])
    policy = apply.check(params["policy"]) if params["policy"] else {}
    places = pod_values.await_places(layout, pods, float(params["deadline_s"]))
    labels = {str(name): str(value) for name, value in params["node_labels"].items()}
    want = pod_values.wanted(layout, policy, facts.collect(layout, facts.Given(labels)), pods, places) if policy else ()
    left_s = max(0.0, params["deadline_s"] - (time.monotonic() - begin))
    reading = pod_values.settle(
        pod_values.Watched(layout, pods, places, want, params["moving"]), params["quiet_s"], left_s
    )
    others = [
        pod_values.Pod(name, str(item.get("uid", "")), str(item.get("container_id", "")))
        for name, item in params["others"].items()
    ]
    return {
        "changed": False,
        "groups": {key: asdict(place) for key, place in {**places, **pod_values.find(layout, others)}.items()},
        "policy_files": dict(reading.files),
        "policy_values": dict(reading.values),
        "moving_files": dict(reading.moving),
        "unsettled": dict(reading.unsettled),
        "waited_s": round(time.monotonic() - begin, 1),
    }


def main() -> None:
    """Run the module."""
    pod = {
        "key": {"type": "str", "required": True, "no_log": False},
        "uid": {"type": "str", "required": True},
        "container_id": {"type": "str", "required": True},
        "qos": {"type": "str", "choices": ["", "LSE", "LSR", "LS", "BE"], "default": ""},
        "containers": {"type": "list", "elements": "dict", "default": []},
    }
    module = AnsibleModule(
        argument_spec={
            "pods": {"type": "list", "elements": "dict", "required": True, "options": pod},
            "others": {"type": "dict", "default": {}},
            "policy": {"type": "dict", "default": {}},
            "node_labels": {"type": "dict", "default": {}},
            "moving": {"type": "bool", "default": True},
            "quiet_s": {"type": "float", "default": 1.0},
            "deadline_s": {"type": "int", "default": 30},
        },
        supports_check_mode=True,
    )
    try:
        result = _run(module)
    except PolicyError as exc:
        module.fail_json(msg=str(exc), problems=list(exc.problems))
    except (
        cgroup.CgroupError,
        cpu_list.CpuListError,
        pod_values.PodValuesError,
        procfs.ProcError,
        resctrl.ResctrlError,
    ) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
