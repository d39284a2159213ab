# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guards on a run as a whole: do the baselines agree, and is any result too good to be true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import limits, statistics
from ansible_collections.colocation.testbed.plugins.module_utils.measure.effects import TOO_GOOD_METRICS, Effect
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import GuardResult


def baseline_spread(repeats: Mapping[float, Sequence[float]], overrides: Mapping[str, Any]) -> GuardResult:
    """Compare the baseline's own repeats with each other.

    :param repeats: P90 of every counted baseline measurement in µs, by load point.
    """
    spreads = {point: statistics.spread_pct(values) for point, values in repeats.items()}
    known = {point: spread for point, spread in spreads.items() if spread is not None}
    if not spreads or len(known) < len(spreads):
        text = "fewer than two baseline repeats at a load point: their spread is unknown"
        return limits.result("baseline_spread", overrides, None, text)
    point = max(known, key=lambda item: known[item])
    text = f"P90 of {len(repeats[point])} repeats spreads over {known[point]:.1f} % at load point {point:g}"
    return limits.result("baseline_spread", overrides, known[point], text)


def too_good(found: Sequence[tuple[str, Effect]], overrides: Mapping[str, Any]) -> GuardResult:
    """Look for a colocated mode whose latency interval ends below the baseline.

    :param found: (mode, effect) of every colocated mode.
    """
    usable = [
        (mode, effect, effect.change)
        for mode, effect in found
        if effect.metric in TOO_GOOD_METRICS and effect.change is not None and effect.blocks >= statistics.MIN_BLOCKS
    ]
    if not usable:
        text = f"no colocated mode has {statistics.MIN_BLOCKS} blocks to compare"
        return limits.result("too_good", overrides, None, text)
    mode, effect, change = min(usable, key=lambda item: item[2].high)
    figure = max(0.0, -change.high)
    name = effect.metric[:-3].upper()
    if not figure:
        return limits.result("too_good", overrides, 0.0, "no colocated mode is quicker than the baseline beyond noise")
    text = f"{mode}: {name} is {change.value:+.1f} % ({change.low:+.1f} to {change.high:+.1f}) against the baseline"
    return limits.result("too_good", overrides, figure, text)


def is_too_good(effect: Effect, overrides: Mapping[str, Any]) -> bool:
    """Return whether this effect alone trips the guard."""
    result = too_good([("", effect)], overrides)
    return result.figure is not None and not result.ok
