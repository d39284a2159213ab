# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has, as far as a policy depends on it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cgroup,
    cgroup_foreign,
    cpu_list,
    procfs,
    resctrl,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import CgroupError, Layout
from ansible_collections.colocation.testbed.plugins.module_utils.policy import effects
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import Cache, NodeFacts
from ansible_collections.colocation.testbed.plugins.module_utils.policy.resctrl import AMD, INTEL
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary import SECTIONS

_GROUP_IDENTITY = "cpu_bvt_warp_ns"
KUBEPODS = ("kubepods.slice", "kubepods")


@dataclass(frozen=True)
class Given:
    """What is not read from the host: its labels, the measured CPUs ("" = all that are online)."""

    labels: Mapping[str, str]
    cpus: str = ""


def collect(layout: Layout, given: Given, proc_root: str = procfs.PROC_ROOT, sys_root: str = "/sys") -> NodeFacts:
    """Return the facts of this host. Raises CpuListError, ProcError, CgroupError or ResctrlError."""
    cpus = cpu_list.require_online(given.cpus, "cpus", sys_root) if given.cpus.strip() else cpu_list.online(sys_root)
    memory = procfs.parse_meminfo(procfs.read_text(f"{proc_root}/meminfo") or "").get("MemTotal")
    if memory is None:
        raise CgroupError(f"{proc_root}/meminfo: has no MemTotal; is {proc_root} mounted?")
    lacking = {**cgroup_foreign.lacking(layout), **_settings_lacking(proc_root), **_bandwidth_lacking(layout)}
    return NodeFacts(
        cpus=len(cpus),
        memory_bytes=memory,
        labels=given.labels,
        page_bytes=os.sysconf("SC_PAGE_SIZE"),
        lacking=lacking,
        # Koordinator tells Alibaba's kernels, which take such a burst, from others by this file.
        burst_above_quota=_GROUP_IDENTITY not in lacking,
        cache=cache(resctrl.read_state(proc_root=proc_root)),
        kubepods=_kubepods(layout),
    )


def cache(state: resctrl.State | None) -> Cache | None:
    """Return what a mounted resctrl can do for percentages of cache and bandwidth; None where none is mounted.

    Bandwidth in percent is there when it is neither counted in MB/s (mount option mba_MBps) nor missing.
    """
    if state is None:
        return None
    ways, bandwidth = state.info.cache, state.info.bandwidth
    found = Cache() if ways is None else Cache(ways.cbm_mask, ways.min_cbm_bits)
    if bandwidth is None or state.info.mba_mbps:
        return found
    # Only AMD counts in units of the hardware; there the root group's number is "no limit".
    vendor = INTEL if bandwidth.linear else AMD
    most = 100 if bandwidth.linear else max(state.root.values(resctrl.BANDWIDTH_LINE).values(), default=None)
    return replace(
        found, vendor=vendor, mba_default=most, mba_granularity=bandwidth.granularity, mba_minimum=bandwidth.minimum
    )


def _settings_lacking(proc_root: str) -> dict[str, str]:
    effects_of_host = (effects.find(section, names) for section in SECTIONS for names in effects.keys(section))
    names = {name for effect in effects_of_host if effect.kind == effects.HOST for name in effect.names}
    paths = {name: name if name.startswith("/") else f"{proc_root}/sys/{name.replace('.', '/')}" for name in names}
    return {name: f"this kernel has no {path}" for name, path in paths.items() if not os.path.exists(path)}


def _bandwidth_lacking(layout: Layout) -> dict[str, str]:
    """Return why packets cannot be told apart by group: their sockets know groups of version 2 alone."""
    if any(hierarchy.version == 2 for hierarchy in layout.hierarchies):
        return {}
    return dict.fromkeys(effects.BANDWIDTH_NAMES, "no cgroup2 is mounted on this node, by which packets are told apart")


def _kubepods(layout: Layout) -> str:
    mount = layout.hierarchy("cpu").mount
    return next((name for name in KUBEPODS if os.path.isdir(cgroup.join_path(mount, name))), KUBEPODS[-1])
