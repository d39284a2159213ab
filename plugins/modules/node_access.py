#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_access
short_description: Put a pod on a Kubernetes node through which tasks run there
version_added: 0.1.0
description:
  - Makes a privileged pod on one node, by a DaemonSet of its own, and waits until it is ready. Connection
    P(colocation.testbed.node_pod#connection) runs tasks in it, on nodes that nobody can log in to.
  - The pod has the node's processes, network, devices and C(/sys), and O(directory) of the node at the same path.
  - Before anything is made, it asks for every right, for the node, and whether such a pod would be admitted.
  - The namespace is made with the labels that admit privileged pods, and goes with the last pod. One that somebody else
    has made is used as it is, and stays.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  kubectl:
    description: The program that reaches the cluster.
    type: str
    default: kubectl
  kubeconfig:
    description: The kubeconfig.
    type: str
    default: ~/.kube/config
  context:
    description: Context of the kubeconfig. Where it is empty, its current one.
    type: str
    default: ""
  node:
    description: Name of the node.
    type: str
    required: true
  state:
    description:
      - V(present) makes the pod and waits, V(absent) takes it away. With V(read) nothing is changed; a pod that should
        be there is waited for.
      - V(absent) refuses while a journal of the collection's is on the node, as its changes could not be undone any
        more, and where no pod is ready that could tell.
    type: str
    choices: [present, absent, read]
    default: present
  namespace:
    description: Namespace of the pods.
    type: str
    default: colocation-testbed-access
  image:
    description: Image with C(/bin/sh), Python 3.9 or newer, and C(sleep), C(find), C(wc), C(cat) and C(rmdir).
    type: str
    default: docker.io/library/python:3.11-slim
  image_pull_policy:
    description: When the image is pulled.
    type: str
    choices: [IfNotPresent, Always, Never]
    default: IfNotPresent
  directory:
    description:
      - Directory of the node that the pod has at the same path. It is made where it is missing, and removed with the
        pod when it is empty then.
    type: path
    default: /var/lib/colocation-testbed
  state_dir:
    description: State directory of the node, which must lie below O(directory).
    type: path
    default: /var/lib/colocation-testbed/node
  more_directories:
    description: Further directories of the node that the pod has, at the same paths.
    type: list
    elements: path
    default: []
  requests:
    description: What the pod requests. Without requests it would be best effort.
    type: dict
    default: {cpu: 10m, memory: 64Mi}
  force:
    description: Whether V(absent) takes the pod away although the node's changes were not undone.
    type: bool
    default: false
  run_id:
    description: Id of the run that the objects belong to; a label.
    type: str
    default: ""
  deadline_s:
    description: Seconds to wait at most until the pod is ready, or gone.
    type: int
    default: 180
seealso:
  - plugin: colocation.testbed.node_pod
    plugin_type: connection
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Get at a node without logging in
  colocation.testbed.node_access:
    context: lab
    node: node1

- name: Take the pod away again
  colocation.testbed.node_access:
    context: lab
    node: node1
    state: absent
"""

RETURN = r"""
there:
  description: Whether the node has, or would have, a pod of ours.
  returned: always
  type: bool
  sample: true
pod:
  description: Name of the pod that is ready. Empty where there is none, and in a prediction.
  returned: always
  type: str
  sample: node-access-node1-x7l2p
objects:
  description: Each object with kind, namespace, name and what was done or, in check mode, would be (create, change,
    same, foreign, delete).
  returned: always
  type: list
  elements: dict
  sample: [{"kind": "DaemonSet", "namespace": "colocation-testbed-access", "name": "node-access-node1",
    "action": "create"}]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import (
    access_manifests,
    attach,
    node_access,
    objects,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import (
    Kubectl,
    KubectlError,
    identity,
    shown,
)


def _wanted(params: dict[str, Any]) -> access_manifests.Wanted:
    return access_manifests.Wanted(
        node=params["node"],
        image=params["image"],
        directory=params["directory"],
        state_dir=params["state_dir"],
        namespace=params["namespace"],
        pull_policy=params["image_pull_policy"],
        more_directories=tuple(params["more_directories"]),
        requests={str(key): str(value) for key, value in params["requests"].items()},
    )


def _present(params: dict[str, Any], cluster: Kubectl, check: bool) -> dict[str, Any]:
    done = node_access.ensure(cluster, _wanted(params), params["run_id"], float(params["deadline_s"]), check)
    pod = done.pod
    if check and not done.changed:
        pod = node_access.look(cluster, params["node"], params["namespace"]).pod
    rows = [item.row() for item in done.planned]
    return {"changed": done.changed, "there": True, "pod": pod, "objects": rows, "diff": objects.diff(done.planned)}


def _absent(params: dict[str, Any], cluster: Kubectl, check: bool) -> dict[str, Any]:
    place = (params["node"], params["namespace"], float(params["deadline_s"]))
    gone = node_access.remove(cluster, *place, params["force"], check)
    rows = [dict(zip(("kind", "namespace", "name"), identity(item)), action="delete") for item in gone]
    texts = {"before": "".join(f"{shown(item)}\n" for item in gone), "after": ""}
    return {"changed": bool(gone), "there": False, "pod": "", "objects": rows, "diff": texts}


def _read(params: dict[str, Any], cluster: Kubectl, _check: bool) -> dict[str, Any]:
    place = (params["node"], params["namespace"])
    found = node_access.look(cluster, *place)
    pod = node_access.wait(cluster, *place, float(params["deadline_s"])) if found.wanted else ""
    return {"changed": False, "there": found.wanted, "pod": pod, "objects": [], "diff": {"before": "", "after": ""}}


ACTIONS = {"present": _present, "absent": _absent, "read": _read}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "kubectl": {"type": "str", "default": "kubectl"},
            "kubeconfig": {"type": "str", "default": "~/.kube/config"},
            "context": {"type": "str", "default": ""},
            "node": {"type": "str", "required": True},
            "state": {"type": "str", "choices": list(ACTIONS), "default": "present"},
            "namespace": {"type": "str", "default": access_manifests.NAMESPACE},
            "image": {"type": "str", "default": "docker.io/library/python:3.11-slim"},
            "image_pull_policy": {
                "type": "str",
                "choices": ["IfNotPresent", "Always", "Never"],
                "default": "IfNotPresent",
            },
            "directory": {"type": "path", "default": "/var/lib/colocation-testbed"},
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed/node"},
            "more_directories": {"type": "list", "elements": "path", "default": []},
            "requests": {"type": "dict", "default": {"cpu": "10m", "memory": "64Mi"}},
            "force": {"type": "bool", "default": False},
            "run_id": {"type": "str", "default": ""},
            "deadline_s": {"type": "int", "default": 180},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        cluster = Kubectl(attach.prefix(params["kubectl"], params["kubeconfig"], params["context"]))
        result = ACTIONS[params["state"]](params, cluster, module.check_mode)
    except (KubectlError, attach.AttachError, node_access.AccessError, objects.ObjectsError) as exc:
        module.fail_json(msg=str(exc))
    if not module._diff:
        result.pop("diff")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
