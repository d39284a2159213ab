# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of kernel files: equal values are equal whatever the spelling, and any text is either understood or refused."""

from __future__ import annotations

import contextlib
import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cpu_mask, knob


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        (knob.CHOICE, "always [madvise] never\n", "madvise"),
        (knob.CHOICE, "[none]", "[none]"),
        (knob.CHOICE, "never", "never"),
        (knob.CHOICE, "always defer defer+madvise [madvise] never", "madvise"),
        (knob.WORDS, "4096\t131072\t6291456\n", "4096 131072 6291456"),
        (knob.WORDS, "  1 ", "1"),
        (knob.CPUS, "0,1,2,5\n", "0-2,5"),
        (knob.CPUS, "\n", ""),
        (knob.MASK, "00000001,00000003", "0-1,32"),
        (knob.MASK, "f", "0-3"),
        (knob.MASK, "00", ""),
    ],
)
def test_one_spelling_for_each_value(form, text, expected):
    assert knob.normal(form, text) == expected


@pytest.mark.parametrize(
    ("text", "written", "expected"),
    [
        ("always [madvise] never", "madvise", True),
        ("always [madvise] never", "never", False),
        ("4096\t131072 5", "4096 131072 5", True),
        ("1", "2", False),
        ("|/usr/bin/x [y] z", "|/usr/bin/x [y] z", True),
    ],
)
def test_what_a_written_value_looks_like(text, written, expected):
    assert knob.holds(text, written) is expected


def test_form_is_seen_in_the_text():
    assert knob.form_of("a [b] c") == knob.CHOICE
    assert [knob.form_of(text) for text in ("[b]", "[a] [b]", "a b", "", "x[1] y")] == [knob.WORDS] * 5


@pytest.mark.parametrize(("form", "text"), [(knob.MASK, "0x3"), (knob.MASK, ""), (knob.CPUS, "3-1"), (knob.CPUS, "a")])
def test_texts_that_are_no_cpus(form, text):
    with pytest.raises(knob.KnobError):
        knob.normal(form, text)


def test_a_refusal_says_which_file_what_and_why(tmp_path):
    path = tmp_path / "gone" / "file"
    assert knob.read(str(path)) is None
    with pytest.raises(knob.KnobError, match=r"gone/file: writing '1' failed: .*; run again\)") as caught:
        knob.write(str(path), "1")
    assert caught.value.number == errno.ENOENT
    with pytest.raises(knob.KnobError, match="reading failed: Is a directory"):
        knob.read(str(tmp_path))


@given(st.frozensets(st.integers(0, 8191), max_size=80))
def test_masks_are_read_as_written(cpus):
    text = cpu_mask.format_mask(cpus)
    assert cpu_mask.parse(text) == cpus
    assert all(len(group) == 8 for group in text.split(",")[1:])


@given(st.text(max_size=60))
def test_any_text_is_a_mask_or_refused(text):
    with contextlib.suppress(cpu_mask.CpuMaskError):
        assert cpu_mask.parse(cpu_mask.format_mask(cpu_mask.parse(text))) == cpu_mask.parse(text)


WORD = st.text(st.characters(min_codepoint=33, max_codepoint=126, blacklist_characters="[]"), min_size=1, max_size=12)


@given(st.lists(WORD, min_size=2, max_size=6, unique=True), st.data())
def test_the_chosen_one_is_found(words, data):
    index = data.draw(st.integers(0, len(words) - 1))
    text = " ".join(f"[{word}]" if number == index else word for number, word in enumerate(words))
    assert knob.chosen(text) == words[index]
    assert knob.choices(text) == tuple(words)
    assert knob.holds(text, knob.previous(knob.CHOICE, text))


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=4), st.sampled_from([" ", "\t", "   ", " \t"]))
def test_triples_do_not_depend_on_white_space(numbers, space):
    text = space.join(map(str, numbers))
    assert knob.normal(knob.WORDS, f"{text}\n") == " ".join(map(str, numbers))
    assert knob.holds(text, knob.normal(knob.WORDS, text))
