# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare runs with the first of them: changes with intervals, thresholds, JUnit XML; refuse what does not compare."""

from __future__ import annotations

import math
import statistics as stdlib_statistics
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.measure import statistics
from ansible_collections.colocation.testbed.plugins.plugin_utils import summary
from ansible_collections.colocation.testbed.plugins.plugin_utils.hosts import same_hosts
from ansible_collections.colocation.testbed.plugins.plugin_utils.measured import Matrix, Point

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_rundir import BandwidthRun
    from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir import RunDirectory

    Run = RunDirectory | BandwidthRun

SCHEMA = "colocation.testbed/comparison/1"
#: Rates that differ by more are different loads; a measured peak varies by about that much between runs.
RATE_TOLERANCE_PCT = 3.0
#: Metrics that are compared, and whether more of them is worse.
METRICS: Mapping[str, bool] = {
    "p50_us": True,
    "p90_us": True,
    "p99_us": True,
    "p999_us": True,
    "throughput_rps": False,
    "utilisation_pct": False,
    "batch_work_per_s": False,
    "service_cpu_us_per_request": True,
}
_LOAD_FACTS = (("kind", "load kind"), ("threads", "load threads"), ("connections", "load connections"))
WINDOW_FACTS = (("window_s", "window"), ("warmup_s", "warm-up"))
#: What a request asks of the service, wherever the manifest keeps it.
_WORK_FACTS = (("page_bytes", "page size"), ("compression_level", "compression level"))


class CompareError(Exception):
    """Runs cannot be compared; the text says which, why and what to do."""


def compare(
    runs: Sequence[RunDirectory],
    thresholds: Mapping[str, float] | None = None,
    allow_invalid: bool = False,
    allow_partial: bool = False,
) -> dict[str, Any]:
    """Return how every later run differs from the first.

    :param thresholds: metric → change in % for the worse from which on it is a regression, such as
        ``{"p99_us": 5}``. A regression is proven when the interval lies beyond the threshold as a whole.
    :param allow_invalid: compare runs that their own guards rejected.
    :param allow_partial: compare runs that were cut short.

    ``result`` is ``fail`` with a regression, ``none`` where nothing was judged, ``inconclusive`` where nothing could be
    judged, else ``pass``; ``failures`` has a sentence for each regression. Raises CompareError for runs that cannot be
    compared, and RunDirectoryError for damaged ones.
    """
    limits = checked(thresholds or {}, METRICS, len(runs))
    matrices = [Matrix.read(run) for run in runs]
    for run in runs:
        check_usable(run, summary.summarise(run), allow_invalid, allow_partial)
    for run, matrix in zip(runs[1:], matrices[1:], strict=True):
        _check_comparable(runs[0], matrices[0], run, matrix)
    changes = [
        entry
        for run, matrix in zip(runs[1:], matrices[1:], strict=True)
        for entry in _changes(matrices[0], matrix, str(run.manifest["run_id"]), limits)
    ]
    if not changes:
        raise CompareError(
            "compare: the runs have no mode, load point and aggressor in common of which measurements count, "
            "so there is nothing to compare; "
            "look at the guards in their reports"
        )
    return document(runs, limits, changes)


