#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_tuning
short_description: Set sysctls, sysfs values, frequency scaling, idle states, interrupts and swap in one batch
version_added: 0.1.0
description:
  - Brings a list of settings about in one call, and keeps those that shall be kept for the next boots.
  - The value that is in effect and the one for the next boot are compared separately, by meaning and not by text, and
    both are reported.
  - All settings are checked before the first is written. A batch takes effect as a whole. When the kernel refuses a
    value, what the call changed before is taken back.
  - Files of others are never edited. Values for the next boot lie in C(90-colocation-testbed.conf) in
    C(/etc/sysctl.d), and as C(w) lines in a file of the same name in C(/etc/tmpfiles.d), which systemd applies. A
    warning names other files that say something else about a value.
  - Every change is recorded in the journal first, so that O(state=absent) or M(colocation.testbed.journal_undo) can
    take it back.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
    details: Whether an interrupt can be moved is only known when it is tried. Those that the kernel keeps count as
      changed.
  diff_mode:
    support: full
options:
  state:
    description:
      - V(present) applies O(settings). A setting that is no longer in the list stays as it is.
      - V(absent) takes back everything that this module changed on the host, and needs no settings.
    type: str
    choices: [present, absent]
    default: present
  state_dir:
    description: The state directory of the host; the journal is C(journal.json) in it.
    type: path
    default: /var/lib/colocation-testbed
  on_missing:
    description:
      - What happens with settings that the kernel or the hardware of this host does not have.
      - V(fail) names them and changes nothing. V(skip) reports them with RV(settings[].result) C(missing).
    type: str
    choices: [fail, skip]
    default: fail
  persist:
    description: Whether values are kept for the next boots, where a setting does not say.
    type: bool
    default: false
  settings:
    description: The settings. Each file may be set by one of them only.
    type: list
    elements: dict
    default: []
    suboptions:
      kind:
        description:
          - What is set.
          - V(sysctl) is a file below C(/proc/sys), V(sysfs) one below C(/sys), except those of control groups and
            resctrl.
          - V(thp) and V(ksm) are files below C(/sys/kernel/mm/transparent_hugepage) and C(/sys/kernel/mm/ksm).
          - V(numa_balancing) moves pages to the CPUs that use them.
          - V(governor) and V(energy_preference) tell frequency scaling what to aim at. V(turbo) allows frequencies
            above the nominal one.
          - V(idle_states) disables idle states that take longer to leave than the value, and enables the others.
          - V(irq_affinity) chooses the CPUs that serve interrupts. V(rps) chooses those that received packets are
            handed to.
          - V(swap) takes areas into use or out of it.
        type: str
        required: true
        choices:
          - sysctl
          - sysfs
          - thp
          - numa_balancing
          - governor
          - energy_preference
          - turbo
          - idle_states
          - irq_affinity
          - rps
          - ksm
          - swap
      name:
        description:
          - What the value is of. Needed for all kinds of which a host has several.
          - V(sysctl) takes the name with dots or slashes as sysctl(8) does, V(sysfs) the path below C(/sys), V(thp)
            and V(ksm) the name of the file, such as C(enabled) or C(run).
          - V(irq_affinity) takes a number, a shell pattern such as C(virtio*-input.*), or C(default) for interrupts
            to come.
          - V(rps) takes an interface or a shell pattern, V(swap) the path of a device or file, or C(all).
        type: str
        default: ""
      value:
        description:
          - A text or a whole number as the kernel takes it. Booleans are refused, because YAML makes them of C(on)
            and C(off).
          - For V(idle_states) the longest allowed exit latency in microseconds. C(0) leaves polling only.
          - For V(irq_affinity) and V(rps) a CPU list such as C(0-3,8). For V(rps) the empty list turns it off.
          - For V(turbo) and V(swap) C(enabled) or C(disabled).
        type: raw
        required: true
      cpus:
        description:
          - CPU list that V(governor), V(energy_preference) and V(idle_states) are set for. Empty means all that are
            online.
        type: str
        default: ""
      persist:
        description:
          - Whether the value is kept for the next boots, by default as O(persist) says. With V(false) it is taken out
            of our file when it is in there.
          - Interrupts, receive queues and swap cannot be kept, and without systemd only sysctls can. The report says
            why.
        type: bool
      on_missing:
        description: As O(on_missing), for this setting.
        type: str
        choices: [fail, skip]
