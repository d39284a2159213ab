# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host must have, judged from the result of module ``node_facts``: pure functions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.plugin_utils.preflight.rows import Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: First kernel with cpu.idle for control groups, which the policy slo_aware needs.
MIN_KERNEL = (5, 15)
CONTROLLERS = ("cpu", "cpuset", "memory")
#: A host whose load is above this share of its CPUs before anything was started is busy with something else.
BUSY_SHARE = 0.5
MEASURED_FILES = ("/proc/stat", "/sys/devices/system/cpu")
#: Clocks that differ by more than this many seconds make samples and windows hard to match.
MAX_CLOCK_OFFSET_S = 1.0


@dataclass(frozen=True)
class Needs:
    """What the inventory asks of one host; ``python`` is the interpreter of the node tool."""

    name: str
    cpus: str
    housekeeping_cpus: str
    min_free_mib: int
    #: TCP port → variable that chooses it.
    ports: Mapping[int, str]
    #: program → variable that lets the collection install it, and whether it may.
    programs: Mapping[str, tuple[str, bool]]
    python: str = "/usr/bin/python3"
    #: Whether a mode's policy limits packets on this host.
    shaping: bool = False


def check(facts: Mapping[str, Any], needs: Needs, clock_offset_s: float) -> Iterator[Row]:
    """Yield a row for everything that was looked at on a host."""
    yield _root(facts, needs)
    yield _kernel(facts, needs)
    yield _processes(facts, needs)
    yield _figures(facts, needs)
    yield from _cgroups(facts, needs)
    yield from _cpus(facts, needs)
    yield _pm_qos(facts, needs)
    yield _pressure(facts, needs)
    yield _python(facts, needs)
    yield from _programs(facts, needs)
    yield from _ports(facts, needs)
    yield from _shaping(facts, needs)
    yield _space(facts, needs)
    yield _clock(needs, clock_offset_s)
    yield _load(facts, needs)


def _row(what: str, needs: Needs, needed: str, found: str, good: bool, otherwise: str, degrades: bool = False) -> Row:
    if good:
        return Row(what, needs.name, needed, found)
    return Row(what, needs.name, needed, found, "degraded" if degrades else "missing", otherwise)


def _root(facts: Mapping[str, Any], needs: Needs) -> Row:
    found = "root" if facts["is_root"] else "another user"
    advice = "control groups and namespaces need root; set ansible_become: true for this host"
    return _row("privileges", needs, "root", found, bool(facts["is_root"]), advice)


def _kernel(facts: Mapping[str, Any], needs: Needs) -> Row:
    found = re.match(r"(\d+)\.(\d+)", str(facts["kernel"]))
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    advice = "policies with schedIdle need cpu.idle; run a newer kernel, or modes whose policies do without"
    return _row("kernel", needs, "5.15 or newer", str(facts["kernel"]), version >= MIN_KERNEL, advice, degrades=True)


def _processes(facts: Mapping[str, Any], needs: Needs) -> Row:
    good = bool(facts["process_descriptors"])
    advice = "processes could not be ended safely; run Linux 5.3 or newer, and a Python that knows its pidfd_open"
    return _row("process descriptors", needs, "present", "present" if good else "missing", good, advice)


def _figures(facts: Mapping[str, Any], needs: Needs) -> Row:
    """Return the row of the figures that a container may get from lxcfs instead: CPUs renumbered, never any steal."""
    others = [path for path in facts["emulated_files"] if path.startswith(MEASURED_FILES)]
    advice = (
        f"{', '.join(others)} come from lxcfs, which numbers CPUs anew and hides stolen time; unmount them in this "
        "container (umount), or measure on the machine itself"
    )
    return _row("CPU figures", needs, "the kernel's", "lxcfs's" if others else "the kernel's", not others, advice)


def _cgroups(facts: Mapping[str, Any], needs: Needs) -> Iterator[Row]:
    version = facts["cgroup"]
    if version is None:
        yield _row("control groups", needs, "v1, hybrid or v2", "none", False, str(facts["cgroup_problem"]))
        return
    controllers = facts["cgroup_controllers"]
    for name in CONTROLLERS:
        entry = controllers.get(name)
        writable = bool(entry and entry["writable"])
        found = "missing" if not entry else f"{version}{'' if writable else ', read-only'}"
        where = entry["mount"] if entry else "/sys/fs/cgroup"
        advice = f"the {name} controller can't be used at {where}; mount it writable, or delegate it to this host"
        # Of one CPU there is nothing to set aside, and kernels built for one CPU have no cpusets.
        spare = name == "cpuset" and not entry and len(quantity.parse_cpu_list(facts["online_cpus"])) == 1
        yield _row(f"cgroup {name}", needs, "writable", found, writable, advice, degrades=spare)


def _cpus(facts: Mapping[str, Any], needs: Needs) -> Iterator[Row]:
    online = set(quantity.parse_cpu_list(facts["online_cpus"]))
    for variable, wanted in (("node_cpus", needs.cpus), ("node_housekeeping_cpus", needs.housekeeping_cpus)):
        if not wanted:
            continue
        try:
            asked = set(quantity.parse_cpu_list(wanted))
        except quantity.QuantityError as exc:
            yield _row(variable, needs, "a CPU list", wanted, False, f"{variable}: {exc}")
            continue
        absent = quantity.format_cpu_list(asked - online)
        advice = f"{variable} asks for CPU {absent}, online are {facts['online_cpus']}; change it in the inventory"
        yield _row(variable, needs, wanted, f"{facts['online_cpus']} online", asked <= online, advice)
    yield from _container(facts, needs, online)


