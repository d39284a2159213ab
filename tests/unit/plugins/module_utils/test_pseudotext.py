"""Generated text: the same everywhere, of the size asked for, and as compressible as a page of a website."""

from __future__ import annotations

import hashlib
import zlib

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils import pseudotext

PAGE_SHA256 = "4771d1a7e05e9f0eab7c4a667d6e1fa1ba9f4680118e8cdac535a113baa304f3"


def test_the_same_bytes_on_every_host_and_python():
    assert hashlib.sha256(pseudotext.generate(83_000, 1)).hexdigest() == PAGE_SHA256


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
    text = pseudotext.generate(83_000, 1)
    ratio = len(text) / len(zlib.compress(text, 4))
    assert 5 < ratio < 12


def test_a_longer_page_compresses_as_well():
    ratios = [size / len(zlib.compress(pseudotext.generate(size, 1), 4)) for size in (83_000, 101_600)]
    assert abs(ratios[1] / ratios[0] - 1) < 0.05, "otherwise a slow page would not cost what its size says"
