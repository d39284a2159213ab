"""How long module `cgroup` takes for 200 groups with 8 values each, beside a plain loop that does no more than it must.

Everything is done below a group of the benchmark's own, which is taken away by the journal after each round.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
from ansible_collections.colocation.testbed.plugins.module_utils.measure import statistics
from tools.bench_figures import BenchError, Figure

ROOT = Path(__file__).resolve().parents[1]
GROUPS = 200
FIRST_GOAL_S = 1.0
AGAIN_GOAL_S = 0.5
MODULES = "ansible_collections.colocation.testbed.plugins.modules"
VALUES: Mapping[str, Any] = {
    "cpu_shares": 512,
    "cpu_quota_us": 50_000,
    "cpu_period_us": 50_000,
    "cpu_burst_us": 10_000,
    "cpuset_cpus": "0",
    "memory_max_bytes": 2**30,
    "pids_max": 1000,
    "io_weight": 50,
}
# What the plain loop writes for the same: controller, v1 file and text, v2 file and text.
PLAIN = (
    ("cpu", "cpu.shares", "512", "cpu.weight", "20"),
    ("cpu", "cpu.cfs_period_us", "50000", "cpu.max", "50000 50000"),
    ("cpu", "cpu.cfs_quota_us", "50000", "", ""),
    ("cpu", "cpu.cfs_burst_us", "10000", "cpu.max.burst", "10000"),
    ("cpuset", "cpuset.mems", "0", "", ""),
    ("cpuset", "cpuset.cpus", "0", "cpuset.cpus", "0"),
    ("memory", "memory.limit_in_bytes", str(2**30), "memory.max", str(2**30)),
    ("pids", "pids.max", "1000", "pids.max", "1000"),
    ("io", "blkio.bfq.weight", "50", "io.weight", "default 50"),
)


def arguments(state: Path, root: str) -> dict[str, Any]:
    """Return the options of the module under test."""
    groups = [{"name": f"g{number:03d}", **VALUES} for number in range(GROUPS)]
    return {"state_dir": str(state), "root": root, "groups": groups, "on_missing": "skip"}


class Round:
    """One round: every way once, on the same machine state, in a directory of its own."""

    def __init__(self, directory: Path, root: str) -> None:
        """Remember where; nothing is made yet."""
        self.directory, self.root, self.state = directory, root, directory / "state"

    def module(self, name: str, options: Mapping[str, Any]) -> tuple[float, float, dict[str, Any]]:
        """Run a module as a process of its own; returns seconds from start to end, seconds of CPU, and its result."""
        orders = self.directory / "orders.json"
        orders.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": options}), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "collections"), "LC_ALL": "C.UTF-8"}
        argv = [sys.executable, "-m", f"{MODULES}.{name}", str(orders)]
        before, started = cpu_of_children_s(), time.monotonic()
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=120)
        seconds, cpu_s = time.monotonic() - started, cpu_of_children_s() - before
        if done.returncode:
            raise BenchError(f"module {name} failed: {(done.stdout or done.stderr).strip()[-400:]}")
        parsed: dict[str, Any] = json.loads(done.stdout)
        return seconds, cpu_s, parsed

    def undo(self) -> None:
        """Take everything back by the journal."""
        _seconds, _cpu_s, result = self.module("journal_undo", {"state_dir": str(self.state)})
        if result.get("failed_entries") or self.state.exists():
            raise BenchError(f"the journal in {self.state} could not be undone: look at it with module journal_undo")

    def direct(self) -> dict[str, float]:
        """Time the module's process: doing nothing, making everything, and finding everything made."""
        options = arguments(self.state, self.root)
        start_s, start_cpu_s, _nothing = self.module("cgroup_info", {"root": self.root})
        first_s, first_cpu_s, first = self.module("cgroup", options)
        again_s, again_cpu_s, again = self.module("cgroup", options)
        self.undo()
        expect(first["changed"] is True and again["changed"] is False, "the second run changed something")
        times = {"start": start_s, "first": first_s, "again": again_s}
        return {**times, "start_cpu": start_cpu_s, "first_cpu": first_cpu_s, "again_cpu": again_cpu_s}

    def tasks(self) -> dict[str, float]:
        """Time tasks of a playbook: a module that does nothing, the first run, the second run."""
        options = arguments(self.state, self.root)
        tasks = [
            {"name": "overhead", "colocation.testbed.cgroup_info": {"root": self.root}},
            {"name": "first", "colocation.testbed.cgroup": options},
            {"name": "again", "colocation.testbed.cgroup": options, "register": "_again"},
            {"name": "check", "ansible.builtin.assert": {"that": "not _again.changed"}},
        ]
        book = self.directory / "play.yml"
        book.write_text(json.dumps([{"name": "bench", "hosts": "all", "gather_facts": False, "tasks": tasks}]))
        environment = {
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_CALLBACKS_ENABLED": "ansible.builtin.junit",
            "JUNIT_OUTPUT_DIR": str(self.directory / "junit"),
            "JUNIT_HIDE_TASK_ARGUMENTS": "true",
            "LC_ALL": "C.UTF-8",
        }
        argv = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "localhost,", "-c", "local"]
        argv += ["-e", f"ansible_python_interpreter={sys.executable}", str(book)]
        done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)
        self.undo()
        expect(done.returncode == 0, f"the playbook failed: {done.stdout[-400:]}")
        return task_seconds(sorted((self.directory / "junit").glob("*.xml"))[-1].read_text(encoding="utf-8"))

    def plain(self) -> float:
        """Time a loop that makes the directories and writes the values, and nothing else."""
        layout = cgroup.detect()
        top = f"{self.root}-plain"
        places = [top, *(f"{top}/g{number:03d}" for number in range(GROUPS))]
        writes = [(layout.hierarchy(item[0]), item[1:]) for item in PLAIN if layout.find(item[0])]
        started = time.monotonic()
        for place in places:
            for directory in layout.directories(place):
                os.mkdir(directory)
            for hierarchy, (v1_file, v1_text, v2_file, v2_text) in writes:
                file, text = (v1_file, v1_text) if hierarchy.version == 1 else (v2_file, v2_text)
                if file and (place != top or hierarchy.controllers == ("cpuset",)):
                    with open(f"{hierarchy.mount}/{place}/{file}", "w", encoding="ascii") as handle:
                        handle.write(text)
        seconds = time.monotonic() - started
        for place in reversed(places):
            for directory in layout.directories(place):
                os.rmdir(directory)
        return seconds


