# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From settings to a plan on a made-up host: what is meant by each kind, what is refused, what is missing."""

from __future__ import annotations

import os

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.tuning import plan, settings
from ansible_collections.colocation.testbed.plugins.module_utils.tuning.settings import TuningError

CPU = "devices/system/cpu"


def planned(host, *raw, persist=False, on_missing="fail"):
    given, problems = settings.parse(list(raw), persist, on_missing)
    return plan.plan(given, problems, host.roots, {})


def written(host, *raw, **options):
    """Return what would be written, by path below the roots."""
    base = os.path.dirname(host.roots.sys)
    return {os.path.relpath(item.target.path, base): item.target.text for item in planned(host, *raw, **options).writes}


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ({"kind": "sysctl", "name": "vm.swappiness", "value": 10}, {"proc/sys/vm/swappiness": "10"}),
        ({"kind": "sysctl", "name": "vm/swappiness", "value": "60"}, {}),
        ({"kind": "sysctl", "name": "net.ipv4.tcp_rmem", "value": "4096 131072  6291456"}, {}),
        (
            {"kind": "sysctl", "name": "net.ipv4.conf.eth0/100.rp_filter", "value": 0},
            {"proc/sys/net/ipv4/conf/eth0.100/rp_filter": "0"},
        ),
        ({"kind": "numa_balancing", "value": 0}, {"proc/sys/kernel/numa_balancing": "0"}),
        ({"kind": "numa_balancing", "name": "numa_balancing", "value": "1"}, {}),
        ({"kind": "sysfs", "name": "block/sda/queue/scheduler", "value": "none"}, {}),
        (
            {"kind": "sysfs", "name": "block/sda/queue/read_ahead_kb", "value": 16},
            {"sys/block/sda/queue/read_ahead_kb": "16"},
        ),
        (
            {"kind": "thp", "name": "enabled", "value": "never"},
            {"sys/kernel/mm/transparent_hugepage/enabled": "never"},
        ),
        ({"kind": "thp", "name": "defrag", "value": "madvise"}, {}),
        (
            {"kind": "thp", "name": "khugepaged/pages_to_scan", "value": 0},
            {"sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan": "0"},
        ),
        ({"kind": "ksm", "name": "run", "value": 2}, {"sys/kernel/mm/ksm/run": "2"}),
        (
            {"kind": "governor", "value": "performance"},
            {f"sys/{CPU}/cpufreq/policy{cpu}/scaling_governor": "performance" for cpu in (0, 1)},
        ),
        (
            {"kind": "governor", "value": "performance", "cpus": "1"},
            {f"sys/{CPU}/cpufreq/policy1/scaling_governor": "performance"},
        ),
        (
            {"kind": "energy_preference", "value": "power", "cpus": "0"},
            {f"sys/{CPU}/cpufreq/policy0/energy_performance_preference": "power"},
        ),
        ({"kind": "turbo", "value": "disabled"}, {f"sys/{CPU}/intel_pstate/no_turbo": "1"}),
        ({"kind": "turbo", "value": "enabled"}, {}),
        (
            {"kind": "idle_states", "value": 2, "cpus": "1"},
            {f"sys/{CPU}/cpu1/cpuidle/state{number}/disable": "1" for number in (2, 3)},
        ),
        ({"kind": "idle_states", "value": 133}, {}),
        ({"kind": "irq_affinity", "name": "default", "value": "1"}, {"proc/irq/default_smp_affinity": "2"}),
        (
            {"kind": "irq_affinity", "name": "*", "value": "1"},
            {f"proc/irq/{number}/smp_affinity_list": "1" for number in (24, 25)},
        ),
        (
            {"kind": "irq_affinity", "name": "virtio0-in*", "value": 0},
            {"proc/irq/24/smp_affinity_list": "0"},
        ),
        ({"kind": "irq_affinity", "name": "25", "value": "0,1"}, {}),
        (
            {"kind": "rps", "name": "eth*", "value": "0-1"},
            {f"sys/class/net/eth0/queues/rx-{queue}/rps_cpus": "3" for queue in (0, 1)},
        ),
        ({"kind": "rps", "name": "lo", "value": ""}, {}),
    ],
)
def test_what_each_kind_writes(host, setting, expected):
    assert written(host, setting) == expected


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"kind": "sysctl", "name": "vm.swappiness", "value": True}, "the boolean true, which YAML makes of on"),
        ({"kind": "thp", "name": "enabled", "value": False}, "write what the kernel takes, in quotes"),
        ({"kind": "sysctl", "name": "vm.swappiness", "value": 0.5}, "floating-point number"),
        ({"kind": "sysctl", "name": "vm.swappiness", "value": [1]}, "the value is a list"),
        ({"kind": "sysctl", "name": "vm.swappiness", "value": None}, "the value is nothing, not a text"),
        ({"kind": "sysctl", "name": "vm.swappiness", "value": " "}, "the value is empty"),
        ({"kind": "sysctl", "name": "vm.swappiness", "value": "1\nvm.x = 2"}, "has a line break"),
        ({"kind": "sysctl", "name": "", "value": 1}, "needs a name"),
        ({"kind": "sysctl", "name": "vm", "value": 1}, "is not the name of a sysctl"),
        ({"kind": "sysctl", "name": "../../etc/passwd", "value": 1}, "is not the name of a sysctl"),
        ({"kind": "sysctl", "name": "vm/../kernel/x", "value": 1}, "is not the name of a sysctl"),
        ({"kind": "sysctl", "name": "vm.drop_caches", "value": 3}, "is a command to the kernel"),
        ({"kind": "sysctl", "name": "vm.nothing", "value": 3}, "this kernel has no"),
        ({"kind": "numa_balancing", "value": 7}, "'7' is not 0 (off), 1 (on) or 2"),
        ({"kind": "numa_balancing", "name": "node0", "value": 1}, "takes no name"),
        ({"kind": "thp", "name": "enabled", "value": "sometimes"}, "write one of always, madvise, never"),
        ({"kind": "thp", "name": "../ksm/run", "value": 1}, "is not a plain path below"),
        ({"kind": "sysfs", "name": "block//x", "value": 1}, "is not a plain path below"),
        (
            {"kind": "sysfs", "name": "fs/cgroup/cpu/x/cpu.shares", "value": 2},
            "are set by module colocation.testbed.cgroup",
        ),
        ({"kind": "sysfs", "name": "block/sdb/queue/scheduler", "value": "none"}, "this host has no"),
        ({"kind": "governor", "value": "schedutil"}, "'schedutil' is not among performance, powersave"),
        (
            {"kind": "governor", "value": "powersave", "cpus": "0-7"},
            "CPU 2-7 asked for, but this machine has 0-1 online",
        ),
        ({"kind": "sysctl", "name": "vm.swappiness", "value": 1, "cpus": "0"}, "takes no cpus"),
        ({"kind": "turbo", "value": "1"}, "is not one of disabled, enabled"),
        ({"kind": "idle_states", "value": "C1"}, "write the longest exit latency"),
        ({"kind": "irq_affinity", "name": "eth9-*", "value": "0"}, "no interrupt is called 'eth9-*'"),
        ({"kind": "irq_affinity", "name": "*", "value": "2"}, "CPU 2 asked for"),
        ({"kind": "irq_affinity", "name": "*", "value": "0-"}, "is not a CPU list"),
        ({"kind": "rps", "name": "wlan0", "value": "0"}, "no interface 'wlan0' has receive queues"),
        ({"kind": "swap", "name": "all", "value": "enabled"}, "'all' can only be disabled"),
        ({"kind": "swap", "name": "all", "value": "off"}, "write one of these"),
        ({"kind": "swap", "name": "vdb", "value": "disabled"}, "is not 'all' or the path"),
        ({"kind": "swap", "name": "/no/device", "value": "enabled"}, "there is no /no/device"),
    ],
)
def test_bad_settings_are_one_sentence_that_names_them(host, setting, words):
    with pytest.raises(TuningError) as caught:
        planned(host, setting)
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"settings[0] {setting['kind']}")
    assert "\n" not in str(caught.value)


