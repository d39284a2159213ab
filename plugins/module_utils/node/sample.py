# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write one line of counters each second: what the matrix knows about a host during a measurement.

Runs as `node.pyz sample --spec FILE`. Each line is one JSON object; its form is in docs/architecture.md. Counters are
cumulative. Files stay open, so that a sample costs a few hundred system calls and well below a millisecond of CPU.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Union

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cgroup,
    cpu_list,
    cpuidle,
    links,
    pm_qos,
    procfs,
    psi,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.group_counters import GroupReader
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.kept_file import KeptFile
from ansible_collections.colocation.testbed.plugins.module_utils.node import work
from ansible_collections.colocation.testbed.plugins.module_utils.node.group_places import GroupPlaces
from ansible_collections.colocation.testbed.plugins.module_utils.node.process_readers import (
    ProcessesOfGroup,
    SupervisedProcess,
)

ProcessReader = Union[SupervisedProcess, ProcessesOfGroup]
_STOP = frozenset({signal.SIGTERM, signal.SIGINT})
_US_PER_S = 1e6


class SampleError(Exception):
    """The sampler's specification is damaged, or its output cannot be written."""


@dataclass(frozen=True)
class SampleSpec:
    """What to sample; `cpus` is a CPU list or a list of numbers, empty for all that are online."""

    output: str
    interval_s: float = 1.0
    cgroup_root: str = ""
    groups: tuple[str, ...] = ()
    group_paths: Mapping[str, str] = field(default_factory=dict)
    cpus: frozenset[int] = frozenset()
    policy_files: Mapping[str, str] = field(default_factory=dict)
    work: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    processes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    interface: str | None = None
    max_duration_s: float | None = None
    proc_root: str = procfs.PROC_ROOT
    cpu_root: str = cpuidle.CPU_ROOT
    pm_qos_device: str = pm_qos.DEVICE


def parse_spec(raw: Any) -> SampleSpec:
    """Build the specification from its JSON object. Raises SampleError."""
    try:
        cpus = raw.get("cpus") or ""
        numbers = cpu_list.parse(cpus) if isinstance(cpus, str) else frozenset(int(cpu) for cpu in cpus)
        spec = SampleSpec(**{**raw, "groups": tuple(raw.get("groups", ())), "cpus": numbers or cpu_list.online()})
    except (AttributeError, TypeError, ValueError, cpu_list.CpuListError) as exc:
        raise SampleError(f"sample: not a specification ({exc}); see docs/node-tool.md for its keys") from exc
    if not all(isinstance(paths, Mapping) for paths in (spec.group_paths, spec.processes, spec.work)):
        raise SampleError("sample: group_paths, processes, work: give each as an object; see docs/node-tool.md")
    if not spec.interval_s > 0:
        raise SampleError(f"sample: interval_s is {spec.interval_s}; give seconds above 0")
    return spec


class IdleReader:
    """Counts how often and how long a CPU was in idle states that cost time to leave."""

    def __init__(self, cpu: int, cpu_root: str) -> None:
        """Find the states of a CPU."""
        found = cpuidle.deep_states(cpu, cpu_root)
        self._usage = [KeptFile(state.usage_path) for state in found]
        self._time = [KeptFile(state.time_path) for state in found]

    def read(self) -> dict[str, float | None]:
        """Return entries and seconds, None where the kernel shows no states."""
        entries = _total(self._usage)
        time_us = _total(self._time)
        return {"deep_entries": entries, "deep_s": None if time_us is None else time_us / _US_PER_S}


def _total(kept: list[KeptFile]) -> int | None:
    values = [item.read_int() for item in kept]
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _process_reader(
    name: str, how: Mapping[str, Any], layout: cgroup.Layout, places: GroupPlaces, proc_root: str
) -> ProcessReader:
    if how.get("group_path"):
        return ProcessesOfGroup(layout, str(how["group_path"]), str(how.get("group", name)))
    if not how.get("pid_file"):
        raise SampleError(f"sample: process {name}: has neither pid_file nor group_path; give one of them")
    prefix = f"/{places.root}/" if places.root else "/"
    return SupervisedProcess(layout, str(how["pid_file"]), prefix, proc_root)


