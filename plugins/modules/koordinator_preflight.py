#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: koordinator_preflight
short_description: Tell whether Koordinator can be installed into a cluster
version_added: 0.1.0
description:
  - Looks at version and nodes of the cluster, at who has installed Koordinator already, at definitions, priority
    classes, webhooks and namespaces of other owners, and at labels that keep webhooks away from pods. All that stands
    in the way is told at once, every right that is missing by verb and resource first.
  - A Koordinator that the platform brings itself is no problem. It is told, and must be left alone.
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
  method:
    description: How it is to be installed.
    type: str
    choices: [manifests, helm]
    required: true
  release:
    description: Name of the Helm release.
    type: str
    default: koordinator
  release_namespace:
    description: Namespace of the Helm release.
    type: str
    default: default
  nodes:
    description: Names of the tested nodes, which must be in the cluster and ready.
    type: list
    elements: str
    default: []
  workload_namespaces:
    description: Namespaces in which pods must be injected.
    type: list
    elements: str
    default: []
  crds:
    description: Which definitions are installed, as C(crds) of the chart's values. Those that are not may be another's.
    type: dict
    default: {}
  policy:
    description: The policy that it will get. What of it would do nothing on a node, as suppress by CPUs on a node with
      two of them, is told.
    type: dict
    default: {}
  features:
    description: Feature gates of the agent, by which the policy is judged.
    type: str
    default: ""
  cgroup_root:
    description: Control group of all pods. Where it is empty, kubelet is asked if it may be.
    type: str
    default: ""
  removal:
    description: Whether it is to be removed, for which it only matters who has installed it.
    type: bool
    default: false
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: See whether the chart can be installed
  colocation.testbed.koordinator_preflight:
    method: helm
    nodes: [node1]
"""

RETURN = r"""
owner:
  description: Who has installed Koordinator already (platform, helm, manifests, unknown), empty for nobody.
  returned: always
  type: str
  sample: platform
server_version:
  description: Version of the cluster.
  returned: always
  type: str
  sample: v1.34.4
problems:
  description: One sentence for each thing that stands in the way.
  returned: on failure
  type: list
  elements: str
  sample: ["namespace koordinator-system: exists and is not ours; delete it with: kubectl delete namespace
    koordinator-system"]
remarks:
  description: One sentence for each thing that one should know.
  returned: always
  type: list
  elements: str
  sample: []
node_keys:
  description: Labels and annotations of Koordinator's domain that nodes have although nobody has installed it. Somebody
    set them by hand, so a removal must keep them.
  returned: always
  type: list
  elements: str
  sample: [node.koordinator.sh/cpu-reclaim-ratio]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import (
    attach,
    koordinator_owner,
    koordinator_preflight,
    koordinator_rights,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import Kubectl, KubectlError
from ansible_collections.colocation.testbed.plugins.module_utils.policy import koordinator_gates


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "kubectl": {"type": "list", "elements": "str", "default": ["kubectl"]},
            "method": {"type": "str", "choices": ["manifests", "helm"], "required": True},
            "release": {"type": "str", "default": "koordinator"},
            "release_namespace": {"type": "str", "default": "default"},
            "nodes": {"type": "list", "elements": "str", "default": []},
            "workload_namespaces": {"type": "list", "elements": "str", "default": []},
            "removal": {"type": "bool", "default": False},
            "crds": {"type": "dict", "default": {}},
            "policy": {"type": "dict", "default": {}},
            "features": {"type": "str", "default": ""},
            "cgroup_root": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    order = koordinator_preflight.Order(**{key: value for key, value in module.params.items() if key != "kubectl"})
    try:
        api = Kubectl(tuple(module.params["kubectl"]))
        cluster = koordinator_preflight.read(api, order.nodes)
        found = koordinator_preflight.judge(cluster, order)
        rights = list(koordinator_rights.needed(order.installation, order.removal, tuple(order.workload_namespaces)))
        missing = [] if found.owner == koordinator_owner.PLATFORM else attach.missing_rights(api, rights)
    except (KubectlError, attach.AttachError, koordinator_gates.GatesError) as exc:
        module.fail_json(msg=str(exc))
    problems = [*missing, *found.problems]
    for text in found.remarks:
        module.warn(text)
    result: dict[str, Any] = {
        "owner": found.owner,
        "server_version": cluster.version,
        "remarks": list(found.remarks),
        "node_keys": list(found.node_keys),
    }
    if problems:
        module.fail_json(msg="; ".join(problems), problems=problems, **result)
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
