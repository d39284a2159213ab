# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objectives of the bandwidth experiment: a figure of the shaper under test, or its cost beside another shaper's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import effects, figures_traffic, statistics
from ansible_collections.colocation.testbed.plugins.module_utils.measure.effects import Judgement
from ansible_collections.colocation.testbed.plugins.module_utils.measure.statistics import Interval

#: Judged in every case that limits a class, whether it asks for it or not: a limit is a limit. A hundredth is what
#: the credit of 1 ms and a window's two ends may let through more, with room for the receiver's own clock.
ALWAYS: Mapping[str, float] = {"overshoot_pct_max": 1.0}
#: A percentile of fewer switches rests on the last one or two of them.
SWITCHES_MIN = 50
#: The figure that ratios of cost compare.
COST = "cpu_s_per_gbit"
_RATIO = re.compile(r"cpu_ratio_([a-z]+)_max")
_UNITS = (("_pct", "%"), ("_us", "us"), ("_ms", "ms"), ("_mbps", "Mbit/s"), ("_s_per_gbit", "s/Gbit"))
_DIGITS = {"%": 2, "us": 0, "ms": 1, "Mbit/s": 1, "s/Gbit": 3}


class ObjectivesError(Exception):
    """An objective is not one; the text says which and what is allowed."""


@dataclass(frozen=True)
class Objective:
    """A limit for one figure: ``against`` is the shaper that a ratio compares with, None for a figure of its own."""

    name: str
    metric: str
    limit: float
    least: bool
    against: str | None = None

    @property
    def unit(self) -> str:
        """Return the unit of limit and figure; a ratio has none."""
        return "" if self.against else unit_of(self.metric)


def unit_of(metric: str) -> str:
    """Return the unit that a metric's name ends with."""
    return next((unit for suffix, unit in _UNITS if metric.endswith(suffix)), "")


def digits_of(metric: str) -> int:
    """Return with how many decimals a metric is told."""
    return _DIGITS.get(unit_of(metric), 2)


def parse(where: str, asked: Mapping[str, Any], limited: bool) -> tuple[Objective, ...]:
    """Return a case's objectives, with those that are always judged where a class is limited.

    Raises ObjectivesError naming ``where`` for one that is unknown or no number.
    """
    return tuple(_parse(where, name, value) for name, value in {**(ALWAYS if limited else {}), **asked}.items())


def _parse(where: str, name: str, value: Any) -> Objective:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ObjectivesError(f"{where}: objective {name} is {value!r}; must be a number")
    ratio = _RATIO.fullmatch(name)
    if ratio:
        return Objective(name, COST, float(value), False, ratio.group(1))
    metric, _unused, end = name.rpartition("_")
    if metric not in figures_traffic.METRICS or end not in ("min", "max"):
        known = ", ".join(figures_traffic.METRICS)
        raise ObjectivesError(
            f"{where}: objective {name!r} is unknown; known are cpu_ratio_<shaper>_max and <figure>_min or _max of "
            f"{known}"
        )
    return Objective(name, metric, float(value), end == "min")


def figure_of(values: Sequence[float]) -> Interval | None:
    """Return the mean over blocks with its interval; None below two."""
    return statistics.mean_interval(values) if len(values) >= 2 else None


def judge(objective: Objective, figure: Interval | None, blocks: int) -> Judgement:
    """Judge a figure over blocks, or a ratio of paired blocks: the whole interval must keep to the limit."""
    digits = 3 if objective.against else digits_of(objective.metric)
    compare = effects.judge_lower if objective.least else effects.judge_most
    return compare(figure, objective.limit, blocks, objective.unit, digits)


def enough_switches(found: Judgement, switches: float) -> Judgement:
    """Return the judgement of a percentile of switches, left open where it rests on too few."""
    if found.result == effects.INVALID or switches >= SWITCHES_MIN:
        return found
    reason = f"{switches:.0f} switches of the {SWITCHES_MIN} that the percentile takes"
    return Judgement(effects.INCONCLUSIVE, (*found.reasons, reason))