class Sampler:
    """Reads everything once for each line."""

    def __init__(self, spec: SampleSpec) -> None:
        """Open what can be opened; what is missing is tried again each time."""
        layout = cgroup.detect(spec.proc_root)
        places = GroupPlaces(spec.cgroup_root, spec.group_paths)
        names = dict.fromkeys((*spec.groups, *spec.group_paths))
        self._spec = spec
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")
        self._stat = KeptFile(f"{spec.proc_root}/stat")
        self._memory = KeptFile(f"{spec.proc_root}/meminfo")
        self._net = KeptFile(f"{spec.proc_root}/self/net/dev")
        self._outermost = links.Outermost()
        self._pm_qos = KeptFile(spec.pm_qos_device)
        self._psi = {name: KeptFile(f"{spec.proc_root}/pressure/{name}") for name in psi.RESOURCES}
        self._groups = {name: GroupReader(layout, places.of(name), spec.proc_root) for name in names}
        self._idle = {cpu: IdleReader(cpu, spec.cpu_root) for cpu in sorted(spec.cpus)}
        self._policy = {key: KeptFile(path) for key, path in spec.policy_files.items()}
        self._work = {
            name: (work.unit(how), work.reader(how, layout, places, self._net)) for name, how in spec.work.items()
        }
        self._processes = {
            name: _process_reader(name, how, layout, places, spec.proc_root) for name, how in spec.processes.items()
        }

    def read(self) -> dict[str, Any]:
        """Return one sample."""
        sample: dict[str, Any] = {"wall_s": time.time(), "mono_s": time.monotonic()}
        sample["cpus"] = self._read_cpus()
        sample["groups"] = {name: group.read() for name, group in self._groups.items()}
        sample["psi"] = {name: psi.parse(kept.read_text() or "") for name, kept in self._psi.items()}
        sample["idle"] = {str(cpu): idle.read() for cpu, idle in self._idle.items()}
        sample["pm_qos_us"] = self._read_pm_qos()
        sample["memory_available_bytes"] = procfs.parse_available_bytes(self._memory.read() or b"")
        sample["net"] = self._read_net()
        sample["work"] = {name: {"unit": unit, "done": read()} for name, (unit, read) in self._work.items()}
        sample["processes"] = {name: process.read() for name, process in self._processes.items()}
        sample["policy"] = {key: _stripped(kept.read_text()) for key, kept in self._policy.items()}
        return sample

    def _read_cpus(self) -> dict[str, dict[str, float] | None]:
        times = procfs.parse_cpu_times(self._stat.read_text() or "", self._ticks_per_s, self._spec.cpus)
        return {str(cpu): times.get(cpu) for cpu in sorted(self._spec.cpus)}

    def _read_pm_qos(self) -> int | None:
        content = self._pm_qos.read()
        return pm_qos.decode(content) if content else None

    def _read_net(self) -> dict[str, int | None]:
        counters = procfs.parse_net_dev(self._net.read_text() or "")
        interface = self._spec.interface
        wanted = self._outermost.among(counters) if interface is None else frozenset({interface})
        chosen = [item for name, item in counters.items() if name in wanted]
        if not chosen:
            return {"rx_bytes": None, "tx_bytes": None}
        return {"rx_bytes": sum(item.rx_bytes for item in chosen), "tx_bytes": sum(item.tx_bytes for item in chosen)}


def _stripped(text: str | None) -> str | None:
    return None if text is None else text.strip()


def ticks(start_s: float, interval_s: float, now_s: float) -> float:
    """Return the next moment start + n intervals that lies after now: late samples leave gaps, and never shift."""
    passed = max(0, int((now_s - start_s) / interval_s))
    due = start_s + (passed + 1) * interval_s
    return due if due > now_s else due + interval_s


def loop(sampler: Sampler, spec: SampleSpec, fd: int) -> None:
    """Write samples until told to stop or the longest duration is over; the last one is taken when it stops."""
    start_s = time.monotonic()
    end_s = float("inf") if spec.max_duration_s is None else start_s + spec.max_duration_s
    stopped = False
    while True:
        line = json.dumps(sampler.read(), separators=(",", ":")) + "\n"
        os.write(fd, line.encode("utf-8"))
        now_s = time.monotonic()
        if stopped or now_s >= end_s:
            return
        due_s = min(ticks(start_s, spec.interval_s, now_s), end_s)
        stopped = signal.sigtimedwait(_STOP, max(0.0, due_s - now_s)) is not None


ERRORS = (
    SampleError,
    files.FilesError,
    cgroup.CgroupError,
    pm_qos.PmQosError,
    procfs.ProcError,
    psi.PsiError,
    work.WorkError,
    KeyError,
)


def run(spec_path: str) -> int:
    """Sample as a specification file says. Returns the tool's exit status."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)
    try:
        spec = parse_spec(files.read_json(spec_path))
        sampler = Sampler(spec)
        fd = os.open(spec.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        loop(sampler, spec, fd)
    except OSError as exc:
        sys.stderr.write(f"sample: {exc.filename or 'output'}: {exc.strerror}; check the path and the free space\n")
        return 1
    except ERRORS as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    return 0
