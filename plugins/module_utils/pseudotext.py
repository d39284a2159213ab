# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text that compresses about as well, and at about the same cost, as a page of a website.

A page of zeros or of one repeated sentence costs the compressor next to nothing, random bytes cost it the most and gain
nothing: neither makes requests like those of a real service. Here words, and phrases of them, are drawn by Zipf's law,
which gives the ratio of ordinary HTML (about 7 at level 4). The same size and seed give the same bytes on every host
and Python, because only random.random() is used, whose sequence the language guarantees for a seed.
"""

from __future__ import annotations

import bisect
import itertools
import random
from collections.abc import Callable, Sequence

_WORDS = 1000
_PHRASES = 400
_WORDS_PER_PHRASE = 5
_PHRASES_PER_LINE = 3
# Rough order of frequency in English; the product of two draws below prefers the front.
_LETTERS = "etaoinshrdlcumwfgypbvk"

Draw = Callable[[], float]


def generate(size_bytes: int, seed: int) -> bytes:
    """Return exactly ``size_bytes`` of ASCII text in lines; a longer text of a seed begins with a shorter one."""
    draw = random.Random(seed).random  # noqa: S311 - no secret: the same bytes are wanted everywhere
    words = [_word(draw) for _n in range(_WORDS)]
    word_weights = _zipf(_WORDS)
    phrases = [" ".join(_pick(words, word_weights, draw) for _n in range(_WORDS_PER_PHRASE)) for _n in range(_PHRASES)]
    phrase_weights = _zipf(_PHRASES)
    lines: list[str] = []
    size = 0
    while size < size_bytes:
        picked = (_pick(phrases, phrase_weights, draw) for _n in range(_PHRASES_PER_LINE))
        lines.append(f"<p>{', '.join(picked)}.</p>\n")
        size += len(lines[-1])
    return "".join(lines).encode("ascii")[:size_bytes]


def _zipf(ranks: int) -> list[float]:
    """Return cumulated weights 1/rank."""
    return list(itertools.accumulate(1.0 / rank for rank in range(1, ranks + 1)))


def _pick(items: Sequence[str], cumulated: Sequence[float], draw: Draw) -> str:
    return items[bisect.bisect_left(cumulated, draw() * cumulated[-1])]


def _word(draw: Draw) -> str:
    length = 2 + int(draw() * 4) + int(draw() * 5)
    return "".join(_LETTERS[int(draw() * draw() * len(_LETTERS))] for _n in range(length))