def _container(facts: Mapping[str, Any], needs: Needs, online: set[int]) -> Iterator[Row]:
    """Yield a row where a container may use a part of the CPUs that it sees, and others are to be measured."""
    usable = set(quantity.parse_cpu_list(facts["container_cpus"] or facts["online_cpus"]))
    try:
        measured = set(quantity.parse_cpu_list(needs.cpus)) & online or online
    except quantity.QuantityError:
        return
    if usable < online:
        own = quantity.format_cpu_list(usable)
        advice = f"this container may use CPU {own} only; set node_cpus to some of these"
        wanted = needs.cpus or f"all of {facts['online_cpus']}"
        yield _row("CPUs of the container", needs, wanted, own, measured <= usable, advice)


def _pm_qos(facts: Mapping[str, Any], needs: Needs) -> Row:
    entry = facts["pm_qos"]
    found = "writable" if entry["writable"] else "read-only" if entry["device"] else "absent"
    advice = (
        "idle states can't be held off, so every run will be judged invalid; enable CONFIG_CPU_IDLE's PM QoS device"
    )
    return _row("PM QoS", needs, "/dev/cpu_dma_latency", found, bool(entry["writable"]), advice, degrades=True)


def _pressure(facts: Mapping[str, Any], needs: Needs) -> Row:
    found = "on" if facts["psi"] else "off"
    return _row("pressure figures", needs, "on", found, bool(facts["psi"]), "reports lack PSI; boot with psi=1", True)


def _python(facts: Mapping[str, Any], needs: Needs) -> Row:
    entry = facts["programs"].get("node_python")
    found = str(entry["version"]) if entry else "missing"
    match = re.search(r"(\d+)\.(\d+)", found)
    good = bool(match) and (int(match[1]), int(match[2])) >= (3, 9) if match else False
    state = f"is {found}" if match else "runs, but tells no version" if entry else "is missing on this host"
    advice = f"node_python: {needs.python} {state}; the node tool needs Python 3.9 or newer, so set node_python to one"
    return _row("node_python", needs, "Python 3.9 or newer", found, good, advice)


def _programs(facts: Mapping[str, Any], needs: Needs) -> Iterator[Row]:
    for name, (variable, allowed) in needs.programs.items():
        entry = facts["programs"].get(name)
        if entry:
            yield _row(name, needs, "present", str(entry["version"] or "present"), True, "")
        elif allowed and facts["apt"]:
            yield Row(name, needs.name, "present", "to be installed")
        else:
            why = f"{variable} is false" if not allowed else "this host has no apt"
            yield _row(name, needs, "present", "missing", False, f"{name} is missing and {why}; install it yourself")


def _ports(facts: Mapping[str, Any], needs: Needs) -> Iterator[Row]:
    for port, variable in needs.ports.items():
        # A service that a killed run left behind is ours, and the next run takes it over.
        taken = port in facts["listening_ports"] and "nginx" not in facts["supervised"]
        advice = f"something listens on TCP port {port}; stop it, or choose another port with {variable}"
        yield _row(f"TCP port {port}", needs, "free", "taken" if taken else "free", not taken, advice)


def _shaping(facts: Mapping[str, Any], needs: Needs) -> Iterator[Row]:
    """Yield what a policy with section bandwidth needs; without such a policy nothing is asked for."""
    if not needs.shaping:
        return
    found = facts["shaping"]
    otherwise = "or choose modes whose policies have no section bandwidth"
    for what, needed, shown, advice in (
        ("BPF file system", "in the kernel", found["bpf_file_system"], "run a kernel with CONFIG_BPF_SYSCALL"),
        ("cgroup2", "mounted", found["cgroup2"], "mount it, for example on /sys/fs/cgroup/unified"),
        (
            "programs at devices",
            "clsact",
            found["clsact"],
            "run a kernel with sch_ingress and cls_bpf, install iproute2",
        ),
    ):
        text = shown if isinstance(shown, str) else "present" if shown else "missing"
        yield _row(what, needs, needed, text, bool(shown), f"{advice}, {otherwise}")


def _space(facts: Mapping[str, Any], needs: Needs) -> Row:
    if facts["disk_free_bytes"] is None:
        advice = "the place of node_state_dir cannot be read; choose another node_state_dir"
        return _row("free space", needs, f"{needs.min_free_mib} MiB", "unknown", False, advice)
    free_mib = int(facts["disk_free_bytes"]) >> 20
    advice = "builds, clips and logs need room; free some, or choose another node_state_dir"
    needed = f"{needs.min_free_mib} MiB"
    return _row("free space", needs, needed, f"{free_mib} MiB", free_mib >= needs.min_free_mib, advice)


def _clock(needs: Needs, offset_s: float) -> Row:
    advice = "samples of both hosts are matched by the clock; let both keep time by NTP"
    good = abs(offset_s) <= MAX_CLOCK_OFFSET_S
    return _row("clock", needs, "within 1 s", f"{offset_s:+.3f} s", good, advice, degrades=True)


def _load(facts: Mapping[str, Any], needs: Needs) -> Row:
    load = float(facts["load_average"][0])
    advice = "the host is busy with something else; its windows will be spoiled and repeated"
    quiet = load <= BUSY_SHARE * int(facts["cpu_count"])
    return _row("load average", needs, f"below {BUSY_SHARE * facts['cpu_count']:g}", f"{load:.2f}", quiet, advice, True)
