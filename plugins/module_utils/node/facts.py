# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host is and has, for the run's manifest and the preflight table. Only reads; what is not there is None."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import commands, quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cgroup,
    cpu_list,
    cpuidle,
    listeners,
    mounts,
    pm_qos,
    processes,
    procfs,
    psi,
)
from ansible_collections.colocation.testbed.plugins.module_utils.node import spec as specs

_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+~-]*")
_MACHINES = re.compile(r"QEMU|KVM|VMware|VirtualBox|Xen|Amazon EC2|Google|Alibaba|Virtual Machine")
# What clouds rent as a whole machine has their name in its firmware all the same: m6g.metal, c5n.metal-32xl.
_WHOLE_MACHINES = re.compile(r"\.metal|-metal|Bare ?Metal", re.IGNORECASE)
_VERSION_TIMEOUT_S = 10.0
_EMULATOR = "fuse.lxcfs"


@dataclass(frozen=True)
class Roots:
    """Where the kernel's file systems are; tests give directories of their own."""

    proc: str = "/proc"
    sys: str = "/sys"
    dev: str = "/dev"
    etc: str = "/etc"
    run: str = "/run"


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read().strip("\0\n ")
    except OSError:
        return None


def cpu_model(cpuinfo: str) -> str:
    """Return the processor's name in the text of /proc/cpuinfo; architectures differ in the field that has it."""
    fields = dict(_fields(cpuinfo))
    for key in ("model name", "cpu model", "Model Name", "Model", "Processor", "CPU part", "cpu", "uarch", "vendor_id"):
        if fields.get(key):
            return fields[key]
    return "unknown"


def _fields(text: str) -> list[tuple[str, str]]:
    pairs = (line.partition(":") for line in text.splitlines() if ":" in line)
    return [(key.strip(), value.strip()) for key, _unused, value in pairs]


def virtualization(cpuinfo: str, roots: Roots) -> str:
    """Return `none`, or the product name that the firmware gives, or `unknown hypervisor`.

    A hint only: the CPU flag `hypervisor` exists on x86 alone, where it decides; elsewhere the firmware's vendor is
    all there is, which clouds give their whole machines too.
    """
    product = _read(f"{roots.sys}/class/dmi/id/product_name") or ""
    vendor = _read(f"{roots.sys}/class/dmi/id/sys_vendor") or ""
    kind = _read(f"{roots.sys}/hypervisor/type") or ""
    flags = next((value.split() for key, value in _fields(cpuinfo) if key == "flags"), [])
    known = not flags and _MACHINES.search(f"{vendor} {product}") and not _WHOLE_MACHINES.search(product)
    if not ("hypervisor" in flags or kind or known):
        return "none"
    return f"{vendor} {product}".strip() or kind or "unknown hypervisor"


def controllers(layout: cgroup.Layout) -> dict[str, dict[str, Any]]:
    """Return where each controller that a group needs is mounted, and whether groups can be made there."""
    result: dict[str, dict[str, Any]] = {}
    for name in cgroup.CONTROLLERS:
        found = layout.find(name)
        if found is not None:
            writable = os.access(found.mount, os.W_OK) and not _read_only(found.mount)
            result[name] = {"mount": found.mount, "version": found.version, "writable": writable}
    return result


def _read_only(path: str) -> bool:
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return True


def control_groups(roots: Roots) -> dict[str, Any]:
    """Return `cgroup` (v1, hybrid, v2, or None where there is no cpu controller), why, and what it has."""
    try:
        layout = cgroup.detect(roots.proc)
    except cgroup.CgroupError as exc:
        return {"cgroup": None, "cgroup_problem": str(exc), "cgroup_controllers": {}, "container_cpus": None}
    return {
        "cgroup": layout.version,
        "cgroup_problem": None,
        "cgroup_controllers": controllers(layout),
        "container_cpus": container_cpus(layout),
    }


def container_cpus(layout: cgroup.Layout) -> str | None:
    """Return the CPUs that a container is held to; None on a machine itself, whose root group has no such file on v2.

    A container sees all CPUs of its machine as online. On v1 the root group of a machine has all of them.
    """
    found = layout.find("cpuset")
    if found is None:
        return None
    wanted = _read(f"{found.mount}/cpuset.cpus")
    names = ("cpuset.cpus.effective",) if found.version == 2 else ("cpuset.effective_cpus", "cpuset.cpus")
    return None if wanted is None else next((text for name in names if (text := _read(f"{found.mount}/{name}"))), None)


def emulated(roots: Roots) -> list[str]:
    """Return the files of the kernel that somebody else answers for, as lxcfs does in containers."""
    try:
        found = {item.point for item in mounts.read(roots.proc) if item.fs_type == _EMULATOR}
    except mounts.MountsError:
        return []
    return sorted(point for point in found if point.startswith(("/proc/", "/sys/")))