def cpu_of_children_s() -> float:
    """Return the CPU time, user and system, of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def expect(holds: bool, otherwise: str) -> None:
    """Raise BenchError unless what the figures rest on is true."""
    if not holds:
        raise BenchError(f"{otherwise}; no figure is given")


def task_seconds(report: str) -> dict[str, float]:
    """Return {task: seconds} from a report of the callback junit."""
    found: dict[str, float] = {}
    for case in ElementTree.fromstring(report).iter("testcase"):
        named = re.search(r"bench: (\w+)", case.get("name") or "")
        found.update({named.group(1): float(case.get("time") or 0)} if named else {})
    missing = sorted({"overhead", "first", "again"} - set(found))
    expect(not missing, f"the playbook's report has no task {', '.join(missing)}")
    return found


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    models = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    return {
        "cpu_model": models[0] if models else platform.machine(),
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "cgroup": cgroup.detect().version,
        "python": platform.python_version(),
        "load_average": round(os.getloadavg()[0], 1),
    }


def figures(rounds: Sequence[Mapping[str, float]], where: Mapping[str, Any]) -> list[Figure]:
    """Return the figures of all rounds: means with 95 % intervals, goals judged by the upper end."""
    count = len(rounds)
    method = f"{count} interleaved rounds, {GROUPS} groups with {len(VALUES)} values each; mean and 95 % interval"
    first, again = f"upper end <= {FIRST_GOAL_S:g}", f"upper end <= {AGAIN_GOAL_S:g}"
    rows: list[tuple[str, Callable[[Mapping[str, float]], float], str, float | None, str]] = [
        ("cgroup_200_groups_s", lambda r: r["first"], first, FIRST_GOAL_S, "process of the module, first run"),
        ("cgroup_200_groups_again_s", lambda r: r["again"], "no goal", None, "process of the module, second run"),
        (
            "cgroup_200_groups_again_beyond_ansible_s",
            lambda r: r["task_again"] - r["task_overhead"],
            again,
            AGAIN_GOAL_S,
            "task of the second run (changed=0) less a task of the same kind that does nothing",
        ),
        ("cgroup_200_groups_task_s", lambda r: r["task_first"], "no goal", None, "whole task, first run"),
        ("cgroup_200_groups_cpu_s", lambda r: r["first_cpu"], "no goal", None, "CPU time of that process, first run"),
        ("cgroup_200_groups_again_cpu_s", lambda r: r["again_cpu"], "no goal", None, "the same, second run"),
        (
            "module_start_cpu_s",
            lambda r: r["start_cpu"],
            "peer, no goal",
            None,
            "CPU time of a module that does nothing",
        ),
        ("module_start_s", lambda r: r["start"], "peer, no goal", None, "process of a module that does nothing"),
        (
            "cgroup_200_groups_plain_loop_s",
            lambda r: r["plain"],
            "peer, no goal",
            None,
            "floor: one loop of mkdir and write, without comparing, journal and reading back",
        ),
    ]
    found = []
    for name, take, goal, limit, what in rows:
        mean = statistics.mean_interval([take(item) for item in rounds])
        value, low, high = (round(end, 4) for end in (mean.value, mean.low, mean.high))
        holds = limit is None or mean.high <= limit
        found.append(Figure(name, value, low, high, "s", goal, holds, f"{what}; {method}", dict(where)))
    return found


def bench(options: argparse.Namespace) -> list[Figure]:
    """Measure some rounds, each way once in each."""
    expect(os.geteuid() == 0, "making control groups needs root")
    expect(options.rounds >= 3, "fewer than three rounds say nothing about their scatter")
    rounds = []
    for number in range(options.rounds):
        with tempfile.TemporaryDirectory(prefix="colocation-bench-") as directory:
            turn = Round(Path(directory), f"colocation-testbed-bench-{os.getpid()}")
            tasks = turn.tasks()
            rounds.append({**turn.direct(), "plain": turn.plain(), **{f"task_{key}": tasks[key] for key in tasks}})
        sys.stdout.write(f"round {number + 1} of {options.rounds}\n")
    return figures(rounds, machine())
