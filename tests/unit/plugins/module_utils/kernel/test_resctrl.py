# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading resctrl: schemata of all kernels, capabilities, groups; what stands in its place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import mounts, resctrl
from tests.support.resctrl_dump import Dumped


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("    L3:0=7ff;1=7ff", {0: 0x7FF, 1: 0x7FF}),
        ("L3CODE:0=00f;5=7f0", {0: 0xF, 5: 0x7F0}),
        ("    MB:0= 50;1=100", {0: 50, 1: 100}),
        ("MB:0=4294967295", {0: 2**32 - 1}),
        ("L2:0=ff", None),
        ("SMBA:0=2048", None),
        ("L3:uninitialized", None),
        ("L3:0=f;0=f", None),
        ("L3:0=0xf", None),
        ("MB:0=-1", None),
        ("no colon", None),
    ],
)
def test_lines_of_schemata(text: str, values: dict[int, int] | None) -> None:
    (line,) = resctrl.parse_schemata(f"{text}\n\n")
    assert line.values == values
    assert line.text == text


VALUES = st.dictionaries(st.integers(0, 300), st.integers(0, 2**32 - 1), min_size=1)


@given(st.sampled_from(("L3", "L3CODE", "L3DATA", "MB")), VALUES)
def test_what_is_written_reads_the_same(name: str, values: dict[int, int]) -> None:
    (line,) = resctrl.parse_schemata(resctrl.format_line(name, values))
    assert (line.name, line.values) == (name, values)


@given(st.text())
def test_any_text_is_read_without_an_error_and_kept(text: str) -> None:
    lines = resctrl.parse_schemata(text)
    assert [line.text for line in lines] == [line for line in text.splitlines() if line.strip()]


@given(st.text(alphabet="L3MBCODEAT:=;0123456789abcdef \n"))
def test_nearly_right_schemata_have_values_by_cache_or_none(text: str) -> None:
    for line in resctrl.parse_schemata(text):
        assert line.values is None or line.values


@given(st.text(max_size=8))
def test_names_that_pass_are_one_part_of_a_path(name: str) -> None:
    allowed = name not in (".", "..", "") and not set(name) & set("/\n\0 ")
    try:
        resctrl.check_name(name)
    except resctrl.ResctrlError as exc:
        message = str(exc)
    else:
        message = "" if allowed else "was taken"
    assert "\n" not in message
    assert message != "was taken"


def test_a_whole_file_system(tmp_path: Path) -> None:
    host = Dumped(tmp_path, cache_ids=(0, 3), l2_ways=8, num_closids=4)
    host.tree.mkdir("/a")
    host.tree.mkdir("/a/mon_groups/m")
    state = host.state()
    assert state.options == ()
    assert sorted(state.groups) == ["", "a"]
    assert list(state.groups["a"].monitors) == ["m"]
    assert state.root.values("L3") == {0: 0x7FF, 3: 0x7FF}
    assert state.root.values("L2") == {}
    assert state.info.closids == 4
    assert state.info.cache == resctrl.Cache(0x7FF, 1, 4, 0, sparse_masks=False)
    assert state.info.events == ("llc_occupancy", "mbm_local_bytes", "mbm_total_bytes")


def test_groups_that_others_remove_meanwhile_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Dumped(tmp_path)
    for path in ("/a", "/b", "/b/mon_groups/m"):
        host.tree.mkdir(path)
    host.state()
    read_cpus = resctrl.read_cpus

    def removed_first(directory: str) -> frozenset[int]:
        if directory.endswith(("/a", "/m")):
            shutil.rmtree(directory)
        return read_cpus(directory)

    monkeypatch.setattr(resctrl, "read_cpus", removed_first)
    state = resctrl.read_state(str(host.point), str(host.proc))
    assert state is not None
    assert sorted(state.groups) == ["", "b"]
    assert state.groups["b"].monitors == {}


def test_options_from_the_table_of_mounts_and_from_what_is_there(tmp_path: Path) -> None:
    assert Dumped(tmp_path, options=",cdp,mba_MBps", cdp=True).state().options == ("cdp", "mba_MBps")
    host = Dumped(tmp_path, options=",mba_MBps")
    assert host.state().info.mba_mbps is True
    assert Dumped(tmp_path, cdp=True, mba_mbps=True).state().options == ("cdp", "mba_MBps")


def test_monitoring_alone_and_nothing_of_it(tmp_path: Path) -> None:
    state = Dumped(tmp_path, ways=0, bandwidth=False).state()
    assert (state.info.cache, state.info.bandwidth, state.info.closids) == (None, None, None)
    assert state.root.lines == ()
    assert Dumped(tmp_path, monitoring=False).state().info.rmids is None


def test_something_else_on_the_mount_point(tmp_path: Path) -> None:
    host = Dumped(tmp_path)
    (host.proc / "self/mountinfo").write_text(f"1 1 0:1 / {host.point} rw - tmpfs tmpfs rw\n")
    with pytest.raises(resctrl.ResctrlError, match="type tmpfs is mounted there, not resctrl"):
        resctrl.read_state(str(host.point), str(host.proc))
    (host.proc / "self/mountinfo").write_text("")
    assert resctrl.read_state(str(host.point), str(host.proc)) is None


def test_a_number_that_is_none(tmp_path: Path) -> None:
    host = Dumped(tmp_path)
    host.state()
    (host.point / "info/L3/cbm_mask").write_text("many\n")
    with pytest.raises(resctrl.ResctrlError, match=r"cbm_mask: reads 'many', which is not a number"):
        resctrl.read_state(str(host.point), str(host.proc))


def test_what_the_kernel_said(tmp_path: Path) -> None:
    host = Dumped(tmp_path)
    host.rules.status = "first\nsecond\n"
    host.state()
    assert resctrl.last_status(str(host.point)) == "first; second"
    assert resctrl.last_status(str(tmp_path / "none")) == ""


def test_mounts() -> None:
    text = (
        "1 0 0:1 / / rw,relatime - ext4 /dev/a rw\n"
        "2 1 0:2 / /mnt/a\\040b rw shared:1 - tmpfs t\\134mp rw,size=1k\n"
        "3 1 0:3 / /mnt/a\\040b ro - resctrl resctrl rw,cdp\n"
        "damaged\n"
    )
    found = mounts.parse(text)
    assert [item.fs_type for item in found] == ["ext4", "tmpfs", "resctrl"]
    assert found[1] == mounts.Mount("/mnt/a b", "tmpfs", "t\\mp", ("rw", "size=1k"))
    assert found[2].options == ("ro", "rw", "cdp")


@given(st.text())
def test_any_table_of_mounts_is_read_without_an_error(text: str) -> None:
    mounts.parse(text)
