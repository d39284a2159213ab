# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of sysctls and files of sysctl.d."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import sysctl


@pytest.mark.parametrize(
    ("name", "path", "shown"),
    [
        ("vm.swappiness", "vm/swappiness", "vm.swappiness"),
        ("vm/swappiness", "vm/swappiness", "vm.swappiness"),
        ("net.ipv4.conf.eth0/100.rp_filter", "net/ipv4/conf/eth0.100/rp_filter", "net/ipv4/conf/eth0.100/rp_filter"),
        ("net/ipv4/conf/eth0.100/rp_filter", "net/ipv4/conf/eth0.100/rp_filter", "net/ipv4/conf/eth0.100/rp_filter"),
    ],
)
def test_both_spellings_of_a_name(name, path, shown):
    assert sysctl.path(name, "/proc") == f"/proc/sys/{path}"
    assert sysctl.canonical(name) == shown


@pytest.mark.parametrize("name", ["", "vm", ".", "vm..x", "/vm/x", "vm/../x", "vm.a b", "vm.x\n", "vm.x=1", "a/./b"])
def test_what_is_no_name(name):
    with pytest.raises(sysctl.SysctlError, match=re.escape("write it like 'vm.swappiness'")):
        sysctl.components(name)


def test_files_are_read_as_sysctl_does():
    text = "# vm.a = 1\n; vm.a = 2\n\nvm.b=3\n -vm/c =  4\t5 \n-vm.d\nnet.ipv4.conf.*.x = 1\nvm.b = 6\nnonsense\n"
    assert list(sysctl.assignments(text)) == [("vm.b", "3"), ("vm.c", "4 5"), ("vm.b", "6")]


def test_pairs_point_at_each_other():
    assert all(sysctl.PARTNER[other] == name for name, other in sysctl.PARTNER.items())


PART = st.from_regex(r"[a-z0-9_][a-z0-9_-]{0,7}", fullmatch=True)
NAME = st.lists(PART, min_size=2, max_size=4).map(".".join)
VALUE = st.lists(st.from_regex(r"[!-~]{1,8}", fullmatch=True), min_size=1, max_size=3).map(" ".join)


@given(st.dictionaries(NAME, VALUE, max_size=6))
def test_what_is_rendered_is_read_again(values):
    assert dict(sysctl.assignments(sysctl.render(sorted(values.items())))) == {
        sysctl.canonical(name): value for name, value in values.items()
    }


@given(st.text(max_size=120))
def test_any_text_is_a_file_of_some_assignments(text):
    for name, _value in sysctl.assignments(text):
        assert sysctl.canonical(name) == name


@given(st.text(max_size=40))
def test_no_name_leaves_the_directory(name):
    with contextlib.suppress(sysctl.SysctlError):
        path = sysctl.path(name, "/proc")
        assert path.startswith("/proc/sys/")
        assert not {"..", ".", ""} & set(path[1:].split("/"))
