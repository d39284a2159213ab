#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_record
short_description: Note in a host's journal what was put into a cluster
version_added: 0.1.0
description:
  - Notes a part of the collection, such as Koordinator, that goes into a cluster, with what is needed to remove it
    again. So a reset finds it in a cluster of somebody else's, without facts of the run that put it there.
  - What is noted first wins, as with everything in the journal.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  state:
    description: V(present) notes a part, V(absent) forgets one that was removed, V(read) returns all.
    type: str
    choices: [present, absent, read]
    default: present
  part:
    description: Name of the part. With O(state=read), empty returns all parts.
    type: str
    default: ""
  kubectl:
    description: Program and arguments that reach the cluster. With O(state=read), empty returns those of all clusters.
    type: list
    elements: str
    default: []
  provider:
    description: Who provides the cluster, as role C(kubernetes) has it. What V(existing) is not goes with its cluster.
    type: str
    choices: [existing, processes, kubeadm]
    default: existing
  settings:
    description: What the part is removed with.
    type: dict
    default: {}
  state_dir:
    description: The state directory of the host; the journal is C(journal.json) in it.
    type: path
    default: /var/lib/colocation-testbed
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Note that Koordinator goes into the cluster
  colocation.testbed.cluster_record:
    part: koordinator
    kubectl: [kubectl, --context, lab]
    settings: {method: manifests}

- name: See what is in clusters
  colocation.testbed.cluster_record:
    state: read
"""

RETURN = r"""
records:
  description: What is noted of the part and the cluster, oldest first, each with part, kubectl, provider, settings, and
    C(goes_with_its_cluster).
  returned: always
  type: list
  elements: dict
  sample: [{"part": "koordinator", "kubectl": ["kubectl"], "provider": "existing", "settings": {"method": "manifests"},
    "goes_with_its_cluster": false}]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import journal
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import cluster_record


def _row(record: cluster_record.Record) -> dict[str, Any]:
    row = {**vars(record), "kubectl": list(record.kubectl), "settings": dict(record.settings)}
    return {**row, "goes_with_its_cluster": record.goes_with_its_cluster}


def _run(params: dict[str, Any], check: bool) -> dict[str, Any]:
    book = journal.of(params["state_dir"])
    part, argv = params["part"], tuple(params["kubectl"])
    wanted = cluster_record.Record(part, argv, params["provider"], params["settings"])
    known = cluster_record.records(book)
    is_known = any(item.target == wanted.target for item in known)
    changed = params["state"] != "read" and is_known != (params["state"] == "present")
    if changed and not check:
        if params["state"] == "present":
            book.record_many([wanted.change()], cluster_record.BY)
        else:
            book.forget(cluster_record.KIND, wanted.target)
        known = cluster_record.records(book)
    chosen = [item for item in known if part in ("", item.part) and argv in ((), item.kubectl)]
    line = f"{wanted.target}\n" if changed else ""
    texts = ("", line) if params["state"] == "present" else (line, "")
    return {
        "changed": changed,
        "records": [_row(item) for item in chosen],
        "diff": dict(zip(("before", "after"), texts)),
    }


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent", "read"], "default": "present"},
            "part": {"type": "str", "default": ""},
            "kubectl": {"type": "list", "elements": "str", "default": []},
            "provider": {"type": "str", "choices": ["existing", "processes", "kubeadm"], "default": "existing"},
            "settings": {"type": "dict", "default": {}},
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
        },
        supports_check_mode=True,
    )
    if module.params["state"] != "read" and not (module.params["part"] and module.params["kubectl"]):
        module.fail_json(msg="part, kubectl: are empty; say what goes into which cluster")
    try:
        result = _run(module.params, module.check_mode)
    except journal.JournalError as exc:
        module.fail_json(msg=str(exc))
    if not module._diff:
        result.pop("diff")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
