# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kernel files a setting is about, what is written into each, and how it is kept for the next boot."""

from __future__ import annotations

import fnmatch
import glob
import os
from dataclasses import dataclass
from typing import Callable

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cpu_list,
    cpu_mask,
    cpufreq,
    cpuidle,
    interrupts,
    knob,
    sysctl,
)
from ansible_collections.colocation.testbed.plugins.module_utils.tuning.settings import Roots, Setting, TuningError

SYSCTL = "sysctl.d"
TMPFILES = "tmpfiles.d"
# Set by modules of their own, which know the order of writes and what undoing them means.
_FOREIGN = {"fs/cgroup": "colocation.testbed.cgroup", "fs/resctrl": "colocation.testbed.resctrl_group"}
_SWITCH = ("disabled", "enabled")


@dataclass(frozen=True)
class Target:
    """One file and its value. ``refusable``: a refusal by the device is a finding, not a failure."""

    path: str
    form: str
    text: str
    refusable: bool = False


@dataclass(frozen=True)
class Resolved:
    """The files of one setting in the order of writing, what the host lacks, and who keeps the value over a boot.

    ``keeper`` is SYSCTL, TMPFILES, or '' with ``unkept`` saying why nobody does.
    """

    targets: tuple[Target, ...]
    missing: str = ""
    keeper: str = TMPFILES
    unkept: str = ""


def _absent(what: str) -> Resolved:
    return Resolved((), what)


def _below(root: str, relative: str, what: str) -> str:
    """Return a path below a root. Raises TuningError for one that leaves it."""
    parts = relative.strip("/").split("/")
    path = os.path.join(root, *parts)
    real_root = os.path.realpath(root)
    if ".." in parts or "" in parts or not os.path.realpath(path).startswith(f"{real_root}/"):
        raise TuningError(
            f"{what} {relative!r} is not a plain path below {root}; write it without '..' and empty parts"
        )
    return path


def _single(path: str, value: str, missing: str) -> Resolved:
    """Return the target for a file whose form is seen in its present text; checks a choice against the choices."""
    text = knob.read(path)
    if text is None:
        return _absent(missing)
    if "\n" in text:
        raise TuningError(f"{path} holds {len(text.splitlines())} lines, which is not one value; choose another file")
    form = knob.form_of(text)
    if form == knob.CHOICE and value not in knob.choices(text):
        raise TuningError(f"{value!r} is none of the choices of {path}; write one of {', '.join(knob.choices(text))}")
    return Resolved((Target(path, form, value),))


def _sysctl(setting: Setting, roots: Roots) -> Resolved:
    name = "kernel.numa_balancing" if setting.kind == "numa_balancing" else setting.name
    try:
        path, shown = sysctl.path(name, roots.proc), sysctl.canonical(name)
    except sysctl.SysctlError as exc:
        raise TuningError(str(exc)) from exc
    if shown in sysctl.COMMANDS:
        raise TuningError(f"{shown} is a command to the kernel, not a value that it keeps; leave it out")
    if setting.kind == "numa_balancing" and setting.value not in ("0", "1", "2"):
        raise TuningError(f"{setting.value!r} is not 0 (off), 1 (on) or 2 (memory tiering); write one of these")
    if not os.path.isfile(path):
        return _absent(f"this kernel has no {path}")
    mode = os.stat(path).st_mode
    if not mode & 0o444 or not mode & 0o222:
        raise TuningError(f"{path} can only be {'written' if mode & 0o222 else 'read'}; leave it out")
    return Resolved((Target(path, knob.WORDS, setting.value),), keeper=SYSCTL)


def _sysfs(setting: Setting, roots: Roots) -> Resolved:
    relative = setting.name[len(roots.sys) :] if setting.name.startswith(f"{roots.sys}/") else setting.name
    path = _below(roots.sys, relative, "the name")
    for folder, module in _FOREIGN.items():
        if f"{relative.strip('/')}/".startswith(f"{folder}/"):
            raise TuningError(f"files in {roots.sys}/{folder} are set by module {module}; use that")
    return _single(path, setting.value, f"this host has no {path}")


def _memory(folder: str, what: str) -> Callable[[Setting, Roots], Resolved]:
    def resolve(setting: Setting, roots: Roots) -> Resolved:
        root = os.path.join(roots.sys, "kernel/mm", folder)
        if not os.path.isdir(root):
            return _absent(f"this kernel is built without {what} ({root} is not there)")
        path = _below(root, setting.name, "the name")
        return _single(path, setting.value, f"this kernel has no {path}")

    return resolve


def _policies(setting: Setting, roots: Roots) -> tuple[cpufreq.Policy, ...]:
    """Return the frequency policies of the wanted CPUs. Raises TuningError where one is shared with other CPUs."""
    wanted = cpu_list.require_online(setting.cpus, "cpus", roots.sys) if setting.cpus else cpu_list.online(roots.sys)
    found = tuple(policy for policy in cpufreq.policies(roots.sys) if policy.cpus & wanted)
    for policy in found:
        if not policy.cpus <= wanted:
            shared = ",".join(str(cpu) for cpu in sorted(policy.cpus))
            raise TuningError(f"CPUs {shared} have one frequency policy ({policy.path}); name all of them or none")
    return found


