# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which effect a run can find at all, said before it begins, from how well earlier runs' baselines repeated here."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import statistics, student
from ansible_collections.colocation.testbed.plugins.plugin_utils import rundir

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

METRICS = ("p90_us", "p99_us")

#: Spread of one baseline repeat (standard deviation of its logarithm) where no earlier run tells: what windows
#: without stolen time gave on the virtual machine on which the defaults were chosen.
ASSUMED_SD_LOG = 0.015


def detectable(results_dir: str, hosts: Mapping[str, Any], blocks: int) -> dict[str, Any] | None:
    """Return the smallest added latency in % that so many blocks can find, by metric, and what that rests on.

    None for fewer than two blocks, which can find nothing.
    """
    if blocks < 2:
        return None
    for run_id, repeats in _earlier_baselines(results_dir, hosts):
        found = {name: statistics.detectable_from_repeats_pct(repeats[name], blocks) for name in METRICS}
        if all(value is not None for value in found.values()):
            return {**{name: round(float(value or 0), 2) for name, value in found.items()}, "from": run_id}
    assumed = statistics.detectable_pct(ASSUMED_SD_LOG * math.sqrt(2.0), blocks)
    return {**{name: round(float(assumed or 0), 2) for name in METRICS}, "from": "assumed"}


def sentence(blocks: int, found: Mapping[str, Any] | None) -> str:
    """Return what the user is told before the run starts."""
    if found is None or blocks < statistics.MIN_BLOCKS:
        return f"matrix_blocks is {blocks}: a verdict needs at least {statistics.MIN_BLOCKS}"
    within = " and ".join(f"{_within_pct(found[name], blocks):.1f} % at {name[:3].upper()}" for name in METRICS)
    basis = (
        f"if baselines repeat within {100 * ASSUMED_SD_LOG:.1f} % here (no earlier run tells)"
        if found["from"] == "assumed"
        else f"if baselines repeat as in run {found['from']} (within {within})"
    )
    return (
        f"forecast: {basis}, {blocks} blocks can find an added latency of {found['p90_us']:.1f} % at P90 and "
        f"{found['p99_us']:.1f} % at P99; the report says what this run could find"
    )


def _within_pct(detectable_pct: float, blocks: int) -> float:
    """Return the spread of baseline repeats in % (standard deviation) on which a detectable effect rests."""
    shift = student.detectable_shift(blocks) * math.sqrt(2.0)
    return 100.0 * math.log1p(detectable_pct / 100.0) / shift


def _earlier_baselines(results_dir: str, hosts: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, list[float]]]]:
    """Yield id and baseline values of runs on the same kind of hosts, the newest first."""
    folder = Path(results_dir)
    for entry in sorted(folder.iterdir(), reverse=True) if folder.is_dir() else []:
        # An unreadable earlier run is no reason not to begin a new one.
        with contextlib.suppress(rundir.RunDirectoryError):
            if not (entry / "summary.json").is_file():
                continue
            run = rundir.RunDirectory.open(entry)
            summary = run.summary()
            if summary is not None and _kinds(run.manifest["hosts"]) == _kinds(hosts):
                yield entry.name, _baseline_values(summary)


def _baseline_values(summary: Mapping[str, Any]) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {name: [] for name in METRICS}
    for cell in summary["cells"]:
        if cell["mode"] == summary["baseline"]:
            for name in METRICS:
                metric = cell["metrics"].get(name)
                values[name] += metric["values"] if metric else []
            return values
    return values


def _kinds(hosts: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, ...]]:
    return sorted((host["role"], host["kernel"], host["cpu_model"], host["measured_cpus"]) for host in hosts.values())
