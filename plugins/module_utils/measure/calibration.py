# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Can the judge be trusted on this machine: does it find what is there, and nothing that is not.

Fed with a run whose modes are the baseline, the baseline again under another name, and the service slowed by a known
amount. The judge is asked with the same interval as everywhere.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import statistics

METRICS = ("p50_us", "p90_us", "p99_us")
#: Numbers of blocks for which rates of findings and detectable effects are given.
SIZES = (3, 5, 10, 20)
TRIALS = 400
#: Exchanging labels within fewer pairs has too few outcomes to estimate a rate of 5 % (five pairs: 32).
MIN_PAIRS = 10
#: Fewer resamples than for a verdict: hundreds of intervals are made, and their mean rate is looked at.
_RESAMPLES = 400
_SEED = 7_919

Ratios = Mapping[str, tuple[float, ...]]


class CalibrationError(Exception):
    """A run cannot be used for calibration; the text says what it lacks."""


@dataclass(frozen=True)
class Mode:
    """A mode of the run with its log ratios to the baseline by metric; ``slowdown_pct`` 0 is the baseline again."""

    name: str
    slowdown_pct: float
    ratios: Ratios


def finds(ratios: Sequence[float]) -> bool:
    """Return whether the judge sees a difference: its interval does not hold 0."""
    # Both shortcuts give the same answer without resampling: the envelope holds 0 when the t interval does, and
    # resamples of values of one sign have means of that sign.
    parametric = statistics.t_interval(ratios)
    if parametric.low <= 0.0 <= parametric.high:
        return False
    if min(ratios) > 0.0 or max(ratios) < 0.0:
        return True
    interval = statistics.mean_interval(ratios, resamples=_RESAMPLES)
    return not interval.low <= 0.0 <= interval.high


def found_pct(ratios: Sequence[float], size: int, signs: bool, trials: int = TRIALS) -> float:
    """Return in how many % of random choices of ``size`` pairs the judge sees a difference.

    :param signs: also exchange mode and baseline at random in each pair. Under no difference that changes nothing (a
        permutation test's argument), so what is then found is found falsely, whatever the noise looks like.
    """
    source = random.Random(_SEED + size)  # noqa: S311 - no secret
    hits = 0
    for _unused in range(trials):
        chosen = source.sample(list(ratios), size)
        if signs:
            chosen = [value if source.random() < 0.5 else -value for value in chosen]
        hits += finds(chosen)
    return 100.0 * hits / trials


def tolerated_pct(trials: int = TRIALS, level: float = statistics.LEVEL) -> float:
    """Return the rate of false findings that ``trials`` draws at the level stay below 99 times of 100."""
    return 100.0 * (level + 2.33 * math.sqrt(level * (1.0 - level) / trials))


def calibrate(modes: Sequence[Mode], blocks: int) -> dict[str, Any]:
    """Return the calibration of a run: false findings, known slowdowns, smallest effects, and sentences.

    ``trusted`` is true when the judge errs no more often than its level says and finds every known slowdown of 20 %
    and more, and None with fewer than MIN_PAIRS pairs, which cannot tell. Raises CalibrationError when no mode repeats
    the baseline or pairs are too few.
    """
    again = [mode for mode in modes if mode.slowdown_pct == 0]
    if not again:
        raise CalibrationError("calibration: no mode repeats the baseline; measure mode baseline_again as well")
    pairs = min(len(mode.ratios[metric]) for mode in modes for metric in METRICS)
    if pairs < statistics.MIN_BLOCKS:
        raise CalibrationError(f"calibration: {pairs} pairs of blocks; at least {statistics.MIN_BLOCKS} are needed")
    result: dict[str, Any] = {
        "blocks": blocks,
        "level_pct": 100.0 * statistics.LEVEL,
        "tolerated_pct": round(tolerated_pct(), 2),
        "aa": [_repeated(mode, metric) for mode in again for metric in METRICS],
        "slowdowns": [_slowed(mode, metric) for mode in modes if mode.slowdown_pct > 0 for metric in METRICS],
        "detectable_pct": {metric: _detectable(again, metric) for metric in METRICS},
    }
    result["trusted"] = _trusted(result)
    result["sentences"] = _sentences(result)
    return result


