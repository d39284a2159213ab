# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processors, their idle states, frequencies and interrupts on other machines; each case says where it was seen."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.boot import cmdline
from ansible_collections.colocation.testbed.plugins.module_utils.boot.cmdline import Argument, CmdlineError
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cpu_list,
    cpufreq,
    cpuidle,
    interrupts,
    knob,
    resctrl_facts,
)
from ansible_collections.colocation.testbed.plugins.module_utils.node import facts
from ansible_collections.colocation.testbed.plugins.module_utils.tuning import plan, settings

CPU = "devices/system/cpu"


def write(root: Path, texts: dict[str, str]) -> str:
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    return str(root)


# Names and exit latencies (µs) in the dumps of util-linux, tests/ts/lscpu/dumps, and in the kernel's cpuidle drivers.
@pytest.mark.parametrize(
    ("states", "deep"),
    [
        ([("POLL", "0"), ("C1_ACPI", "1"), ("C2_ACPI", "253")], ["C1_ACPI", "C2_ACPI"]),
        ([("POLL", "0"), ("C1", "0"), ("C2", "100")], ["C2"]),
        ([("WFI", "1"), ("silver-c4", "1300")], ["silver-c4"]),
        ([("C0", "0"), ("NHM-C1", "3"), ("NHM-C3", "20")], ["NHM-C1", "NHM-C3"]),
        ([("snooze", "0"), ("CEDE", "12")], ["CEDE"]),
        ([("POLL", "0"), ("haltpoll", "")], ["haltpoll"]),
    ],
    ids=["tigerlake", "epyc-7451", "arm-a510", "linux-2.6", "power", "latency not told"],
)
def test_deep_is_what_no_cpu_enters_while_no_latency_is_allowed(tmp_path, states, deep):
    for number, (name, latency) in enumerate(states):
        place = f"cpu0/cpuidle/state{number}"
        write(tmp_path, {f"{place}/name": name, f"{place}/latency": latency})
    assert [state.name for state in cpuidle.deep_states(0, str(tmp_path))] == deep


# First lines of /proc/cpuinfo in the same dumps.
@pytest.mark.parametrize(
    ("cpuinfo", "model"),
    [
        (
            "processor\t: 0\ncpu\t\t: POWER7 (architected), altivec supported\n",
            "POWER7 (architected), altivec supported",
        ),
        ("vendor_id       : IBM/S390\n# processors    : 17\nfeatures\t: esan3\n", "IBM/S390"),
        ("processor\t: 0\nhart\t: 3\nuarch\t\t: sifive,u74-mc\n", "sifive,u74-mc"),
        (
            "processor\t\t: 0\nCPU Family\t\t: Loongson-64bit\nModel Name\t\t: Loongson-3A5000-HV\n",
            "Loongson-3A5000-HV",
        ),
        ("Processor\t: ARMv7 Processor rev 4 (v7l)\nprocessor\t: 0\n", "ARMv7 Processor rev 4 (v7l)"),
        ("processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 7451\n", "AMD EPYC 7451"),
        ("", "unknown"),
    ],
)
def test_every_architecture_names_its_processor(cpuinfo, model):
    assert facts.cpu_model(cpuinfo) == model


# systemd pull requests 20628, 27267 and 38125, issue 18929: clouds name their whole machines as their virtual ones.
@pytest.mark.parametrize(
    ("vendor", "product", "cpuinfo", "expected"),
    [
        ("Amazon EC2", "c5n.metal", "flags : fpu vmx\n", "none"),
        ("Amazon EC2", "m6g.metal-16xl", "Features : fp asimd\n", "none"),
        ("Amazon EC2", "m6g.large", "Features : fp asimd\n", "Amazon EC2 m6g.large"),
        ("Google", "Google Compute Engine", "flags : fpu vmx\n", "none"),
        ("Google", "Google Compute Engine", "flags : fpu hypervisor\n", "Google Google Compute Engine"),
        ("Dell Inc.", "PowerEdge R750", "flags : fpu\n", "none"),
    ],
)
def test_whole_machines_of_clouds_are_not_virtual(tmp_path, vendor, product, cpuinfo, expected):
    root = write(tmp_path, {"class/dmi/id/sys_vendor": vendor, "class/dmi/id/product_name": product})
    assert facts.virtualization(cpuinfo, facts.Roots(sys=root)) == expected


# s390-lpar and sparc64 in the dumps of util-linux: the first CPU is offline, numbers have gaps.
@pytest.mark.parametrize(("online", "count"), [("1-5,8-19", 17), ("6-7,10-11,14-15", 6), ("0-511", 512), ("0", 1)])
def test_cpus_with_gaps(tmp_path, online, count):
    root = write(tmp_path, {f"{CPU}/online": online})
    assert len(cpu_list.online(root)) == count
    with pytest.raises(cpu_list.CpuListError, match="online; choose among these"):
        cpu_list.require_online(str(max(cpu_list.online(root)) + 1), "node_cpus", root)


