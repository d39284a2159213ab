# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What containers and other distributions show of themselves; each case says where it was seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import instance
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cgroup,
    group_counters,
    mounts,
    netns,
    procfs,
    psi,
    resctrl,
    resctrl_check,
    resctrl_facts,
    swap,
)
from ansible_collections.colocation.testbed.plugins.module_utils.node import facts, work
from ansible_collections.colocation.testbed.plugins.module_utils.node_policy import facts as policy_facts
from ansible_collections.colocation.testbed.plugins.module_utils.node_policy import resctrl_wanted
from ansible_collections.colocation.testbed.plugins.module_utils.tuning import plan, settings
from ansible_collections.colocation.testbed.plugins.plugin_utils.preflight import demands

# lxcfs (src/proc_fuse.c): /proc/stat has the container's CPUs from 0 on and no steal, /proc/swaps a line of its own.
LXC = """\
420 400 0:50 /proc/meminfo /proc/meminfo rw,nosuid,nodev - fuse.lxcfs lxcfs rw
421 400 0:50 /proc/stat /proc/stat rw,nosuid,nodev,relatime - fuse.lxcfs lxcfs rw,user_id=0
430 410 0:50 /sys/devices/system/cpu /sys/devices/system/cpu rw - fuse.lxcfs lxcfs rw
431 410 0:50 / /var/lib/lxcfs rw,nosuid - fuse.lxcfs lxcfs rw
"""
SWAPS = "Filename\t\t\t\tType\t\tSize\tUsed\tPriority\n"
VIRTUAL = "none                                    virtual\t\t2097148\t1024\t0\n"


def test_files_that_lxcfs_answers_for_are_known(tmp_path):
    (tmp_path / "self").mkdir()
    (tmp_path / "self/mountinfo").write_text(LXC)
    found = facts.emulated(facts.Roots(proc=str(tmp_path)))
    assert found == ["/proc/meminfo", "/proc/stat", "/sys/devices/system/cpu"]


def test_the_swap_of_a_container_is_not_its_own(tmp_path):
    (tmp_path / "swaps").write_text(SWAPS + VIRTUAL)
    assert swap.areas(str(tmp_path)) == ()
    assert swap.is_elsewhere(str(tmp_path))
    roots = settings.Roots(proc=str(tmp_path), etc=str(tmp_path), run=str(tmp_path), usr=str(tmp_path))
    wanted, problems = settings.parse([{"kind": "swap", "name": "all", "value": "disabled"}], False, "fail")
    with pytest.raises(settings.TuningError, match="whose swap is its machine's"):
        plan.plan(wanted, problems, roots, {})


# util-linux, tests/ts/libmount/files/swaps; zram as Fedora and openEuler set it up.
def test_areas_of_other_kinds():
    found = swap.parse(
        SWAPS
        + "/dev/dm-2                               partition\t8151036\t2283436\t-2\n"
        + "/dev/zram0                              partition\t4194300\t0\t100\n"
        + "/some/swapfile2\\040(deleted)            file            111     111     0\n"
    )
    assert [(area.path, area.priority) for area in found] == [
        ("/dev/zram0", 100),
        ("/some/swapfile2 (deleted)", 0),
        ("/dev/dm-2", -2),
    ]
    assert swap.parse(SWAPS) == ()


# procfs's fixtures, and kernels: 4.18 without "full" for CPU, 6.1 with; a kernel of 2.6.32 has no steal column.
def test_files_with_more_and_fewer_fields():
    assert psi.parse("some avg10=0.10 avg60=2.00 avg300=3.85 total=15\n") == {"some_us": 15, "full_us": None}
    both = "some avg10=0.00 avg60=0.00 avg300=0.00 total=9\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
    assert psi.parse(both) == {"some_us": 9, "full_us": 0}
    assert set(procfs.parse_cpu_times("cpu 1 2 3\ncpu5 1 2 3 4 5 6 7\nintr 1\n", 100)[5]) == {*procfs.CPU_CLASSES[:7]}
    assert procfs.parse_stat(f"1020 ((a b ) ( c d) ) R {' '.join(['7'] * 40)}").comm == "(a b ) ( c d) "
    assert procfs.parse_net_dev("a\nb\n  eth0:1 2 3 4 5 6 7 8 9 1 1 1 1 1 1 1\n")["eth0"].tx_bytes == 9


def resctrl_at(root: Path, texts: dict[str, str], options: str = "") -> resctrl.State:
    for name, text in {"cpus_list": "0-191", "tasks": "", "mode": "shareable", **texts}.items():
        (root / "r" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "r" / name).write_text(f"{text}\n")
    (root / "self").mkdir()
    (root / "self/mountinfo").write_text(f"36 25 0:31 / {root}/r rw - resctrl resctrl rw{options}\n")
    state = resctrl.read_state(f"{root}/r", str(root))
    assert state is not None
    return state


BANDWIDTH = {"num_closids": "15", "min_bandwidth": "0", "bandwidth_gran": "1", "delay_linear": "0"}
CACHE = {"num_closids": "16", "cbm_mask": "ffff", "min_cbm_bits": "0", "shareable_bits": "0"}


