# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the resctrl file system: capabilities, groups, schemata (https://docs.kernel.org/filesystems/resctrl.html).

Caches are known by their id, which may have gaps, never by their position. Lines of schemata that are not about the L3
cache or memory bandwidth are kept and never written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from ansible_collections.colocation.testbed.plugins.module_utils import files, quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import mounts, procfs

MOUNT_POINT = "/sys/fs/resctrl"
# A file system in user space may stand in for the kernel's in tests; its type then says that it is one.
FS_TYPES = ("resctrl", "fuse.resctrl")
L3_LINES = ("L3", "L3CODE", "L3DATA")
BANDWIDTH_LINE = "MB"
SHAREABLE, EXCLUSIVE = "shareable", "exclusive"
# With the option mba_MBps a group without a limit has the largest number of 32 bits (MBA_MAX_MBPS in the kernel).
UNLIMITED_MBPS = 2**32 - 1
_OPTIONS = ("cdp", "cdpl2", "mba_MBps", "debug")
_NOT_GROUPS = frozenset({"info", "mon_data", "mon_groups"})
_FILES = frozenset(
    {"cpus", "cpus_list", "ctrl_hw_id", "mba_MBps_event", "mode", "mon_hw_id", "schemata", "size", "tasks"}
)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:+-]{0,199}\Z")
_Item = TypeVar("_Item")
_NUMBER = {16: re.compile(r"[0-9a-fA-F]{1,16}\Z"), 10: re.compile(r"[0-9]{1,10}\Z")}


class ResctrlError(Exception):
    """resctrl cannot be read or changed; the text says which file, why, and what to do."""


@dataclass(frozen=True)
class Line:
    """A line of schemata; ``values`` by cache id, None for a line that this library does not know."""

    name: str
    values: Mapping[int, int] | None
    text: str


@dataclass(frozen=True)
class Cache:
    """What the L3 cache can do: mask of all ways, fewest bits of a group, groups, bits shared with devices."""

    cbm_mask: int
    min_cbm_bits: int
    num_closids: int
    shareable_bits: int
    sparse_masks: bool


@dataclass(frozen=True)
class Bandwidth:
    """What memory bandwidth control can do; percent where ``linear``, else units of the hardware (AMD: 1/8 GB/s)."""

    minimum: int
    granularity: int
    num_closids: int
    linear: bool


@dataclass(frozen=True)
class Info:
    """The capabilities of a mounted file system, None for what it does not have; ``closids`` counts the root group."""

    cache: Cache | None
    bandwidth: Bandwidth | None
    events: tuple[str, ...]
    rmids: int | None
    closids: int | None
    cdp: bool
    mba_mbps: bool


@dataclass(frozen=True)
class Monitor:
    """A monitoring group and its CPUs."""

    name: str
    directory: str
    cpus: frozenset[int]


@dataclass(frozen=True)
class Group:
    """A control group; the root group has the empty name."""

    name: str
    directory: str
    mode: str
    lines: tuple[Line, ...]
    cpus: frozenset[int]
    monitors: Mapping[str, Monitor]

    def values(self, name: str) -> Mapping[int, int]:
        """Return the values of one line by cache id, none where the group has no such line."""
        return next((line.values for line in self.lines if line.name == name and line.values is not None), {})


@dataclass(frozen=True)
class State:
    """A mounted resctrl: where, of which type, with which options, and all groups by name."""

    mount_point: str
    fs_type: str
    options: tuple[str, ...]
    info: Info
    groups: Mapping[str, Group]

    @property
    def root(self) -> Group:
        """Return the group that all tasks and CPUs are in which are in no other."""
        return self.groups[""]


def check_name(name: str, what: str = "group") -> str:
    """Return the name of a group unchanged when it is safe and free for use. Raises ResctrlError."""
    if not _NAME.match(name) or name in _NOT_GROUPS or name in _FILES:
        raise ResctrlError(
            f"resctrl {what} {name[:80]!r}: not allowed as a name; give up to 200 letters, digits and _ . @ : + - not "
            "beginning with a dot, and none that resctrl itself uses (info, mon_groups, tasks and so on)"
        )
    return name


