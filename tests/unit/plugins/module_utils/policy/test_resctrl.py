# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.policy import resctrl

RANGES = ((0, 30), (30, 100), (10, 80))


@pytest.mark.parametrize(
    ("root", "masks"),
    [
        (0xFF, ("7", "f8", "7e")),
        (0x3FF, ("7", "3f8", "fe")),
        (0x7FF, ("f", "7f0", "1fc")),
        (0xFFF, ("f", "ff0", "3fc")),
        (0xFFFF, ("1f", "ffe0", "1ffc")),
        (0xFFFFF, ("3f", "fffc0", "fffc")),
    ],
)
def test_masks_are_koordinators(root: int, masks: tuple[str, ...]) -> None:
    assert tuple(f"{resctrl.cat_mask(root, *pair):x}" for pair in RANGES) == masks


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0xF, 10, 20), "is 0 of 4 ways"),
        ((0xFF, 0, 10, 2), "is 1 of 8 ways, and this host takes no fewer than 2"),
        ((0xFF, 30, 30), "is no range"),
        ((0xFF, 0, 130), "is no range"),
        ((0xFF, -1, 30), "is no range"),
        ((0xF0, 0, 30), "not contiguous from bit 0"),
        ((0x5, 0, 30), "not contiguous from bit 0"),
        ((0, 0, 30), "not contiguous from bit 0"),
    ],
)
def test_ranges_without_a_mask_are_refused(arguments: tuple[int, ...], words: str) -> None:
    with pytest.raises(resctrl.ResctrlPolicyError, match=words):
        resctrl.cat_mask(*arguments)


@pytest.mark.parametrize(("percent", "value"), [(1, 10), (10, 10), (11, 20), (55, 60), (91, 100), (100, 100)])
def test_bandwidth_on_intel(percent: int, value: int) -> None:
    assert resctrl.mba_value(percent, resctrl.INTEL) == value


@pytest.mark.parametrize(("percent", "value"), [(1, 1), (10, 16), (50, 80), (99, 158), (100, 2048)])
def test_bandwidth_on_amd(percent: int, value: int) -> None:
    assert resctrl.mba_value(percent, resctrl.AMD, 2048, 1, 1) == value


@pytest.mark.parametrize(("percent", "vendor"), [(0, "intel"), (101, "intel"), (50, "arm")])
def test_bandwidth_without_meaning_is_refused(percent: int, vendor: str) -> None:
    with pytest.raises(resctrl.ResctrlPolicyError, match="memory bandwidth"):
        resctrl.mba_value(percent, vendor)


@given(st.integers(1, 32), st.integers(0, 100), st.integers(0, 100), st.integers(1, 4))
def test_masks_are_contiguous_inside_the_root_and_wide_enough(ways: int, start: int, end: int, least: int) -> None:
    root = (1 << ways) - 1
    try:
        mask = resctrl.cat_mask(root, start, end, least)
    except resctrl.ResctrlPolicyError:
        return
    assert resctrl.contiguous(mask)
    assert mask & root == mask
    assert bin(mask).count("1") >= least


@given(st.integers(1, 32), st.integers(1, 99))
def test_two_ranges_that_meet_share_no_way_and_leave_none(ways: int, border: int) -> None:
    root = (1 << ways) - 1
    try:
        low, high = resctrl.cat_mask(root, 0, border), resctrl.cat_mask(root, border, 100)
    except resctrl.ResctrlPolicyError:
        return
    assert (low & high, low | high) == (0, root)


@given(st.sampled_from([resctrl.INTEL, resctrl.AMD]), st.integers(1, 99))
def test_more_percent_is_never_less_bandwidth(vendor: str, percent: int) -> None:
    assert resctrl.mba_value(percent, vendor) <= resctrl.mba_value(percent + 1, vendor)
