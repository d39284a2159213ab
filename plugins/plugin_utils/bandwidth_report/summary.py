# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run of the bandwidth experiment, judged: what tables, figures and verdict are made from. Reads, writes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import figures_traffic, schedule
from ansible_collections.colocation.testbed.plugins.plugin_utils import summary
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report import judging, reference, sentence
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.guards_table import GuardTable
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.measured import (
    Point,
    Traffic,
    median_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ansible_collections.colocation.testbed.plugins.module_utils.measure.statistics import Interval
    from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.judging import Comparison, Judged
    from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_rundir import BandwidthRun

SCHEMA = "colocation.testbed/bandwidth-summary/1"


def summarise(run: BandwidthRun) -> dict[str, Any]:
    """Return the summary of a run (docs/schemas/bandwidth-summary.schema.json): a pure function of the directory.

    Raises RunDirectoryError when the directory is damaged.
    """
    traffic = Traffic.read(run)
    table = GuardTable.of(traffic)
    cut_short = _cut_short(run, traffic)
    found = judging.judged(traffic, table)
    notes = (*table.notes(), *_unjudged(traffic, table, found))
    outcome = sentence.verdict(str(run.manifest["plane"]), found, cut_short, notes)
    return {
        "schema": SCHEMA,
        "run_id": run.manifest["run_id"],
        "created": run.manifest["created"],
        "partial": cut_short is not None,
        "plane": run.manifest["plane"],
        "accounting": run.manifest["accounting"],
        "verdict": {"result": outcome.result, "sentence": outcome.sentence, "reasons": list(outcome.reasons)},
        "cells": [_cell(traffic, table, point) for point in traffic.points()],
        "comparisons": [_comparison(item) for item in judging.comparisons(traffic, table, found)],
        "objectives": [item.as_dict() for item in found],
        "guards": table.rows(),
        "hosts": run.manifest["hosts"],
        "reference": reference.rows(),
    }


def _cut_short(run: BandwidthRun, traffic: Traffic) -> str | None:
    progress = schedule.Progress(traffic.plan, traffic.repeat_cap)
    left = progress.remaining([item.record for item in traffic.measured])
    if left:
        return f"{len(traffic.plan) - left} of {len(traffic.plan)} cells were measured"
    return None if run.finished else "all cells were measured, but the run did not come to its end"


def _unjudged(traffic: Traffic, table: GuardTable, found: Sequence[Judged]) -> list[str]:
    """Return a note for each cell that no objective is about, and whose figures do not count."""
    judged = {item.point for item in found} | {
        item.point.other(item.objective.against) for item in found if item.objective.against
    }
    return [
        f"{point.place} with {point.shaper}: its figures are no evidence ({reasons[0].full})"
        for point in traffic.points()
        if point not in judged and (reasons := table.invalid_at([point]))
    ]


def _cell(traffic: Traffic, table: GuardTable, point: Point) -> dict[str, Any]:
    return {
        "scenario": point.scenario,
        "case": point.case,
        "direction": traffic.case(point)["direction"],
        "family": str(traffic.case(point).get("family") or "ipv4"),
        "shaper": point.shaper,
        "measured": len(traffic.attempts(point)),
        "kept": len(traffic.kept(point)),
        "counts": not table.invalid_at([point]),
        "classes": {name: _class(traffic, point, name) for name in traffic.class_names(point)},
        "metrics": {
            metric: summary.metric(list(traffic.values(point, metric).values())) for metric in figures_traffic.METRICS
        },
    }


def _class(traffic: Traffic, point: Point, name: str) -> dict[str, Any]:
    def values(figure: str) -> list[float]:
        return list(traffic.class_values(point, name, figure).values())

    return {
        "role": str(traffic.case(point)["classes"].get(name, {}).get("role") or ""),
        "protocol": str(traffic.case(point)["classes"].get(name, {}).get("protocol") or "tcp"),
        "expected_bps": median_of(values("expected_bps")),
        "received_bps": summary.metric(values("received_bps")),
        "error_pct": summary.metric(values("error_pct")),
        "rr_p50_us": summary.metric(values("rr_p50_us")),
        "rr_p99_us": summary.metric(values("rr_p99_us")),
    }


def _comparison(item: Comparison) -> dict[str, Any]:
    return {
        "scenario": item.point.scenario,
        "case": item.point.case,
        "metric": item.metric,
        "shaper": item.point.shaper,
        "against": item.against,
        "ratio": _interval(item.ratio),
        "difference": _interval(item.difference),
        "blocks": item.blocks,
        "result": item.result,
        "other_rate": item.other_rate,
    }


def _interval(interval: Interval | None) -> dict[str, float] | None:
    return None if interval is None else interval.as_dict(6)
