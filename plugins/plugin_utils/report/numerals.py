# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write numbers as a reader wants them: three sensible digits, a unit, a true minus sign."""

from __future__ import annotations

from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Interval

NBSP = "\u00a0"
MINUS = "\u2212"
NONE = "\u2013"


def digits_for(value: float, most: int = 3) -> int:
    """Decimals that leave about three significant digits (2.30, 36.0, 104), at most ``most``."""
    size = abs(value)
    if size >= 100:
        return 0
    if size >= 10:
        return min(1, most)
    if size >= 1:
        return min(2, most)
    return most


def plain(value: float | None, decimals: int | None = None) -> str:
    """Write a number without a unit; a missing one is an en dash."""
    if value is None:
        return NONE
    places = digits_for(value) if decimals is None else decimals
    text = f"{abs(value):,.{places}f}"
    negative = value < 0 and any(char in "123456789" for char in text)
    return (MINUS if negative else "") + text.replace(",", "\u202f")


def signed(value: float | None, decimals: int | None = None) -> str:
    """Write a change with its sign; zero after rounding has none."""
    if value is None:
        return NONE
    text = plain(value, change_decimals(value) if decimals is None else decimals)
    if text.startswith(MINUS) or not any(char in "123456789" for char in text):
        return text
    return "+" + text


def change_decimals(value: float) -> int:
    """Decimals of a change in per cent: +3.3, +106."""
    return 0 if abs(value) >= 99.5 else 1


def percent(value: float | None, decimals: int = 1) -> str:
    """Write a share in per cent."""
    return NONE if value is None else plain(value, decimals) + NBSP + "%"


def change(value: float | None) -> str:
    """Write a change in per cent with its sign."""
    return NONE if value is None else signed(value) + NBSP + "%"


def millis(value_us: float | None, unit: bool = True) -> str:
    """Write microseconds as milliseconds."""
    if value_us is None:
        return NONE
    return plain(value_us / 1000.0) + (NBSP + "ms" if unit else "")


def span(low: float | None, high: float | None, decimals: int) -> str:
    """Write an interval with signs; "to" because a dash beside a minus sign cannot be read."""
    if low is None or high is None:
        return NONE
    return f"{signed(low, decimals)} to {signed(high, decimals)}"


def change_span(interval: Interval | None) -> str:
    """Write the interval of a change in per cent."""
    if interval is None or interval.low is None or interval.high is None:
        return NONE
    decimals = max(change_decimals(interval.low), change_decimals(interval.high))
    if max(abs(interval.low), abs(interval.high)) >= 99.5:
        decimals = 0
    return span(interval.low, interval.high, decimals) + NBSP + "%"


def millis_span(low_us: float | None, high_us: float | None) -> str:
    """Write an interval of times in milliseconds."""
    if low_us is None or high_us is None:
        return NONE
    places = digits_for(high_us / 1000.0)
    return f"{plain(low_us / 1000.0, places)} to {plain(high_us / 1000.0, places)}"


def plain_span(low: float | None, high: float | None, decimals: int | None = None) -> str:
    """Write an interval of plain numbers."""
    if low is None or high is None:
        return NONE
    places = digits_for(high, 1) if decimals is None else decimals
    return f"{plain(low, places)} to {plain(high, places)}"


def mebibytes(value_bytes: float | None) -> str:
    """Write bytes as MiB or GiB."""
    if value_bytes is None:
        return NONE
    mib = value_bytes / 1048576.0
    return f"{plain(mib / 1024.0, 1)}{NBSP}GiB" if mib >= 1024 else f"{plain(mib, 0)}{NBSP}MiB"


def seconds(value_s: float | None) -> str:
    """Write a duration in seconds without superfluous zeros."""
    return NONE if value_s is None else f"{value_s:g}{NBSP}s"


def share(value: float | None) -> str:
    """Write a share of the peak load (0.25) in per cent."""
    return NONE if value is None else f"{value * 100:g}{NBSP}%"


def quantity(value: float | None, unit: str) -> str:
    """Write a number with whatever unit it has."""
    if value is None:
        return "no data"
    text = plain(value)
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text + (NBSP + unit if unit else "")