def info(name: str, values: dict[str, str]) -> dict[str, str]:
    return {f"info/{name}/{key}": value for key, value in values.items()}


# Koordinator issues 216 and 1777 (EPYC, numbers of caches with a gap); SMBA of EPYC 9004: the kernel's resctrl.rst.
def test_caches_with_gaps_and_slow_memory_on_amd(tmp_path):
    ids = [*range(8), *range(16, 24)]
    lines = {"MB": "2048", "SMBA": "2048", "L3": "ffff"}
    text = "\n".join(f"{name:>8}:{';'.join(f'{cache}={value}' for cache in ids)}" for name, value in lines.items())
    state = resctrl_at(
        tmp_path, {"schemata": text, **info("L3", CACHE), **info("MB", BANDWIDTH), **info("SMBA", BANDWIDTH)}
    )
    assert sorted(state.root.values("L3")) == ids
    assert state.root.values("SMBA") == {}
    assert state.info.closids == 15
    # Linux 5.15 has no file sparse_masks, and takes masks with gaps from AMD's processors all the same.
    assert state.info.cache is not None
    resctrl_check.check_mask(state.info.cache, 0xF0F, "group")
    found = policy_facts.cache(state)
    assert found is not None
    assert (found.vendor, found.root_mask, found.mba_default, found.mba_minimum) == ("amd", 0xFFFF, 2048, 0)


# goresctrl, test/data/resctrl.l2: a processor that partitions its L2 caches alone.
def test_only_the_second_level_cache(tmp_path):
    values = {"num_closids": "4", "cbm_mask": "ff", "min_cbm_bits": "1", "shareable_bits": "0"}
    state = resctrl_at(tmp_path, {"schemata": "    L2:0=ff;1=ff", **info("L2", values)})
    assert (state.info.cache, state.info.bandwidth, state.info.closids) == (None, None, 4)
    found = policy_facts.cache(state)
    assert found is not None
    assert found.root_mask is None


# goresctrl, test/data/resctrl.nol3.mbps: bandwidth in MB/s, the root group without a limit.
def test_bandwidth_in_megabytes(tmp_path):
    values = {**BANDWIDTH, "delay_linear": "1", "min_bandwidth": "10", "bandwidth_gran": "10"}
    state = resctrl_at(tmp_path, {"schemata": "    MB:0=4294967295;1=4294967295", **info("MB", values)}, ",mba_MBps")
    assert state.info.mba_mbps
    assert set(state.root.values("MB").values()) == {resctrl.UNLIMITED_MBPS}
    # mbm_bw_count of the kernel divides bytes by 2^20, and resctrl.rst says MiBps since Linux 6.8.
    asked = dict.fromkeys(("l3_mask", "l3_cat_range_start_percent", "l3_cat_range_end_percent", "mba_percent", "cpus"))
    group = {**asked, "name": "BE", "state": "present", "mba_mb_per_s": 1000, "pids": [], "monitor_groups": []}
    assert resctrl_wanted.Resolver(state).group(group).values == {"MB": 953}
    found = policy_facts.cache(state)
    assert found is not None
    assert found.mba_default is None


# Energy of packages, with decimals: "mon_PERF_PKG" in the kernel's resctrl.rst.
def test_counters_with_decimals(tmp_path):
    place = tmp_path / "mon_data/mon_PERF_PKG_00"
    place.mkdir(parents=True)
    for name, text in {"core_energy": "94.499439", "activity": "Unavailable", "stalls": "1042"}.items():
        (place / name).write_text(f"{text}\n")
    found = resctrl_facts.counters(str(tmp_path))["mon_PERF_PKG_00"]
    assert found == {"core_energy": 94.499439, "activity": None, "stalls": 1042}


# ffmpeg built from git has no version of its own; compilers and libraries in the next lines have.
@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("ffmpeg version N-109542-g2bd24d4a37 Copyright (c) 2000-2023\\nbuilt with gcc 12.2.0 (Debian)", None),
        ("ffmpeg version n6.1.1 Copyright (c) 2000-2023\\nbuilt with gcc 13", "6.1.1"),
        ("ffmpeg version 7.1.1-1+b1 Copyright (c) 2000-2025\\nbuilt with gcc 14", "7.1.1-1+b1"),
        ("nginx version: nginx/1.27.5", "1.27.5"),
        ("nginx version: openresty/1.25.3.2", "1.25.3.2"),
        ("\\niperf 3.18 (cJSON 1.7.15)\\nLinux node1 6.12.0", "3.18"),
        ("stress-ng, version 0.19.02 (gcc 14.2.0, x86_64 Linux 6.12)", "0.19.02"),
        ("ip utility, iproute2-ss200127", None),
    ],
)
def test_the_version_is_in_the_first_line(printed, version):
    found = facts.programs({"program": ["printf", printed]})["program"]
    assert found is not None
    assert found["version"] == version


