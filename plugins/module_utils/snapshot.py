# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A canonical picture of what this collection may change on a host, to prove that nothing of it is left.

A snapshot is ``{section: {key: text}}``. What changes by itself (counters, indexes, process numbers) isn't in it.
"""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cgroup,
    cgroup_report,
    mounts,
    netns,
    procfs,
    resctrl,
    swap,
)

Snapshot = Mapping[str, Mapping[str, str]]
_UNREADABLE = (
    cgroup.CgroupError,
    commands.CommandError,
    files.FilesError,
    mounts.MountsError,
    netns.NetnsError,
    procfs.ProcError,
    resctrl.ResctrlError,
    swap.SwapError,
)

# Values that the kernel changes by itself, below /proc/sys. Not in a snapshot, since no two would ever be equal.
VOLATILE_SYSCTLS = (
    "dev.cdrom.info",
    "fs.aio-nr",
    "fs.dentry-state",
    "fs.dquot.*",
    "fs.file-nr",
    "fs.inode-nr",
    "fs.inode-state",
    "fs.quota.*",
    "kernel.hung_task_detect_count",
    "kernel.ns_last_pid",
    # Lowered where interrupts of perf take long, as on bare metal under load.
    "kernel.perf_event_max_sample_rate",
    "kernel.pty.nr",
    "kernel.random.*",
    "kernel.sched_domain.*",
    "net.netfilter.nf_conntrack_count",
    "vm.stat_refresh",
)
# What module host_tuning sets below /sys. Not the CPUs of interrupts, which irqbalance moves all the time.
TUNED = (
    "devices/system/cpu/cpu*/cpuidle/state*/disable",
    "devices/system/cpu/cpufreq/boost",
    "devices/system/cpu/cpufreq/policy*/energy_performance_preference",
    "devices/system/cpu/cpufreq/policy*/scaling_governor",
    "devices/system/cpu/intel_pstate/no_turbo",
    "kernel/mm/ksm/run",
    "kernel/mm/transparent_hugepage/defrag",
    "kernel/mm/transparent_hugepage/enabled",
)
# Fields of ``ip -j`` and ``tc -j`` output that number things in the order of their making, or count.
_VOLATILE_FIELDS = (
    "backlog",
    "bytes",
    "drops",
    "ifindex",
    "inet6_addr_gen_mode",
    "link_index",
    "link_netnsid",
    "operstate",
    "overlimits",
    "packets",
    "preferred_life_time",
    "promiscuity",
    "qlen",
    "requeues",
    "stats",
    "stats64",
    "valid_life_time",
)


class SnapshotError(Exception):
    """A part of the picture cannot be taken."""


@dataclass(frozen=True)
class Wanted:
    """What the picture shows besides the kernel's state, and where it is read."""

    paths: tuple[str, ...] = ()
    cgroup_root: str = "colocation-testbed"
    state_dir: str = "/var/lib/colocation-testbed"
    ignore: tuple[str, ...] = ()
    proc_root: str = procfs.PROC_ROOT
    sys_root: str = "/sys"
    netns_root: str = netns.RUN_ROOT
    run: Callable[..., commands.Result] = commands.run


def take(wanted: Wanted) -> dict[str, dict[str, str]]:
    """Return the picture. Raises SnapshotError when a part of it cannot be read."""
    sections: dict[str, Callable[[], Iterable[tuple[str, str]]]] = {
        "cgroups": lambda: _cgroups(wanted),
        "files": lambda: (item for path in wanted.paths for item in _tree(path)),
        "links": lambda: _network(wanted, ["ip", "-d", "-j", "addr", "show"], "ifname"),
        "mounts": lambda: _mounts(wanted),
        "netns": lambda: ((name, "") for name in netns.names(wanted.netns_root)),
        "processes": lambda: _processes(wanted),
        "qdiscs": lambda: _network(wanted, ["tc", "-j", "qdisc", "show"], "dev"),
        "resctrl": lambda: _resctrl(wanted.proc_root),
        "routes": lambda: _network(wanted, ["ip", "-j", "route", "show", "table", "all"], "dev"),
        "sysctls": lambda: _sysctls(os.path.join(wanted.proc_root, "sys")),
        "tuning": lambda: _tuning(wanted),
    }
    picture: dict[str, dict[str, str]] = {}
    for name, read in sections.items():
        try:
            shown = ((key, text) for key, text in read() if not _ignored(f"{name}/{key}", wanted.ignore))
            picture[name] = dict(sorted(shown))
        except _UNREADABLE as exc:
            raise SnapshotError(f"snapshot of {name}: {exc}") from exc
        except OSError as exc:
            raise SnapshotError(f"snapshot of {name}: {exc.filename}: {exc.strerror}; run as root") from exc
    return picture


def digest(picture: Snapshot) -> str:
    """Return the SHA-256 of a picture: equal exactly when the pictures are."""
    return hashlib.sha256(json.dumps(picture, sort_keys=True).encode()).hexdigest()


def differences(before: Snapshot, after: Snapshot) -> list[str]:
    """Return one line for each thing that only one picture has, or that is not the same in both."""
    lines = []
    for section in sorted({*before, *after}):
        old, new = before.get(section, {}), after.get(section, {})
        for key in sorted({*old, *new}):
            if key not in new:
                lines.append(f"{section} {key}: is gone (was {old[key] or 'there'})")
            elif key not in old:
                lines.append(f"{section} {key}: is new ({new[key] or 'there'})")
            elif old[key] != new[key]:
                lines.append(f"{section} {key}: was {old[key]}, is {new[key]}")
    return lines


