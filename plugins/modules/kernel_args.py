#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_args
short_description: Set arguments of the kernel for the next boots, and tell whether a reboot is needed
version_added: 0.1.0
description:
  - Adds arguments to the kernel's command line through a drop-in of its own,
    C(/etc/default/grub.d/90-colocation-testbed.cfg), and runs C(update-grub) when that changes.
  - Compares three places, the running kernel in C(/proc/cmdline), the drop-in, and the first entry of the C(grub.cfg)
    that GRUB reads at boot.
  - Never reboots. RV(reboot_required) tells whether the running kernel differs from what was asked for.
  - Works with GRUB as Debian and Ubuntu package it. Elsewhere it compares, and says what it cannot do.
  - Every change is recorded in the journal first. Undoing it runs C(update-grub) again.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  state:
    description:
      - V(present) applies O(arguments). Arguments in the drop-in that are not in the list stay.
      - V(absent) takes back everything that this module changed on the host, and needs no arguments.
    type: str
    choices: [present, absent]
    default: present
  state_dir:
    description: The state directory of the host; the journal is C(journal.json) in it.
    type: path
    default: /var/lib/colocation-testbed
  on_missing:
    description:
      - What happens where arguments that the running kernel lacks cannot be set on this host.
      - V(fail) says why and changes nothing. V(skip) reports it in RV(unsupported).
    type: str
    choices: [fail, skip]
    default: fail
  arguments:
    description: The arguments, each with one value.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description:
          - Name of the argument. Dashes and underscores are the same to the kernel.
          - Arguments that decide whether the host comes up at all, such as C(root) and C(init), are refused.
        type: str
        required: true
      value:
        description:
          - Its value, none for an argument without one. Booleans are refused, because YAML makes them of C(on) and
            C(off).
          - For C(isolcpus), C(nohz_full), C(rcu_nocbs), C(irqaffinity) and C(kthread_cpus) a CPU list of CPUs that the
            host has, also in the kernel's own words (C(1-N), C(0-15:1/4), C(all)). C(isolcpus) must leave one.
          - For C(rdt) the words are added to those that the drop-in has; a C(!word) takes the place of the word.
        type: raw
      state:
        description: V(absent) takes the argument out of the drop-in. What other files add is reported and stays.
        type: str
        choices: [present, absent]
        default: present
seealso:
  - module: colocation.testbed.host_tuning
  - module: colocation.testbed.journal_undo
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Keep one CPU for the host, and switch on cache allocation
  colocation.testbed.kernel_args:
    arguments:
      - {name: isolcpus, value: "managed_irq,1-3"}
      - {name: rdt, value: "l3cat,mba"}
  register: kernel_arguments

- name: Take the arguments away
  colocation.testbed.kernel_args:
    state: absent
"""

RETURN = r"""
reboot_required:
  description: Whether the running kernel differs from what was asked for, and a reboot would change that.
  returned: always
  type: bool
arguments:
  description: Each argument with its values in the three places, as they were before the call.
  returned: with O(state=present)
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      type: str
    wanted:
      description: Its value, null for an argument without one, and for one that shall be absent.
      type: str
    state:
      description: As given.
      type: str
    running:
      description: All values on the running kernel's command line.
      type: list
    drop_in:
      description: The value in the drop-in.
      type: str
    configured:
      description: All values in the first entry of C(grub.cfg); null where that cannot be read.
      type: list
    reboot_required:
      description: Whether this argument needs a reboot; false where RV(unsupported), as a reboot would not bring it.
      type: bool
    reason:
      description: Why an absent argument stays.
      type: str
  sample:
    - name: isolcpus
      wanted: 1-3
      state: present
      running: []
      drop_in: null
      configured: []
      reboot_required: true
      reason: null
unsupported:
  description: Why arguments cannot be set on this host; null where they can.
  returned: with O(state=present)
  type: str
undone:
  description: One sentence for each change that was (in check mode, would be) taken back.
  returned: with O(state=absent)
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import files, journal, own_changes, undo
from ansible_collections.colocation.testbed.plugins.module_utils.boot import cmdline, grub, kernel_args

ROOTS = grub.Roots()


def _row(row: kernel_args.Row, unsupported: bool) -> dict[str, Any]:
    return {
        "name": row.wanted.argument.name,
        "wanted": row.wanted.argument.value,
        "state": "present" if row.wanted.present else "absent",
        "running": list(row.running),
        "drop_in": row.drop_in,
        "configured": None if row.configured is None else list(row.configured),
        "reboot_required": row.reboot and not unsupported,
        "reason": row.why or None,
    }


def run(module: AnsibleModule) -> dict[str, Any]:
    """Compare, write unless in check mode, and tell whether a reboot is needed."""
    book = journal.of(module.params["state_dir"])
    if module.params["state"] == "absent":
        return take_back(module, book)
    wanted = kernel_args.parse(module.params["arguments"], ROOTS.sys)
    made = kernel_args.plan(wanted, ROOTS, own_changes.written(book))
    lacking = [str(row.wanted.argument) for row in made.rows if row.reboot]
    if made.unsupported and lacking:
        text = f"kernel arguments {', '.join(lacking)}: {made.unsupported}"
        if module.params["on_missing"] == "fail":
            raise grub.GrubError(text)
        module.warn(text)
    changed = made.changed and not made.unsupported
    if changed and not module.check_mode:
        kernel_args.apply(made, ROOTS, book)
    for text in made.warnings:
        module.warn(text)
    return {
        "changed": changed,
        "reboot_required": made.reboot and not made.unsupported,
        "arguments": [_row(row, bool(made.unsupported)) for row in made.rows],
        "unsupported": made.unsupported or None,
        "diff": _diff(made.before, made.text if changed else made.before),
    }


def _diff(before: str | None, after: str | None) -> dict[str, str]:
    path = ROOTS.drop_in
    return {"before": before or "", "after": after or "", "before_header": path, "after_header": path}


def take_back(module: AnsibleModule, book: journal.Journal) -> dict[str, Any]:
    """Undo what this module changed."""
    text, ours = grub.read_drop_in(ROOTS)
    done = own_changes.undo(book, kernel_args.BY, undo.Undo(proc_root=ROOTS.proc).handlers(), module.check_mode)
    running = grub.running(ROOTS)
    # What was added and is running has to go; whether it was there before us is known to GRUB's configuration alone.
    left = grub.configured(ROOTS) or ()
    gone = [item for item in ours if module.check_mode or not cmdline.satisfied(left, item)]
    return {
        "changed": bool(done),
        "reboot_required": bool(done) and any(cmdline.satisfied(running, item) for item in gone),
        "undone": [item.outcome.text for item in done],
        "diff": _diff(text, None if done else text),
    }


def main() -> None:
    """Run the module."""
    argument = {
        "name": {"type": "str", "required": True},
        "value": {"type": "raw"},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    }
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
            "on_missing": {"type": "str", "choices": ["fail", "skip"], "default": "fail"},
            "arguments": {"type": "list", "elements": "dict", "default": [], "options": argument},
        },
        supports_check_mode=True,
    )
    try:
        result = run(module)
    except (
        cmdline.CmdlineError,
        files.FilesError,
        grub.GrubError,
        journal.JournalError,
        own_changes.OwnChangesError,
    ) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
