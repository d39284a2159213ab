# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's command line, read as the kernel reads it, and what may be added to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.boot import cmdline, grub
from ansible_collections.colocation.testbed.plugins.module_utils.boot.cmdline import Argument, CmdlineError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("quiet  ro\n", [("quiet", None), ("ro", None)]),
        ("root=UUID=1-2 a=", [("root", "UUID=1-2"), ("a", "")]),
        ('dyndbg="file x +p" b', [("dyndbg", "file x +p"), ("b", None)]),
        ('"dyndbg=file x +p" b', [("dyndbg", "file x +p"), ("b", None)]),
        ("isolcpus=1 -- isolcpus=2 --flag", [("isolcpus", "1")]),
        ('open="to the end', [("open", "to the end")]),
    ],
)
def test_words_are_split_as_the_kernel_does(text, expected):
    assert [(argument.name, argument.value) for argument in cmdline.parse(text)] == expected


def test_dashes_and_underscores_are_the_same():
    assert cmdline.values(cmdline.parse("intel-iommu=on x intel_iommu=off"), "intel_iommu") == ["on", "off"]


@pytest.mark.parametrize(
    ("line", "argument", "expected"),
    [
        ("isolcpus=1 isolcpus=2", Argument("isolcpus", "2"), True),
        ("isolcpus=2 isolcpus=1", Argument("isolcpus", "2"), False),
        ("quiet", Argument("quiet", None), True),
        ("quiet=1", Argument("quiet", None), False),
        ("", Argument("quiet", None), False),
        ("rdt=l3cat rdt=mba,cmt", Argument("rdt", "mba,l3cat"), True),
        ("rdt=l3cat rdt=!l3cat", Argument("rdt", "l3cat"), False),
        ("rdt=cmt", Argument("rdt", "!l3cat"), False),
    ],
)
def test_what_counts_as_there(line, argument, expected):
    assert cmdline.satisfied(cmdline.parse(line), argument) is expected


def test_lists_are_merged_and_others_replaced():
    assert cmdline.merged("rdt", "l3cat,mba", "cmt,!mba") == "l3cat,!mba,cmt"
    assert cmdline.merged("rdt", None, "cmt") == "cmt"
    assert cmdline.merged("isolcpus", "1", "2") == "2"


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        (Argument("a b", None), "is not the name of an argument"),
        (Argument("a=b", "c"), "write it without '='"),
        (Argument("init", "/bin/sh"), "decides whether this host comes up"),
        (Argument("x", "a b"), "boot loaders do not pass this on unchanged"),
        (Argument("x", "$(reboot)"), "boot loaders do not pass this on unchanged"),
        (Argument("x", '"'), "boot loaders do not pass this on unchanged"),
        (Argument("x", ""), "or leave value out"),
        (Argument("isolcpus", "1-9"), "CPU 2-9 asked for, but this machine has 0-1"),
        (Argument("isolcpus", "0-1"), "leaves no CPU for the host itself"),
        (Argument("isolcpus", "domain"), "names no CPU"),
        (Argument("isolcpus", "managed_irq,domain,x"), "is not a CPU list"),
        (Argument("nohz_full", "1,a"), "is not a CPU list"),
        (Argument("rcu_nocbs", None), "names no CPU"),
    ],
)
def test_refused_arguments(tmp_path, argument, words):
    (tmp_path / "devices/system/cpu").mkdir(parents=True)
    (tmp_path / "devices/system/cpu/online").write_text("0-1\n")
    with pytest.raises(CmdlineError) as caught:
        cmdline.check(argument, str(tmp_path))
    assert words in str(caught.value)


@pytest.mark.parametrize("value", ["1", "managed_irq,domain,1", "nohz,1"])
def test_allowed_isolated_cpus(tmp_path, value):
    (tmp_path / "devices/system/cpu").mkdir(parents=True)
    (tmp_path / "devices/system/cpu/online").write_text("0-1\n")
    cmdline.check(Argument("isolcpus", value), str(tmp_path))


NAME = st.from_regex(r"[a-z][a-z0-9_.-]{0,10}", fullmatch=True)
VALUE = st.none() | st.from_regex(r"[A-Za-z0-9_.,:/@%+!=~^-]{1,12}", fullmatch=True)


@given(st.lists(st.builds(Argument, NAME, VALUE), min_size=1, max_size=6))
def test_what_is_rendered_is_read_again(arguments):
    assert cmdline.parse(" ".join(map(str, arguments))) == tuple(arguments)
    text = grub.render(arguments)
    assert cmdline.parse(grub._ASSIGNMENT.findall(text)[0]) == tuple(arguments)


@given(st.text(max_size=100))
def test_any_text_is_some_command_line(text):
    for argument in cmdline.parse(text):
        assert "=" not in argument.name or argument.value is not None


@given(NAME, st.text(st.characters(blacklist_characters='"', blacklist_categories=("Cs",)), max_size=20))
def test_quotes_protect_spaces(name, value):
    assert cmdline.parse(f'{name}="{value}" x')[0] == Argument(name, value)
