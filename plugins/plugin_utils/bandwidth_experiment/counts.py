# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the counter of a receiving host has brought home, and what follows from it for a window: pure functions."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

INTERVAL_S = 0.1
#: A rate counts as settled from where its mean over this time is no further than this beyond a bound.
SETTLE_MEAN_S = 0.010
SETTLE_PCT = 15.0


class CountsError(Exception):
    """What was counted is not enough for a window; the text says what is missing and what to do."""


@dataclass(frozen=True)
class Window:
    """A window by the monotonic clock of the host that counts."""

    start_s: float
    end_s: float


@dataclass(frozen=True)
class Counts:
    """Cumulative bytes of each class at each reading, moments on the counting host's monotonic clock."""

    mono_s: tuple[float, ...]
    wall_minus_mono_s: float
    cumulative: Mapping[str, tuple[int, ...]]
    flows: Mapping[str, tuple[tuple[int, int], ...]]

    def at(self, name: str, moment_s: float) -> float:
        """Return the bytes of a class at a moment, between readings by the straight line."""
        values, place = self.cumulative[name], bisect_left(self.mono_s, moment_s)
        if place <= 0:
            return float(values[0])
        if place >= len(values):
            return float(values[-1])
        left, right = self.mono_s[place - 1], self.mono_s[place]
        share = (moment_s - left) / (right - left) if right > left else 1.0
        return values[place - 1] + share * (values[place] - values[place - 1])

    def rate_bps(self, names: Sequence[str], start_s: float, end_s: float) -> float:
        """Return bits a second of classes together."""
        grown = sum(self.at(name, end_s) - self.at(name, start_s) for name in names)
        return 8.0 * grown / (end_s - start_s)

    def steady(self, name: str, window: Window) -> bool:
        """Tell whether all connections that a class had at the start of a window were there all the time."""
        before = [count for index, count in self.flows[name] if self.mono_s[index] <= window.start_s]
        inside = [count for index, count in self.flows[name] if window.start_s < self.mono_s[index] <= window.end_s]
        return bool(before) and all(count == before[-1] for count in inside)


def parse(raw: Mapping[str, Any]) -> Counts:
    """Return what ``count-received`` wrote. Raises CountsError for a counter that did not come to its end."""
    try:
        return Counts(
            tuple(float(moment) for moment in raw["mono_s"]),
            float(raw["wall_minus_mono_s"]),
            {name: tuple(int(value) for value in found) for name, found in raw["bytes"].items()},
            {name: tuple((int(index), int(count)) for index, count in found) for name, found in raw["flows"].items()},
        )
    except (KeyError, TypeError, ValueError) as exc:
        raise CountsError(f"the counter did not come to its end ({exc!r}); see processes/bw-counter.log") from exc


def begin_s(counts: Counts, expected: Mapping[str, int]) -> float:
    """Return the moment from which every class had all its connections and had received something.

    Raises CountsError naming the classes that never did.
    """
    latest, missing = counts.mono_s[0], []
    for name, connections in expected.items():
        there = next((counts.mono_s[i] for i, count in counts.flows[name] if count >= connections), None)
        first = counts.cumulative[name][0]
        some = next((counts.mono_s[i] for i, value in enumerate(counts.cumulative[name]) if value > first), None)
        if there is None or some is None:
            missing.append(name)
        else:
            latest = max(latest, there, some)
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise CountsError(f"{', '.join(missing[:3])}{more}: nothing was received; see the logs of bw-send-*, bw-sender")
    return latest


def intervals_bps(counts: Counts, name: str, window: Window) -> list[float]:
    """Return bits a second for each whole tenth of a second of a window."""
    number = round((window.end_s - window.start_s) / INTERVAL_S)
    edges = [window.start_s + INTERVAL_S * step for step in range(number + 1)]
    at = [counts.at(name, edge) for edge in edges]
    return [round(8.0 * (right - left) / INTERVAL_S, 1) for left, right in itertools.pairwise(at)]


def settled_ms(
    counts: Counts, names: Sequence[str], wanted_s: float, bound_bps: float, down: bool, until_s: float
) -> float | None:
    """Return the first ms after a moment from which the next 10 ms keep a new bound on average; None for never.

    Downwards the bound is kept by at most 15 % more than it, upwards by at least 15 % less, of classes together.
    """
    step = 0
    while (start_s := wanted_s + step / 1000.0) + SETTLE_MEAN_S <= until_s:
        rate = counts.rate_bps(names, start_s, start_s + SETTLE_MEAN_S) / bound_bps
        if rate <= 1 + SETTLE_PCT / 100.0 if down else rate >= 1 - SETTLE_PCT / 100.0:
            return float(step)
        step += 1
    return None
