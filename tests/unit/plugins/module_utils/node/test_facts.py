# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts from made-up /proc and /sys trees."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cpu_list, processes
from ansible_collections.colocation.testbed.plugins.module_utils.node import facts


@pytest.fixture
def roots(tmp_path):
    """A host with two CPUs and cgroup v2."""
    for name, text in {
        "proc/cpuinfo": "processor: 0\nmodel name : Some CPU @ 2 GHz\nflags : fpu hypervisor\n",
        "proc/meminfo": "MemTotal: 2048 kB\nMemAvailable: 1024 kB\n",
        "proc/stat": "cpu 1 1 1 1 1 1 1 1\ncpu0 0 0 0 0 0 0 0 200\ncpu1 0 0 0 0 0 0 0 0\n",
        "proc/uptime": "12.5 20.0\n",
        "proc/loadavg": "0.5 0.25 0.1 1/100 4\n",
        "proc/filesystems": "nodev\tsysfs\nnodev\tresctrl\n",
        "proc/self/mountinfo": f"1 1 0:1 / {tmp_path}/cgroup rw - cgroup2 cgroup2 rw\n",
        "proc/self/net/tcp": "head\n 0: 00000000:1F40 00000000:0000 0A 0:0 0:0 0 0 0 77 1\n",
        "cgroup/cgroup.controllers": "cpu memory pids\n",
        "sys/devices/system/cpu/online": "0-1\n",
        "sys/class/dmi/id/product_name": "Standard PC\n",
        "sys/class/dmi/id/sys_vendor": "QEMU\n",
        "etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return facts.Roots(*(str(tmp_path / name) for name in ("proc", "sys", "dev", "etc", "run")))


def test_a_whole_host(roots, tmp_path):
    found = facts.collect(
        str(tmp_path / "not" / "there"), {"shell": ["sh", "-c", "echo shell 1.2.3"], "x": ["none-x"]}, roots
    )
    assert found["cpu_model"] == "Some CPU @ 2 GHz"
    assert (found["online_cpus"], found["cpu_count"]) == ("0-1", 2)
    assert (found["memory_bytes"], found["memory_available_bytes"]) == (2048 * 1024, 1024 * 1024)
    assert found["cgroup"] == "v2"
    assert set(found["cgroup_controllers"]) == {"cpu", "cpuacct", "memory", "pids"}
    assert found["cgroup_controllers"]["cpu"]["version"] == 2
    assert found["virtualization"] == "QEMU Standard PC"
    assert found["distribution"] == "Debian GNU/Linux 12 (bookworm)"
    assert found["listening_ports"] == [8000]
    assert found["resctrl"] == {"available": True, "mounted": False}
    assert found["programs"]["shell"]["version"] == "1.2.3"
    assert found["programs"]["x"] is None
    assert found["disk_free_bytes"] > 0
    assert found["steal_s"]["1"] == 0.0
    assert found["steal_s"]["0"] > 0
    assert (found["psi"], found["service_manager"]) == (False, "none")
    assert found["pm_qos"] == {"device": False, "writable": False, "effective_us": None}
    assert found["cpuidle"] == {"driver": None, "states": []}


def test_a_host_without_cpu_controller(roots, tmp_path):
    (tmp_path / "proc/self/mountinfo").write_text("")
    found = facts.control_groups(roots)
    assert (found["cgroup"], found["cgroup_controllers"]) == (None, {})
    assert "mount cgroup2" in found["cgroup_problem"]


def test_bare_metal_and_unknown_hypervisors(roots, tmp_path):
    (tmp_path / "sys/class/dmi/id/sys_vendor").write_text("Dell Inc.\n")
    assert facts.virtualization("flags : fpu\n", roots) == "none"
    (tmp_path / "sys/class/dmi/id/sys_vendor").unlink()
    (tmp_path / "sys/class/dmi/id/product_name").unlink()
    assert facts.virtualization("flags : fpu hypervisor\n", roots) == "unknown hypervisor"
    assert facts.virtualization("Features : fp asimd\n", roots) == "none"


@pytest.mark.parametrize(
    ("text", "name"),
    [("Model\t: Raspberry Pi 4\n", "Raspberry Pi 4"), ("cpu model : MIPS 24K\n", "MIPS 24K"), ("", "unknown")],
)
def test_processor_names_of_other_architectures(text, name):
    assert facts.cpu_model(text) == name


def test_not_a_linux_host_is_one_sentence(tmp_path):
    with pytest.raises(cpu_list.CpuListError, match="is /sys mounted"):
        facts.collect("/", {}, facts.Roots(*[str(tmp_path)] * 5))


def test_supervised_processes_that_run_are_named(tmp_path):
    own = processes.identify(os.getpid())
    folder = tmp_path / "processes"
    folder.mkdir()
    alive = {
        "state": "running",
        "pid": own.pid,
        "start_ticks": own.start_ticks,
        "boot_id": own.boot_id,
        "supervisor_pid": own.pid,
        "supervisor_start_ticks": own.start_ticks,
        "spec_sha256": "",
        "error": "",
    }
    (folder / "nginx.pid").write_text(json.dumps(alive))
    (folder / "batch.pid").write_text(json.dumps({**alive, "start_ticks": own.start_ticks + 1}))
    (folder / "load.pid").write_text("cut sh")
    assert facts.supervised(str(tmp_path), facts.Roots()) == ["nginx"]
    assert facts.supervised(str(tmp_path / "none"), facts.Roots()) == []
