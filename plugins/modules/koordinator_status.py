#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: koordinator_status
short_description: Tell whether Koordinator works on a node, rung by rung
version_added: 0.1.0
description:
  - Looks, in this order, whether Koordinator's pods are ready, its priority classes are there, its webhooks have the
    manager's certificate, a batch pod comes out injected (tried on the server, nothing is made), the ConfigMap is the
    policy and readable, the node's NodeSLO has the policy's values, its NodeMetric is fresh, batch resources are
    offered, and the root of best effort has the values that the policy leaves it.
  - Waits until all of it is so, at most until the deadline. Every rung that does not hold says why, in one sentence,
    and which command to look with.
  - Changes nothing.
extends_documentation_fragment:
  - colocation.testbed.attributes
  - colocation.testbed.kubectl
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  node:
    description: Name of the tested node in the cluster.
    type: str
    required: true
  policy:
    description: The policy that must be in effect, a mapping of sections.
    type: dict
    default: {}
  namespace:
    description: Koordinator's namespace.
    type: str
    default: koordinator-system
  components:
    description: What must be ready, each as kind, slash, name.
    type: list
    elements: str
    default: [Deployment/koord-manager, DaemonSet/koordlet]
  probe:
    description: The batch pod that is tried on the server, as a manifest. Its namespace must exist.
    type: dict
    required: true
  batch_cpu_milli:
    description: The batch-cpu in thousandths of a CPU that the node must offer at least.
    type: int
    default: 1
  batch_memory_bytes:
    description: The batch-memory in bytes that the node must offer at least.
    type: int
    default: 1
  read_node:
    description: Whether this host is the node, so that its control groups are read too.
    type: bool
    default: true
  cgroup_driver:
    description: The driver that kubelet is configured with. Empty where it isn't known.
    type: str
    choices: ["", cgroupfs, systemd]
    default: ""
  deadline_s:
    description: Seconds to wait at most until every rung holds. V(0) looks once.
    type: int
    default: 300
  on_failure:
    description: Whether a rung that does not hold by the deadline fails the task, or is reported alone.
    type: str
    choices: [fail, report]
    default: fail
seealso:
  - module: colocation.testbed.koordinator_policy
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: See that batch pods are held back on this node
  colocation.testbed.koordinator_status:
    node: node1
    batch_cpu_milli: 70000
    policy:
      colocation-config: {enable: true}
      resource-threshold-config: {clusterStrategy: {enable: true}}
    probe:
      apiVersion: v1
      kind: Pod
      metadata:
        name: probe
        namespace: colocation-testbed
        labels: {colocation.testbed/workload: batch}
      spec:
        containers:
          - name: batch
            image: none
            resources: {requests: {cpu: "1", memory: 1Gi}, limits: {cpu: "1", memory: 1Gi}}
"""

RETURN = r"""
ok:
  description: Whether every rung holds.
  returned: always
  type: bool
  sample: true
ladder:
  description: Each rung with its name, whether it holds, a sentence, and the command to look with.
  returned: always
  type: list
  elements: dict
  sample: [{"step": "injection", "ok": false, "text": "pods not injected: a batch pod comes out without label
    koordinator.sh/qosClass=BE", "command": "kubectl -n koordinator-system logs deployment/koord-manager"}]
components:
  description: For each component whether all of its pods are ready.
  returned: always
  type: dict
  sample: {"Deployment/koord-manager": true, "DaemonSet/koordlet": true}
"""

from dataclasses import asdict
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import (
    best_effort_root,
    koordinator_ladder,
    koordinator_read,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import Kubectl, KubectlError
from ansible_collections.colocation.testbed.plugins.module_utils.policy import koordinator, validation


def _run(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    if params["policy"]:
        validation.check(params["policy"], "policy", koordinator.ENGINE)
    cluster = Kubectl(tuple(params["kubectl"]))
    wanted = koordinator_ladder.Wanted(
        params["node"],
        params["policy"],
        params["components"],
        params["batch_cpu_milli"],
        params["batch_memory_bytes"],
        params["namespace"],
    )

    def root() -> koordinator_ladder.Root | None:
        return best_effort_root.read(cgroup.detect(), params["cgroup_driver"]) if params["read_node"] else None

    look = koordinator_read.Look(params["node"], params["namespace"], params["probe"])
    steps, readings = koordinator_read.until_it_works(cluster, look, wanted, float(params["deadline_s"]), root)
    return {
        "changed": False,
        "ok": koordinator_ladder.failing(steps) is None,
        "ladder": [asdict(item) for item in steps],
        "components": koordinator_ladder.components(readings, wanted),
    }


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "kubectl": {"type": "list", "elements": "str", "default": ["kubectl"]},
            "node": {"type": "str", "required": True},
            "policy": {"type": "dict", "default": {}},
            "namespace": {"type": "str", "default": "koordinator-system"},
            "components": {
                "type": "list",
                "elements": "str",
                "default": ["Deployment/koord-manager", "DaemonSet/koordlet"],
            },
            "probe": {"type": "dict", "required": True},
            "batch_cpu_milli": {"type": "int", "default": 1},
            "batch_memory_bytes": {"type": "int", "default": 1},
            "read_node": {"type": "bool", "default": True},
            "cgroup_driver": {"type": "str", "choices": ["", "cgroupfs", "systemd"], "default": ""},
            "deadline_s": {"type": "int", "default": 300},
            "on_failure": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
        },
        supports_check_mode=True,
    )
    try:
        result = _run(module)
    except (KubectlError, cgroup.CgroupError, files.FilesError, validation.PolicyError) as exc:
        module.fail_json(msg=str(exc))
    bad = next((item for item in result["ladder"] if not item["ok"]), None)
    if bad and module.params["on_failure"] == "fail":
        within = f"after {module.params['deadline_s']} s" if module.params["deadline_s"] else "at once"
        module.fail_json(msg=f"{bad['step']}: {bad['text']} ({within}); look with: {bad['command']}", **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
