# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run directory, judged: what every table, plot and verdict is made from. Reads, and writes nothing."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import (
    calibration,
    effects,
    figures,
    guards_run,
    records,
    schedule,
    statistics,
    verdict,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils import best_effort_rows, calibrate, guard_table
from ansible_collections.colocation.testbed.plugins.plugin_utils.measured import Matrix, Point
from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir import RunDirectory, RunDirectoryError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.colocation.testbed.plugins.module_utils.measure.effects import Effect, Judgement
    from ansible_collections.colocation.testbed.plugins.module_utils.measure.statistics import Interval

SCHEMA = "colocation.testbed/summary/1"
#: Where default colocation is measured; what a policy keeps of its batch work is its yardstick.
BATCH_REFERENCE = "colocation"
#: Published results of the experiment that this one follows: Alibaba Cloud, "Colocate an online service with a video
#: transcoding application" (Container Service for Kubernetes, ack-koordinator 0.8.0).
REFERENCE = (
    ("baseline", 29.6, None, None),
    ("colocation", 65.1, 7.7, 16.0),
    ("slo_aware", 64.8, 2.8, 3.2),
)
REFERENCE_SOURCE = "Alibaba Cloud ACK documentation, ack-koordinator 0.8.0, 2 nodes"
_OBJECTIVE_NAMES = {"batch_work_kept_pct": "batch work kept", "utilisation_won_points_min": "utilisation won"}


def summarise(run: RunDirectory) -> dict[str, Any]:
    """Return the summary of a run (docs/schemas/summary.schema.json): a pure function of the run directory.

    Raises RunDirectoryError when the directory is damaged.
    """
    matrix = Matrix.read(run)
    cut_short = _cut_short(run, matrix)
    found = {point: _effects(matrix, point) for point in matrix.compared_points()}
    table = guard_table.GuardTable.of(matrix, found)
    found = {point: _invalidated(matrix, table, point, items) for point, items in found.items()}
    gains = {point: _gains(matrix, point) for point in found if matrix.batch(point.mode)}
    outcomes = [_outcome(matrix, mode, found, gains) for mode in matrix.modes if mode != matrix.baseline]
    outcome = verdict.run_verdict(outcomes, table.invalid_reasons(), cut_short, table.open_reasons(), table.notes())
    return {
        "schema": SCHEMA,
        "run_id": run.manifest["run_id"],
        "created": run.manifest["created"],
        "partial": cut_short is not None,
        "baseline": matrix.baseline,
        "verdict": {"result": outcome.result, "sentence": outcome.sentence, "reasons": list(outcome.reasons)},
        "modes": _modes(matrix, outcomes),
        "cells": [_cell(matrix, point) for point in matrix.points()],
        "effects": [_effect_dict(matrix, point, item) for point, items in found.items() for item in items],
        "gains": list(gains.values()),
        "best_effort": best_effort_rows.rows(matrix),
        "guards": table.rows(),
        "calibration": _calibration(matrix),
        "hosts": run.manifest["hosts"],
        "reference": [
            {"source": REFERENCE_SOURCE, "mode": m, "utilisation_pct": u, "p90_added_pct": p90, "p99_added_pct": p99}
            for m, u, p90, p99 in REFERENCE
        ],
    }


def _calibration(matrix: Matrix) -> dict[str, Any] | None:
    """Return the calibration of a run that was made for one; None for others, and before it has enough blocks."""
    if not calibrate.applies(matrix):
        return None
    try:
        return calibrate.calibrate(matrix)
    except calibration.CalibrationError:
        return None


def _cut_short(run: RunDirectory, matrix: Matrix) -> str | None:
    progress = schedule.Progress(schedule.plan(matrix.config), matrix.config.repeat_cap)
    left = progress.remaining([item.record for item in matrix.measured])
    total = len(schedule.plan(matrix.config))
    if left:
        return f"{total - left} of {total} cells were measured"
    return None if run.finished else "all cells were measured, but the run did not come to its end"


