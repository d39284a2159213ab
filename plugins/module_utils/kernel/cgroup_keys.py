# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The values that a control group can be given: one row of the table for each, with its file on v1 and on v2.

Files and ranges: cgroup-v1/*.rst, cgroup-v2.rst and sched-bwc.rst of the kernel's documentation.
"""

from __future__ import annotations

import re
import resource
from collections.abc import Callable
from dataclasses import dataclass
from typing import Union

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import CgroupError

Value = Union[int, str]
"""A value as the options have it: a number (-1 = no limit) or a CPU list."""

NO_LIMIT = -1
SHARES_LOW, SHARES_HIGH = 2, 262144
WEIGHT_LOW, WEIGHT_HIGH = 1, 10000
_PAGE_BYTES = resource.getpagesize()
_V1_NO_LIMIT_BYTES = 2**62


@dataclass(frozen=True)
class KernelFile:
    """A file in a group's directory: its name, a new group's content, and how values are read and written.

    ``render`` gets the value and the file's present content, since cpu.max holds two values.
    """

    name: str
    initial: str
    parse: Callable[[str], Value]
    render: Callable[[Value, str], str]


@dataclass(frozen=True)
class Key:
    """One option of a group. ``phase`` says with which others it is ordered (cgroup_plan)."""

    name: str
    controller: str
    phase: str
    v1: KernelFile | None
    v2: KernelFile | None
    needs: str
    low: int | None = None
    high: int | None = None

    def file(self, version: int) -> KernelFile | None:
        """Return the file that has this value on hierarchies of a version (1 or 2), None when there is none."""
        return self.v1 if version == 1 else self.v2

    def is_neutral(self, value: Value) -> bool:
        """Tell whether a value is a new group's: a kernel without the file behaves so anyhow."""
        return any(file is not None and file.parse(file.initial) == value for file in (self.v1, self.v2))

    def check(self, value: Value, where: str) -> Value:
        """Return the value as it is compared. Raises CgroupError when it is outside the kernel's range."""
        if self.low is None:
            return _cpu_list(str(value), where)
        if isinstance(value, bool) or not isinstance(value, int):
            raise CgroupError(f"{where}: {value!r} is not a whole number; write one from {self.low} on")
        top = self.high if self.high is not None else 2**62
        unlimited = value == NO_LIMIT and self.name in WITHOUT_LIMIT
        if not unlimited and not self.low <= value <= top:
            extra = f", or {NO_LIMIT} for no limit" if self.name in WITHOUT_LIMIT else ""
            raise CgroupError(f"{where}: {value} is not allowed; write a number from {self.low} to {top}{extra}")
        return value


WITHOUT_LIMIT = ("cpu_quota_us", "memory_max_bytes", "memory_high_bytes", "pids_max")


def shares_to_weight(shares: int) -> int:
    """Return the v2 weight for v1 shares as Koordinator does it: 1 + (shares - 2)·9999 / 262142, rounded down."""
    inside = min(max(shares, SHARES_LOW), SHARES_HIGH)
    return 1 + (inside - SHARES_LOW) * (WEIGHT_HIGH - WEIGHT_LOW) // (SHARES_HIGH - SHARES_LOW)


def weight_to_shares(weight: int) -> int:
    """Return v1 shares for a v2 weight, Koordinator's inverse: 2 + (weight - 1)·262142 / 9999, rounded down."""
    inside = min(max(weight, WEIGHT_LOW), WEIGHT_HIGH)
    return SHARES_LOW + (inside - WEIGHT_LOW) * (SHARES_HIGH - SHARES_LOW) // (WEIGHT_HIGH - WEIGHT_LOW)


def _cpu_list(text: str, where: str) -> str:
    try:
        return quantity.format_cpu_list(quantity.parse_cpu_list(text))
    except quantity.QuantityError as exc:
        raise CgroupError(f"{where}: {exc}") from exc


def _number(text: str) -> int:
    """Parse a number or ``max``; anything else is a file that this kernel writes differently."""
    word = text.strip()
    if word == "max":
        return NO_LIMIT
    if not re.fullmatch(r"-?[0-9]+", word):
        raise CgroupError(f"kernel value {word!r}: is neither a number nor 'max'; this kernel is not known, report it")
    return int(word)


def _v1_bytes(text: str) -> int:
    value = _number(text)
    return NO_LIMIT if value >= _V1_NO_LIMIT_BYTES else value


def _page_floor(value: Value) -> int:
    """Round down to pages, as the kernel does with a limit (page_counter_memparse)."""
    return int(value) // _PAGE_BYTES * _PAGE_BYTES


def _plain(value: Value, _current: str) -> str:
    return str(value)


def _or_max(value: Value, _current: str) -> str:
    return "max" if value == NO_LIMIT else str(value)


def _pages(value: Value, _current: str) -> str:
    return str(NO_LIMIT) if value == NO_LIMIT else str(_page_floor(value))


def _pages_or_max(value: Value, _current: str) -> str:
    return "max" if value == NO_LIMIT else str(_page_floor(value))


def _field(text: str, number: int) -> str:
    fields = text.split()
    return fields[number] if len(fields) == 2 else ("max", "100000")[number]


def _set_text(text: str) -> str:
    return _cpu_list(text, "kernel value")


def _file(
    name: str, initial: str, parse: Callable[[str], Value] = _number, render: Callable[[Value, str], str] = _plain
) -> KernelFile:
    return KernelFile(name, initial, parse, render)


_CPU_MAX_QUOTA = _file(
    "cpu.max",
    "max 100000",
    lambda text: _number(_field(text, 0)),
    lambda value, current: f"{_or_max(value, '')} {_field(current, 1)}",
)
_CPU_MAX_PERIOD = _file(
    "cpu.max",
    "max 100000",
    lambda text: _number(_field(text, 1)),
    lambda value, current: f"{_field(current, 0)} {value}",
)
_SHARES, _WEIGHT = "cpu.shares", "cpu.weight"
_V2_ONLY = "cgroup v2 (the mainline kernel has no such file on v1)"

KEYS: tuple[Key, ...] = (
    Key(
        "cpu_shares",
        "cpu",
        "weight",
        _file(_SHARES, "1024"),
        _file(_WEIGHT, "100", _number, lambda value, _: str(shares_to_weight(int(value)))),
        "CONFIG_FAIR_GROUP_SCHED",
        SHARES_LOW,
        SHARES_HIGH,
    ),
    Key(
        "cpu_weight",
        "cpu",
        "weight",
        _file(_SHARES, "1024", _number, lambda value, _: str(weight_to_shares(int(value)))),
        _file(_WEIGHT, "100"),
        "CONFIG_FAIR_GROUP_SCHED",
        WEIGHT_LOW,
        WEIGHT_HIGH,
    ),
    Key("cpu_idle", "cpu", "idle", _file("cpu.idle", "0"), _file("cpu.idle", "0"), "Linux 5.15", 0, 1),
    Key(
        "cpu_quota_us",
        "cpu",
        "bandwidth",
        _file("cpu.cfs_quota_us", "-1"),
        _CPU_MAX_QUOTA,
        "CONFIG_CFS_BANDWIDTH",
        1000,
    ),
    Key(
        "cpu_period_us",
        "cpu",
        "bandwidth",
        _file("cpu.cfs_period_us", "100000"),
        _CPU_MAX_PERIOD,
        "CONFIG_CFS_BANDWIDTH",
        1000,
        1_000_000,
    ),
    Key(
        "cpu_burst_us",
        "cpu",
        "bandwidth",
        _file("cpu.cfs_burst_us", "0"),
        _file("cpu.max.burst", "0"),
        "Linux 5.14",
        0,
    ),
    Key(
        "cpuset_cpus",
        "cpuset",
        "cpuset",
        _file("cpuset.cpus", "", _set_text),
        _file("cpuset.cpus", "", _set_text),
        "the cpuset controller",
    ),
    Key(
        "cpuset_mems",
        "cpuset",
        "cpuset",
        _file("cpuset.mems", "", _set_text),
        _file("cpuset.mems", "", _set_text),
        "the cpuset controller",
    ),
    Key("memory_min_bytes", "memory", "plain", None, _file("memory.min", "0", _number, _pages_or_max), _V2_ONLY, 0),
    Key("memory_low_bytes", "memory", "plain", None, _file("memory.low", "0", _number, _pages_or_max), _V2_ONLY, 0),
    Key("memory_high_bytes", "memory", "plain", None, _file("memory.high", "max", _number, _pages_or_max), _V2_ONLY, 0),
    Key(
        "memory_max_bytes",
        "memory",
        "plain",
        _file("memory.limit_in_bytes", str(2**63 - 4096), _v1_bytes, _pages),
        _file("memory.max", "max", _number, _pages_or_max),
        "the memory controller",
        0,
    ),
    Key(
        "pids_max",
        "pids",
        "plain",
        _file("pids.max", "max", _number, _or_max),
        _file("pids.max", "max", _number, _or_max),
        "the pids controller",
        0,
    ),
)
BY_NAME = {key.name: key for key in KEYS}


def weight_file(version: int) -> KernelFile:
    """Return the file that cpu.idle = 1 pins, on hierarchies of a version."""
    return _file(_SHARES, "1024") if version == 1 else _file(_WEIGHT, "100")


# What the weight reads as while cpu.idle is 1 (WEIGHT_IDLEPRIO = 3 in sched.h, scaled by 100/1024 on v2).
PINNED_TEXT = {1: "3", 2: "0"}
