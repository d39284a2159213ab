# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel means when it refuses a change of a control group (kernel/cgroup, kernel/sched, mm, block)."""

from __future__ import annotations

import errno
import os

_IN_USE = "on v2 a group with child groups holds no processes"
_THREADED = "the group is threaded, or below a threaded one (cgroup.type): choose another root"
_REALTIME = "with CONFIG_RT_GROUP_SCHED a realtime process"
_DISK = "there is no such disk; look at /sys/dev/block"
_HINTS = {
    ("cgroup.subtree_control", errno.EBUSY): f"{_IN_USE}; move them to a child",
    ("cgroup.subtree_control", errno.ENOENT): "the controller is not enabled above; delegate it to this group",
    ("cgroup.subtree_control", errno.EOPNOTSUPP): _THREADED,
    ("cgroup.subtree_control", errno.EINVAL): f"{_REALTIME} outside the hierarchy's root keeps its cpu controller off",
    ("cpu.shares", errno.EINVAL): "the group's cpu.idle is 1, or the value is outside 2..262144",
    ("cpu.weight", errno.EINVAL): "the group's cpu.idle is 1, or the value is outside 1..10000",
    ("cpu.cfs_quota_us", errno.EINVAL): "below 1000, below the burst, or a larger share of a CPU than the parent's",
    ("cpu.cfs_period_us", errno.EINVAL): "outside 1000..1000000, or a larger share of a CPU than the parent's",
    ("cpu.max", errno.EINVAL): "quota below 1000, period outside 1000..1000000, or quota below cpu.max.burst",
    ("cpu.cfs_burst_us", errno.EINVAL): "the burst is above the quota",
    ("cpu.max.burst", errno.EINVAL): "the burst is above the quota",
    ("cpuset.cpus", errno.EINVAL): "a CPU is offline or does not exist, or another partition has it",
    ("cpuset.cpus", errno.EACCES): "not within the parent's CPUs",
    ("cpuset.cpus", errno.EBUSY): "a child group has CPUs that would be taken away",
    ("cpuset.cpus", errno.ENOSPC): "processes are in it, and it would be empty",
    ("cpuset.mems", errno.EINVAL): "a memory node does not exist",
    ("cpuset.mems", errno.EACCES): "not within the parent's memory nodes",
    ("cpuset.mems", errno.EBUSY): "a child group has memory nodes that would be taken away",
    ("cpuset.cpus.partition", errno.EINVAL): "this kernel does not know the word, or the group has no CPUs of its own",
    ("memory.limit_in_bytes", errno.EBUSY): "more is in use and cannot be reclaimed; end processes first",
    ("memory.limit_in_bytes", errno.EINVAL): "above memory.memsw.limit_in_bytes, which limits memory and swap together",
    ("memory.max", errno.EBUSY): "more is in use and cannot be reclaimed; end processes first",
    ("io.max", errno.ENODEV): _DISK,
    ("io.latency", errno.ENODEV): _DISK,
    ("io.weight", errno.EOPNOTSUPP): "the disk has no I/O cost model",
    ("cgroup.procs", errno.ESRCH): "the process has ended",
    ("cgroup.procs", errno.ENOSPC): "the group's cpuset is empty",
    ("cgroup.procs", errno.EINVAL): f"kernel threads cannot be moved, and {_REALTIME} only where cpu.rt_runtime_us is",
    ("cgroup.procs", errno.EBUSY): f"{_IN_USE}; choose a child",
    ("cgroup.procs", errno.EOPNOTSUPP): _THREADED,
    ("cgroup.procs", errno.EAGAIN): "pids.max of the group, or of one above it, is reached",
}
_GENERAL_HINTS = {
    errno.EROFS: "the hierarchy is mounted read-only; remount it",
    errno.EACCES: "run as root",
    errno.EPERM: "run as root, in a group that is delegated to this user",
    errno.EEXIST: "someone else made it meanwhile; run again",
    errno.ENOENT: "the group or this file is gone; someone else removed it, run again",
    errno.ENODEV: "the group is gone; someone else removed it, run again",
    errno.EBUSY: "it is in use",
    errno.ERANGE: "outside of what this kernel allows",
}


def why(path: str, number: int) -> str:
    """Return what an errno means for a file (or directory) of a control group."""
    name = os.path.basename(path)
    if name.startswith("blkio.throttle.") and number == errno.ENODEV and os.path.exists(path):
        return _DISK
    if number == errno.EEXIST and os.path.isfile(path):
        return "the kernel has a file of this name there; choose another name"
    if number == errno.ENODEV and not os.path.exists(path):
        return _GENERAL_HINTS[errno.ENODEV]
    return _HINTS.get((name, number)) or _GENERAL_HINTS.get(number) or "see the kernel log"
