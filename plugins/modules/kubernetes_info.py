#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubernetes_info
short_description: Look whether a cluster can be used, and what it is like
version_added: 0.1.0
description:
  - Checks a cluster that somebody else runs, and changes nothing in it. It asks in the order in which things go
    wrong, from the kubeconfig and its context to the API server, the credentials, the rights and the nodes.
  - Each right is asked for by a SelfSubjectAccessReview. All that are missing are named at once.
  - Nodes are asked for version, runtime, cgroup driver and version of control groups.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  kubectl:
    description: The program.
    type: str
    default: kubectl
  kubeconfig:
    description: File that says how the cluster is reached.
    type: path
    default: ~/.kube/config
  context:
    description: Context in the file; its current one where it is empty.
    type: str
    default: ""
  rights:
    description: What must be allowed.
    type: list
    elements: dict
    default: []
    suboptions:
      verb:
        description: Verb such as V(create).
        type: str
        required: true
      resource:
        description: Resource such as V(pods) or V(pods/log).
        type: str
        required: true
      group:
        description: API group; empty for the core.
        type: str
        default: ""
      namespace:
        description: Namespace; empty for all.
        type: str
        default: ""
  nodes:
    description: Names of nodes that must be in the cluster and ready.
    type: list
    elements: str
    default: []
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Look at the cluster
  colocation.testbed.kubernetes_info:
    context: test-cluster
    nodes: [node-1]
    rights:
      - {verb: create, resource: pods, namespace: colocation-testbed}
  delegate_to: localhost
"""

RETURN = r"""
kubectl:
  description: Program and arguments that reach the cluster.
  returned: always
  type: list
  elements: str
  sample: [kubectl, --kubeconfig, /root/.kube/config, --context, test-cluster]
context:
  description: Context that is in use.
  returned: always
  type: str
server_version:
  description: Version of the API server.
  returned: always
  type: str
  sample: v1.34.4
nodes:
  description: The nodes that were asked for, by name; all of them where none was.
  returned: always
  type: dict
  contains:
    kubelet_version: {description: Version of the kubelet., type: str, sample: v1.34.4}
    runtime_name: {description: Container runtime., type: str, sample: containerd}
    runtime_version: {description: Its version., type: str, sample: 2.1.6}
    runtime_socket: {description: Where it listens., type: str}
    nri: {description: Whether the runtime has NRI on by default., type: bool}
    cgroup_driver: {description: Driver of the kubelet or an empty text., type: str, sample: systemd}
    cgroup_root: {description: Control group of all pods., type: str, sample: /kubepods.slice}
    cgroup_version: {description: Version of control groups; null where it is not known., type: int, sample: 2}
notes:
  description: What could not be found out, and why.
  returned: always
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import attach
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import Kubectl, KubectlError

RIGHT: dict[str, Any] = {
    "verb": {"type": "str", "required": True},
    "resource": {"type": "str", "required": True},
    "group": {"type": "str", "default": ""},
    "namespace": {"type": "str", "default": ""},
}


def run(params: dict[str, Any]) -> dict[str, Any]:
    """Ask one thing after the other; what depends on an answer is not asked without it."""
    argv = attach.prefix(params["kubectl"], params["kubeconfig"], params["context"])
    cluster = Kubectl(argv)
    context = attach.current_context(cluster, params["context"])
    version = attach.server_version(cluster)
    problems = attach.missing_rights(cluster, [attach.Right(**item) for item in params["rights"]])
    if problems:
        raise attach.AttachError("; ".join(problems))
    found = attach.nodes(cluster)
    problems = attach.node_problems(found, params["nodes"])
    if problems:
        raise attach.AttachError("; ".join(problems))
    asked = [attach.with_kubelet(cluster, found[name]) for name in params["nodes"] or sorted(found)]
    return {
        "kubectl": list(argv),
        "context": context,
        "server_version": version,
        "nodes": {node.name: {**vars(node), "nri": node.nri} for node, _note in asked},
        "notes": [note for _node, note in asked if note],
    }


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "kubectl": {"type": "str", "default": "kubectl"},
            "kubeconfig": {"type": "path", "default": "~/.kube/config"},
            "context": {"type": "str", "default": ""},
            "rights": {"type": "list", "elements": "dict", "default": [], "options": RIGHT},
            "nodes": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    try:
        result = run(module.params)
    except (KubectlError, attach.AttachError) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