def _ignored(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def _cgroups(wanted: Wanted) -> Iterator[tuple[str, str]]:
    """Yield every group directory, and its values; a group that vanishes meanwhile is left out."""
    layout = cgroup.detect(wanted.proc_root)
    for hierarchy in layout.hierarchies:
        names = {*cgroup_report.value_files(hierarchy), "cgroup.subtree_control"}
        for directory, _below, found in os.walk(hierarchy.mount):
            yield directory, ""
            for name in sorted(names.intersection(found)):
                try:
                    text = files.read_text_or_none(f"{directory}/{name}")
                except files.FilesError:
                    continue
                if text is not None:
                    yield f"{directory}/{name}", text.strip()


def _resctrl(proc_root: str) -> Iterator[tuple[str, str]]:
    """Yield every group of every mounted resctrl with what can be set in it; threads come and go."""
    for point in dict.fromkeys(item.point for item in mounts.read(proc_root) if item.fs_type in resctrl.FS_TYPES):
        state = resctrl.read_state(point, proc_root)
        for group in state.groups.values() if state else ():
            lines = [line.text.strip() for line in group.lines]
            yield group.directory, "; ".join([f"mode {group.mode}", *lines, f"CPUs {sorted(group.cpus)}"])
            for monitor in group.monitors.values():
                yield monitor.directory, f"CPUs {sorted(monitor.cpus)}"


def _tree(path: str) -> Iterator[tuple[str, str]]:
    """Yield a file, or a directory with all below it; what does not exist is yielded as missing."""
    if not os.path.lexists(path):
        yield path, "missing"
        return
    yield path, _describe(path)
    if os.path.isdir(path) and not os.path.islink(path):
        for name in sorted(os.listdir(path)):
            yield from _tree(f"{path.rstrip('/')}/{name}")


def _describe(path: str) -> str:
    status = os.lstat(path)
    owner = f"{stat.filemode(status.st_mode)} {status.st_uid}:{status.st_gid}"
    if stat.S_ISLNK(status.st_mode):
        return f"{owner} -> {os.readlink(path)}"
    if stat.S_ISREG(status.st_mode):
        return f"{owner} sha256 {hashlib.sha256(files.read_bytes(path)).hexdigest()}"
    return owner


def _without_volatile(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_volatile(item) for key, item in value.items() if key not in _VOLATILE_FIELDS}
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return sorted((_without_volatile(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return value


def _network(wanted: Wanted, argv: Sequence[str], name: str) -> Iterator[tuple[str, str]]:
    """Yield what iproute2 lists in this network namespace, by device and position."""
    text = wanted.run(argv).stdout.strip() or "[]"
    try:
        # iproute2 prints an empty object for each thing that a filter left out.
        found = [item for item in _without_volatile(json.loads(text)) if item]
    except ValueError as exc:
        raise SnapshotError(f"snapshot: {' '.join(argv)} printed no JSON ({exc}); update iproute2") from exc
    counts: dict[str, int] = {}
    for item in found:
        key = str(item.get(name, "-"))
        counts[key] = counts.get(key, 0) + 1
        yield f"{key}#{counts[key]}", json.dumps(item, sort_keys=True)


def _mounts(wanted: Wanted) -> Iterator[tuple[str, str]]:
    """Yield mounts without the numbers that the kernel gives them; several on one point are numbered from below."""
    counts: dict[str, int] = {}
    for line in mounts.lines(mounts.table(wanted.proc_root)):
        fields = line.split(" ")
        dash = fields.index("-")
        point = fields[4]
        counts[point] = counts.get(point, 0) + 1
        # A propagation group has a number of its own; that it is shared matters, not with which number.
        tags = [tag.split(":")[0] for tag in fields[6:dash]]
        shown = " ".join([fields[3], fields[5], *tags, *fields[dash + 1 :]])
        yield f"{point}#{counts[point]}", shown


def _processes(wanted: Wanted) -> Iterator[tuple[str, str]]:
    """Yield processes of ours: in one of our groups, or with our state directory in their arguments.

    Not the ones that this process descends from: the controller names the state directory too.
    """
    counts: dict[str, int] = {}
    stats = {found.pid: found for found in procfs.list_stats(wanted.proc_root)}
    pid = os.getpid()
    while pid in stats:
        pid = stats.pop(pid).ppid
    for found in stats.values():
        argv = procfs.read_command(found.pid, wanted.proc_root)
        groups = procfs.read_group_paths(found.pid, wanted.proc_root).values()
        inside = any(f"{group}/".startswith(f"/{wanted.cgroup_root}/") for group in groups)
        if inside or any(wanted.state_dir in word for word in argv):
            key = " ".join(argv) or found.comm
            counts[key] = counts.get(key, 0) + 1
            yield f"{key}#{counts[key]}", ""


def _sysctls(root: str) -> Iterator[tuple[str, str]]:
    for directory, _below, names in os.walk(root):
        for name in names:
            path = os.path.join(directory, name)
            key = os.path.relpath(path, root).replace("/", ".")
            if _ignored(key, VOLATILE_SYSCTLS):
                continue
            text = _sysctl(path)
            if text is not None:
                yield key, text


def _sysctl(path: str) -> str | None:
    """Return a value, or None for one that is only written or that this kernel refuses to show."""
    try:
        if not os.stat(path).st_mode & 0o444:
            return None
        return " ".join(files.read_text(path).split())
    except (OSError, files.FilesError):
        return None


def _tuning(wanted: Wanted) -> Iterator[tuple[str, str]]:
    """Yield values below /sys that host tuning sets, and the areas in use for swap with their priority."""
    for pattern in TUNED:
        for path in glob.glob(os.path.join(glob.escape(wanted.sys_root), pattern)):
            text = _sysctl(path)
            if text is not None:
                yield path, text
    for area in swap.areas(wanted.proc_root):
        yield f"swap {area.path}", str(area.priority)
