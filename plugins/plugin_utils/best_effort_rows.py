# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the quota of best effort did in each cell of a run, as rows of summary.json with a sentence for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import best_effort

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.colocation.testbed.plugins.plugin_utils.measured import Matrix


def rows(matrix: Matrix) -> list[dict[str, Any]]:
    """Return one entry for each cell in which the quota was sampled; measurements that do not count are left out."""
    found = []
    for point in matrix.points():
        kept = [item.best_effort for item in matrix.attempts(point) if item.record.kept]
        figures = best_effort.pooled([item for item in kept if item is not None])
        if figures is not None:
            said = sentence(figures, str(matrix.definition(point.mode).get("engine") or ""))
            found.append({**point.as_dict(), **figures, "sentence": said})
    return found


def sentence(figures: Mapping[str, Any], engine: str) -> str:
    """Say how far best effort was held back, and beside what."""
    inside, used = figures["quota"]["window"], figures["service_cpus"]["window"]
    beside = " in the window" if used is None else f" while the service used {_cpus(used)}"
    if inside is None:
        return "The quota of best effort was not sampled in the window."
    if inside["without_limit"] == inside["samples"]:
        return f"Nothing limited best effort as a whole{beside}."
    period_us = int(figures["period_us"])
    who = "Koordinator" if engine == "koordinator" else "A quota"
    text = f"{who} held best effort to {_held(inside, period_us)}{beside}"
    before = figures["quota"]["before_load"]
    if before is None:
        return f"{text}."
    if before["median_us"] is None:
        return f"{text}; before the load there was no limit."
    return f"{text}; before the load it was {_held(before, period_us)}."


def _cpus(cpus: float) -> str:
    return f"{cpus:.2f} of a CPU" if cpus < 1.0 else f"{cpus:.2f} CPUs"


def _held(figures: Mapping[str, Any], period_us: int) -> str:
    median_us = figures["median_us"]
    ends = (figures["least_us"], figures["greatest_us"])
    least, greatest = ("no limit" if end is None else f"{end:.0f}" for end in ends)
    middle = "no limit" if median_us is None else _cpus(median_us / period_us)
    return f"{middle} (quota {least} to {greatest} µs of each {period_us})"