def parse_number(text: str, base: int) -> int | None:
    """Return a number without sign or prefix, None for anything else."""
    stripped = text.strip()
    return int(stripped, base) if _NUMBER[base].match(stripped) else None


def parse_schemata(text: str) -> tuple[Line, ...]:
    """Return the lines of schemata; the kernel sets names and (before Linux 6.14) values flush right."""
    return tuple(_line(line) for line in text.splitlines() if line.strip())


def _line(text: str) -> Line:
    name, colon, rest = text.partition(":")
    name = name.strip()
    known = colon and (name in L3_LINES or name == BANDWIDTH_LINE)
    return Line(name, _values(rest, 10 if name == BANDWIDTH_LINE else 16) if known else None, text)


def _values(text: str, base: int) -> Mapping[int, int] | None:
    found: dict[int, int] = {}
    for part in text.split(";"):
        cache, _equals, value = part.partition("=")
        number, parsed = parse_number(cache, 10), parse_number(value, base)
        if number is None or parsed is None or number in found:
            return None
        found[number] = parsed
    return found


def format_line(name: str, values: Mapping[int, int]) -> str:
    """Return a line of schemata as the kernel takes it, without line end."""
    shown = "d" if name == BANDWIDTH_LINE else "x"
    return f"{name}:{';'.join(f'{cache}={value:{shown}}' for cache, value in sorted(values.items()))}"


def read(path: str) -> str:
    """Return the content of a file without its line end. Raises ResctrlError."""
    try:
        return files.read_text(path).rstrip("\n")
    except files.FilesError as exc:
        raise ResctrlError(str(exc)) from exc


def read_optional(path: str) -> str | None:
    """Return the content of a file without its line end, None where there is none. Raises ResctrlError."""
    try:
        text = files.read_text_or_none(path)
    except files.FilesError as exc:
        raise ResctrlError(str(exc)) from exc
    return None if text is None else text.rstrip("\n")


def read_tasks(directory: str) -> frozenset[int]:
    """Return the threads in a group; a control group shows those of its monitoring groups too. Raises ResctrlError."""
    return frozenset(int(word) for word in read(f"{directory}/tasks").split())


def last_status(mount_point: str) -> str:
    """Return what the kernel said about the last change, empty when it said nothing."""
    try:
        text = read(f"{mount_point}/info/last_cmd_status")
    except ResctrlError:
        return ""
    return "" if text.strip() == "ok" else "; ".join(text.split("\n"))


def read_cpus(directory: str) -> frozenset[int]:
    """Return the CPUs of a group. Raises ResctrlError."""
    text = read(f"{directory}/cpus_list")
    try:
        return frozenset(quantity.parse_cpu_list(text))
    except quantity.QuantityError as exc:
        raise ResctrlError(f"{directory}/cpus_list: {exc}") from exc


def mounted(mount_point: str = MOUNT_POINT, proc_root: str = procfs.PROC_ROOT) -> mounts.Mount | None:
    """Return the mount of resctrl on a directory, or None. Raises ResctrlError where something else is there."""
    try:
        found = mounts.at(mount_point, proc_root)
    except mounts.MountsError as exc:
        raise ResctrlError(str(exc)) from exc
    if found is not None and found.fs_type not in FS_TYPES:
        raise ResctrlError(
            f"{mount_point}: a file system of type {found.fs_type} is mounted there, not resctrl; name the directory "
            "on which resctrl is mounted, or unmount what is there"
        )
    return found


def read_state(mount_point: str = MOUNT_POINT, proc_root: str = procfs.PROC_ROOT) -> State | None:
    """Return the whole state of a mounted resctrl, None where none is mounted. Raises ResctrlError."""
    found = mounted(mount_point, proc_root)
    if found is None:
        return None
    below = (_if_there(_group, name, f"{mount_point}/{name}") for name in _subdirectories(mount_point))
    groups = [_group("", mount_point), *(group for group in below if group is not None)]
    info = read_info(mount_point)
    present = {"cdp": info.cdp, "mba_MBps": info.mba_mbps}
    options = tuple(name for name in _OPTIONS if name in found.options or present.get(name))
    return State(
        mount_point,
        found.fs_type,
        options,
        Info(**{**vars(info), "mba_mbps": "mba_MBps" in options}),
        {group.name: group for group in groups},
    )