def _sizes(pairs: int) -> list[int]:
    return [size for size in SIZES if size <= pairs]


def _repeated(mode: Mode, metric: str) -> dict[str, Any]:
    ratios = mode.ratios[metric]
    change = statistics.change_pct(ratios)
    return {
        "mode": mode.name,
        "metric": metric,
        "blocks": len(ratios),
        "change_pct": None if change is None else change.as_dict(),
        "found": finds(ratios),
        "subsets": [{"blocks": size, "found_pct": found_pct(ratios, size, False)} for size in _sizes(len(ratios))],
        "permuted": [{"blocks": size, "found_pct": found_pct(ratios, size, True)} for size in _sizes(len(ratios))],
    }


def _slowed(mode: Mode, metric: str) -> dict[str, Any]:
    ratios = mode.ratios[metric]
    change = statistics.change_pct(ratios)
    return {
        "mode": mode.name,
        "slowdown_pct": mode.slowdown_pct,
        "metric": metric,
        "blocks": len(ratios),
        "change_pct": None if change is None else change.as_dict(),
        "found": change is not None and change.low > 0.0,
        "subsets": [{"blocks": size, "found_pct": found_pct(ratios, size, False)} for size in _sizes(len(ratios))],
    }


def _detectable(again: Sequence[Mode], metric: str) -> dict[str, float]:
    scatter = max(stdev(mode.ratios[metric]) for mode in again)
    found = {size: statistics.detectable_pct(scatter, size) for size in SIZES}
    return {str(size): round(value, 2) for size, value in found.items() if value is not None}


def _trusted(result: Mapping[str, Any]) -> bool | None:
    """Judge the judge by the mean over sizes, since few pairs make the rate of a single size scatter."""
    if min(item["blocks"] for item in result["aa"]) < MIN_PAIRS:
        return None
    rates = [fmean(entry["found_pct"] for entry in item["permuted"]) for item in result["aa"]]
    large = [item for item in result["slowdowns"] if item["slowdown_pct"] >= 20]
    return max(rates) <= result["tolerated_pct"] and all(item["found"] for item in large)


def _sentences(result: Mapping[str, Any]) -> list[str]:
    rates = [entry["found_pct"] for item in result["aa"] for entry in item["permuted"]]
    found = [f"{item['mode']} in {_name(item['metric'])}" for item in result["aa"] if item["found"]]
    sentences = [
        f"With the two names exchanged at random the judge saw a difference in {fmean(rates):.1f} % of trials; "
        f"its level allows {result['level_pct']:g} %."
        if result["trusted"] is not None
        else f"Fewer than {MIN_PAIRS} pairs cannot tell how often the judge sees what is not: measure more blocks.",
        f"The same mode under two names differed in {', '.join(found)} over all blocks: one in twenty figures may."
        if found
        else f"The same mode under two names differed in none of {len(result['aa'])} figures over all blocks.",
    ]
    for name, slowdown in sorted({(item["mode"], item["slowdown_pct"]) for item in result["slowdowns"]}):
        items = [item for item in result["slowdowns"] if item["mode"] == name]
        seen = [_seen(item) for item in items if item["found"]]
        missed = [_name(item["metric"]) for item in items if not item["found"]]
        text = f"A service slowed by {slowdown:g} % was " + (f"found in {', '.join(seen)}" if seen else "not found")
        sentences.append(f"{text}{f', not in {_list(missed)}' if seen and missed else ''}.")
    smallest = result["detectable_pct"]["p99_us"]
    sizes = ", ".join(f"{size} blocks {value:.1f} %" for size, value in smallest.items())
    sentences.append(f"The smallest change of P99 that is found four times of five here: {sizes}.")
    return sentences


def _seen(item: Mapping[str, Any]) -> str:
    change = item["change_pct"]
    return f"{_name(item['metric'])} (+{change['value']:.1f} %, {change['low']:.1f} to {change['high']:.1f})"


def _name(metric: str) -> str:
    return metric[:-3].upper()


def _list(names: Sequence[str]) -> str:
    return " and ".join(names)
