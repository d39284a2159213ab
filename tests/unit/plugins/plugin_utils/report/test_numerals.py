from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.plugin_utils.report import numerals
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Interval


@pytest.mark.parametrize(
    ("value_us", "text"),
    [(812.4, "0.812"), (2_304.0, "2.30"), (36_010.0, "36.0"), (104_300.0, "104"), (1_234_567.0, "1\u202f235")],
)
def test_three_digits_of_a_latency(value_us, text):
    assert numerals.millis(value_us, unit=False) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(3.27, "+3.3"), (-1.24, "\u22121.2"), (106.4, "+106"), (0.0, "0.0"), (-0.04, "0.0"), (99.7, "+100")],
)
def test_change_has_a_sign_unless_it_rounds_to_zero(value, text):
    assert numerals.signed(value) == text


def test_interval_has_the_same_digits_at_both_ends():
    assert numerals.change_span(Interval(60.0, 8.24, 120.4)) == "+8 to +120\u00a0%"
    assert numerals.change_span(Interval(1.0, -0.44, 3.06)) == "\u22120.4 to +3.1\u00a0%"


def test_missing_figure_is_a_dash_and_not_a_zero():
    for write in (numerals.plain, numerals.signed, numerals.percent, numerals.change, numerals.millis, numerals.share):
        assert write(None) == "\u2013"
    assert numerals.quantity(None, "%") == "no data"


def test_quantity_drops_zeros_behind_the_point_only():
    assert numerals.quantity(100.0, "%") == "100\u00a0%"
    assert numerals.quantity(0.2, "%") == "0.2\u00a0%"
    assert numerals.quantity(0.0, "errors") == "0\u00a0errors"


@given(st.floats(-1e9, 1e9))
def test_number_reads_back_within_its_digits(value):
    text = numerals.signed(value)
    read = float(text.replace("\u2212", "-").replace("\u202f", ""))
    assert read == pytest.approx(value, abs=0.5 if abs(value) >= 99.5 else 0.05000001)
    assert not text.startswith(("\u22120.0", "+0.0")) or read != 0
