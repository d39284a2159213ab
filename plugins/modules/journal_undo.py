#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: journal_undo
short_description: Put a host back as it was, by its journal
version_added: 0.1.0
description:
  - Undoes every change that the collection recorded in the journal of a host, newest first.
  - An entry leaves the journal as soon as it is undone, so that a run which was killed can be continued.
  - What was there before is never removed. Processes are ended only when number, start time and boot are those that
    were recorded; control groups are removed only when nobody is in them.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  state_dir:
    description: The state directory of the host; the journal is C(journal.json) in it.
    type: path
    default: /var/lib/colocation-testbed
  remove_packages:
    description:
      - Whether packages that the collection installed are removed.
      - When V(false), they are kept and reported, and stay in the journal.
    type: bool
    default: false
  forget_clusters:
    description:
      - Whether what was put into a cluster of somebody else's is given up when it is still noted, since the cluster is
        gone for good. Otherwise that stays in the journal, with what Koordinator's agent has on this host.
    type: bool
    default: false
  cluster_problem:
    description: Why what is in a cluster could not be removed before; for the message.
    type: str
    default: ""
  term_deadline_s:
    description: Seconds that a process may take to end by itself before it is killed.
    type: int
    default: 10
seealso:
  - module: colocation.testbed.host_snapshot
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Put the host back as it was
  colocation.testbed.journal_undo:
    state_dir: /var/lib/colocation-testbed

- name: Remove the packages too
  colocation.testbed.journal_undo:
    remove_packages: true
"""

RETURN = r"""
undone:
  description: One sentence for each change that was (in check mode, would be) undone, in that order.
  returned: always
  type: list
  elements: str
  sample: ["/sys/fs/cgroup/cpu/colocation-testbed: removed"]
kept:
  description: One sentence for each change that was kept on purpose.
  returned: always
  type: list
  elements: str
  sample: ["packages nginx: kept; set remove_packages to remove them"]
failed_entries:
  description: One sentence for each change that could not be undone; it stays in the journal.
  returned: always
  type: list
  elements: str
  sample: []
"""

from collections.abc import Sequence
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import journal, quantity, undo, undo_places
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import reconcile
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import cluster_record, leftovers
from ansible_collections.colocation.testbed.plugins.module_utils.shaping import qdiscs


def diff(done: Sequence[journal.Undone], path: str) -> dict[str, str]:
    """Return the journal's entries before and after."""
    before = [f"{item.entry.kind} {item.entry.target}" for item in done]
    after = [f"{item.entry.kind} {item.entry.target}" for item in done if item.outcome.result != "undone"]
    return {
        "before": "".join(f"{line}\n" for line in before),
        "after": "".join(f"{line}\n" for line in after),
        "before_header": path,
        "after_header": path,
    }


def run(module: AnsibleModule) -> None:
    """Undo, then report; every entry is tried even when an earlier one fails."""
    book = journal.of(module.params["state_dir"])
    existed = book.exists()
    entries = book.entries()
    actions = undo.Undo(
        remove_packages=module.params["remove_packages"],
        packages=tuple(entry.target for entry in entries if entry.kind == "package"),
        term_deadline_s=float(module.params["term_deadline_s"]),
    )
    handlers = {
        **actions.handlers(),
        reconcile.JOURNAL_KIND: reconcile.undo,
        qdiscs.JOURNAL_KIND: qdiscs.undo,
        **leftovers.handlers(),
    }
    clusters = cluster_record.Undo(module.params["forget_clusters"], module.params["cluster_problem"])
    done = book.undo(clusters.handlers(handlers, entries, module.check_mode), module.check_mode, actions.settle)
    texts = {
        result: [item.outcome.text for item in done if item.outcome.result == result]
        for result in ("undone", "kept", "failed")
    }
    left = texts["kept"] + texts["failed"]
    result: dict[str, Any] = {
        "changed": bool(texts["undone"]) or (existed and not left),
        "undone": texts["undone"],
        "kept": texts["kept"],
        "failed_entries": texts["failed"],
    }
    if module._diff:
        result["diff"] = diff(done, book.path)
    if texts["failed"]:
        stay = "stays" if len(texts["failed"]) == 1 else "stay"
        total = quantity.counted(len(done), "change")
        count = f"{len(texts['failed'])} of {total} could not be undone and {stay} in {book.path}"
        failed = undo_places.condensed([item for item in done if item.outcome.result == "failed"])
        module.fail_json(msg=f"{count}: {'; '.join(failed)}", **result)
    module.exit_json(**result)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
            "remove_packages": {"type": "bool", "default": False},
            "forget_clusters": {"type": "bool", "default": False},
            "cluster_problem": {"type": "str", "default": ""},
            "term_deadline_s": {"type": "int", "default": 10},
        },
        supports_check_mode=True,
    )
    try:
        run(module)
    except journal.JournalError as exc:
        module.fail_json(msg=str(exc))


if __name__ == "__main__":
    main()