def test_all_problems_are_told_at_once(host):
    bad = [
        {"kind": "turbo", "value": True},
        {"kind": "governor", "value": "x"},
        {"kind": "ksm", "name": "no", "value": 1},
    ]
    with pytest.raises(TuningError) as caught:
        planned(host, *bad, {"kind": "numa_balancing", "value": 0})
    assert [str(caught.value).count(f"settings[{index}]") for index in range(4)] == [1, 1, 1, 0]


def test_two_settings_for_one_file(host):
    twice = [{"kind": "numa_balancing", "value": 0}, {"kind": "sysctl", "name": "kernel.numa_balancing", "value": "0"}]
    assert written(host, *twice) == {"proc/sys/kernel/numa_balancing": "0"}
    twice[1]["value"] = 1
    with pytest.raises(TuningError, match=r"is set to '1' here and to '0' by settings\[0\] numa_balancing; keep one"):
        planned(host, *twice)


def test_values_that_exclude_each_other(host):
    both = [{"kind": "sysctl", "name": f"vm.dirty_{unit}", "value": 8192} for unit in ("bytes", "ratio")]
    with pytest.raises(TuningError, match=r"excludes vm.dirty_bytes"):
        planned(host, *both)
    (write,) = planned(host, both[0]).writes
    assert write.restore == (f"{host.roots.proc}/sys/vm/dirty_ratio", "20")


