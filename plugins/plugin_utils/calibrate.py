# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a run's measurements to its calibration."""

from __future__ import annotations

from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import calibration, statistics
from ansible_collections.colocation.testbed.plugins.plugin_utils.measured import Matrix, Point


def applies(matrix: Matrix) -> bool:
    """Return whether a run was made for calibration: it has modes without batch workload beside the baseline."""
    return any(mode != matrix.baseline and not matrix.batch(mode) for mode in matrix.modes)


def calibrate(matrix: Matrix) -> dict[str, Any]:
    """Return the calibration of a run (module ``calibration`` has the format).

    Uses the modes without batch workload at the first load point. Raises CalibrationError for a run that lacks what
    calibration needs.
    """
    load_point = matrix.config.load_points[0]
    baseline = Point(matrix.baseline, load_point)
    modes = [
        calibration.Mode(
            name=mode,
            slowdown_pct=float(matrix.definition(mode).get("service_slowdown_pct") or 0.0),
            ratios={
                metric: statistics.log_ratios(
                    matrix.values(Point(mode, load_point), metric), matrix.values(baseline, metric)
                )
                for metric in calibration.METRICS
            },
        )
        for mode in matrix.modes
        if mode != matrix.baseline and not matrix.batch(mode)
    ]
    return calibration.calibrate(modes, matrix.config.blocks)
