#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubernetes_objects
short_description: Bring objects of a cluster about through kubectl, labelled as ours
version_added: 0.1.0
description:
  - Applies a list of objects with one call of C(kubectl), and needs nothing else on the host that runs it.
  - Every object gets the labels C(app.kubernetes.io/managed-by=colocation-testbed) and C(colocation.testbed/run), by
    which what the collection made can be told from what others made.
  - An object that is there and was not made by the collection is refused, unless O(adopt=true).
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
    details: The API server is asked by a dry run.
  diff_mode:
    support: full
options:
  kubectl:
    description: Program and arguments that reach the cluster, as in the fact C(kubernetes_deployed.kubectl).
    type: list
    elements: str
    required: true
  objects:
    description: The objects, in the order in which they are made.
    type: list
    elements: dict
    required: true
  state:
    description: Whether the objects should exist. With V(absent) the task returns when they are gone.
    type: str
    choices: [present, absent]
    default: present
  run_id:
    description: Value of the label C(colocation.testbed/run).
    type: str
    default: ""
  adopt:
    description: Whether objects that others made may be changed or deleted.
    type: bool
    default: false
  timeout_s:
    description: Seconds that one call may take.
    type: int
    default: 120
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Make a namespace for the workloads
  colocation.testbed.kubernetes_objects:
    kubectl: "{{ kubernetes_deployed.kubectl }}"
    objects:
      - apiVersion: v1
        kind: Namespace
        metadata: {name: colocation-testbed}
"""

RETURN = r"""
objects:
  description: The objects that changed, or would.
  returned: always
  type: list
  elements: str
  sample: [namespace/colocation-testbed]
"""

import json
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import api


def foreign(cluster: api.Api, objects: list[dict[str, Any]]) -> list[str]:
    """Return the names of those objects that are there and do not carry our label. Raises ApiError."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    names = ", ".join(api.name_of(item) for item in objects)
    output = cluster.call(["get", "--ignore-not-found", "-o", "json", "-f", "-"], f"read {names}", text)
    found = json.loads(output) if output.strip() else {"items": []}
    items = found["items"] if found.get("kind") == "List" or "items" in found else [found]
    wanted = api.MANAGED_BY.items()
    return [api.name_of(item) for item in items if not wanted <= (item["metadata"].get("labels") or {}).items()]


def run(module: AnsibleModule) -> dict[str, Any]:
    """Check whose the objects are, then apply or delete."""
    params = module.params
    cluster = api.Api(tuple(params["kubectl"]), float(params["timeout_s"]))
    objects = [api.labelled(item, params["run_id"]) for item in params["objects"]]
    others = [] if params["adopt"] or not objects else foreign(cluster, objects)
    if others:
        raise api.ApiError(
            f"{', '.join(others)}: is there and was not made by this collection; choose another name, or let it be "
            "taken over with adopt"
        )
    act = api.apply if params["state"] == "present" else api.delete
    changed = act(cluster, objects, module.check_mode) if objects else []
    lines = "".join(f"{name}\n" for name in changed)
    made = params["state"] == "present"
    return {
        "changed": bool(changed),
        "objects": changed,
        "diff": {"before": "" if made else lines, "after": lines if made else ""},
    }


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "kubectl": {"type": "list", "elements": "str", "required": True},
            "objects": {"type": "list", "elements": "dict", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "run_id": {"type": "str", "default": ""},
            "adopt": {"type": "bool", "default": False},
            "timeout_s": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    try:
        result = run(module)
    except api.ApiError as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
