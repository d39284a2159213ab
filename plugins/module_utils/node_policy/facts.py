# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has, as far as a policy depends on it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cgroup_foreign, cpu_list, procfs
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import CgroupError, Layout
from ansible_collections.colocation.testbed.plugins.module_utils.policy import effects
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import NodeFacts
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary import SECTIONS

_GROUP_IDENTITY = "cpu_bvt_warp_ns"
KUBEPODS = ("kubepods.slice", "kubepods")


@dataclass(frozen=True)
class Given:
    """What is not read from the host: its labels, the measured CPUs ("" = all that are online)."""

    labels: Mapping[str, str]
    cpus: str = ""


def collect(layout: Layout, given: Given, proc_root: str = procfs.PROC_ROOT, sys_root: str = "/sys") -> NodeFacts:
    """Return the facts of this host. Raises CpuListError, ProcError or CgroupError where they cannot be read."""
    cpus = cpu_list.require_online(given.cpus, "cpus", sys_root) if given.cpus.strip() else cpu_list.online(sys_root)
    memory = procfs.parse_meminfo(procfs.read_text(f"{proc_root}/meminfo") or "").get("MemTotal")
    if memory is None:
        raise CgroupError(f"{proc_root}/meminfo: has no MemTotal; is {proc_root} mounted?")
    lacking = {**cgroup_foreign.lacking(layout), **_settings_lacking(proc_root)}
    return NodeFacts(
        cpus=len(cpus),
        memory_bytes=memory,
        labels=given.labels,
        page_bytes=os.sysconf("SC_PAGE_SIZE"),
        lacking=lacking,
        # Koordinator tells Alibaba's kernels, which take such a burst, from others by this file.
        burst_above_quota=_GROUP_IDENTITY not in lacking,
        kubepods=_kubepods(layout),
    )


def _settings_lacking(proc_root: str) -> dict[str, str]:
    effects_of_host = (effects.find(section, names) for section in SECTIONS for names in effects.keys(section))
    names = {name for effect in effects_of_host if effect.kind == effects.HOST for name in effect.names}
    paths = {name: name if name.startswith("/") else f"{proc_root}/sys/{name.replace('.', '/')}" for name in names}
    return {name: f"this kernel has no {path}" for name, path in paths.items() if not os.path.exists(path)}


def _kubepods(layout: Layout) -> str:
    mount = layout.hierarchy("cpu").mount
    return next((name for name in KUBEPODS if os.path.isdir(cgroup.join_path(mount, name))), KUBEPODS[-1])
