# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files with a line for each device, units of weights, and limits of disks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    block,
    cgroup_devices,
    cgroup_lines,
    cgroup_values,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import CgroupError

IO_MAX = "8:0 rbps=5 wbps=max riops=max wiops=7\n8:16 rbps=max wbps=9 riops=max wiops=max\n"
DEVICES = st.builds("{}:{}".format, st.integers(0, 4095), st.integers(0, 2**20 - 1))
LIMITS = st.one_of(st.just(-1), st.integers(1, 2**32 - 2))


@pytest.mark.parametrize(
    ("content", "address", "word"),
    [
        (IO_MAX, "8:0 rbps", "5"),
        (IO_MAX, "8:0 riops", "max"),
        (IO_MAX, "8:32 rbps", None),
        ("8:0 1048576\n", "8:0", "1048576"),
        ("", "8:0", None),
        ("default 100\n8:0 50\n", "default", "100"),
        ("8:16 target=75000\n", "8:16 target", "75000"),
    ],
)
def test_a_line_is_read(content: str, address: str, word: str | None) -> None:
    assert cgroup_lines.read(content, address) == word


@given(st.dictionaries(DEVICES, st.integers(1, 2**60), max_size=6), DEVICES, st.integers(1, 2**60))
def test_a_written_line_changes_no_other(lines: dict[str, int], device: str, value: int) -> None:
    content = "\n".join(f"{head} {number}" for head, number in lines.items())
    after = cgroup_lines.put(content, cgroup_lines.render(device, str(value)))
    for head, number in {**lines, device: value}.items():
        assert cgroup_lines.read(after, head) == str(number)


@given(st.text(max_size=60), st.text(max_size=20))
def test_no_content_breaks_reading_lines(content: str, address: str) -> None:
    cgroup_lines.read(content, address)
    cgroup_lines.heads(content)
    path, found = cgroup_lines.split_target(cgroup_lines.target("/a#b", address.replace("#", "")))
    assert (path, found) == ("/a#b", address.replace("#", ""))


@given(st.integers(1, 10000))
def test_bfq_has_what_systemd_writes(weight: int) -> None:
    bfq = cgroup_values.weight_to_bfq(weight)
    assert 1 <= bfq <= 1000
    assert cgroup_values.weight_to_bfq(cgroup_values.bfq_to_weight(bfq)) == bfq
    assert 0 <= weight - cgroup_values.bfq_to_weight(bfq) < 11


@pytest.mark.parametrize(
    ("weight", "bfq", "cfq"), [(1, 1, 10), (100, 100, 500), (200, 109, 1000), (10000, 1000, 1000), (50, 50, 250)]
)
def test_weights_of_io(weight: int, bfq: int, cfq: int) -> None:
    assert cgroup_values.weight_to_bfq(weight) == bfq
    assert cgroup_values.weight_to_cfq(weight) == cfq


def _expand(name: str, limits: Any) -> list[tuple[str, Any]]:
    found = cgroup_devices.expand(name, limits, "x", lambda device: device)
    return [(key.line, value) for key, value, _where in found]


@given(
    st.dictionaries(
        DEVICES,
        st.fixed_dictionaries({}, optional={name: LIMITS for name in ("rbps", "wiops")}).filter(bool),
        max_size=4,
    )
)
def test_limits_survive_the_way_to_the_files_and_back(limits: dict[str, dict[str, int]]) -> None:
    option = [{"device": device, **fields} for device, fields in limits.items()]
    for version in (1, 2):
        contents = {name: "" for name in cgroup_devices.names(version)}
        for key, value, _where in cgroup_devices.expand("io_max", option, "x", lambda device: device):
            file = key.file(version)
            assert file is not None
            contents[file.name] = file.after(file.render(value, contents[file.name]), contents[file.name])
            assert file.parse(contents[file.name]) == value
        shown = {
            entry["device"]: {name: value for name, value in entry.items() if name != "device"}
            for entry in cgroup_devices.present("io_max", version, contents)
        }
        wanted = {
            device: {name: value for name, value in fields.items() if value != -1} for device, fields in limits.items()
        }
        assert shown == {str(int(d.split(":")[0])) + ":" + d.split(":")[1]: f for d, f in wanted.items() if f}


def test_what_is_not_given_is_not_touched() -> None:
    assert _expand("io_max", [{"device": "8:0", "rbps": 5, "wbps": None}]) == [("8:0 rbps", 5)]
    assert _expand("io_max", []) == []


def test_a_device_that_is_refused_is_named_with_its_place() -> None:
    def refuse(device: str) -> str:
        raise block.BlockError(f"device {device}: is a partition")

    with pytest.raises(CgroupError, match=r"^x\[0\]: device 8:1: is a partition"):
        list(cgroup_devices.expand("io_max", [{"device": "8:1", "rbps": 5}], "x", refuse))


def test_latency_has_no_file_on_v1() -> None:
    assert cgroup_devices.key("io_latency", "8:0", "target_us").file(1) is None