def _effects(matrix: Matrix, point: Point) -> list[Effect]:
    objectives = matrix.objectives(point.mode)
    found = []
    for metric in effects.EFFECT_METRICS:
        item = effects.effect(
            metric, matrix.values(point, metric), matrix.values(matrix.baseline_of(point), metric), objectives
        )
        enough = item.blocks * 2 >= len(matrix.blocks_measured())
        if item.objective_pct is not None and item.blocks >= statistics.MIN_BLOCKS and not enough:
            reason = f"only {item.blocks} of {matrix.config.blocks} blocks could be had, the others were spoiled"
            item = effects.replaced(item, effects.INCONCLUSIVE, (reason,))
        found.append(item)
    return found


def _invalidated(matrix: Matrix, table: guard_table.GuardTable, point: Point, items: Sequence[Effect]) -> list[Effect]:
    reasons = table.invalid_at(point)
    result = []
    for item in items:
        own = list(reasons)
        if matrix.batch(point.mode) and guards_run.is_too_good(item, matrix.limits):
            own.append("too_good: a colocated mode cannot be quicker than the baseline")
        open_end = item.judgement.result in (effects.PASS, effects.INCONCLUSIVE)
        if not own and open_end and table.collapsed_at(point):
            own.append("the service could not keep up with the load, so its latencies are lower bounds")
        result.append(effects.replaced(item, effects.INVALID, own) if own else item)
    return result


def _gains(matrix: Matrix, point: Point) -> dict[str, Any]:
    base, objectives = matrix.baseline_of(point), matrix.objectives(point.mode)
    utilisation, utilisation_base = matrix.values(point, "utilisation_pct"), matrix.values(base, "utilisation_pct")
    won, won_blocks = effects.points_won(utilisation, utilisation_base)
    yardstick = Point(BATCH_REFERENCE, point.load_point, point.aggressor)
    kept, kept_blocks = effects.kept_pct(
        matrix.values(point, "batch_work_per_s"), matrix.values(yardstick, "batch_work_per_s")
    )
    cost = effects.cost_per_point(
        matrix.values(point, "p99_us"), matrix.values(base, "p99_us"), utilisation, utilisation_base
    )
    judged = {
        "batch_work_kept_pct": (kept, kept_blocks, "%"),
        "utilisation_won_points_min": (won, won_blocks, "points"),
    }
    return {
        **point.as_dict(),
        "blocks": won_blocks,
        "utilisation_won_points": _interval(won),
        "batch_work_kept_pct": _interval(kept),
        "p99_cost_pct_per_point": _interval(cost),
        "objectives": [
            _objective(
                name, float(objectives[name]), effects.judge_lower(figure, float(objectives[name]), blocks, unit)
            )
            for name, (figure, blocks, unit) in judged.items()
            if name in objectives
        ],
    }


def _objective(name: str, limit: float, judgement: Judgement) -> dict[str, Any]:
    return {"objective": name, "limit": limit, "result": judgement.result, "reasons": list(judgement.reasons)}


def _outcome(
    matrix: Matrix, mode: str, found: Mapping[Point, Sequence[Effect]], gains: Mapping[Point, dict[str, Any]]
) -> verdict.ModeOutcome:
    points = [point for point in found if point.mode == mode]
    p99 = {point: next(item for item in found[point] if item.metric == "p99_us") for point in points}
    worst = max(points, key=lambda point: _height(p99[point].change), default=Point(mode, matrix.config.load_points[0]))
    title = records.title_of(mode, matrix.definition(mode))
    results: list[str] = []
    reasons: list[str] = []
    missed: list[str] = []
    for point in points:
        where = f"{title}{point.described()}" if len(points) > 1 else title
        for name, result, texts in _judged(found[point], gains.get(point)):
            results.append(result)
            reasons += [f"{where}: {name} {text}" for text in texts]
            missed += [f"{where} misses its objective for {name}: {text}" for text in texts if result == effects.FAIL]
    return verdict.ModeOutcome(
        title=title,
        judged=bool(matrix.objectives(mode)),
        batch=matrix.batch(mode),
        result=effects.worst(results),
        where=worst.described() if len(points) > 1 else "",
        utilisation_baseline_pct=matrix.median(matrix.baseline_of(worst), "utilisation_pct"),
        utilisation_pct=matrix.median(worst, "utilisation_pct"),
        p99_change=p99[worst].change if worst in p99 else None,
        p99_blocks=p99[worst].blocks if worst in p99 else 0,
        p99_detectable_pct=p99[worst].detectable_pct if worst in p99 else None,
        reasons=tuple(reasons),
        missed=tuple(missed),
    )


