# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a mounted resctrl means for a policy's percentages."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl import (
    Bandwidth,
    Cache,
    Group,
    Info,
    State,
    parse_schemata,
)
from ansible_collections.colocation.testbed.plugins.module_utils.node_policy import facts
from ansible_collections.colocation.testbed.plugins.module_utils.policy import node

INTEL = Info(Cache(0xFFF, 2, 16, 0, False), Bandwidth(10, 10, 8, True), (), None, 8, False, False)
AMD = replace(INTEL, bandwidth=Bandwidth(1, 1, 16, False))


def state(info: Info, schemata: str = "L3:0=fff\nMB:0=2048;1=2048") -> State:
    root = Group("", "/r", "shareable", parse_schemata(schemata), frozenset(), {})
    return State("/r", "resctrl", (), info, {"": root})


def test_percentages_on_intel_and_amd() -> None:
    assert facts.cache(state(INTEL)) == node.Cache(0xFFF, 2, "intel", 100, 10, 10)
    assert facts.cache(state(AMD)) == node.Cache(0xFFF, 2, "amd", 2048, 1, 1)


def test_what_is_missing_is_told_as_missing() -> None:
    assert facts.cache(None) is None
    assert facts.cache(state(replace(INTEL, cache=None, bandwidth=None))) == node.Cache()
    assert facts.cache(state(replace(INTEL, mba_mbps=True))) == node.Cache(0xFFF, 2)
    assert facts.cache(state(AMD, "L3:0=fff")) == node.Cache(0xFFF, 2, "amd", None, 1, 1)
