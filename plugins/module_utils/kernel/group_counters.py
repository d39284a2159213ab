# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counters of one control group for the sampler, the same figures from cgroup v1 and v2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, procfs
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.kept_file import KeptFile, read_fresh

FIELDS = ("cpu_s", "throttled_s", "throttled_periods", "memory_bytes", "tasks", "run_s", "wait_s")
Values = dict[str, "float | None"]


@dataclass
class _Task:
    file: KeptFile
    run_s: float = 0.0
    wait_s: float = 0.0


class TaskTimes:
    """Sums schedstat over tasks. Tasks that end keep their last known share, so that the sums never fall."""

    def __init__(self, proc_root: str = procfs.PROC_ROOT) -> None:
        """Begin without tasks. ``told``: whether the kernel has said anything yet (it needs CONFIG_SCHED_INFO)."""
        self._proc_root = proc_root
        self._tasks: dict[int, _Task] = {}
        self._ended_run_s = 0.0
        self._ended_wait_s = 0.0
        self.told = False

    def update(self, tids: list[int]) -> tuple[float, float]:
        """Read the tasks that are in the group now; returns seconds on a CPU and seconds in a run queue."""
        for tid in tids:
            if tid not in self._tasks:
                # An open file belongs to one task: it fails when that ends, even if the number is given away again.
                self._tasks[tid] = _Task(KeptFile(f"{self._proc_root}/{tid}/schedstat", reopen=False))
        present = set(tids)
        for tid in [tid for tid, task in self._tasks.items() if not self._read(task) or tid not in present]:
            task = self._tasks.pop(tid)
            task.file.close()
            self._ended_run_s += task.run_s
            self._ended_wait_s += task.wait_s
        run_s = self._ended_run_s + sum(task.run_s for task in self._tasks.values())
        return run_s, self._ended_wait_s + sum(task.wait_s for task in self._tasks.values())

    def _read(self, task: _Task) -> bool:
        content = task.file.read()
        if not content:
            return False
        times = procfs.parse_schedstat(content.decode("ascii", "replace"))
        task.run_s, task.wait_s = times.run_s, times.wait_s
        self.told = True
        return True


def parse_flat(content: bytes | None) -> dict[str, int]:
    """Parse 'key number' lines such as cpu.stat; other lines are left out."""
    result: dict[str, int] = {}
    for line in (content or b"").decode("ascii", "replace").splitlines():
        key, _unused, value = line.partition(" ")
        if value.strip().isdecimal():
            result[key] = int(value)
    return result


def parse_tids(content: bytes | None) -> list[int] | None:
    """Parse a list of task numbers, one a line; None where it cannot be read."""
    if content is None:
        return None
    return [int(word) for word in content.split() if word.isdigit()]


def task_list(layout: cgroup.Layout, group: str) -> str:
    """Return the file that lists the tasks of a group. Raises CgroupError where no cpu controller is mounted."""
    cpu = layout.hierarchy("cpu")
    return f"{cgroup.join_path(cpu.mount, group)}/{'tasks' if cpu.version == 1 else 'cgroup.threads'}"


class GroupReader:
    """Reads one group; keeps its files open."""

    def __init__(self, layout: cgroup.Layout, group: str, proc_root: str = procfs.PROC_ROOT) -> None:
        """Find the group's files; the group may be made later."""
        self._times = TaskTimes(proc_root)
        self._cpu: Callable[[], tuple[float | None, float | None, float | None]]
        cpu = layout.hierarchy("cpu")
        place = cgroup.join_path(cpu.mount, group)
        self._stat = KeptFile(f"{place}/cpu.stat")
        self._tasks = task_list(layout, group)
        if cpu.version == 1:
            self._usage = KeptFile(f"{layout.path('cpuacct', group)}/cpuacct.usage")
            self._cpu = self._cpu_v1
        else:
            self._cpu = self._cpu_v2
        memory = layout.find("memory")
        name = "memory.usage_in_bytes" if memory and memory.version == 1 else "memory.current"
        self._memory = KeptFile(f"{layout.path('memory', group)}/{name}") if memory else None

    def _cpu_v1(self) -> tuple[float | None, float | None, float | None]:
        used_ns = self._usage.read_int()
        stat = parse_flat(self._stat.read())
        throttled_ns = stat.get("throttled_time")
        return _scaled(used_ns, 1e9), _scaled(throttled_ns, 1e9), stat.get("nr_throttled")

    def _cpu_v2(self) -> tuple[float | None, float | None, float | None]:
        stat = parse_flat(self._stat.read())
        return _scaled(stat.get("usage_usec"), 1e6), _scaled(stat.get("throttled_usec"), 1e6), stat.get("nr_throttled")

    def read(self) -> Values:
        """Return the figures of FIELDS; None for what cannot be read, all None where the group is not there."""
        cpu_s, throttled_s, throttled_periods = self._cpu()
        tids = parse_tids(read_fresh(self._tasks))
        run_s, wait_s = (None, None) if tids is None else self._times.update(tids)
        if tids and not self._times.told:
            run_s = wait_s = None
        return {
            "cpu_s": cpu_s,
            "throttled_s": throttled_s,
            "throttled_periods": throttled_periods,
            "memory_bytes": self._memory.read_int() if self._memory else None,
            "tasks": None if tids is None else len(tids),
            "run_s": run_s,
            "wait_s": wait_s,
        }


def _scaled(value: int | None, divisor: float) -> float | None:
    return None if value is None else value / divisor
