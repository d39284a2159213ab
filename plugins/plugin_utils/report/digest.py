# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shrink raw measurements to what the figures need, one file in memory at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ansible_collections.colocation.testbed.plugins.module_utils.measure.histogram import Histogram, HistogramError
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import MeasurementRecord
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.model import Condition, View
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import ReportError
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.plots import Curve, Pairs
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.series import Floats
from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir import RunDirectory

TAILS: Floats = np.logspace(0.0, -4.0, 161)
PAIRED = {"p90_us": ("P90", 0.90), "p99_us": ("P99", 0.99)}
MOST_CARDS_FOR_MODE = 6
MOST_CARDS = 36


@dataclass(frozen=True)
class Digest:
    """One measurement: its latency over the tail grid in µs, and its window on the load node's clock.

    ``window`` has start_wall_s, end_wall_s and warmup_s, as the load result has them.
    """

    record: MeasurementRecord
    condition: Condition
    requests: int
    curve_us: Floats
    tail_us: Mapping[str, float]
    window: Mapping[str, float]


def digest(run: RunDirectory, record: MeasurementRecord) -> Digest | None:
    """Shrink one measurement; None when its load generator left no latencies.

    Raises ReportError or RunDirectoryError when the load result is damaged.
    """
    load = run.load(record)
    try:
        histogram = Histogram.from_pairs(load["latency_us"])
    except HistogramError as error:
        raise ReportError(f"{run.directory(record)}/load.json: {error}") from error
    if not histogram.total:
        return None
    return Digest(
        record,
        condition_of(record),
        histogram.total,
        np.array([float(histogram.quantile(1.0 - tail)) for tail in TAILS.tolist()]),
        {metric: float(histogram.quantile(share)) for metric, (_unused, share) in PAIRED.items()},
        {name: float(load.get(name) or 0.0) for name in ("start_wall_s", "end_wall_s", "warmup_s")},
    )


def condition_of(record: MeasurementRecord) -> Condition:
    """Say under what a measurement was taken."""
    return Condition(record.load_point, record.aggressor)


def digests(run: RunDirectory) -> tuple[Digest, ...]:
    """Shrink all measurements in the order of execution, those without latencies left out."""
    return tuple(found for record in run.measurements() if (found := digest(run, record)) is not None)


def belonging(found: Sequence[Digest], mode: str, condition: Condition, kept_only: bool = True) -> list[Digest]:
    """Pick the measurements of one cell, in the order of execution."""
    return [
        item
        for item in found
        if item.record.mode == mode and item.condition.covers(condition) and (item.record.kept or not kept_only)
    ]


def curves(view: View, found: Sequence[Digest], condition: Condition) -> tuple[list[Curve], Floats]:
    """Compute the latency curve of each mode with its band over the blocks, in ms.

    The tail ends where a single block has only one request left: beyond it a curve shows nothing but luck.
    """
    chosen = {mode: belonging(found, mode.name, condition) for mode in view.modes}
    requests = min((item.requests for items in chosen.values() for item in items), default=0)
    visible = min(1.0 / max(requests, 10), 0.1) * 0.999 <= TAILS
    made = []
    for mode, items in chosen.items():
        if items:
            stack = np.stack([item.curve_us[visible] for item in items]) / 1000.0
            made.append(Curve(mode, np.median(stack, axis=0), stack.min(axis=0), stack.max(axis=0)))
    return made, TAILS[visible]


def pairs(view: View, found: Sequence[Digest], mode: str, condition: Condition) -> list[Pairs]:
    """Compute the change against the baseline of the same block, for each tail metric that has an effect."""
    baseline = next((item.name for item in view.modes if item.is_baseline), "")
    base = {item.record.block: item for item in belonging(found, baseline, condition)}
    own = {item.record.block: item for item in belonging(found, mode, condition)}
    blocks = tuple(sorted(base.keys() & own.keys()))
    made = []
    for metric, (label, _unused) in PAIRED.items():
        usable = tuple(block for block in blocks if base[block].tail_us[metric] > 0)
        changes = tuple((own[b].tail_us[metric] / base[b].tail_us[metric] - 1.0) * 100.0 for b in usable)
        effect = view.effect(mode, condition, metric)
        if usable:
            made.append(
                Pairs(
                    label,
                    usable,
                    changes,
                    effect.change_pct if effect else None,
                    effect.objective_pct if effect else None,
                )
            )
    return made


def cards(view: View, found: Sequence[Digest], mode: str, condition: Condition) -> list[tuple[Digest, str]]:
    """Choose the measurements of a cell whose CPU time is drawn, each with the reason for the choice.

    First the one whose P99 is the median, then the one with the greatest, then failed ones, then the others.
    """
    items = belonging(found, mode, condition, kept_only=False)
    if not items:
        return []
    most = max(1, min(MOST_CARDS_FOR_MODE, MOST_CARDS // max(1, len(view.modes) * len(view.conditions))))
    kept = sorted((item for item in items if item.record.kept), key=lambda item: item.tail_us["p99_us"])
    chosen: dict[str, tuple[Digest, str]] = {}
    if kept:
        middle, worst = kept[(len(kept) - 1) // 2], kept[-1]
        chosen[middle.record.name] = (middle, "typical")
        chosen.setdefault(worst.record.name, (worst, "greatest P99"))
    for item in sorted(items, key=lambda item: item.record.kept):
        chosen.setdefault(item.record.name, (item, "" if item.record.kept else "failed"))
    return list(chosen.values())[:most]
