#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: koordinator_leftovers
short_description: Remove from a cluster what Koordinator leaves behind
version_added: 0.1.0
description:
  - Removes webhooks, priority classes, definitions of kinds with all their objects, and Koordinator's namespace,
    where an uninstall left them and they are ours; batch and mid resources from the capacity and allocatable of nodes;
    and labels and annotations of Koordinator's domain from nodes.
  - Ours is what has our label C(app.kubernetes.io/managed-by=colocation-testbed), and with O(method=helm) what Helm's
    annotations say to be of that release. Everything else stays, and is named in RV(left) with its owner.
  - With O(method=manifests) removes the installation first, which it knows by its labels.
  - Refuses while a manager or an agent still runs, since they would write all of it again; also those that a platform
    installed itself.
extends_documentation_fragment:
  - colocation.testbed.attributes
  - colocation.testbed.kubectl
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  method:
    description: How role C(koordinator) installed it. Empty when nobody knows, so that only our label counts.
    type: str
    choices: ["", manifests, helm]
    default: ""
  release:
    description: Name of the Helm release, for O(method=helm).
    type: str
    default: koordinator
  release_namespace:
    description: Namespace of the Helm release.
    type: str
    default: default
  namespace:
    description: Koordinator's namespace.
    type: str
    default: koordinator-system
  keep:
    description: Labels and annotations of nodes in Koordinator's domain that stay, as users set some themselves.
    type: list
    elements: str
    default: []
  deadline_s:
    description: Seconds to wait at most until what is deleted is gone, and to see that nothing comes back.
    type: int
    default: 120
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Leave nothing of Koordinator behind
  colocation.testbed.koordinator_leftovers:
    kubectl: [kubectl, --context, lab]
"""

RETURN = r"""
removed:
  description: One sentence for each thing that was (in check mode, would be) removed.
  returned: always
  type: list
  elements: str
  sample: ["node node1: capacity kubernetes.io/batch-cpu removed"]
left:
  description: One sentence for each thing under a name of Koordinator's that is not ours, with its owner.
  returned: always
  type: list
  elements: str
  sample: ["CustomResourceDefinition podgroups.scheduling.sigs.k8s.io: left, as it is of somebody else"]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import (
    koordinator_leftovers,
    koordinator_names,
    koordinator_owner,
    objects,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import (
    Kubectl,
    KubectlError,
    identity,
    shown,
    wait,
)


def _stopped(module: AnsibleModule, cluster: Kubectl) -> None:
    """See that nobody is left who would write everything again; pods that are ending are waited for."""
    left: list[str] = []

    def is_gone() -> bool:
        left[:] = koordinator_leftovers.running(cluster)
        return not left

    if not wait(is_gone, 0.0 if module.check_mode else float(module.params["deadline_s"])) and not module.check_mode:
        module.fail_json(msg=f"{', '.join(left)}: still runs and would write everything again; uninstall it first")


def _run(module: AnsibleModule) -> dict[str, Any]:
    cluster, keep = Kubectl(tuple(module.params["kubectl"])), module.params["keep"]
    deadline_s = float(module.params["deadline_s"])
    by_manifests = module.params["method"] == koordinator_owner.MANIFESTS
    own = objects.parts(cluster, koordinator_names.PART) if by_manifests else []
    patches = koordinator_leftovers.nodes(cluster, keep)
    known = {identity(item) for item in own}
    names = ("method", "release", "release_namespace")
    installation = koordinator_owner.Installation(*(module.params[name] for name in names))
    found = koordinator_leftovers.objects(cluster, module.params["namespace"], installation)
    left = [item for item in found.ours if identity(item) not in known]
    texts = [f"{shown(item)}: deleted" for item in (*own, *left)] + [text for item in patches for text in item.texts()]
    if own and not module.check_mode:
        objects.remove(cluster, own, deadline_s)
    if texts:
        _stopped(module, cluster)
    if texts and not module.check_mode:
        objects.remove(cluster, left, deadline_s)
        patches = koordinator_leftovers.nodes(cluster, keep)
        koordinator_leftovers.clean_nodes(cluster, patches, keep, deadline_s)
    result: dict[str, Any] = {"changed": bool(texts), "removed": texts, "left": list(found.left)}
    if module._diff:
        result["diff"] = {"before": "".join(f"{text}\n" for text in texts), "after": ""}
    return result


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "kubectl": {"type": "list", "elements": "str", "default": ["kubectl"]},
            "method": {"type": "str", "choices": ["", "manifests", "helm"], "default": ""},
            "release": {"type": "str", "default": "koordinator"},
            "release_namespace": {"type": "str", "default": "default"},
            "namespace": {"type": "str", "default": "koordinator-system"},
            "keep": {"type": "list", "elements": "str", "default": []},
            "deadline_s": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    try:
        result = _run(module)
    except (KubectlError, koordinator_leftovers.LeftoversError) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
