# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control group of all best-effort pods: what Koordinator's agent limits, and leaves limited when it goes.

Quota in µs of its period; -1 is none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import Hierarchy, Layout
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import pod_groups
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.koordinator_ladder import Root

DRIVERS = {name: driver for driver, name in pod_groups.ALL_PODS.items()}
_QUOTA = {1: "cpu.cfs_quota_us", 2: "cpu.max"}
_EFFECTIVE = {1: "cpuset.cpus", 2: "cpuset.cpus.effective"}


class RootError(Exception):
    """The group of best effort can't be read or put back; the text says which, why, and what to look at."""


@dataclass(frozen=True)
class Neutral:
    """A kernel file, what is in it, and what must be in it when nobody limits best effort."""

    path: str
    found: str
    wanted: str

    @property
    def differs(self) -> bool:
        """Tell whether the file limits best effort."""
        return self.found.split()[:1] != self.wanted.split()[:1]


def kubepods(layout: Layout) -> str | None:
    """Return the group of all pods below the hierarchy; None where there is none (kubelet's cgroupRoot must be /)."""
    mount = layout.hierarchy("cpu").mount
    return next((name for name in DRIVERS if os.path.isdir(cgroup.join_path(mount, name))), None)


def group(pods: str) -> str:
    """Return the group of best-effort pods below that of all pods."""
    return pod_groups.tier_group("BestEffort", DRIVERS[pods])


def read(layout: Layout, cgroup_driver: str = "") -> Root:
    """Return the state of the root of best effort; its ``problem`` says why it can't be told.

    ``cgroup_driver`` is what kubelet is configured with ("" = not known): Koordinator's agent guesses it by directory.
    """
    pods = kubepods(layout)
    if pods is None:
        text = (
            "no group kubepods or kubepods.slice: kubelet does not run here, or its cgroupRoot is not /, and "
            "Koordinator's agent looks nowhere else; look with: find /sys/fs/cgroup -maxdepth 4 -name 'kubepods*'"
        )
        return Root("kubepods", None, None, None, problem=text)
    if cgroup_driver and DRIVERS[pods] != cgroup_driver:
        text = (
            f"kubelet's cgroup driver is {cgroup_driver}, but the group is {pods}, from which the agent concludes "
            f"{DRIVERS[pods]}; remove the stale group or correct kubelet's configuration; look with: find "
            "/sys/fs/cgroup -maxdepth 2 -name 'kubepods*'"
        )
        return Root(group(pods), None, None, None, problem=text)
    cpu, cpuset, name = layout.hierarchy("cpu"), layout.hierarchy("cpuset"), group(pods)
    quota = _text(cpu, name, _QUOTA[cpu.version])
    if quota is None:
        return Root(
            name, None, None, None, problem=f"{name}: kubelet has not made it; look with: journalctl -u kubelet"
        )
    writable = os.access(f"{cgroup.join_path(cpu.mount, name)}/{_QUOTA[cpu.version]}", os.W_OK)
    return Root(
        name,
        _quota_us(quota),
        _text(cpuset, name, _EFFECTIVE[cpuset.version]),
        _text(cpuset, pods, _EFFECTIVE[cpuset.version]),
        writable,
    )


def _text(hierarchy: Hierarchy, name: str, file: str) -> str | None:
    found = files.read_kernel(f"{cgroup.join_path(hierarchy.mount, name)}/{file}")
    return None if found is None else found.strip()


def _quota_us(text: str) -> int:
    first = text.split()[0]
    return -1 if first == "max" else int(first)


def neutral(layout: Layout) -> list[Neutral]:
    """Return the files that limit best effort, each with what it must hold when nobody does; the root's come first.

    The quota of the root; the CPUs of the root and of every group below, since the agent narrows them all. Empty where
    kubelet has no such group. Raises FilesError.
    """
    pods = kubepods(layout)
    if pods is None:
        return []
    cpu, cpuset, name = layout.hierarchy("cpu"), layout.hierarchy("cpuset"), group(pods)
    found = []
    quota = _text(cpu, name, _QUOTA[cpu.version])
    if quota is not None:
        free = "-1" if cpu.version == 1 else f"max {[*quota.split(), '100000'][1]}"
        found.append(Neutral(f"{cgroup.join_path(cpu.mount, name)}/{_QUOTA[cpu.version]}", quota, free))
    every = _text(cpuset, pods, "cpuset.cpus") if cpuset.version == 1 else ""
    for below in _tree(cgroup.join_path(cpuset.mount, name)):
        text = files.read_kernel(f"{below}/cpuset.cpus")
        if text is not None and every is not None:
            found.append(Neutral(f"{below}/cpuset.cpus", text.strip(), every))
    return found


def _tree(directory: str) -> Iterator[str]:
    if not os.path.isdir(directory):
        return
    yield directory
    for name in cgroup.children(directory):
        yield from _tree(f"{directory}/{name}")


def put_back(values: list[Neutral]) -> list[str]:
    """Write what limits best effort back to what it is without limits, and read it back; return a sentence for each.

    Raises RootError when a file holds something else afterwards, as when an agent still runs, and FilesError.
    """
    done = []
    for value in values:
        if not value.differs or not os.path.exists(value.path):
            continue
        files.write_kernel(value.path, value.wanted.split()[0] if value.path.endswith("cpu.max") else value.wanted)
        left = (files.read_kernel(value.path) or "").strip()
        if Neutral(value.path, left, value.wanted).differs:
            raise RootError(
                f"{value.path}: wrote {value.wanted!r}, read {left!r}; somebody else writes it; look for koordlet"
            )
        done.append(f"{value.path}: {value.found} put back to {value.wanted}")
    return done