def _subdirectories(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return sorted(item.name for item in entries if item.is_dir() and item.name not in _NOT_GROUPS)
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise ResctrlError(f"{directory}: cannot be listed: {exc.strerror}; run as root") from exc


def _if_there(read_one: Callable[[str, str], _Item], name: str, directory: str) -> _Item | None:
    """Return what is read of a group, None where others have removed it meanwhile."""
    try:
        return read_one(name, directory)
    except ResctrlError:
        if os.path.isdir(directory):
            raise
        return None


def _monitor(name: str, directory: str) -> Monitor:
    return Monitor(name, directory, read_cpus(directory))


def _group(name: str, directory: str) -> Group:
    below = f"{directory}/mon_groups"
    found = (_if_there(_monitor, item, f"{below}/{item}") for item in _subdirectories(below))
    monitors = {item.name: item for item in found if item is not None}
    # A file system that can only monitor has groups without schemata and mode.
    schemata, mode = read_optional(f"{directory}/schemata"), read_optional(f"{directory}/mode")
    return Group(name, directory, mode or SHAREABLE, parse_schemata(schemata or ""), read_cpus(directory), monitors)


def read_info(mount_point: str) -> Info:
    """Return the capabilities that a mounted resctrl shows. Raises ResctrlError."""
    info = f"{mount_point}/info"
    cdp = os.path.isdir(f"{info}/L3CODE")
    bandwidth = _bandwidth(f"{info}/MB") if os.path.isdir(f"{info}/MB") else None
    # Before Linux 6.7 nothing said so, but masks with gaps were what AMD's processors took.
    gaps = bandwidth is not None and not bandwidth.linear
    caches = [_cache(f"{info}/{name}", gaps) for name in ("L3", "L3CODE") if os.path.isdir(f"{info}/{name}")]
    resources = [name for name in _subdirectories(info) if os.path.isfile(f"{info}/{name}/num_closids")]
    closids = [_integer(f"{info}/{name}/num_closids") for name in resources]
    features = read_optional(f"{info}/L3_MON/mon_features")
    return Info(
        cache=caches[0] if caches else None,
        bandwidth=bandwidth,
        events=tuple(name for name in (features or "").split() if not name.endswith("_config")),
        rmids=_integer(f"{info}/L3_MON/num_rmids") if features is not None else None,
        closids=min(closids) if closids else None,
        cdp=cdp,
        # Linux 6.14 shows the option by this file; what /proc/mounts says is added by the caller.
        mba_mbps=os.path.exists(f"{mount_point}/mba_MBps_event"),
    )


def _integer(path: str, base: int = 10) -> int:
    text = read(path)
    found = parse_number(text, base)
    if found is None:
        raise ResctrlError(f"{path}: reads {text[:40]!r}, which is not a number; the kernel is not one that is known")
    return found


def _cache(directory: str, takes_gaps: bool) -> Cache:
    sparse = read_optional(f"{directory}/sparse_masks")
    return Cache(
        cbm_mask=_integer(f"{directory}/cbm_mask", 16),
        min_cbm_bits=_integer(f"{directory}/min_cbm_bits"),
        num_closids=_integer(f"{directory}/num_closids"),
        shareable_bits=_integer(f"{directory}/shareable_bits", 16),
        sparse_masks=takes_gaps if sparse is None else sparse.strip() == "1",
    )


def _bandwidth(directory: str) -> Bandwidth:
    return Bandwidth(
        minimum=_integer(f"{directory}/min_bandwidth"),
        granularity=_integer(f"{directory}/bandwidth_gran"),
        num_closids=_integer(f"{directory}/num_closids"),
        linear=_integer(f"{directory}/delay_linear") == 1,
    )
