# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A made-up host with two CPUs: /proc, /sys, /etc and /run as kernels lay them out, in plain files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ansible_collections.colocation.testbed.plugins.module_utils.tuning.settings import Roots

SYS: Mapping[str, str] = {
    "devices/system/cpu/online": "0-1",
    **{
        f"devices/system/cpu/cpufreq/policy{cpu}/{name}": text
        for cpu in (0, 1)
        for name, text in {
            "affected_cpus": str(cpu),
            "scaling_governor": "powersave",
            "scaling_available_governors": "performance powersave",
            "energy_performance_preference": "balance_performance",
            "energy_performance_available_preferences": ("default performance balance_performance balance_power power"),
        }.items()
    },
    "devices/system/cpu/intel_pstate/no_turbo": "0",
    **{
        f"devices/system/cpu/cpu{cpu}/cpuidle/state{number}/{name}": text
        for cpu in (0, 1)
        for number, (state, latency) in enumerate((("POLL", "0"), ("C1", "2"), ("C1E", "10"), ("C6", "133")))
        for name, text in {"name": state, "latency": latency, "usage": "7", "time": "9", "disable": "0"}.items()
    },
    "kernel/mm/transparent_hugepage/enabled": "[always] madvise never",
    "kernel/mm/transparent_hugepage/defrag": "always defer defer+madvise [madvise] never",
    "kernel/mm/transparent_hugepage/khugepaged/pages_to_scan": "4096",
    "kernel/mm/ksm/run": "0",
    "kernel/mm/ksm/pages_to_scan": "100",
    "class/net/eth0/queues/rx-0/rps_cpus": "00000000,00000000",
    "class/net/eth0/queues/rx-1/rps_cpus": "00000000,00000000",
    "class/net/eth0/queues/tx-0/xps_cpus": "00000000,00000003",
    "class/net/lo/queues/rx-0/rps_cpus": "00000000,00000000",
    "block/sda/queue/scheduler": "[none] mq-deadline kyber",
    "block/sda/queue/read_ahead_kb": "128",
    "fs/cgroup/cpu/x/cpu.shares": "1024",
}
PROC: Mapping[str, str] = {
    "irq/default_smp_affinity": "3",
    "irq/24/smp_affinity_list": "0-1",
    "irq/25/smp_affinity_list": "0-1",
    "irq/26/smp_affinity_list": "1",
    "irq/27/smp_affinity_list": "0-1",
    "sys/vm/swappiness": "60",
    "sys/vm/min_free_kbytes": "67584",
    "sys/vm/dirty_ratio": "20",
    "sys/vm/dirty_bytes": "0",
    "sys/kernel/numa_balancing": "1",
    "sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456",
    "sys/net/ipv4/conf/eth0.100/rp_filter": "2",
    "sys/net/core/somaxconn": "4096",
    "sys/kernel/random/boot_id": "0f0f0f0f-1111-2222-3333-444444444444",
    "swaps": "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
    "/dev/vdb                                partition\t1048572\t\t1024\t\t-2\n"
    "/swap\\040file                           file\t\t524284\t\t0\t\t-3",
    "meminfo": "MemTotal:        4018424 kB\nMemAvailable:    3018424 kB",
}
IRQ_NAMES = {24: "virtio0-input.0", 25: "virtio0-output.0", 26: "nvme0q1"}


class FakeHost:
    """The tree, and the roots that name it."""

    def __init__(self, directory: Path) -> None:
        """Lay out the tree."""
        self.roots = Roots(*(str(directory / name) for name in ("sys", "proc", "etc", "run", "usr")), netns="/nowhere")
        for root, tree in ((self.roots.sys, SYS), (self.roots.proc, PROC)):
            for name, text in tree.items():
                self.put(os.path.join(root, name), text + "\n")
        for number, name in IRQ_NAMES.items():
            os.mkdir(f"{self.roots.proc}/irq/{number}/{name}")
        for name in ("etc/sysctl.d", "etc/tmpfiles.d", "run/systemd/system", "usr/lib/sysctl.d"):
            os.makedirs(directory / name)

    def put(self, path: str, text: str) -> None:
        """Write a file and the directories above it."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(path).write_text(text)

    def sys(self, name: str) -> str:
        """Return the text of a file below /sys."""
        return Path(self.roots.sys, name).read_text().strip()

    def proc(self, name: str) -> str:
        """Return the text of a file below /proc."""
        return Path(self.roots.proc, name).read_text().strip()

    def everything(self) -> dict[str, str]:
        """Return the text of every file, to compare before and after."""
        tops = (self.roots.sys, self.roots.proc, self.roots.etc, self.roots.run, self.roots.usr)
        found = {}
        for top in tops:
            for folder, below, names in os.walk(top):
                found.update({os.path.join(folder, name): "" for name in below})
                found.update({os.path.join(folder, name): Path(folder, name).read_text() for name in names})
        return found