def _judged(items: Sequence[Effect], gain: dict[str, Any] | None) -> list[tuple[str, str, Sequence[str]]]:
    """Return name, result and reasons of everything at a cell that has an objective or does not count."""
    found: list[tuple[str, str, Sequence[str]]] = [
        (item.metric[:-3].upper(), item.judgement.result, item.judgement.reasons)
        for item in items
        if item.objective_pct is not None
    ]
    for objective in gain["objectives"] if gain else ():
        found.append((_OBJECTIVE_NAMES[objective["objective"]], objective["result"], objective["reasons"]))
    if any(item.judgement.result == effects.INVALID for item in items):
        found.append(("", effects.INVALID, ()))
    return found


def _height(change: Interval | None) -> float:
    return change.high if change is not None else float("-inf")


def _modes(matrix: Matrix, outcomes: Sequence[verdict.ModeOutcome]) -> dict[str, Any]:
    others = [mode for mode in matrix.modes if mode != matrix.baseline]
    title = records.title_of(matrix.baseline, matrix.definition(matrix.baseline))
    baseline = {"title": title, "batch": False, "judged": False, "result": effects.NONE, "sentence": "the baseline"}
    found = {
        mode: {
            "title": outcome.title,
            "batch": outcome.batch,
            "judged": outcome.judged,
            "result": outcome.result,
            "sentence": verdict.mode_sentence(outcome),
        }
        for mode, outcome in zip(others, outcomes, strict=True)
    }
    return {mode: found.get(mode, baseline) for mode in matrix.modes}


def _cell(matrix: Matrix, point: Point) -> dict[str, Any]:
    attempts = matrix.attempts(point)
    return {
        **point.as_dict(),
        "measured": len(attempts),
        "kept": sum(item.record.kept for item in attempts),
        "rate_rps": next((item.record.rate_rps for item in attempts), None),
        "metrics": {name: metric(list(matrix.values(point, name).values())) for name in figures.METRICS},
    }


def metric(values: list[float]) -> dict[str, Any] | None:
    """Return a figure over blocks: median with its interval, range and values; None without any."""
    if not values:
        return None
    interval = statistics.median_interval(values)
    return {
        "median": round(median(values), 4),
        "low": None if interval is None else round(interval.low, 4),
        "high": None if interval is None else round(interval.high, 4),
        "min": round(min(values), 4),
        "max": round(max(values), 4),
        "values": [round(value, 4) for value in values],
    }


def _effect_dict(matrix: Matrix, point: Point, item: Effect) -> dict[str, Any]:
    ratios = statistics.log_ratios(
        matrix.first_values(point, item.metric), matrix.first_values(matrix.baseline_of(point), item.metric)
    )
    unfiltered = _interval(statistics.change_pct(ratios))
    return {
        **point.as_dict(),
        "metric": item.metric,
        "change_pct": _interval(item.change),
        "blocks": item.blocks,
        "detectable_pct": None if item.detectable_pct is None else round(item.detectable_pct, 4),
        "objective_pct": item.objective_pct,
        "result": item.judgement.result,
        "reasons": list(item.judgement.reasons),
        "unfiltered": None if unfiltered is None else {**unfiltered, "blocks": len(ratios)},
    }


def _interval(interval: Interval | None) -> dict[str, float] | None:
    return None if interval is None else interval.as_dict()


__all__ = ["RunDirectoryError", "metric", "summarise"]
