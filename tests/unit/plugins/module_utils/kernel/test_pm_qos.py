# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The latency constraint, with a file in the device's place; tests/kernel has the real one."""

from __future__ import annotations

import os
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import pm_qos


@given(st.integers(-(2**31), 2**31 - 1))
def test_decodes_a_signed_number(value):
    assert pm_qos.decode(struct.pack("=i", value)) == value


@pytest.mark.parametrize("raw", [b"", b"\0\0\0", b"0x00000000"])
def test_other_lengths_are_refused(raw):
    with pytest.raises(pm_qos.PmQosError, match="not 4"):
        pm_qos.decode(raw)


def test_hold_writes_and_verifies(tmp_path):
    device = tmp_path / "cpu_dma_latency"
    device.write_bytes(struct.pack("=i", pm_qos.DEFAULT_US))
    assert pm_qos.read_effective_us(str(device)) == pm_qos.DEFAULT_US
    fd = pm_qos.hold(0, str(device))
    try:
        assert pm_qos.read_effective_us(str(device)) == 0
    finally:
        os.close(fd)


def test_missing_device(tmp_path):
    assert pm_qos.read_effective_us(str(tmp_path / "none")) is None
    with pytest.raises(pm_qos.PmQosError, match="CONFIG_CPU_IDLE"):
        pm_qos.hold(0, str(tmp_path / "none"))


def test_a_device_that_ignores_the_request(monkeypatch, tmp_path):
    device = tmp_path / "cpu_dma_latency"
    device.write_bytes(b"")
    monkeypatch.setattr(os, "pread", lambda *_: struct.pack("=i", 55))
    with pytest.raises(pm_qos.PmQosError, match="still 55"):
        pm_qos.hold(0, str(device))
