# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long windows are, and how long a run takes: pure functions, so that it can be said before anything starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment import manifest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.settings import (
        BandwidthSettings,
    )

#: What a measurement takes beyond warm-up and window until the first one tells, in seconds.
OVERHEAD_GUESS_S = 4.0
CAPACITY_WINDOW_S = 1.0
CAPACITY_WARMUP_S = 0.5
#: The kernel keeps 64 changes of the waterline; a window with bursts holds no more than this many of them.
MOST_EVENTS = 48


def window_s(case: Mapping[str, Any], shortest_s: float) -> float:
    """Return the length of a case's window in seconds.

    Longer where the case needs it, shorter where bursts would change more than the kernel remembers.
    """
    pauses = [item["bursts"] for item in case["classes"].values() if item["bursts"]]
    periods_s = [float(bursts["on_s"]) + float(bursts["off_s"]) for bursts in pauses]
    wanted_s = max(shortest_s, float(case["window_s"] or 0.0))
    return min([wanted_s, *(MOST_EVENTS / 2 * period_s for period_s in periods_s)])


def needs_capacity(case: Mapping[str, Any]) -> bool:
    """Tell whether what the senders of a case can do has to be measured beforehand, since no cell of its own tells."""
    return "none" not in case["shapers"] or any(item["offered_bps"] for item in case["classes"].values())


def windows(scenarios: Mapping[str, Any], blocks: int) -> int:
    """Return the number of windows that a run measures at least."""
    return sum(cell["blocks"] for cell in manifest.cells(scenarios, blocks))


def run_s(scenarios: Mapping[str, Any], settings: BandwidthSettings) -> float:
    """Return about how many seconds a run takes without repeats."""
    total_s = 0.0
    for scenario in scenarios.values():
        for case in scenario["cases"].values():
            number = len(case["shapers"]) * settings.blocks * case["block_factor"]
            total_s += number * (settings.warmup_s + window_s(case, settings.window_s) + OVERHEAD_GUESS_S)
            total_s += needs_capacity(case) * (CAPACITY_WARMUP_S + CAPACITY_WINDOW_S + OVERHEAD_GUESS_S)
    return total_s


def told(scenarios: Mapping[str, Any], settings: BandwidthSettings) -> str:
    """Say how much is measured, and how long that takes."""
    minutes = max(1, round(run_s(scenarios, settings) / 60))
    return f"{windows(scenarios, settings.blocks)} windows, about {minutes} min; windows that are repeated come on top"
