# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""/proc/swaps, and what is asked of swapon and swapoff."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import swap

HEAD = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"


def test_areas_by_falling_priority():
    text = f"{HEAD}/swap\\040file file 512 1 -3\n/dev/vdb partition 1024 0 5\n"
    assert swap.parse(text) == (swap.Area("/dev/vdb", 2**20, 0, 5), swap.Area("/swap file", 2**19, 1024, -3))
    assert swap.parse(HEAD) == swap.parse("") == ()


def test_a_host_without_swap_support(tmp_path):
    assert swap.areas(str(tmp_path)) == ()


def test_a_line_that_is_not_understood():
    with pytest.raises(swap.SwapError, match="'/dev/x what' is not understood"):
        swap.parse(f"{HEAD}/dev/x what\n")


@pytest.mark.parametrize(("priority", "words"), [(None, []), (-2, []), (0, ["-p", "0"]), (7, ["-p", "7"])])
def test_a_priority_of_the_kernels_choice_is_not_asked_for(priority, words):
    calls = []
    swap.switch_on("/dev/vdb", priority, lambda argv, **_options: calls.append(argv))
    assert calls == [["swapon", *words, "/dev/vdb"]]


def test_a_refusal_names_the_area():
    def refuse(argv, **_options):
        raise commands.CommandError(f"{argv[0]}: ended with status 255: Invalid argument")

    for switch in (swap.switch_off, lambda path, run: swap.switch_on(path, None, run)):
        with pytest.raises(swap.SwapError, match=r"swap /dev/vdb: swapo.* Invalid argument"):
            switch("/dev/vdb", refuse)


@given(st.text(max_size=120))
def test_any_text_is_a_list_or_refused(text):
    with contextlib.suppress(swap.SwapError):
        assert all(area.size_bytes is not None for area in swap.parse(text))
