# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The values that a control group can be given: one row of the table for each, with its file on v1 and on v2.

Files and ranges: cgroup-v1/*.rst, cgroup-v2.rst and sched-bwc.rst of the kernel's documentation; the rows of Alibaba's
kernels follow what Koordinator writes there. What is limited for each disk is in cgroup_devices.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup_values as values
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import CgroupError
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_values import (
    NO_LIMIT,
    PARTITION,
    KernelFile,
    Value,
    file,
    line_of,
)


@dataclass(frozen=True)
class Key:
    """One option of a group. ``phase`` says with which others it is ordered (cgroup_plan).

    ``others`` are files that take the place of the first one on some kernels, as (version, file). ``unlimited``: -1
    means no limit. ``line`` names the part of an option that has several (cgroup_devices).
    """

    name: str
    controller: str
    phase: str
    v1: KernelFile | None
    v2: KernelFile | None
    needs: str
    low: int | None = None
    high: int | None = None
    unlimited: bool = False
    choices: tuple[str, ...] = ()
    others: tuple[tuple[int, KernelFile], ...] = ()
    line: str = ""

    def file(self, version: int) -> KernelFile | None:
        """Return the file that has this value on hierarchies of a version (1 or 2), None when there is none."""
        return self.v1 if version == 1 else self.v2

    def files(self, version: int) -> tuple[KernelFile, ...]:
        """Return all files that may have this value on hierarchies of a version, the best one first."""
        first = self.file(version)
        return (*((first,) if first else ()), *(other for number, other in self.others if number == version))

    def is_neutral(self, value: Value) -> bool:
        """Tell whether a value is a new group's: a kernel without the file behaves so anyhow."""
        return any(item is not None and item.parse(item.initial) == value for item in (self.v1, self.v2))

    def check(self, value: Value, where: str) -> Value:
        """Return the value as it is compared. Raises CgroupError when it is outside the kernel's range."""
        if self.choices:
            if value not in self.choices:
                raise CgroupError(f"{where}: {value!r} is not known; write one of {', '.join(self.choices)}")
            return value
        if self.low is None:
            return values.cpu_list(str(value), where)
        if isinstance(value, bool) or not isinstance(value, int):
            raise CgroupError(f"{where}: {value!r} is not a whole number; write one from {self.low} on")
        top = self.high if self.high is not None else 2**62
        if not (self.unlimited and value == NO_LIMIT) and not self.low <= value <= top:
            extra = f", or {NO_LIMIT} for no limit" if self.unlimited else ""
            raise CgroupError(f"{where}: {value} is not allowed; write a number from {self.low} to {top}{extra}")
        return value


_CPU_MAX_QUOTA = file(
    "cpu.max",
    "max 100000",
    lambda text: values.number(values.field(text, 0)),
    lambda value, current: f"{values.or_max(value, '')} {values.field(current, 1)}",
)
_CPU_MAX_PERIOD = file(
    "cpu.max",
    "max 100000",
    lambda text: values.number(values.field(text, 1)),
    lambda value, current: f"{values.field(current, 0)} {value}",
)
_SHARES, _WEIGHT = "cpu.shares", "cpu.weight"
_FAIR = "CONFIG_FAIR_GROUP_SCHED"
_BANDWIDTH = "CONFIG_CFS_BANDWIDTH"
_CPUSET = "the cpuset controller"
_PROTECTION = "cgroup v2 or a kernel of Alibaba Cloud Linux or Anolis (mainline has no such file on v1)"
_SWAP = "cgroup v2 (v1 limits memory and swap together, memory.memsw.limit_in_bytes, which is not the same)"
_ALIBABA = "a kernel of Alibaba Cloud Linux or Anolis"


def _protection(name: str, phase: str, initial: str = "0", unlimited: bool = False, low: int = 0) -> Key:
    """Return a row of memory that is protected or throttled; v1 only has it on Alibaba's kernels."""
    text = f"memory.{name}"
    v1 = file(text, initial, values.number, values.pages_or_max, sign=text)
    v2 = file(text, initial, values.number, values.pages_or_max)
    return Key(f"memory_{name}_bytes", "memory", phase, v1, v2, _PROTECTION, low, unlimited=unlimited)


def _alibaba(name: str, controller: str, text: str, initial: str, low: int, high: int) -> Key:
    """Return a row that only Alibaba's kernels have, with the same file on both versions."""
    found = file(text, initial, sign=text)
    return Key(name, controller, "plain", found, found, _ALIBABA, low, high)


def _io_weight() -> Key:
    """Return the row of the I/O weight: iocost on v2, BFQ on both, CFQ on v1 of kernels before 5.0."""

    def to_bfq(value: Value, _current: str) -> str:
        return str(values.weight_to_bfq(int(value)))

    def from_bfq(text: str) -> Value:
        return values.bfq_to_weight(values.number(text))

    cfq = file(
        "blkio.weight",
        "500",
        lambda text: values.cfq_to_weight(values.number(text)),
        lambda value, _: str(values.weight_to_cfq(int(value))),
        sign="blkio.weight",
        translates=True,
    )
    v2_bfq = line_of("io.bfq.weight", "default", "100", from_bfq, to_bfq, "default 100", "io.bfq.weight", True)
    return Key(
        "io_weight",
        "io",
        "plain",
        file("blkio.bfq.weight", "100", from_bfq, to_bfq, "blkio.bfq.io_service_bytes", True),
        line_of("io.weight", "default", "100", initial="default 100"),
        "CONFIG_BLK_CGROUP_IOCOST (v2) or CONFIG_BFQ_GROUP_IOSCHED",
        values.WEIGHT_LOW,
        values.WEIGHT_HIGH,
        others=((1, cfq), (2, v2_bfq)),
    )


KEYS: tuple[Key, ...] = (
    Key(
        "cpu_shares",
        "cpu",
        "weight",
        file(_SHARES, "1024"),
        file(
            _WEIGHT,
            "100",
            values.number,
            lambda value, _: str(values.shares_to_weight(int(value))),
            translates=True,
        ),
        _FAIR,
        values.SHARES_LOW,
        values.SHARES_HIGH,
    ),
    Key(
        "cpu_weight",
        "cpu",
        "weight",
        file(
            _SHARES,
            "1024",
            values.number,
            lambda value, _: str(values.weight_to_shares(int(value))),
            translates=True,
        ),
        file(_WEIGHT, "100"),
        _FAIR,
        values.WEIGHT_LOW,
        values.WEIGHT_HIGH,
    ),
    Key("cpu_idle", "cpu", "idle", file("cpu.idle", "0"), file("cpu.idle", "0"), "Linux 5.15", 0, 1),
    Key(
        "cpu_quota_us",
        "cpu",
        "bandwidth",
        file("cpu.cfs_quota_us", "-1"),
        _CPU_MAX_QUOTA,
        _BANDWIDTH,
        1000,
        unlimited=True,
    ),
    Key(
        "cpu_period_us",
        "cpu",
        "bandwidth",
        file("cpu.cfs_period_us", "100000"),
        _CPU_MAX_PERIOD,
        _BANDWIDTH,
        1000,
        1_000_000,
    ),
    Key("cpu_burst_us", "cpu", "bandwidth", file("cpu.cfs_burst_us", "0"), file("cpu.max.burst", "0"), "Linux 5.14", 0),
    _alibaba("cpu_bvt_warp_ns", "cpu", "cpu.bvt_warp_ns", "0", -1, 2),
    Key(
        "cpuset_cpus",
        "cpuset",
        "cpuset",
        file("cpuset.cpus", "", values.set_text),
        file("cpuset.cpus", "", values.set_text),
        _CPUSET,
    ),
    Key(
        "cpuset_mems",
        "cpuset",
        "cpuset",
        file("cpuset.mems", "", values.set_text),
        file("cpuset.mems", "", values.set_text),
        _CPUSET,
    ),
    Key(
        "cpuset_partition",
        "cpuset",
        "partition",
        None,
        file(PARTITION, "member", str, values.plain),
        "cgroup v2 with Linux 5.0 (isolated: Linux 6.1)",
        choices=("member", "root", "isolated"),
    ),
    _protection("min", "level"),
    _protection("low", "level"),
    _protection("high", "level", "max", unlimited=True, low=values.PAGE_BYTES),
    Key(
        "memory_max_bytes",
        "memory",
        "level",
        file("memory.limit_in_bytes", str(2**63 - 4096), values.v1_bytes, values.pages),
        file("memory.max", "max", values.number, values.pages_or_max),
        "the memory controller",
        values.PAGE_BYTES,
        unlimited=True,
    ),
    Key(
        "memory_swap_max_bytes",
        "memory",
        "level",
        None,
        file("memory.swap.max", "max", values.number, values.pages_or_max),
        _SWAP,
        0,
        unlimited=True,
    ),
    Key(
        "memory_oom_group",
        "memory",
        "plain",
        file("memory.oom.group", "0", sign="memory.oom.group"),
        file("memory.oom.group", "0"),
        "cgroup v2 with Linux 4.19, or a kernel of Alibaba Cloud Linux or Anolis",
        0,
        1,
    ),
    _alibaba("memory_wmark_ratio", "memory", "memory.wmark_ratio", "0", 0, 100),
    _alibaba("memory_wmark_scale_factor", "memory", "memory.wmark_scale_factor", "50", 1, 1000),
    _alibaba("memory_wmark_min_adj", "memory", "memory.wmark_min_adj", "0", -25, 50),
    _alibaba("memory_priority", "memory", "memory.priority", "0", 0, 12),
    _alibaba("memory_use_priority_oom", "memory", "memory.use_priority_oom", "0", 0, 1),
    _io_weight(),
    Key(
        "pids_max",
        "pids",
        "plain",
        file("pids.max", "max", values.number, values.or_max),
        file("pids.max", "max", values.number, values.or_max),
        "the pids controller",
        0,
        unlimited=True,
    ),
)
BY_NAME = {key.name: key for key in KEYS}


def weight_file(version: int) -> KernelFile:
    """Return the file that cpu.idle = 1 pins, on hierarchies of a version."""
    return file(_SHARES, "1024") if version == 1 else file(_WEIGHT, "100")


# What the weight reads as while cpu.idle is 1 (WEIGHT_IDLEPRIO = 3 in sched.h, scaled by 100/1024 on v2).
PINNED_TEXT = {1: "3", 2: "0"}