def document(runs: Sequence[Run], limits: Mapping[str, float], changes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a comparison of runs of any experiment from its changes."""
    failures = [str(entry["text"]) for entry in changes if entry["result"] == "fail"]
    return {
        "schema": SCHEMA,
        "base": str(runs[0].manifest["run_id"]),
        "runs": [_about(run) for run in runs],
        "thresholds": dict(limits),
        "changes": list(changes),
        "result": _overall([str(entry["result"]) for entry in changes]),
        "failures": failures,
    }


def _overall(results: Sequence[str]) -> str:
    """Return what all judged changes come to; ``none`` where no threshold was set for any."""
    judged = set(results) - {"none"}
    return next((word for word in ("fail", "pass", "inconclusive") if word in judged), "none")


def checked(thresholds: Mapping[str, float], metrics: Mapping[str, bool], runs: int) -> dict[str, float]:
    """Return the thresholds as numbers. Raises CompareError for bad ones, and for fewer than two runs."""
    if runs < 2:
        named = quantity.counted(runs, "run")
        raise CompareError(f"compare: {named} in compare_run_dirs; name two run directories or more there")
    for metric, limit in thresholds.items():
        if metric not in metrics:
            raise CompareError(f"compare: threshold for {metric!r}: known metrics are {', '.join(metrics)}")
        if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not limit >= 0:
            raise CompareError(f"compare: threshold for {metric} is {limit!r}; must be a change in %, 0 or more")
    return {metric: float(limit) for metric, limit in thresholds.items()}


def _about(run: Run) -> dict[str, Any]:
    return {"run_id": run.manifest["run_id"], "created": run.manifest["created"], "path": str(run.path)}


def check_usable(run: Run, judged: Mapping[str, Any], allow_invalid: bool, allow_partial: bool) -> None:
    """Raise CompareError for a run that was cut short or does not count, as its summary says."""
    if judged["partial"] and not allow_partial:
        raise CompareError(f"{run.path}: {judged['verdict']['sentence']} Resume it, or allow partial runs")
    if judged["verdict"]["result"] == "invalid" and not allow_invalid:
        raise CompareError(f"{run.path}: {judged['verdict']['sentence']} Measure again, or allow invalid runs")


def _check_comparable(base: RunDirectory, base_matrix: Matrix, run: RunDirectory, matrix: Matrix) -> None:
    """Raise CompareError with the first thing that makes the runs' latencies incomparable."""
    why = same_hosts(base.manifest["hosts"], run.manifest["hosts"])
    substrates = [str(item.manifest.get("substrate", "process")) for item in (base, run)]
    if substrates[0] != substrates[1]:
        why = why or f"workloads run as {substrates[0]} in one and as {substrates[1]} in the other"
    why = why or differing(base.manifest["load"], run.manifest["load"], _LOAD_FACTS)
    why = why or differing(base.manifest["schedule"], run.manifest["schedule"], WINDOW_FACTS)
    for part in ("load", "service"):
        why = why or differing(base.manifest[part], run.manifest[part], _WORK_FACTS)
    why = why or _rates_differ(base_matrix, matrix)
    if why:
        raise incomparable(base, run, why)


def incomparable(base: Run, run: Run, why: str) -> CompareError:
    """Return the error for two runs that cannot be compared."""
    return CompareError(
        f"{base.path} and {run.path} cannot be compared: {why}; compare runs that differ in what you look at only"
    )


def differing(first: Mapping[str, Any], second: Mapping[str, Any], facts: Sequence[tuple[str, str]]) -> str | None:
    """Return the first fact that differs, in words; None when all are the same."""
    for key, name in facts:
        if first.get(key) != second.get(key):
            return f"the {name} is {first.get(key)!r} in one and {second.get(key)!r} in the other"
    return None


def _rates_differ(first: Matrix, second: Matrix) -> str | None:
    for point in _common(first, second):
        rates = [_rate_rps(matrix, point) for matrix in (first, second)]
        left, right = rates
        if left is None or right is None:
            continue
        if abs(right / left - 1.0) * 100.0 > RATE_TOLERANCE_PCT:
            return (
                f"the rate at load point {point.load_point:g} is {left:.0f}/s in one and {right:.0f}/s in the other, "
                f"more than {RATE_TOLERANCE_PCT:g} % apart (set the peak instead of measuring it)"
            )
    return None


def _rate_rps(matrix: Matrix, point: Point) -> float | None:
    return next((item.record.rate_rps for item in matrix.attempts(point)), None)


def _common(first: Matrix, second: Matrix) -> list[Point]:
    theirs = set(second.points())
    return [point for point in first.points() if point in theirs]


def _changes(first: Matrix, second: Matrix, run_id: str, limits: Mapping[str, float]) -> list[dict[str, Any]]:
    return [
        {
            **point.as_dict(),
            **change(
                (point.mode, point.described()),
                (metric, METRICS[metric]),
                (first.values(point, metric), second.values(point, metric)),
                run_id,
                limits.get(metric),
            ),
        }
        for point in _common(first, second)
        for metric in METRICS
        if first.values(point, metric) and second.values(point, metric)
    ]


def change(
    place: tuple[str, str],
    measure: tuple[str, bool],
    values: tuple[Mapping[int, float], Mapping[int, float]],
    run_id: str,
    limit: float | None,
) -> dict[str, Any]:
    """Return how a figure changed between two runs.

    :param place: what was measured, and words that tell it from others of that name.
    :param measure: the metric, and whether more of it is worse.
    :param values: by block, before and after; at least one each.
    """
    metric, more_is_worse = measure
    before, after = values
    left, right = ([math.log(value) for value in side.values() if value > 0.0] for side in values)
    blocks = min(len(left), len(right))
    found = statistics.to_pct(statistics.difference_interval(left, right)) if blocks >= 2 else None
    return {
        "place": place[0],
        "where": place[1],
        "run_id": run_id,
        "metric": metric,
        "before": round(stdlib_statistics.median(before.values()), 4),
        "after": round(stdlib_statistics.median(after.values()), 4),
        "change_pct": None if found is None else found.as_dict(),
        "blocks": [len(before), len(after)],
        "threshold_pct": limit,
        "result": _result(found, limit, more_is_worse, blocks),
        "text": f"{run_id}: {place[0]}{place[1]}: {metric} {_words(found, limit)}",
    }


def _result(change: statistics.Interval | None, limit: float | None, more_is_worse: bool, blocks: int) -> str:
    """Return fail when the whole interval is worse than the threshold, pass when none of it is."""
    if limit is None:
        return "none"
    if change is None or blocks < statistics.MIN_BLOCKS:
        return "inconclusive"
    least, most = (change.low, change.high) if more_is_worse else (-change.high, -change.low)
    if least > limit:
        return "fail"
    return "pass" if most <= limit else "inconclusive"


def _words(change: statistics.Interval | None, limit: float | None) -> str:
    if change is None:
        return "has too few blocks to compare"
    threshold = "" if limit is None else f", threshold {limit:g} % for the worse"
    return f"changed by {change.value:+.1f} % ({change.low:+.1f} to {change.high:+.1f}){threshold}"


def junit_xml(comparison: Mapping[str, Any]) -> str:
    """Return the comparison as JUnit XML: one test case for each change with a threshold; what is open is skipped."""
    cases = [entry for entry in comparison["changes"] if entry["result"] != "none"]
    counts = {result: sum(entry["result"] == result for entry in cases) for result in ("fail", "inconclusive")}
    suite = ElementTree.Element(
        "testsuite",
        name=f"colocation.testbed compare with {comparison['base']}",
        tests=str(len(cases)),
        failures=str(counts["fail"]),
        errors="0",
        skipped=str(counts["inconclusive"]),
    )
    for entry in cases:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=f"{entry['run_id']}.{entry['place']}",
            name=f"{entry['metric']}{entry['where']}",
        )
        if entry["result"] == "fail":
            ElementTree.SubElement(case, "failure", message=entry["text"])
        if entry["result"] == "inconclusive":
            ElementTree.SubElement(case, "skipped", message=entry["text"])
    ElementTree.indent(suite)
    document: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return document.decode("utf-8") + "\n"
