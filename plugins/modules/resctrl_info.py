#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: resctrl_info
short_description: Say what a host can do about L3 cache and memory bandwidth, and what keeps it from that
version_added: 0.1.0
description:
  - Shows the capabilities of a mounted resctrl, its groups with values and counters, and who made them.
  - Names what is missing, why, and what to do about it, from the processor's flags, the kernel's configuration and
    command line, and the mount.
  - Changes nothing.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  mount_point:
    description: Where resctrl is mounted, or would be.
    type: path
    default: /sys/fs/resctrl
  counters:
    description: Whether the monitoring counters of all groups are read. Each costs the kernel an interrupt of a CPU.
    type: bool
    default: false
  state_dir:
    description: The state directory of the host; its journal says which groups the collection made.
    type: path
    default: /var/lib/colocation-testbed
  proc_root:
    description: Where the C(/proc) of the host is, for hosts that are looked at from a container.
    type: path
    default: /proc
seealso:
  - module: colocation.testbed.resctrl_group
  - module: colocation.testbed.resctrl_mount
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Look at cache and memory bandwidth control
  colocation.testbed.resctrl_info:
    counters: true
  register: resctrl_found
"""

RETURN = r"""
supported:
  description: Whether both the L3 cache and memory bandwidth can be partitioned now.
  returned: success
  type: bool
mounted:
  description: Whether resctrl is mounted on O(mount_point).
  returned: success
  type: bool
file_system:
  description: Type of the mounted file system; V(fuse.resctrl) is a stand-in that partitions nothing.
  returned: success
  type: str
  sample: resctrl
options:
  description: Options of the mount that change what values mean.
  returned: success
  type: list
  elements: str
  sample: [cdp]
missing:
  description: What keeps the host from partitioning, the first cause first.
  returned: success
  type: list
  elements: dict
  contains:
    what:
      description: The thing that is missing.
      type: str
    why:
      description: What was seen.
      type: str
    advice:
      description: What to do.
      type: str
  sample: [{"what": "CPU", "why": "the CPU does not have the flags mba", "advice": "use a CPU that has it"}]
table:
  description: RV(missing) as lines of a table for people; empty where nothing is missing.
  returned: success
  type: list
  elements: str
  sample: ["missing  seen                                what to do"]
host:
  description: Vendor, flags about resctrl, whether the kernel offers it, its configuration and its arguments.
  returned: success
  type: dict
  sample: {"vendor": "GenuineIntel", "flags": ["cat_l3", "mba"], "file_system": true, "config": null, "arguments": []}
capabilities:
  description: What the mounted resctrl says of itself; null for what it lacks. Masks are hexadecimal.
  returned: success
  type: dict
  sample: {"l3": {"cbm_mask": "7ff", "min_cbm_bits": 1, "num_closids": 16, "shareable_bits": "0", "ways": 11}}
closids:
  description: How many groups the hardware tells apart, and how many exist. The root group counts.
  returned: success
  type: dict
  sample: {"total": 16, "used": 4, "free": 12}
groups:
  description: All groups by name with schemata, mode, CPUs, number of threads, monitoring groups and counters.
  returned: success
  type: dict
  sample: {"BE": {"schemata": ["L3:0=f"], "mode": "shareable", "cpus": "", "threads": 3, "ours": true}}
foreign_groups:
  description: Groups that the collection did not make.
  returned: success
  type: list
  elements: str
  sample: []
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import journal, quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    procfs,
    resctrl,
    resctrl_apply,
    resctrl_facts,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl import (
    Group,
    Info,
    Monitor,
    ResctrlError,
    State,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl_steps import is_made


def _capabilities(info: Info) -> dict[str, Any]:
    cache, bandwidth = info.cache, info.bandwidth
    return {
        "l3": cache
        and {
            "cbm_mask": f"{cache.cbm_mask:x}",
            "ways": cache.cbm_mask.bit_length(),
            "min_cbm_bits": cache.min_cbm_bits,
            "num_closids": cache.num_closids,
            "shareable_bits": f"{cache.shareable_bits:x}",
            "sparse_masks": cache.sparse_masks,
        },
        "mb": bandwidth
        and {
            "min_bandwidth": bandwidth.minimum,
            "bandwidth_gran": bandwidth.granularity,
            "num_closids": bandwidth.num_closids,
            "linear": bandwidth.linear,
        },
        "monitoring": None if info.rmids is None else {"num_rmids": info.rmids, "mon_features": list(info.events)},
    }


def _members(item: Group | Monitor, counters: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "directory": item.directory,
        "cpus": quantity.format_cpu_list(item.cpus),
        "threads": len(resctrl.read_tasks(item.directory)),
    }
    if counters:
        found["counters"] = resctrl_facts.counters(item.directory)
    return found


def _group(group: Group, ours: frozenset[str], counters: bool) -> dict[str, Any]:
    return {
        **_members(group, counters),
        "mode": group.mode,
        "schemata": [line.text.strip() for line in group.lines],
        "ours": group.directory in ours,
        "monitor_groups": {name: _members(item, counters) for name, item in group.monitors.items()},
    }


def _ours(module: AnsibleModule) -> frozenset[str]:
    book = journal.of(module.params["state_dir"])
    boot_id = procfs.read_boot_id(module.params["proc_root"])
    return frozenset(target for target, item in resctrl_apply.recorded(book).items() if is_made(item, boot_id))


def _closids(state: State | None) -> dict[str, int | None]:
    if state is None or state.info.closids is None:
        return {"total": None, "used": None, "free": None}
    used = len(state.groups)
    return {"total": state.info.closids, "used": used, "free": state.info.closids - used}


def run(module: AnsibleModule) -> None:
    """Read everything and exit."""
    params = module.params
    mount_point = os.path.realpath(params["mount_point"])
    host = resctrl_facts.read_host(params["proc_root"])
    state = resctrl.read_state(mount_point, params["proc_root"])
    ours = _ours(module)
    present = state.groups if state else {}
    lacks = resctrl_facts.missing(host, state, mount_point)
    module.exit_json(
        changed=False,
        supported=state is not None and state.info.cache is not None and state.info.bandwidth is not None,
        mounted=state is not None,
        file_system=state.fs_type if state else None,
        options=list(state.options) if state else [],
        missing=[{"what": item.what, "why": item.why, "advice": item.advice} for item in lacks],
        table=resctrl_facts.table(lacks),
        host={
            "vendor": host.vendor,
            "flags": list(host.flags),
            "file_system": host.file_system,
            "config": host.config,
            "arguments": list(host.arguments),
        },
        capabilities=_capabilities(state.info) if state else {},
        closids=_closids(state),
        groups={name: _group(group, ours, params["counters"]) for name, group in present.items()},
        foreign_groups=[name for name, group in present.items() if name and group.directory not in ours],
    )


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "mount_point": {"type": "path", "default": "/sys/fs/resctrl"},
            "counters": {"type": "bool", "default": False},
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
            "proc_root": {"type": "path", "default": "/proc"},
        },
        supports_check_mode=True,
    )
    try:
        run(module)
    except (ResctrlError, journal.JournalError, procfs.ProcError) as exc:
        module.fail_json(msg=str(exc))


if __name__ == "__main__":
    main()