def knows_processes() -> bool:
    """Tell whether a process can be held by a descriptor, so that no signal goes to a later one with its number."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


def programs(wanted: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Any] | None]:
    """Return path and version of programs; None where one is missing.

    `wanted` maps a name to the argv that prints the version; whatever the exit status, for wrk -v ends with 1.
    """
    result: dict[str, dict[str, Any] | None] = {}
    for name, argv in wanted.items():
        path = shutil.which(argv[0], path=os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin")
        result[name] = None if path is None else {"path": path, "version": _version([path, *argv[1:]])}
    return result


def _version(argv: list[str]) -> str | None:
    try:
        done = commands.run(argv, timeout_s=_VERSION_TIMEOUT_S, check=False)
    except commands.CommandError:
        return None
    # What comes after the first line is about compilers and libraries, which have versions of their own.
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    found = _VERSION.search(lines[0]) if lines else None
    return found.group(0) if found else None


def disk_free_bytes(path: str) -> int | None:
    """Return the bytes that an unprivileged writer could still use where `path` is or would be made."""
    while not os.path.isdir(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    try:
        status = os.statvfs(path)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


def supervised(state_dir: str, roots: Roots) -> list[str]:
    """Return the names of processes of module process that run, such as those that a killed playbook left."""
    folder = os.path.join(state_dir, "processes")
    present = os.listdir(folder) if os.path.isdir(folder) else []
    names = [name[: -len(".pid")] for name in present if name.endswith(".pid")]
    found = {name: specs.read_pid_file(specs.Paths(state_dir, name).pid) for name in names}
    return sorted(
        name for name, file in found.items() if file and file.child and processes.is_running(file.child, roots.proc)
    )


def resctrl(roots: Roots) -> dict[str, bool]:
    """Return whether the kernel offers cache and memory bandwidth control, and whether it is mounted."""
    offered = "resctrl" in (_read(f"{roots.proc}/filesystems") or "").split()
    return {"available": offered, "mounted": os.path.exists(f"{roots.sys}/fs/resctrl/schemata")}


def latency_constraint(roots: Roots) -> dict[str, Any]:
    """Return whether /dev/cpu_dma_latency exists and may be written, and the constraint in effect (µs)."""
    device = f"{roots.dev}/cpu_dma_latency"
    return {
        "device": os.path.exists(device),
        "writable": os.access(device, os.W_OK),
        "effective_us": pm_qos.read_effective_us(device),
    }


def idle(cpu: int, roots: Roots) -> dict[str, Any]:
    """Return the cpuidle driver and the states of one CPU."""
    cpu_root = f"{roots.sys}/devices/system/cpu"
    states = [{"name": item.name, "latency_us": item.latency_us} for item in cpuidle.states(cpu, cpu_root)]
    return {"driver": cpuidle.driver(cpu_root), "states": states}


def frequency(cpu: int, roots: Roots) -> dict[str, str | None]:
    """Return driver and governor of one CPU's frequency scaling, None where the kernel or hypervisor hides it."""
    place = f"{roots.sys}/devices/system/cpu/cpu{cpu}/cpufreq"
    return {"driver": _read(f"{place}/scaling_driver"), "governor": _read(f"{place}/scaling_governor")}


def distribution(roots: Roots) -> str:
    """Return the operating system's name and release (os-release(5))."""
    text = _read(f"{roots.etc}/os-release") or ""
    names = dict(line.partition("=")[::2] for line in text.splitlines())
    return names.get("PRETTY_NAME", "unknown").strip('"')


def processors(online: frozenset[int], roots: Roots) -> dict[str, Any]:
    """Return the CPUs, whether they share cores, and the time that was stolen from each where the kernel counts it."""
    times = procfs.parse_cpu_times(_read(f"{roots.proc}/stat") or "", os.sysconf("SC_CLK_TCK"))
    return {
        "online_cpus": quantity.format_cpu_list(online),
        "cpu_count": len(online),
        "smt": _read(f"{roots.sys}/devices/system/cpu/smt/active") == "1",
        "steal_s": {str(cpu): value["steal_s"] for cpu, value in times.items() if "steal_s" in value},
    }


def collect(state_dir: str, wanted: Mapping[str, Sequence[str]], roots: Roots | None = None) -> dict[str, Any]:
    """Return all facts. Raises CpuListError or ProcError where /sys or /proc are not those of a Linux host."""
    places = roots or Roots()
    cpuinfo = _read(f"{places.proc}/cpuinfo") or ""
    online = cpu_list.online(places.sys)
    first = min(online)
    memory = procfs.parse_meminfo(_read(f"{places.proc}/meminfo") or "")
    name = os.uname()
    return {
        "kernel": name.release,
        "architecture": name.machine,
        "distribution": distribution(places),
        "cpu_model": cpu_model(cpuinfo),
        **processors(online, places),
        **control_groups(places),
        "memory_bytes": memory.get("MemTotal"),
        "memory_available_bytes": memory.get("MemAvailable"),
        "virtualization": virtualization(cpuinfo, places),
        "uptime_s": float((_read(f"{places.proc}/uptime") or "0").split()[0]),
        "load_average": [float(word) for word in (_read(f"{places.proc}/loadavg") or "0 0 0").split()[:3]],
        "emulated_files": emulated(places),
        "process_descriptors": knows_processes(),
        "psi": psi.is_available(places.proc),
        "pm_qos": latency_constraint(places),
        "cpuidle": idle(first, places),
        "cpufreq": frequency(first, places),
        "resctrl": resctrl(places),
        "service_manager": "systemd" if os.path.isdir(f"{places.run}/systemd/system") else "none",
        "is_root": os.geteuid() == 0,
        "apt": shutil.which("apt-get") is not None,
        "supervised": supervised(state_dir, places),
        "listening_ports": sorted(listeners.listening_ports(places.proc)),
        "programs": programs(wanted),
        "disk_free_bytes": disk_free_bytes(state_dir),
        # Last, because whoever compares clocks takes the time of the answer.
        "wall_s": time.time(),
        "mono_s": time.monotonic(),
    }
