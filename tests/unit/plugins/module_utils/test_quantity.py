# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils import quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("70k", 70_000),
        ("22Gi", 22 * 2**30),
        ("1500m", Fraction(3, 2)),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("12", 12),
        (12, 12),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("-1", -1),
        ("100n", Fraction(1, 10**7)),
        ("1e-3", Fraction(1, 1000)),
        ("0.1", Fraction(1, 10)),
    ],
)
def test_quantities_are_exact(text: str | int, value: Fraction) -> None:
    assert quantity.parse(text) == value


@pytest.mark.parametrize(
    ("call", "value", "words"),
    [
        (quantity.parse, "", "not a quantity"),
        (quantity.parse, "1 Gi", "without a space"),
        (quantity.parse, "1K", "write k (1000) or Ki (1024)"),
        (quantity.parse, "1GB", "'GB' is not a suffix"),
        (quantity.parse, "1e999", "exponent is beyond"),
        (quantity.parse, "1.5.2", "not a quantity"),
        (quantity.parse, "1\n", "not a quantity"),
        (quantity.parse, "9" * 100, "too long"),
        (quantity.parse, 1.5, "floating-point number"),
        (quantity.parse, True, "is a bool"),
        (quantity.parse, None, "is nothing"),
        (quantity.parse_cpu_milli, "0.5m", "finer than 1m"),
        (quantity.parse_cpu_milli, "-1", "negative"),
        (quantity.parse_batch_cpu_milli, "1.5", "whole number of milli-cores"),
        (quantity.parse_batch_cpu_milli, "500m", "whole number of milli-cores"),
        (quantity.parse_batch_cpu_milli, "-70k", "negative"),
        (quantity.parse_batch_cpu_milli, 70.0, "floating-point number"),
        (quantity.parse_batch_cpu_milli, "22Gi", "for memory"),
        (quantity.parse, "0x10", "not a quantity"),
        (quantity.parse, "1_000", "not a quantity"),
        (quantity.parse, "\uff11", "not a quantity"),
        (quantity.parse, "nan", "not a quantity"),
        (quantity.parse, "1e", "is not a suffix"),
        (quantity.parse_cpu_milli, "1Gi", "for memory"),
        (quantity.parse_bytes, "100m", "thousandth of a byte"),
        (quantity.parse_bytes, "1.1", "whole number of bytes"),
        (quantity.parse_percent, "101", "between 0 and 100"),
        (quantity.parse_percent, "5 %%", "not a percentage"),
        (quantity.parse_percent, "5Mi", "not a percentage"),
        (quantity.parse_bit_rate, "100", "no unit"),
        (quantity.parse_bit_rate, "100Mbps", "not Mbps"),
        (quantity.parse_bit_rate, "1mbit/s", "no unit"),
        (quantity.parse_byte_rate, "7bit/s", "whole number of bytes per second"),
        (quantity.parse_duration_ns, "10", "not a duration"),
        (quantity.parse_duration_ns, "10s5", "not a duration"),
        (quantity.parse_duration_us, "1ns", "whole number of microseconds"),
        (quantity.parse_cpu_list, "3-0", "ascending"),
        (quantity.parse_cpu_list, "0,", "not a CPU list"),
        (quantity.parse_cpu_list, "0-7:2/4", "not a CPU list"),
        (quantity.parse_cpu_list, "0-99999", "up to 8191"),
        (quantity.parse_cpu_list, "a", "not a CPU list"),
    ],
)
def test_ambiguous_input_gets_a_sentence(call, value, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(quantity.QuantityError) as caught:
        call(value)
    assert words in str(caught.value)
    assert "write" in str(caught.value)


@pytest.mark.parametrize(
    ("call", "text", "value"),
    [
        (quantity.parse_cpu_milli, "500m", 500),
        (quantity.parse_cpu_milli, "0.5", 500),
        (quantity.parse_cpu_milli, 2, 2000),
        (quantity.parse_batch_cpu_milli, "70k", 70_000),
        (quantity.parse_batch_cpu_milli, "2", 2),
        (quantity.parse_batch_cpu_milli, "1e3", 1000),
        (quantity.parse_batch_cpu_milli, 71680, 71_680),
        (quantity.parse_cpu_milli, "1500m", 1500),
        (quantity.parse_cpu_milli, "5m", 5),
        (quantity.parse_cpu_milli, "0", 0),
        (quantity.parse_bytes, "22Gi", 23_622_320_128),
        (quantity.parse_bytes, "1e3", 1000),
        (quantity.parse_bytes, "128Gi", 137_438_953_472),
        (quantity.parse_bytes, "0.5Ki", 512),
        (quantity.parse_percent, "99.5%", Fraction(199, 2)),
        (quantity.parse_percent, 45, 45),
        (quantity.parse_bit_rate, "100Mbit/s", 100_000_000),
        (quantity.parse_bit_rate, "1.5Gbit/s", 1_500_000_000),
        (quantity.parse_bit_rate, "12MB/s", 96_000_000),
        (quantity.parse_bit_rate, "1KiB/s", 8192),
        (quantity.parse_byte_rate, "8Mbit/s", 1_000_000),
        (quantity.parse_duration_us, "100us", 100),
        (quantity.parse_duration_us, "1m30s", 90_000_000),
        (quantity.parse_duration_ns, "1.5h", 5400 * 10**9),
        (quantity.parse_cpu_list, "0-3,8", (0, 1, 2, 3, 8)),
        (quantity.parse_cpu_list, "8,0-1,1\n", (0, 1, 8)),
        (quantity.parse_cpu_list, "", ()),
        (quantity.parse_cpu_list, 3, (3,)),
    ],
)
def test_units(call, text, value) -> None:  # type: ignore[no-untyped-def]
    assert call(text) == value


@given(st.sets(st.integers(0, quantity.MAX_CPU), max_size=40))
def test_cpu_lists_survive_a_round_trip(cpus: set[int]) -> None:
    assert quantity.parse_cpu_list(quantity.format_cpu_list(cpus)) == tuple(sorted(cpus))


@given(st.integers(0, 10**15), st.sampled_from(["", "k", "M", "Ki", "Gi", "m", "u", "n"]))
def test_quantity_equals_its_definition(number: int, suffix: str) -> None:
    factors = {"": 1, "k": 1000, "M": 10**6, "Ki": 1024, "Gi": 2**30, "m": Fraction(1, 1000)}
    factors |= {"u": Fraction(1, 10**6), "n": Fraction(1, 10**9)}
    assert quantity.parse(f"{number}{suffix}") == number * factors[suffix]


@given(st.text(max_size=30))
def test_no_text_breaks_the_parsers(text: str) -> None:
    for call in (
        quantity.parse,
        quantity.parse_cpu_milli,
        quantity.parse_bytes,
        quantity.parse_percent,
        quantity.parse_bit_rate,
        quantity.parse_duration_ns,
        quantity.parse_cpu_list,
        quantity.parse_batch_cpu_milli,
        quantity.parse_byte_rate,
        quantity.parse_duration_us,
    ):
        with contextlib.suppress(quantity.QuantityError):
            call(text)


@given(st.decimals(0, 10**6, places=6))
def test_decimal_digits_are_not_rounded(number) -> None:  # type: ignore[no-untyped-def]
    assert quantity.parse(f"{number:f}") == Fraction(number)


class TaggedInt(int):
    """What Ansible makes of a number in YAML."""


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "a bool"),
        (TaggedInt(3), "a whole number"),
        (2.5, "a floating-point number"),
        ("x", "a text"),
        ((1,), "a list"),
        ({"a": 1}, "a mapping"),
        (None, "nothing"),
        (object(), "something else"),
    ],
)
def test_kinds_are_called_as_in_yaml(value: object, kind: str) -> None:
    assert quantity.kind_of(value) == kind
