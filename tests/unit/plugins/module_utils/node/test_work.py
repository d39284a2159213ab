# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much work was done: ffmpeg's progress, storage traffic, network traffic, CPU time."""

from __future__ import annotations

import os
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import links
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import Hierarchy, Layout
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.kept_file import KeptFile
from ansible_collections.colocation.testbed.plugins.module_utils.node import work
from ansible_collections.colocation.testbed.plugins.module_utils.node.group_places import GroupPlaces

BLOCK = "frame={frame}\nfps=83.51\nstream_0_0_q=28.0\nbitrate=N/A\nout_time_us=1\nspeed=2.8x\nprogress=continue\n"
NET = "head\nhead\n  lo: 5 0 0 0 0 0 0 0 5 0\neth0: 10 0 0 0 0 0 0 0 20 0\neth1: 1 0 0 0 0 0 0 0 2 0\n"


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=20), st.integers(0, 400))
def test_the_last_whole_frame_line_counts_wherever_the_tail_begins_and_ends(frames, cut):
    text = "".join(BLOCK.format(frame=frame) for frame in frames).encode()
    whole = text[: len(text) - cut]
    expected = None
    position = 0
    for frame in frames:
        block = BLOCK.format(frame=frame)
        if position + len(f"frame={frame}\n") <= len(whole):
            expected = frame
        position += len(block)
    assert work.parse_progress(whole) == expected


@given(st.binary(max_size=300))
def test_progress_of_any_bytes(tail):
    found = work.parse_progress(tail)
    assert found is None or found >= 0


def test_padded_and_unfinished_lines():
    assert work.parse_progress(b"frame=   12\nfps=0\nframe=13") == 12
    assert work.parse_progress(b"dropframe=99\n") is None


def test_progress_file_is_read_from_its_end(tmp_path):
    path = tmp_path / "progress"
    layout = Layout("v2", (Hierarchy(str(tmp_path), 2, ("cpu",)),))
    read = work.reader({"kind": "ffmpeg_progress", "path": str(path)}, layout, GroupPlaces("r"), KeptFile("/none"))
    assert read() is None
    path.write_text("".join(BLOCK.format(frame=frame) for frame in range(1000)))
    assert read() == 999
    path.unlink()
    path.write_text(BLOCK.format(frame=1))
    assert read() == 1


def test_storage_traffic_keeps_the_share_of_ended_processes(tmp_path):
    def io(pid, read_bytes, write_bytes):
        (tmp_path / pid).mkdir(exist_ok=True)
        (tmp_path / pid / "io").write_text(
            f"rchar: 9\nread_bytes: {read_bytes}\nwrite_bytes: {write_bytes}\ncancelled_write_bytes: 5\n"
        )

    io("1", 10, 20)
    io("2", 100, 0)
    (tmp_path / "cgroup.procs").write_text("1\n2\n")
    counter = work.IoBytes(str(tmp_path), str(tmp_path))
    assert counter.read() == 130.0
    shutil.rmtree(tmp_path / "1")
    io("2", 150, 0)
    (tmp_path / "cgroup.procs").write_text("2\n")
    assert counter.read() == 180.0
    assert work.IoBytes(str(tmp_path / "none"), str(tmp_path)).read() is None


def test_network_traffic():
    content = NET.encode()
    both = links.Outermost(lambda: [links.Link("eth0", 2), links.Link("eth1", 3)])
    assert work.net_bytes(None, content, both) == 33.0
    assert work.net_bytes(None, content, links.Outermost(lambda: [links.Link("eth0", 2)])) == 30.0
    assert work.net_bytes("eth0", content, both) == 30.0
    assert work.net_bytes("eth9", content, both) is None
    assert work.net_bytes(None, None, both) is None


def test_cpu_time_of_a_group(tmp_path):
    place = tmp_path / "r" / "batch"
    place.mkdir(parents=True)
    (place / "cpu.stat").write_text("usage_usec 2500000\n")
    layout = Layout("v2", (Hierarchy(str(tmp_path), 2, ("cpu",)),))
    assert work.reader({"kind": "cpu_time", "group": "batch"}, layout, GroupPlaces("r"), KeptFile("/none"))() == 2.5


def test_work_of_a_group_that_a_pod_has(tmp_path):
    place = tmp_path / "kubepods/besteffort/podx/c1"
    place.mkdir(parents=True)
    (place / "cpu.stat").write_text("usage_usec 1500000\n")
    (place / "cgroup.procs").write_text(f"{os.getpid()}\n")
    layout = Layout("v2", (Hierarchy(str(tmp_path), 2, ("cpu",)),))
    places = GroupPlaces("r", {"batch": "kubepods/besteffort/podx/c1"})
    assert work.reader({"kind": "cpu_time", "group": "batch"}, layout, places, KeptFile("/none"))() == 1.5
    assert work.reader({"kind": "cpu_time", "group": "other"}, layout, places, KeptFile("/none"))() is None
    assert work.reader({"kind": "io_bytes", "group": "batch"}, layout, places, KeptFile("/none"))() is not None


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"kind": "magic"}, "unknown"),
        ({"kind": "ffmpeg_progress"}, "needs path"),
        ({"kind": "io_bytes"}, "needs group"),
    ],
)
def test_wrong_descriptions_are_refused(how, text, tmp_path):
    layout = Layout("v2", (Hierarchy(str(tmp_path), 2, ("cpu",)),))
    with pytest.raises(work.WorkError, match=text):
        work.reader(how, layout, GroupPlaces("r"), KeptFile("/none"))


def test_units():
    assert work.unit({"kind": "ffmpeg_progress"}) == "frames"
    assert work.unit({"kind": "cpu_time", "unit": "ops"}) == "ops"
