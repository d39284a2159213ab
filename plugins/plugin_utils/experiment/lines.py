# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the terminal says of each measurement: one line while it runs, one when it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import (
        Cell,
        GuardResult,
        MeasurementRecord,
    )
    from ansible_collections.colocation.testbed.plugins.module_utils.measure.schedule import Config

QUANTILES = (("P50", 0.5), ("P90", 0.9), ("P99", 0.99))


def label(cell: Cell, config: Config, number: int, total: int) -> str:
    """Return what a measurement is called: number of all, block, mode, and what else the matrix varies."""
    parts = [f"{number:>3}/{total}", f"block {cell.block}", f"{cell.mode:<{max(map(len, config.modes))}}"]
    if len(config.load_points) > 1:
        parts.append(f"load {cell.load_point:g}")
    if len(config.aggressors) > 1 and cell.aggressor:
        parts.append(cell.aggressor)
    if cell.attempt > 1:
        parts.append(f"attempt {cell.attempt}")
    return "  ".join(parts)


def result(name: str, record: MeasurementRecord, load: Mapping[str, Any], validity: Sequence[GuardResult]) -> str:
    """Return what came of a measurement: its latencies, and why it does not count where it doesn't."""
    histogram = Histogram.from_pairs(load["latency_us"])
    latencies = "  ".join(f"{title} {histogram.quantile(q) / 1000:6.2f}" for title, q in QUANTILES)
    tripped = [guard for guard in validity if not guard.ok]
    if record.kept and not tripped:
        return f"{name}  {latencies} ms"
    why = "; ".join(f"{guard.guard}: {guard.text}" for guard in tripped)
    verb = "counts, but" if record.kept else "does not count:"
    return f"{name}  {latencies} ms  {verb} {why}"
