#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: workload_pods
short_description: Run pods of an experiment and tell what the cluster made of them
version_added: 0.1.0
description:
  - Makes pods with one container each, waits until all are ready, and returns what counts of them, such as node, class
    and container. A pod that is there and was made from the same text stays.
  - A pod that the node refuses for want of batch resources is made again until the deadline, as these come and go with
    the reports of Koordinator's agent. One that ended is left over from an earlier run, and is made again too.
  - For a pod that Koordinator's webhook should have changed, what it lacks is returned, not an error, so that an
    experiment can keep that as the reason why its figures don't count.
  - Only pods with the label C(app.kubernetes.io/managed-by=colocation-testbed), which these get, are ever deleted.
extends_documentation_fragment:
  - colocation.testbed.attributes
  - colocation.testbed.kubectl
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  pods:
    description: The pods. With O(state=read) and O(state=absent) name and namespace of the manifest count alone.
    type: list
    elements: dict
    required: true
    suboptions:
      key:
        description: What the pod is called in the result.
        type: str
        required: true
      manifest:
        description: The pod as a manifest has it, with name and namespace. A namespace that is missing is made.
        type: dict
        required: true
      qos_class:
        description: Koordinator's class that its webhook should give the pod. Empty where none is expected.
        type: str
        choices: ["", BE, LS]
        default: ""
  state:
    description: V(present) makes them and waits, V(read) only looks, V(absent) deletes them and waits.
    type: str
    choices: [present, read, absent]
    default: present
  node:
    description: Name of the node whose readiness and batch resources are told.
    type: str
    default: ""
  agent_namespace:
    description: Namespace of Koordinator's own pods; those on O(node) are told. Empty tells none.
    type: str
    default: ""
  run_id:
    description: Id of the run that the pods belong to; a label.
    type: str
    default: ""
  deadline_s:
    description: Seconds to wait at most.
    type: int
    default: 120
seealso:
  - module: colocation.testbed.pod_values
  - module: colocation.testbed.kubernetes_objects
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Run the batch workload as best effort
  colocation.testbed.workload_pods:
    node: node1
    pods:
      - key: batch
        qos_class: BE
        manifest:
          apiVersion: v1
          kind: Pod
          metadata:
            name: be-ffmpeg
            namespace: colocation-testbed
            labels: {colocation.testbed/workload: batch}
          spec:
            nodeName: node1
            containers:
              - name: batch
                image: 127.0.0.1:15000/ffmpeg:local
                command: [ffmpeg, -f, lavfi, -i, testsrc2, -f, "null", "-"]
                resources: {requests: {cpu: "1", memory: 256Mi}, limits: {cpu: "1", memory: 256Mi}}
"""

RETURN = r"""
pods:
  description:
    - For each pod by its key its uid, node, phase, reason, container_id, restarts, class (Koordinator's), tier
      (Kubernetes' own class) and address. Null for one that is not there.
  returned: always
  type: dict
  sample: {"batch": {"uid": "0b7c…", "node": "node1", "phase": "Running", "reason": "", "container_id": "5f0c…",
    "restarts": 0, "class": "BE", "tier": "BestEffort", "address": "198.18.0.1"}}
lacks:
  description: For each pod by its key what Koordinator's webhook should have given it and did not.
  returned: always
  type: dict
  sample: {"batch": []}
agents:
  description: Koordinator's own pods on the node, each with uid and container_id, by name.
  returned: always
  type: dict
  sample: {"koordlet-x7l2p": {"uid": "71a0…", "container_id": "99ab…"}}
node:
  description: Whether the node is ready, and the batch resources that it offers; empty without O(node).
  returned: always
  type: dict
  sample: {"ready": true, "batch_cpu_milli": 1800, "batch_memory_bytes": 8589934592}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import objects, workload_pods
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import Kubectl, KubectlError

Pods = dict[str, dict[str, Any]]


def _present(module: AnsibleModule, cluster: Kubectl, wanted: list[dict[str, Any]]) -> tuple[bool, Pods]:
    before = workload_pods.read(cluster, wanted)
    if module.check_mode:
        return len(before) < len(wanted), before
    made = workload_pods.ensure_namespaces(cluster, wanted, module.params["run_id"])
    found = workload_pods.start(cluster, wanted, float(module.params["deadline_s"]))
    uids = [{name: item["metadata"]["uid"] for name, item in pods.items()} for pods in (before, found)]
    return made or uids[0] != uids[1], found


def _run(module: AnsibleModule, cluster: Kubectl) -> dict[str, Any]:
    params = module.params
    wanted = [objects.labelled(item["manifest"], params["run_id"]) for item in params["pods"]]
    if params["state"] == "present":
        changed, found = _present(module, cluster, wanted)
    elif params["state"] == "absent":
        gone = workload_pods.stop(cluster, wanted, float(params["deadline_s"]), module.check_mode)
        changed, found = gone, {}
    else:
        changed, found = False, workload_pods.read(cluster, wanted)
    names = {item["key"]: item["manifest"]["metadata"]["name"] for item in params["pods"]}
    return {
        "changed": changed,
        "pods": {
            key: workload_pods.facts(found[name]).to_dict() if name in found else None for key, name in names.items()
        },
        "lacks": {
            item["key"]: workload_pods.lacks(found[names[item["key"]]], item["qos_class"])
            for item in params["pods"]
            if names[item["key"]] in found
        },
        **_surroundings(cluster, params["node"], params["agent_namespace"]),
    }


def _surroundings(cluster: Kubectl, name: str, namespace: str) -> dict[str, Any]:
    node = cluster.get("node", name) if name else None
    pods = cluster.items("pods", namespace) if namespace else []
    own = [item for item in pods if item["spec"].get("nodeName") == name]
    here = {item["metadata"]["name"]: workload_pods.facts(item) for item in own}
    told = {"ready": workload_pods.is_ready(node), **workload_pods.batch_resources(node)} if name else {}
    return {
        "node": told,
        "agents": {key: {"uid": item.uid, "container_id": item.container_id} for key, item in sorted(here.items())},
    }


def main() -> None:
    """Run the module."""
    pod = {
        "key": {"type": "str", "required": True, "no_log": False},
        "manifest": {"type": "dict", "required": True},
        "qos_class": {"type": "str", "choices": ["", "BE", "LS"], "default": ""},
    }
    module = AnsibleModule(
        argument_spec={
            "kubectl": {"type": "list", "elements": "str", "default": ["kubectl"]},
            "pods": {"type": "list", "elements": "dict", "required": True, "options": pod},
            "state": {"type": "str", "choices": ["present", "read", "absent"], "default": "present"},
            "node": {"type": "str", "default": ""},
            "agent_namespace": {"type": "str", "default": ""},
            "run_id": {"type": "str", "default": ""},
            "deadline_s": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    try:
        result = _run(module, Kubectl(tuple(module.params["kubectl"])))
    except (KubectlError, objects.ObjectsError, quantity.QuantityError, workload_pods.PodsError) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
