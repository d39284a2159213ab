# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pressure files of old and new kernels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import psi


@given(st.integers(0, 2**63), st.integers(0, 2**63))
def test_both_lines(some_us, full_us):
    text = f"some avg10=0.00 avg60=1.00 total={some_us}\nfull avg10=0.00 avg60=0.00 total={full_us}\n"
    assert psi.parse(text) == {"some_us": some_us, "full_us": full_us}


def test_a_kernel_without_full_line_and_one_without_psi():
    assert psi.parse("some avg10=0.00 total=5\n") == {"some_us": 5, "full_us": None}
    assert psi.parse("") == {"some_us": None, "full_us": None}


@pytest.mark.parametrize("text", ["none total=1", "some avg10=0", "some total=x"])
def test_anything_else_is_refused(text):
    with pytest.raises(psi.PsiError, match=r"psi\.rst"):
        psi.parse(text)


def test_availability(tmp_path):
    assert not psi.is_available(str(tmp_path))
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure" / "cpu").write_text("some avg10=0.00 total=5\n")
    assert psi.is_available(str(tmp_path))
