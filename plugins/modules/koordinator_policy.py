#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: koordinator_policy
short_description: Write a policy into Koordinator's ConfigMap and see it arrive
version_added: 0.1.0
description:
  - Writes a policy, in the words that every engine of this collection reads, as C(slo-controller-config), and waits
    until Koordinator's manager has made the NodeSLO of each given node out of it, value by value.
  - The policy is checked as a whole before anything changes. Unknown keys are errors, since Koordinator ignores them;
    so is what a feature gate, the kernel or the number of CPUs leaves without effect.
  - All sections are the policy's afterwards. One that it lacks goes, also one that the Helm chart brought. Other keys
    of the ConfigMap stay.
extends_documentation_fragment:
  - colocation.testbed.attributes
  - colocation.testbed.kubectl
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  policy:
    description: The policy, a mapping of sections such as V(resource-threshold-config). Empty switches all off.
    type: dict
    required: true
  namespace:
    description: Koordinator's namespace.
    type: str
    default: koordinator-system
  nodes:
    description: Nodes whose NodeSLO must have the policy's values. Empty waits for none.
    type: list
    elements: str
    default: []
  features:
    description: Feature gates of Koordinator's agent, as it was started with, such as V(BECPUEvict=true).
    type: str
    default: ""
  host:
    description: What is known of the tested node. What is not given is not judged by.
    type: dict
    default: {}
    suboptions:
      cpus:
        description: Number of its CPUs.
        type: int
      cgroup_v2:
        description: Whether it has control groups of version 2 alone.
        type: bool
      group_identity:
        description: Whether its kernel has C(cpu.bvt_warp_ns).
        type: bool
      burst_above_quota:
        description: Whether its kernel takes a burst above the quota, which mainline does not.
        type: bool
      cpu_manager:
        description: Policy of kubelet's CPU manager, V(none) or V(static).
        type: str
      cgroup_driver:
        description: Driver by which kubelet makes control groups, V(cgroupfs) or V(systemd).
        type: str
  validate_on_server:
    description:
      - Whether the ConfigMap gets the label by which Koordinator's own validation selects it. Only with the manager's
        feature gate C(ConfigMapValidatingWebhook), as nothing can be written while its webhook is down.
    type: bool
    default: false
  on_late:
    description:
      - Whether values that have not arrived by the deadline fail the task, or are told in RV(late) alone, as an
        experiment that keeps them as the reason why its figures don't count needs it.
    type: str
    choices: [fail, report]
    default: fail
  run_id:
    description: Id of the run that the ConfigMap belongs to; a label.
    type: str
    default: ""
  deadline_s:
    description: Seconds to wait at most until the values have arrived.
    type: int
    default: 120
seealso:
  - module: colocation.testbed.koordinator_status
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Hold best effort back, as an experiment's third mode does
  colocation.testbed.koordinator_policy:
    nodes: [node1]
    features: BECPUEvict=false,BEMemoryEvict=false
    host: {cpus: 104}
    policy:
      colocation-config: {enable: true, cpuReclaimThresholdPercent: 80}
      resource-threshold-config:
        clusterStrategy: {enable: true, cpuSuppressPolicy: cpuset, cpuSuppressThresholdPercent: 65}
"""

RETURN = r"""
data:
  description: The sections as they are in the ConfigMap, JSON each.
  returned: always
  type: dict
  sample: {"colocation-config": "{\n  \"enable\": true\n}"}
findings:
  description: One sentence for each part of the policy that Koordinator takes otherwise than one might think.
  returned: always
  type: list
  elements: str
  sample: []
late:
  description: What has not arrived by the deadline, one sentence. Empty where all has.
  returned: always
  type: str
  sample: ""
waited_s:
  description: Seconds until every node had the values.
  returned: always
  type: float
  sample: 2.1
"""

import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import koordinator_config, objects
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import Kubectl, KubectlError
from ansible_collections.colocation.testbed.plugins.module_utils.policy import koordinator_gates as gates
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation import PolicyError

HOST = {
    "cpus": {"type": "int"},
    "cgroup_v2": {"type": "bool"},
    "group_identity": {"type": "bool"},
    "burst_above_quota": {"type": "bool"},
    "cpu_manager": {"type": "str"},
    "cgroup_driver": {"type": "str"},
}


def _run(module: AnsibleModule, cluster: Kubectl) -> dict[str, Any]:
    params = module.params
    host = gates.Host(**{name: (params["host"] or {}).get(name) for name in HOST})
    order = koordinator_config.Order(
        params["policy"],
        params["namespace"],
        params["nodes"],
        params["features"],
        host,
        params["validate_on_server"],
        params["run_id"],
    )
    task = koordinator_config.prepare(cluster, order)
    begin, late = time.monotonic(), ""
    if not module.check_mode:
        koordinator_config.carry_out(cluster, task)
        late = koordinator_config.late(cluster, order, float(params["deadline_s"]))
        if late and params["on_late"] == "fail":
            raise koordinator_config.ConfigError(late)
    for text in task.findings:
        module.warn(text)
    result: dict[str, Any] = {
        "changed": task.changed,
        "data": task.data,
        "findings": list(task.findings),
        "late": late,
        "waited_s": round(time.monotonic() - begin, 1),
    }
    if module._diff:
        result["diff"] = {"before": task.before, "after": task.after}
    return result


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "kubectl": {"type": "list", "elements": "str", "default": ["kubectl"]},
            "policy": {"type": "dict", "required": True},
            "namespace": {"type": "str", "default": "koordinator-system"},
            "nodes": {"type": "list", "elements": "str", "default": []},
            "features": {"type": "str", "default": ""},
            "host": {"type": "dict", "default": {}, "options": HOST},
            "validate_on_server": {"type": "bool", "default": False},
            "on_late": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
            "run_id": {"type": "str", "default": ""},
            "deadline_s": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    try:
        result = _run(module, Kubectl(tuple(module.params["kubectl"])))
    except PolicyError as exc:
        module.fail_json(msg=str(exc), problems=list(exc.problems))
    except (koordinator_config.ConfigError, objects.ObjectsError, gates.GatesError, KubectlError) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
