#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubernetes_objects
short_description: Bring objects of a Kubernetes cluster about, or take them away
version_added: 0.1.0
description:
  - Applies objects on the server's side, all of them in a few calls, and reads back that nothing is left to change.
  - Every object gets the label C(app.kubernetes.io/managed-by=colocation-testbed), and O(run_id) as
    C(colocation.testbed/run). Only objects with the first label are ever changed or deleted.
  - Whether an object is the same is the server's answer to a trial, so defaults that the cluster fills in are no
    change. Pods and jobs, which can't be changed, are deleted and made again when what they were made from differs.
  - Namespaces and definitions of kinds come first and are waited for, so that one call may have everything.
extends_documentation_fragment:
  - colocation.testbed.attributes
  - colocation.testbed.kubectl
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  objects:
    description: The objects, as a manifest has them. With O(state=absent), kind and name count alone.
    type: list
    elements: dict
    required: true
  state:
    description:
      - V(present) makes and changes, V(absent) deletes those that are ours and waits until they are gone.
    type: str
    choices: [present, absent]
    default: present
  run_id:
    description: Id of the run that the objects belong to; a label.
    type: str
    default: ""
  adopt:
    description:
      - Whether an object that exists without our label becomes ours. Otherwise all of them are named before anything
        changes, or left as they are with O(skip_foreign=true).
    type: bool
    default: false
  skip_foreign:
    description: Whether an object that exists without our label is left as it is, instead of failing.
    type: bool
    default: false
  part_of:
    description:
      - Name of what the objects are parts of, their label C(app.kubernetes.io/part-of). Objects of ours with that label
        that are not in O(objects) are deleted. Empty deletes none.
    type: str
    default: ""
  timeout_s:
    description: Seconds to wait at most until what is deleted is gone.
    type: int
    default: 120
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Make a namespace for workloads
  colocation.testbed.kubernetes_objects:
    kubectl: [kubectl, --context, lab]
    run_id: "20261201-0700"
    objects:
      - apiVersion: v1
        kind: Namespace
        metadata: {name: colocation-testbed}

- name: Remove it with all that is in it
  colocation.testbed.kubernetes_objects:
    kubectl: [kubectl, --context, lab]
    state: absent
    objects:
      - apiVersion: v1
        kind: Namespace
        metadata: {name: colocation-testbed}
"""

RETURN = r"""
objects:
  description: Each object with kind, namespace, name and what was done or, in check mode, would be (create, change,
    same, foreign, delete).
  returned: always
  type: list
  elements: dict
  sample: [{"kind": "Namespace", "namespace": "", "name": "colocation-testbed", "action": "create"}]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import objects
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import (
    Kubectl,
    KubectlError,
    identity,
    shown,
)


def _present(module: AnsibleModule, cluster: Kubectl, wanted: list[dict[str, Any]]) -> dict[str, Any]:
    foreign = "adopt" if module.params["adopt"] else "skip" if module.params["skip_foreign"] else "fail"
    planned = objects.plan(cluster, wanted, foreign)
    part_of = module.params["part_of"]
    stale = objects.parts(cluster, part_of, wanted) if part_of else []
    changed = bool(stale) or any(item.action in (objects.CREATE, objects.CHANGE) for item in planned)
    if changed and not module.check_mode:
        objects.carry_out(cluster, planned)
        objects.remove(cluster, stale, float(module.params["timeout_s"]))
        left = objects.read_back(cluster, planned)
        if left:
            module.fail_json(msg=f"{', '.join(left)}: was applied, and is not as it was asked for; look who changes it")
    rows = [*(item.row() for item in planned), *_deleted(stale)]
    result: dict[str, Any] = {"changed": changed, "objects": rows}
    if module._diff:
        result["diff"] = objects.diff(planned)
        result["diff"]["before"] += "".join(f"--- {shown(item)}\n" for item in stale)
    return result


def _deleted(doomed: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [dict(zip(("kind", "namespace", "name"), identity(item)), action="delete") for item in doomed]


def _absent(module: AnsibleModule, cluster: Kubectl, wanted: list[dict[str, Any]]) -> dict[str, Any]:
    doomed = objects.doomed(cluster, wanted)
    if doomed and not module.check_mode:
        objects.remove(cluster, doomed, float(module.params["timeout_s"]))
    result: dict[str, Any] = {"changed": bool(doomed), "objects": _deleted(doomed)}
    if module._diff:
        result["diff"] = {"before": "".join(f"{shown(item)}\n" for item in doomed), "after": ""}
    return result


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "kubectl": {"type": "list", "elements": "str", "default": ["kubectl"]},
            "objects": {"type": "list", "elements": "dict", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "run_id": {"type": "str", "default": ""},
            "adopt": {"type": "bool", "default": False},
            "skip_foreign": {"type": "bool", "default": False},
            "part_of": {"type": "str", "default": ""},
            "timeout_s": {"type": "int", "default": 120},
        },
        mutually_exclusive=[("adopt", "skip_foreign")],
        supports_check_mode=True,
    )
    try:
        cluster = Kubectl(tuple(module.params["kubectl"]))
        wanted = [objects.labelled(item, module.params["run_id"]) for item in module.params["objects"]]
        result = (_present if module.params["state"] == "present" else _absent)(module, cluster, wanted)
    except (KubectlError, objects.ObjectsError) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
