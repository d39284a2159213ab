# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a host can or cannot partition its caches: what CPU, kernel, command line and mount say, and the counters."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import procfs, resctrl
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl import ResctrlError, State

FLAGS = ("rdt_a", "cat_l3", "cat_l2", "cdp_l3", "mba", "cqm_llc", "cqm_occup_llc", "cqm_mbm_total", "cqm_mbm_local")
NEEDED_FLAGS = ("cat_l3", "mba")
# Any of these has it. The names of Linux before 5.1 and 4.20 are among them, and those of Arm.
CONFIG = (
    "CONFIG_X86_CPU_RESCTRL",
    "CONFIG_RESCTRL_FS",
    "CONFIG_ARM64_MPAM",
    "CONFIG_X86_RESCTRL",
    "CONFIG_INTEL_RDT",
)
_ARGUMENTS = ("rdt=", "resctrl")
_RDT = "the kernel argument rdt=l3cat,mba"


@dataclass(frozen=True)
class Host:
    """What a host says about resctrl without it being mounted; ``config`` is None where the kernel's isn't there."""

    vendor: str
    flags: tuple[str, ...]
    x86: bool
    virtual: bool
    file_system: bool
    config: Mapping[str, bool] | None
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Missing:
    """One thing that a host lacks, why, and what can be done."""

    what: str
    why: str
    advice: str


def read_host(proc_root: str = procfs.PROC_ROOT, boot_root: str = "/boot") -> Host:
    """Return what CPU, kernel and command line say. Raises ResctrlError where /proc cannot be read."""
    vendor, flags = parse_cpuinfo(_text(f"{proc_root}/cpuinfo") or "")
    file_systems = [line.split()[-1] for line in (_text(f"{proc_root}/filesystems") or "").splitlines() if line.split()]
    words = (_text(f"{proc_root}/cmdline") or "").split()
    return Host(
        vendor=vendor,
        flags=tuple(name for name in FLAGS if name in flags),
        x86=bool(flags),
        virtual="hypervisor" in flags,
        file_system="resctrl" in file_systems,
        config=_config(proc_root, boot_root),
        arguments=tuple(word for word in words if word.startswith(_ARGUMENTS)),
    )


def parse_cpuinfo(text: str) -> tuple[str, frozenset[str]]:
    """Return vendor and flags of the first CPU of /proc/cpuinfo, empty where it has none (other architectures)."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip(), value.strip())
    return found.get("vendor_id", ""), frozenset(found.get("flags", "").split())


def _text(path: str) -> str | None:
    try:
        return procfs.read_text(path)
    except procfs.ProcError as exc:
        raise ResctrlError(str(exc)) from exc


def _config(proc_root: str, boot_root: str) -> Mapping[str, bool] | None:
    try:
        if os.path.exists(f"{proc_root}/config.gz"):
            text = gzip.decompress(files.read_bytes(f"{proc_root}/config.gz")).decode("utf-8", "replace")
        else:
            release = (_text(f"{proc_root}/sys/kernel/osrelease") or "").strip()
            text = files.read_text_or_none(f"{boot_root}/config-{release}") or ""
    except (files.FilesError, OSError, EOFError):
        return None
    lines = frozenset(text.splitlines())
    return {name: f"{name}=y" in lines for name in CONFIG} if lines else None


def missing(host: Host, state: State | None, mount_point: str = resctrl.MOUNT_POINT) -> list[Missing]:
    """Return what keeps this host from partitioning cache and memory bandwidth, the first cause first.

    A mounted resctrl says what it has; flags and configuration then don't matter.
    """
    return _before_mount(host, mount_point) if state is None else _mounted(host, state)


def _before_mount(host: Host, mount_point: str) -> list[Missing]:
    found = []
    # Only x86 has flags for it; elsewhere a kernel that offers the file system has found what it needs.
    lacking = [name for name in NEEDED_FLAGS if name not in host.flags] if host.x86 else []
    if lacking:
        where = "this virtual machine's CPU" if host.virtual else "the CPU"
        advice = (
            "use a host on bare metal, since hypervisors do not pass resctrl on"
            if host.virtual
            else "switch RDT (Intel) or PQoS (AMD) on in the firmware, or use a CPU that has it"
        )
        found.append(Missing("CPU", f"{where} does not have the flags {', '.join(lacking)}", advice))
    disabled = [word for word in host.arguments if "!" in word]
    if disabled:
        found.append(
            Missing("kernel arguments", f"{' '.join(disabled)} switches features off", "remove it, then reboot")
        )
    if not host.file_system:
        without = host.config is not None and not any(host.config.values())
        config = f" ({CONFIG[0]} is not set)" if without else ""
        advice = "boot a kernel that has it" if without or not host.x86 else f"add {_RDT}, then reboot"
        found.append(Missing("kernel", f"the running kernel does not offer resctrl{config}", advice))
    if not found:
        found.append(Missing("mount", f"resctrl is not mounted on {mount_point}", "mount it with resctrl_mount"))
    return found


def _mounted(host: Host, state: State) -> list[Missing]:
    found = []
    hint = "add the kernel argument rdt={0}, then reboot; some CPUs and firmwares do not have it"
    hint = hint if host.x86 else "use a processor and firmware that have it"
    if state.info.cache is None:
        found.append(Missing("L3", "the mounted resctrl has no info/L3", hint.format("l3cat")))
    if state.info.bandwidth is None:
        found.append(Missing("MB", "the mounted resctrl has no info/MB", hint.format("mba")))
    elif not state.info.bandwidth.linear and host.vendor == "GenuineIntel":
        found.append(Missing("MB", "bandwidth is not linear, which the kernel refuses to set", "leave bandwidth out"))
    if state.info.rmids is None:
        found.append(Missing("L3_MON", "the mounted resctrl has no info/L3_MON", hint.format("cmt,mbmtotal,mbmlocal")))
    return found


def table(lacks: Sequence[Missing]) -> list[str]:
    """Return what is missing as lines of a table for people, none where nothing is."""
    rows = [("missing", "seen", "what to do"), *((item.what, item.why, item.advice) for item in lacks)]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return [f"{what:<{widths[0]}}  {why:<{widths[1]}}  {advice}" for what, why, advice in rows] if lacks else []


def counters(directory: str) -> dict[str, dict[str, int | float | None]]:
    """Return the monitoring counters of a group by cache (as named by the kernel) and event.

    Occupancy and traffic are in bytes, energy is in joules with decimals. None where the kernel says Unavailable, Error
    or Unassigned.
    """
    found: dict[str, dict[str, int | float | None]] = {}
    below = f"{directory}/mon_data"
    for cache in sorted(os.listdir(below)) if os.path.isdir(below) else []:
        events = sorted(name for name in os.listdir(f"{below}/{cache}") if os.path.isfile(f"{below}/{cache}/{name}"))
        found[cache] = {event: _counter(f"{below}/{cache}/{event}") for event in events}
    return found


def _counter(path: str) -> int | float | None:
    try:
        text = resctrl.read(path).strip()
    except ResctrlError:
        return None
    if re.fullmatch(r"[0-9]+\.[0-9]+", text):
        return float(text)
    return int(text) if text.isdigit() else None