def test_a_governor_goes_before_the_energy_preference(host):
    preference = {"kind": "energy_preference", "value": "balance_performance"}
    governor = {"kind": "governor", "value": "performance"}
    paths = [os.path.basename(path) for path in written(host, preference, governor)]
    assert paths == ["scaling_governor"] * 2 + ["energy_performance_preference"] * 2
    assert written(host, preference) == {}


def test_a_shared_frequency_policy_is_set_as_a_whole(host):
    host.put(f"{host.roots.sys}/{CPU}/cpufreq/policy0/affected_cpus", "0 1\n")
    with pytest.raises(TuningError, match=r"CPUs 0,1 have one frequency policy .*; name all of them or none"):
        planned(host, {"kind": "governor", "value": "performance", "cpus": "1"})


def test_what_is_missing_may_be_skipped(host):
    os.rename(f"{host.roots.sys}/{CPU}/cpufreq", f"{host.roots.sys}/{CPU}/gone")
    own = {"kind": "governor", "value": "performance", "on_missing": "skip"}
    (row,) = planned(host, own).rows
    assert (row.state, row.path) == ("missing", "")
    assert "no frequency scaling is visible" in row.why
    with pytest.raises(TuningError, match="set on_missing to skip"):
        planned(host, {"kind": "governor", "value": "performance"})
    assert planned(
        host, {"kind": "turbo", "value": "disabled"}, {"kind": "thp", "name": "x", "value": 1}, on_missing="skip"
    )


def test_idle_states_without_cpuidle(host):
    for cpu in (0, 1):
        os.rename(f"{host.roots.sys}/{CPU}/cpu{cpu}/cpuidle", f"{host.roots.sys}/{CPU}/cpu{cpu}/gone")
    with pytest.raises(TuningError, match="the kernel shows no idle states"):
        planned(host, {"kind": "idle_states", "value": 0})


def test_turbo_of_other_drivers(host):
    os.rename(f"{host.roots.sys}/{CPU}/intel_pstate", f"{host.roots.sys}/{CPU}/gone")
    host.put(f"{host.roots.sys}/{CPU}/cpufreq/boost", "1\n")
    assert written(host, {"kind": "turbo", "value": "disabled"}) == {f"sys/{CPU}/cpufreq/boost": "0"}


def test_swap_by_name_and_all(host):
    everything = planned(host, {"kind": "swap", "name": "all", "value": "disabled"})
    assert [(item.path, item.on) for item in everything.switches] == [("/dev/vdb", False), ("/swap file", False)]
    (one,) = planned(host, {"kind": "swap", "name": "/swap file", "value": "disabled"}).switches
    assert (one.path, one.area.priority) == ("/swap file", -3)
    assert not planned(host, {"kind": "swap", "name": "/dev/vdb", "value": "enabled"}).changed
    assert not planned(host, {"kind": "swap", "name": "/dev/gone", "value": "disabled"}).changed


def test_swap_that_memory_cannot_take(host):
    host.put(f"{host.roots.proc}/meminfo", "MemAvailable: 512 kB\n")
    with pytest.raises(TuningError, match="1 MiB are swapped out and 0 MiB of memory are available"):
        planned(host, {"kind": "swap", "name": "all", "value": "disabled"})


def test_a_file_of_several_lines_is_not_one_value(host):
    host.put(f"{host.roots.sys}/block/sda/stat", "1\n2\n")
    with pytest.raises(TuningError, match="holds 2 lines"):
        planned(host, {"kind": "sysfs", "name": "block/sda/stat", "value": 1})
