# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and parse files of /proc: process state, CPU times, run-queue delay, memory, network (proc(5))."""

from __future__ import annotations

import os
from dataclasses import dataclass

PROC_ROOT = "/proc"
CPU_CLASSES = ("user_s", "nice_s", "system_s", "idle_s", "iowait_s", "irq_s", "softirq_s", "steal_s")
DEAD_STATES = ("Z", "X", "x")
# include/linux/sched.h
PF_KTHREAD = 0x00200000
_NS_PER_S = 1e9
_STAT_FIELDS_AFTER_COMM = 20


class ProcError(Exception):
    """A file of /proc could not be read or has content that proc(5) does not describe."""


@dataclass(frozen=True)
class ProcessStat:
    """The fields of /proc/<pid>/stat that identify a process and place it among others."""

    pid: int
    comm: str
    state: str
    ppid: int
    pgrp: int
    session: int
    user_ticks: int
    system_ticks: int
    start_ticks: int
    flags: int = 0

    @property
    def kernel_thread(self) -> bool:
        """Tell whether it is a thread of the kernel's own, which control groups refuse."""
        return bool(self.flags & PF_KTHREAD)

    @property
    def dead(self) -> bool:
        """Tell whether the process has ended: a zombie only waits to be reaped."""
        return self.state in DEAD_STATES


@dataclass(frozen=True)
class SchedStat:
    """Time on a CPU and time runnable without one, in seconds (sched-stats.rst, /proc/<pid>/schedstat)."""

    run_s: float
    wait_s: float


@dataclass(frozen=True)
class NetCounters:
    """Bytes received and sent by one interface since it was made."""

    rx_bytes: int
    tx_bytes: int


def read_text(path: str) -> str | None:
    """Return the content of a file of /proc, or None where it does not exist or its process has ended."""
    try:
        with open(path, encoding="utf-8", errors="replace", newline="\n") as handle:
            return handle.read()
    except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
        return None
    except OSError as exc:
        raise ProcError(f"{path}: cannot be read ({exc.strerror}); run as root") from exc


def parse_stat(text: str) -> ProcessStat:
    """Parse /proc/<pid>/stat; the command name may itself hold spaces and brackets.

    Raises ProcError where fields are missing or not numbers.
    """
    opening, closing = text.find("("), text.rfind(")")
    fields = text[closing + 1 :].split()
    if opening < 1 or closing < opening or len(fields) < _STAT_FIELDS_AFTER_COMM:
        raise ProcError(f"process stat {text[:60]!r}: not of the form 'pid (name) state …'; see proc(5)")
    try:
        return ProcessStat(
            pid=int(text[:opening]),
            comm=text[opening + 1 : closing],
            state=fields[0],
            ppid=int(fields[1]),
            pgrp=int(fields[2]),
            session=int(fields[3]),
            user_ticks=int(fields[11]),
            system_ticks=int(fields[12]),
            start_ticks=int(fields[19]),
            flags=int(fields[6]),
        )
    except ValueError as exc:
        raise ProcError(f"process stat {text[:60]!r}: {exc}; see proc(5)") from exc


def read_stat(pid: int, proc_root: str = PROC_ROOT) -> ProcessStat | None:
    """Return the stat of a process, or None where no process has this number."""
    text = read_text(f"{proc_root}/{pid}/stat")
    return parse_stat(text) if text else None


def list_stats(proc_root: str = PROC_ROOT) -> list[ProcessStat]:
    """Return the stat of every process that lives; those that end meanwhile are left out."""
    pids = (int(name) for name in os.listdir(proc_root) if name.isdigit())
    found = (read_stat(pid, proc_root) for pid in pids)
    return [stat for stat in found if stat is not None and not stat.dead]


def read_boot_id(proc_root: str = PROC_ROOT) -> str:
    """Return the id of this boot: process numbers and start times repeat in the next one."""
    text = read_text(f"{proc_root}/sys/kernel/random/boot_id")
    if not text:
        raise ProcError(f"{proc_root}/sys/kernel/random/boot_id: not there; mount /proc of the host")
    return text.strip()