class Asked:
    """A host with variables."""

    name = "node1"

    def __init__(self, **given: object) -> None:
        self.given = given

    def variable(self, name: str, default: object = None) -> object:
        return self.given.get(name, default)


ONE_EACH = {"latency_service_worker_processes": {"default": 1}, "batch_workload_threads": {"default": 1}}


@pytest.mark.parametrize(
    ("online", "given", "level", "found"),
    [
        ("0", {}, "ok", "1 + 1 on 1"),
        ("0-127", {}, "degraded", "1 + 1 on 128"),
        ("0-127", {"node_cpus": "4"}, "ok", "1 + 1 on 1"),
        ("0-511", {"latency_service_worker_processes": "256", "batch_workload_threads": 512}, "ok", "256 + 512 on 512"),
        ("0-127", {"node_cpus": "1..4", "batch_workload_threads": "many"}, "degraded", "1 + 1 on 128"),
    ],
)
def test_on_many_cpus_workloads_of_one_task_need_not_meet(online, given, level, found):
    row = demands.crowding(Asked(**given), {"online_cpus": online}, ONE_EACH)
    assert (row.level, row.found) == (level, found)
    assert ("set node_cpus to fewer" in row.consequence) is (level == "degraded")


# A disk that was named in another character set, and names with signs that other programs take for ends of lines; the
# kernel escapes space, tab, line feed and backslash alone (proc(5)).
@pytest.mark.parametrize("name", [b"M\xfcller", "a\u2028b".encode(), b"c\x85d\rend", b"e\x0cf\\040g"])
def test_mounts_of_any_name_keep_nothing_from_being_found(tmp_path, name):
    (tmp_path / "self").mkdir()
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    lines = [
        b"40 1 8:1 / /media/" + name + b" rw,relatime shared:3 - vfat /dev/sdb1 rw,iocharset=iso8859-1",
        f"50 30 0:28 / {tmp_path} rw - cgroup2 cgroup rw".encode(),
        b"60 30 0:4 net:[4026531840] /run/netns rw shared:9 - nsfs nsfs rw",
        b"61 30 0:5 / /sys/fs/bpf rw - bpf bpf rw,mode=700",
    ]
    (tmp_path / "self/mountinfo").write_bytes(b"\n".join([*lines, b""]))
    assert cgroup.detect(str(tmp_path)).version == "v2"
    assert len(mounts.read(str(tmp_path))) == len(lines)
    assert netns.is_mount("/run/netns", str(tmp_path))
    assert instance.is_bpffs("/sys/fs/bpf", str(tmp_path))


# docker --cpuset-cpus, Kubernetes' CPU manager: the root that a container sees has a file that a machine's lacks.
@pytest.mark.parametrize(
    ("files_of_root", "options", "expected"),
    [
        ({"cpuset.cpus.effective": "0-63"}, "cgroup2 cgroup rw", None),
        ({"cpuset.cpus": "", "cpuset.cpus.effective": "4-7"}, "cgroup2 cgroup rw", "4-7"),
        ({"cpuset.cpus": "0-63", "cpuset.effective_cpus": "0-63"}, "cgroup cgroup rw,cpu,cpuset", "0-63"),
        ({"cpuset.cpus": "4-7", "cpuset.effective_cpus": "4-5"}, "cgroup cgroup rw,cpu,cpuset", "4-5"),
        ({"cpuset.cpus": "4-7"}, "cgroup cgroup rw,seclabel,cpu,cpuset", "4-7"),
        ({}, "cgroup cgroup rw,cpu", None),
    ],
)
def test_cpus_that_a_container_is_held_to(tmp_path, files_of_root, options, expected):
    for name, text in {"cgroup.controllers": "cpu cpuset", **files_of_root}.items():
        (tmp_path / name).write_text(f"{text}\n")
    layout = cgroup.parse_layout(f"50 30 0:28 / {tmp_path} rw - {options}\n")
    assert facts.container_cpus(layout) == expected


# Kernels without CONFIG_TASK_IO_ACCOUNTING and CONFIG_SCHED_INFO (proc(5)): what is not told is not nothing.
def test_figures_that_a_kernel_does_not_keep_are_none(tmp_path):
    (tmp_path / "cgroup.procs").write_text("7\n")
    (tmp_path / "tasks").write_text("7\n8\n")
    (tmp_path / "7").mkdir()
    assert work.IoBytes(str(tmp_path), str(tmp_path)).read() is None
    layout = cgroup.Layout("v1", (cgroup.Hierarchy(str(tmp_path), 1, ("cpu", "cpuacct")),))
    reader = group_counters.GroupReader(layout, "", str(tmp_path))
    assert (reader.read()["tasks"], reader.read()["run_s"], reader.read()["wait_s"]) == (2, None, None)
    (tmp_path / "7/schedstat").write_text("2000000000 1000000000 5\n")
    assert (reader.read()["run_s"], reader.read()["wait_s"]) == (2.0, 1.0)
    (tmp_path / "7/io").write_text("rchar: 9\nread_bytes: 3\nwrite_bytes: 4\n")
    assert work.IoBytes(str(tmp_path), str(tmp_path)).read() == 7.0