def _cpufreq(file: str) -> Callable[[Setting, Roots], Resolved]:
    def resolve(setting: Setting, roots: Roots) -> Resolved:
        found = _policies(setting, roots)
        if not found:
            return _absent(f"no frequency scaling is visible ({roots.sys}/{cpufreq.CPU_FOLDER}/cpufreq has no policy)")
        if not all(os.path.exists(policy.file(file)) for policy in found):
            return _absent(f"the frequency driver has no {file}")
        for policy in found:
            allowed = tuple(name for name in policy.allowed(file) if name != cpufreq.FIRMWARE_PREFERENCE)
            number = file == cpufreq.ENERGY_PREFERENCE and setting.value.isdigit() and int(setting.value) <= 255
            if file == cpufreq.ENERGY_PREFERENCE and setting.value == cpufreq.FIRMWARE_PREFERENCE:
                raise TuningError(
                    f"{setting.value!r} is never shown by the kernel, so that nobody can tell whether it is set; write "
                    f"the one that the firmware has chosen, of {', '.join(allowed)}"
                )
            if allowed and setting.value not in allowed and not number:
                raise TuningError(f"{setting.value!r} is not among {', '.join(allowed)}, which {policy.path} takes")
        return Resolved(tuple(Target(policy.file(file), knob.WORDS, setting.value) for policy in found))

    return resolve


def _turbo(setting: Setting, roots: Roots) -> Resolved:
    if setting.value not in _SWITCH:
        raise TuningError(f"{setting.value!r} is not one of {', '.join(_SWITCH)}; write one of these")
    found = cpufreq.turbo(roots.sys)
    if found is None:
        return _absent("there is no switch for turbo frequencies (neither intel_pstate/no_turbo nor cpufreq/boost)")
    path, inverted = found
    return Resolved((Target(path, knob.WORDS, str(int((setting.value == "enabled") != inverted))),))


def _idle_states(setting: Setting, roots: Roots) -> Resolved:
    if not setting.value.isdigit():
        raise TuningError(
            f"{setting.value!r} is not a latency; write the longest exit latency that is allowed, in microseconds"
        )
    cpus = cpu_list.require_online(setting.cpus, "cpus", roots.sys) if setting.cpus else cpu_list.online(roots.sys)
    targets = []
    for cpu in sorted(cpus):
        for state in cpuidle.states(cpu, os.path.join(roots.sys, cpufreq.CPU_FOLDER)):
            path = os.path.join(os.path.dirname(state.usage_path), "disable")
            if os.path.exists(path):
                too_long = state.latency_us is None or state.latency_us > int(setting.value)
                targets.append(Target(path, knob.WORDS, str(int(too_long))))
    return Resolved(tuple(targets)) if targets else _absent("the kernel shows no idle states of these CPUs")


def _wanted_cpus(setting: Setting, roots: Roots) -> str:
    cpus = cpu_list.require_online(setting.value, "the value", roots.sys)
    return ",".join(str(cpu) for cpu in sorted(cpus))


def _irq_affinity(setting: Setting, roots: Roots) -> Resolved:
    cpus = cpu_list.parse(_wanted_cpus(setting, roots))
    if setting.name == "default":
        path = interrupts.default_path(roots.proc)
        if not os.path.exists(path):
            return _absent(f"this kernel has no {path}")
        return Resolved((Target(path, knob.MASK, cpu_mask.format_mask(cpus)),))
    found = interrupts.matching(setting.name, interrupts.interrupts(roots.proc))
    if not found:
        return _absent(f"no interrupt is called {setting.name!r} ({roots.proc}/interrupts lists them)")
    text = knob.normal(knob.CPUS, setting.value)
    targets = tuple(Target(item.path, knob.CPUS, text, refusable=True) for item in found)
    why = "interrupts get new numbers at boot; apply again after it, or set name 'default' for new interrupts"
    return Resolved(targets, keeper="", unkept=why)


def _rps(setting: Setting, roots: Roots) -> Resolved:
    mask = cpu_mask.format_mask(cpu_list.parse(_wanted_cpus(setting, roots)))
    folder = os.path.join(roots.sys, "class/net")
    names = sorted(name for name in _listed(folder) if fnmatch.fnmatchcase(name, setting.name))
    paths = [path for name in names for path in _queues(folder, name)]
    if not paths:
        return _absent(f"no interface {setting.name!r} has receive queues in {folder}")
    why = "interfaces come after the files that are written at boot; apply again after it"
    return Resolved(tuple(Target(path, knob.MASK, mask) for path in paths), keeper="", unkept=why)


def _queues(folder: str, name: str) -> list[str]:
    return sorted(glob.glob(f"{glob.escape(os.path.join(folder, name))}/queues/rx-*/rps_cpus"))


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


_RESOLVERS: dict[str, Callable[[Setting, Roots], Resolved]] = {
    "sysctl": _sysctl,
    "numa_balancing": _sysctl,
    "sysfs": _sysfs,
    "thp": _memory("transparent_hugepage", "transparent huge pages"),
    "ksm": _memory("ksm", "KSM"),
    "governor": _cpufreq(cpufreq.GOVERNOR),
    "energy_preference": _cpufreq(cpufreq.ENERGY_PREFERENCE),
    "turbo": _turbo,
    "idle_states": _idle_states,
    "irq_affinity": _irq_affinity,
    "rps": _rps,
}


def resolve(setting: Setting, roots: Roots) -> Resolved:
    """Return the files of a setting of any kind but swap. Raises TuningError with a sentence about its value."""
    try:
        return _RESOLVERS[setting.kind](setting, roots)
    except (cpu_list.CpuListError, knob.KnobError) as exc:
        raise TuningError(str(exc)) from exc