seealso:
  - module: colocation.testbed.kernel_args
  - module: colocation.testbed.journal_undo
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Steady a tested node
  colocation.testbed.host_tuning:
    settings:
      - {kind: governor, value: performance, on_missing: skip}
      - {kind: thp, name: enabled, value: madvise}
      - {kind: numa_balancing, value: 0}
      - {kind: sysctl, name: net.ipv4.tcp_rmem, value: 4096 131072 33554432, persist: true}
      - {kind: irq_affinity, name: "*", value: "0"}

- name: Put back what was tuned
  colocation.testbed.host_tuning:
    state: absent
"""

RETURN = r"""
settings:
  description: One row for each file of each setting, in the order in which they were set.
  returned: with O(state=present)
  type: list
  elements: dict
  contains:
    kind:
      description: As given.
      type: str
    name:
      description: As given.
      type: str
    path:
      description: The file or the swap area; null where the host has none.
      type: str
    result:
      description: C(same), C(changed), C(refused) by an interrupt that the kernel keeps where it is, or C(missing).
      type: str
    reason:
      description: Why it is refused or missing.
      type: str
    live:
      description: The value in effect, C(wanted), C(before) and C(after).
      type: dict
    persisted:
      description: The value for the next boots, C(wanted) (null for none) and C(before), the C(file), whether it is
        C(supported) and otherwise the C(reason).
      type: dict
  sample:
    - kind: thp
      name: enabled
      path: /sys/kernel/mm/transparent_hugepage/enabled
      result: changed
      reason: null
      live: {wanted: madvise, before: always, after: madvise}
      persisted:
        wanted: null
        before: null
        file: /etc/tmpfiles.d/90-colocation-testbed.conf
        supported: true
        reason: null
undone:
  description: One sentence for each change that was (in check mode, would be) taken back.
  returned: with O(state=absent)
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import files, journal, own_changes, undo
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import knob, netns, procfs, swap
from ansible_collections.colocation.testbed.plugins.module_utils.tuning import apply, plan, report, settings

ROOTS = settings.Roots()


def run(module: AnsibleModule) -> dict[str, Any]:
    """Plan, carry out unless in check mode, read everything back."""
    book = journal.of(module.params["state_dir"])
    if module.params["state"] == "absent":
        return take_back(module, book)
    given, problems = settings.parse(module.params["settings"], module.params["persist"], module.params["on_missing"])
    wanted = plan.plan(given, problems, ROOTS, own_changes.written(book))
    tools = apply.Tools(ROOTS, book)
    refused: dict[str, str] = {}
    if wanted.changed and not module.check_mode:
        refused = apply.apply(wanted, tools)
    live = report.predicted(wanted) if module.check_mode else apply.verify(wanted, tools)
    for text in (*wanted.warnings, *report.missing(wanted)):
        module.warn(text)
    return {
        "changed": len(wanted.writes) > len(refused) or bool(wanted.switches or wanted.files),
        "settings": [report.row(item, live, refused) for item in wanted.rows],
        "diff": report.diff(wanted, refused),
    }


def take_back(module: AnsibleModule, book: journal.Journal) -> dict[str, Any]:
    """Undo what this module changed."""
    handlers = undo.Undo(proc_root=ROOTS.proc, netns_root=ROOTS.netns).handlers()
    done = own_changes.undo(book, apply.BY, handlers, module.check_mode)
    before = "".join(f"{item.entry.kind} {item.entry.target}\n" for item in done)
    return {
        "changed": bool(done),
        "undone": [item.outcome.text for item in done],
        "diff": {"before": before, "after": ""},
    }


def main() -> None:
    """Run the module."""
    setting = {
        "kind": {"type": "str", "required": True, "choices": list(settings.KINDS)},
        "name": {"type": "str", "default": ""},
        "value": {"type": "raw", "required": True},
        "cpus": {"type": "str", "default": ""},
        "persist": {"type": "bool"},
        "on_missing": {"type": "str", "choices": ["fail", "skip"]},
    }
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
            "on_missing": {"type": "str", "choices": ["fail", "skip"], "default": "fail"},
            "persist": {"type": "bool", "default": False},
            "settings": {"type": "list", "elements": "dict", "default": [], "options": setting},
        },
        supports_check_mode=True,
    )
    try:
        result = run(module)
    except (
        files.FilesError,
        journal.JournalError,
        knob.KnobError,
        netns.NetnsError,
        own_changes.OwnChangesError,
        procfs.ProcError,
        settings.TuningError,
        swap.SwapError,
    ) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