def read_command(pid: int, proc_root: str = PROC_ROOT) -> list[str]:
    """Return the argv of a process, empty for kernel threads and ended processes."""
    text = read_text(f"{proc_root}/{pid}/cmdline")
    return text.rstrip("\0").split("\0") if text else []


def read_group_paths(pid: int, proc_root: str = PROC_ROOT) -> dict[str, str]:
    """Return {controllers: path} from /proc/<pid>/cgroup; the key of cgroup v2 is the empty string."""
    return parse_group_paths(read_text(f"{proc_root}/{pid}/cgroup") or "")


def parse_group_paths(text: str) -> dict[str, str]:
    """Parse /proc/<pid>/cgroup (lines 'id:controllers:path', cgroups(7))."""
    parts = (line.split(":", 2) for line in text.splitlines())
    return {fields[1]: fields[2] for fields in parts if len(fields) == 3}


def parse_cpu_times(text: str, ticks_per_s: int, cpus: frozenset[int] | None = None) -> dict[int, dict[str, float]]:
    """Parse the cpuN lines of /proc/stat into seconds by class; `cpus` limits which are taken.

    user and nice include guest time, as the kernel counts it (proc(5)). Raises ProcError on a damaged line.
    """
    result: dict[int, dict[str, float]] = {}
    for line in text.splitlines():
        if not line.startswith("cpu"):
            break
        name, *values = line.split()
        if name == "cpu":
            continue
        try:
            number = int(name[3:])
            if cpus is None or number in cpus:
                result[number] = {key: int(value) / ticks_per_s for key, value in zip(CPU_CLASSES, values)}
        except ValueError as exc:
            raise ProcError(f"/proc/stat line {line[:60]!r}: {exc}; see proc(5)") from exc
    return result


def parse_schedstat(text: str) -> SchedStat:
    """Parse /proc/<pid>/schedstat: nanoseconds on the CPU, nanoseconds waiting in a run queue, slices."""
    fields = text.split()
    try:
        return SchedStat(int(fields[0]) / _NS_PER_S, int(fields[1]) / _NS_PER_S)
    except (ValueError, IndexError) as exc:
        raise ProcError(f"schedstat {text[:60]!r}: expected three numbers; enable CONFIG_SCHED_INFO") from exc


def parse_net_dev(text: str) -> dict[str, NetCounters]:
    """Parse /proc/net/dev, which shows the reader's own network namespace (unlike /sys/class/net under nsenter)."""
    result: dict[str, NetCounters] = {}
    for line in text.splitlines()[2:]:
        name, colon, rest = line.partition(":")
        values = rest.split()
        if not colon or len(values) < 9:
            raise ProcError(f"/proc/net/dev line {line[:60]!r}: expected 'name: 16 numbers'; see proc(5)")
        try:
            result[name.strip()] = NetCounters(int(values[0]), int(values[8]))
        except ValueError as exc:
            raise ProcError(f"/proc/net/dev line {line[:60]!r}: {exc}; see proc(5)") from exc
    return result


def parse_meminfo(text: str) -> dict[str, int]:
    """Parse /proc/meminfo into bytes; lines that carry no number are left out."""
    result: dict[str, int] = {}
    for line in text.splitlines():
        name, _unused, rest = line.partition(":")
        fields = rest.split()
        if fields and fields[0].isdigit():
            result[name.strip()] = int(fields[0]) * (1024 if fields[-1] == "kB" else 1)
    return result


def parse_available_bytes(content: bytes) -> int | None:
    """Return MemAvailable of /proc/meminfo in bytes without parsing the other fifty lines, None where it is missing."""
    start = content.find(b"MemAvailable:")
    fields = content[start + 13 : content.find(b"\n", start)].split() if start >= 0 else []
    return int(fields[0]) * 1024 if len(fields) == 2 and fields[0].isdigit() else None