# The kernel's own words for lists: Documentation/admin-guide/kernel-parameters.rst, "cpu lists".
@pytest.mark.parametrize("value", ["1-N", "N", "2-3,N", "1-7:1/2", "managed_irq,domain,1-6:2/3"])
def test_lists_in_the_kernels_words_are_taken(tmp_path, value):
    cmdline.check(Argument("isolcpus", value), write(tmp_path, {f"{CPU}/online": "0-7"}))


@pytest.mark.parametrize(
    ("value", "words"),
    [("all", "leaves no CPU"), ("0-N", "leaves no CPU"), ("1-N:0/2", "not a CPU list"), ("1-9:1/2", "asked for")],
)
def test_lists_that_cannot_be_are_refused(tmp_path, value, words):
    with pytest.raises(CmdlineError, match=words):
        cmdline.check(Argument("isolcpus", value), write(tmp_path, {f"{CPU}/online": "0-7"}))


def planned(root: Path, kind: str, value: str, name: str = "") -> plan.Plan:
    roots = settings.Roots(
        sys=str(root), proc=str(root / "proc"), etc=str(root / "etc"), run=str(root / "run"), usr=str(root / "usr")
    )
    wanted, problems = settings.parse([{"kind": kind, "name": name, "value": value}], False, "fail")
    return plan.plan(wanted, problems, roots, {})


def test_a_driver_that_was_switched_off_does_not_answer_for_turbo(tmp_path):
    write(tmp_path, {f"{CPU}/intel_pstate/status": "off", f"{CPU}/intel_pstate/no_turbo": "0"})
    assert cpufreq.turbo(str(tmp_path)) is None
    write(tmp_path, {f"{CPU}/cpufreq/boost": "1"})
    assert cpufreq.turbo(str(tmp_path)) == (f"{tmp_path}/{CPU}/cpufreq/boost", False)
    write(tmp_path, {f"{CPU}/intel_pstate/status": "passive"})
    assert cpufreq.turbo(str(tmp_path)) == (f"{tmp_path}/{CPU}/intel_pstate/no_turbo", True)


def test_a_preference_that_never_reads_back_is_refused(tmp_path):
    policy = f"{CPU}/cpufreq/policy0"
    offered = "default performance balance_performance balance_power power"
    write(
        tmp_path,
        {
            f"{CPU}/online": "0",
            f"{policy}/affected_cpus": "0",
            f"{policy}/energy_performance_preference": "balance_performance",
            f"{policy}/energy_performance_available_preferences": offered,
        },
    )
    with pytest.raises(settings.TuningError, match="is never shown by the kernel"):
        planned(tmp_path, "energy_preference", "default")
    assert planned(tmp_path, "energy_preference", "balance_performance").changed is False


# Irqbalance issues 303 and 355: on machines with many CPUs those that take all interrupts run out of vectors.
def test_a_cpu_without_room_for_an_interrupt_is_a_finding(tmp_path):
    assert errno.ENOSPC in interrupts.REFUSALS
    full = Path("/dev/full")
    with pytest.raises(knob.KnobError, match="all the interrupts that it can take") as caught:
        knob.write(str(full), "0")
    assert caught.value.number == errno.ENOSPC


def test_an_interface_may_have_any_sign_but_a_slash_and_a_colon_in_its_name(tmp_path):
    write(tmp_path, {f"{CPU}/online": "0-3", "class/net/lan[1]/queues/rx-0/rps_cpus": "0"})
    rows = planned(tmp_path, "rps", "0-3", "lan*").rows
    assert [row.path for row in rows] == [f"{tmp_path}/class/net/lan[1]/queues/rx-0/rps_cpus"]


ARM = "processor\t: 0\nFeatures\t: fp asimd evtstrm\nCPU part\t: 0xd0c\n"


@pytest.mark.parametrize(("offered", "what"), [(True, "mount"), (False, "kernel")])
def test_arm_has_no_flags_for_cache_control(tmp_path, offered, what):
    write(tmp_path, {"cpuinfo": ARM, "filesystems": "nodev\tresctrl" if offered else "nodev\tproc"})
    host = resctrl_facts.read_host(str(tmp_path), str(tmp_path))
    found = resctrl_facts.missing(host, None)
    assert [item.what for item in found] == [what]
    assert "rdt=" not in found[0].advice


# Linux 4.18 calls it CONFIG_INTEL_RDT, 5.0 CONFIG_X86_RESCTRL.
@pytest.mark.parametrize("option", ["CONFIG_INTEL_RDT", "CONFIG_X86_RESCTRL", "CONFIG_X86_CPU_RESCTRL"])
def test_kernels_that_call_it_otherwise_are_not_told_to_be_replaced(tmp_path, option):
    texts = {"cpuinfo": "vendor_id : GenuineIntel\nflags : cat_l3 mba", "sys/kernel/osrelease": "4.18.0-553"}
    write(tmp_path, {**texts, "config-4.18.0-553": f"{option}=y"})
    found = resctrl_facts.missing(resctrl_facts.read_host(str(tmp_path), str(tmp_path)), None)
    assert [item.advice for item in found] == ["add the kernel argument rdt=l3cat,mba, then reboot"]
