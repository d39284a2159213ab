# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare runs of the bandwidth experiment with the first of them; words and thresholds as for the matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.plugin_utils import compare as matrix
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.measured import Point, Traffic
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.summary import summarise
from ansible_collections.colocation.testbed.plugins.plugin_utils.compare import CompareError
from ansible_collections.colocation.testbed.plugins.plugin_utils.hosts import same_hosts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_rundir import BandwidthRun

#: Metrics that are compared, and whether more of them is worse.
METRICS: Mapping[str, bool] = {
    "accuracy_pct": False,
    "accuracy_p95_pct": False,
    "request_kept_pct": False,
    "received_mbps": False,
    "cpu_s_per_gbit": True,
    "kernel_cpu_s_per_gbit": True,
    "program_ns_per_packet": True,
    "rr_p50_us": True,
    "rr_p99_us": True,
    "switch_p95_ms": True,
    "apply_ms": True,
}
_RUN_FACTS = (("plane", "plane"), ("accounting", "accounting"), ("link_bps", "rate of the link"))
#: What asks the same of a shaper; what senders could do is measured, and differs a little each time.
_CASE_FACTS = (("classes", "classes"), ("pool", "pool"), ("direction", "direction"))


def compare(
    runs: Sequence[BandwidthRun],
    thresholds: Mapping[str, float] | None = None,
    allow_invalid: bool = False,
    allow_partial: bool = False,
) -> dict[str, Any]:
    """Return how every later run differs from the first, in the form of the matrix's comparison.

    Raises CompareError for runs that cannot be compared, and RunDirectoryError for damaged ones.
    """
    limits = matrix.checked(thresholds or {}, METRICS, len(runs))
    found = [Traffic.read(run) for run in runs]
    for run in runs:
        matrix.check_usable(run, summarise(run), allow_invalid, allow_partial)
    for run, traffic in zip(runs[1:], found[1:], strict=True):
        why = _differing(found[0], traffic)
        if why:
            raise matrix.incomparable(runs[0], run, why)
    changes = [
        entry
        for run, traffic in zip(runs[1:], found[1:], strict=True)
        for entry in _changes(found[0], traffic, str(run.manifest["run_id"]), limits)
    ]
    if not changes:
        raise CompareError(
            "compare: the runs have no case and shaper in common of which measurements count, so there is nothing to "
            "compare; look at the guards in their reports"
        )
    return matrix.document(runs, limits, changes)


def _differing(first: Traffic, second: Traffic) -> str | None:
    """Return the first thing that makes the runs' figures incomparable; None when nothing does."""
    why = same_hosts(first.manifest["hosts"], second.manifest["hosts"])
    why = why or matrix.differing(first.manifest, second.manifest, _RUN_FACTS)
    why = why or matrix.differing(first.manifest["schedule"], second.manifest["schedule"], matrix.WINDOW_FACTS)
    for point in _common(first, second):
        differs = matrix.differing(first.case(point), second.case(point), _CASE_FACTS)
        why = why or (f"in {point.place} {differs}" if differs else None)
    return why


def _common(first: Traffic, second: Traffic) -> list[Point]:
    theirs = set(second.points())
    return [point for point in first.points() if point in theirs]


def _changes(first: Traffic, second: Traffic, run_id: str, limits: Mapping[str, float]) -> list[dict[str, Any]]:
    made = []
    for point in _common(first, second):
        for metric, worse in METRICS.items():
            values = (first.values(point, metric), second.values(point, metric))
            if all(values):
                place = (point.place, f" with {point.shaper}")
                found = matrix.change(place, (metric, worse), values, run_id, limits.get(metric))
                made.append({"scenario": point.scenario, "case": point.case, "shaper": point.shaper, **found})
    return made
