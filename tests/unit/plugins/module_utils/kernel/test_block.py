# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import block


@pytest.fixture
def sys_root(tmp_path: Path) -> str:
    """A disk sda (8:0) with a partition sda1 (8:1), as sysfs shows them."""
    disk = tmp_path / "devices/pci0/block/sda"
    part = disk / "sda1"
    part.mkdir(parents=True)
    (disk / "dev").write_text("8:0\n")
    (part / "dev").write_text("8:1\n")
    (part / "partition").write_text("1\n")
    (tmp_path / "dev/block").mkdir(parents=True)
    (tmp_path / "dev/block/8:0").symlink_to(disk)
    (tmp_path / "dev/block/8:1").symlink_to(part)
    return str(tmp_path)


def _status(number: int, kind: int = stat.S_IFBLK) -> os.stat_result:
    return os.stat_result((kind | 0o660, 0, 0, 1, 0, 0, 0, 0, 0, 0), {"st_rdev": os.makedev(8, number)})


def test_a_disk_by_number_and_by_path(sys_root: str) -> None:
    assert block.whole_disk("8:0", sys_root) == "8:0"
    assert block.whole_disk("/dev/sda", sys_root, lambda _path: _status(0)) == "8:0"


@pytest.mark.parametrize("device", ["8:1", "/dev/sda1"])
def test_a_partition_is_refused_and_its_disk_named(sys_root: str, device: str) -> None:
    with pytest.raises(block.BlockError, match=r"is a partition of sda, .*; write /dev/sda \(8:0\)"):
        block.whole_disk(device, sys_root, lambda _path: _status(1))


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("8:99", "there is no block device 8:99"),
        ("sda", "is neither a number such as 8:0 nor a path"),
        ("/dev/sda\n", "is neither a number"),
        ("", "is neither a number"),
        ("/nowhere/sdz", "No such file or directory; write the path of a disk"),
        ("/dev/null", "is no block device"),
    ],
)
def test_what_is_no_disk_is_named(sys_root: str, device: str, words: str) -> None:
    with pytest.raises(block.BlockError, match=words):
        block.whole_disk(device, sys_root)


@given(st.text(max_size=30))
def test_no_text_breaks_the_lookup(text: str) -> None:
    with pytest.raises(block.BlockError):
        block.whole_disk("x" + text, "/nonexistent")
