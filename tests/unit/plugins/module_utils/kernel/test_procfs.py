# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parsers of /proc: what the kernel writes is read back, anything else is one sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import procfs
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.procfs import ProcError

NUMBER = st.integers(min_value=0, max_value=2**63 - 1)
COMM = st.text(st.characters(codec="ascii", exclude_characters="\0\n"), min_size=0, max_size=15)
STAT = "{pid} ({comm}) {state} {ppid} {pgrp} {session} 0 -1 4194560 1 0 0 0 {user} {system} 0 0 20 0 1 0 {start} 9 9"


@given(pid=st.integers(1, 2**22), comm=COMM, state=st.sampled_from("RSDZTtXIP"), numbers=st.tuples(*[NUMBER] * 6))
def test_stat_survives_any_command_name(pid, comm, state, numbers):
    ppid, pgrp, session, user, system, start = numbers
    text = STAT.format(
        pid=pid, comm=comm, state=state, ppid=ppid, pgrp=pgrp, session=session, user=user, system=system, start=start
    )
    stat = procfs.parse_stat(text)
    assert (stat.pid, stat.comm, stat.state) == (pid, comm, state)
    assert (stat.ppid, stat.pgrp, stat.session) == (ppid, pgrp, session)
    assert (stat.user_ticks, stat.system_ticks, stat.start_ticks) == (user, system, start)
    assert stat.dead == (state in "ZX")


@given(st.text(max_size=200))
def test_stat_of_anything_is_parsed_or_refused(text):
    try:
        found = procfs.parse_stat(text)
    except ProcError:
        return
    assert f"({found.comm})" in text


@pytest.mark.parametrize("text", ["", "1", "1 (x) R 1", "x (y) " + "R " + "1 " * 30, "1 (x) R " + "y " * 30])
def test_damaged_stat_is_refused(text):
    with pytest.raises(ProcError, match="see proc"):
        procfs.parse_stat(text)


@given(st.dictionaries(st.integers(0, 200), st.lists(NUMBER, min_size=8, max_size=10), max_size=8), NUMBER)
def test_cpu_times_are_seconds_by_class(wanted, total):
    lines = [f"cpu  {' '.join(['1'] * 10)}", *(f"cpu{cpu} {' '.join(map(str, v))}" for cpu, v in wanted.items())]
    found = procfs.parse_cpu_times("\n".join([*lines, f"intr {total} 0 0"]) + "\n", 100)
    assert set(found) == set(wanted)
    for cpu, values in wanted.items():
        assert list(found[cpu]) == list(procfs.CPU_CLASSES)
        assert found[cpu]["steal_s"] == values[7] / 100


def test_cpu_times_can_be_limited():
    text = "cpu 1 2 3 4 5 6 7 8\ncpu0 1 2 3 4 5 6 7 8\ncpu1 10 20 30 40 50 60 70 80\n"
    assert procfs.parse_cpu_times(text, 10, frozenset({1})) == {
        1: dict(zip(procfs.CPU_CLASSES, (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0), strict=True))
    }


def test_damaged_cpu_line_is_refused():
    with pytest.raises(ProcError, match="cpux"):
        procfs.parse_cpu_times("cpux 1 2\n", 100)


@given(NUMBER, NUMBER, NUMBER)
def test_schedstat(run_ns, wait_ns, slices):
    times = procfs.parse_schedstat(f"{run_ns} {wait_ns} {slices}\n")
    assert times == procfs.SchedStat(run_ns / 1e9, wait_ns / 1e9)


@pytest.mark.parametrize("text", ["", "1", "a b c"])
def test_damaged_schedstat_is_refused(text):
    with pytest.raises(ProcError, match="schedstat"):
        procfs.parse_schedstat(text)


NET_HEAD = "Inter-|   Receive  |  Transmit\n face |bytes packets|bytes packets\n"
IFNAME = st.text(
    st.characters(codec="ascii", categories=["L", "N"], include_characters="@.-_"), min_size=1, max_size=15
)


@given(st.dictionaries(IFNAME, st.tuples(NUMBER, NUMBER), max_size=5))
def test_net_dev(wanted):
    lines = [f"{name:>6}: {rx} 1 2 3 4 5 6 7 {tx} 9 10 11 12 13 14 15\n" for name, (rx, tx) in wanted.items()]
    found = procfs.parse_net_dev(NET_HEAD + "".join(lines))
    assert {name: (item.rx_bytes, item.tx_bytes) for name, item in found.items()} == wanted


@pytest.mark.parametrize("line", ["eth0", "eth0: 1 2 3", "eth0: a 1 1 1 1 1 1 1 1"])
def test_damaged_net_dev_is_refused(line):
    with pytest.raises(ProcError, match="eth0"):
        procfs.parse_net_dev(NET_HEAD + line)


def test_meminfo_is_bytes():
    text = "MemTotal:       16 kB\nMemAvailable:    4 kB\nHugePages_Total:       3\nDirectMap: none\n"
    assert procfs.parse_meminfo(text) == {"MemTotal": 16384, "MemAvailable": 4096, "HugePages_Total": 3}


@given(st.integers(0, 2**40), st.binary(max_size=40).filter(lambda raw: b"MemAvailable" not in raw))
def test_the_quick_way_to_available_memory_agrees_with_the_parser(available_kib, before):
    content = before + b"\nMemAvailable:   %d kB\nBuffers: 1 kB\n" % available_kib
    assert procfs.parse_available_bytes(content) == available_kib * 1024


@pytest.mark.parametrize("content", [b"", b"MemTotal: 1 kB\n", b"MemAvailable: lots\n"])
def test_missing_available_memory_is_none(content):
    assert procfs.parse_available_bytes(content) is None


def test_group_paths_of_both_versions():
    text = "5:cpuset:/a\n4:cpu,cpuacct:/b:c\n0::/user.slice\nbroken\n"
    assert procfs.parse_group_paths(text) == {"cpuset": "/a", "cpu,cpuacct": "/b:c", "": "/user.slice"}


def test_missing_process_is_none_and_unreadable_one_an_error(tmp_path):
    assert procfs.read_stat(4711, str(tmp_path)) is None
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "stat").mkdir()
    with pytest.raises(ProcError, match="run as root"):
        procfs.read_stat(1, str(tmp_path))


def test_lists_only_what_lives(tmp_path):
    for pid, state in ((1, "S"), (2, "Z")):
        (tmp_path / str(pid)).mkdir()
        text = STAT.format(pid=pid, comm="x", state=state, ppid=0, pgrp=0, session=0, user=0, system=0, start=7)
        (tmp_path / str(pid) / "stat").write_text(text)
    (tmp_path / "self").mkdir()
    assert [stat.pid for stat in procfs.list_stats(str(tmp_path))] == [1]


def test_boot_id_is_needed(tmp_path):
    with pytest.raises(ProcError, match="mount /proc"):
        procfs.read_boot_id(str(tmp_path))
