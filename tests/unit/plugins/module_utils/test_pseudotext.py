"""Generated text: the same everywhere, of the size asked for, and as compressible as a page of a website."""

from __future__ import annotations

import hashlib
import zlib

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils import pseudotext

PAGE_SHA256 = "10e737cc94ffadd0a97c038be2b25c6df6e73c3c0e4bcc5dc4e2466fbdb4053b"


def test_the_same_bytes_on_every_host_and_python():
    assert hashlib.sha256(pseudotext.generate(72_000, 1)).hexdigest() == PAGE_SHA256


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 5_000), st.integers(0, 5_000), st.integers(0, 2**31))
def test_size_and_beginning(one, other, seed):
    shorter, longer = (pseudotext.generate(size, seed) for size in sorted((one, other)))
    assert (len(shorter), len(longer)) == tuple(sorted((one, other)))
    assert longer.startswith(shorter)
    assert longer.isascii()


def test_another_seed_gives_another_text():
    assert pseudotext.generate(1_000, 1) != pseudotext.generate(1_000, 2)


def test_compresses_like_a_page():
    text = pseudotext.generate(72_000, 1)
    ratio = len(text) / len(zlib.compress(text, 4))
    assert 5 < ratio < 12


def test_a_longer_page_compresses_as_well():
    ratios = [size / len(zlib.compress(pseudotext.generate(size, 1), 4)) for size in (72_000, 89_800)]
    assert abs(ratios[1] / ratios[0] - 1) < 0.05, "otherwise a slow page would not cost what its size says"
