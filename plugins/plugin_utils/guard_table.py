# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all guards found over a run, and what follows: which modes do not count, and what stays open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.measure import (
    guards_run,
    limits,
    records,
    schedule,
    verdict,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils import guard_rows
from ansible_collections.colocation.testbed.plugins.plugin_utils.measured import Matrix, Point

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.colocation.testbed.plugins.module_utils.measure.effects import Effect
    from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import Cell, GuardResult


@dataclass(frozen=True)
class GuardTable:
    """The guards of a run.

    ``lost`` maps each cell that was never had to the guards that are to blame: those that are not noise and tripped in
    every attempt, or nothing when noise spoiled at least one.
    """

    matrix: Matrix
    run_results: tuple[GuardResult, ...]
    lost: Mapping[Cell, tuple[GuardResult, ...]]

    @classmethod
    def of(cls, matrix: Matrix, found: Mapping[Point, Sequence[Effect]]) -> GuardTable:
        """Judge a run as a whole, and find the cells that were given up."""
        repeats = {
            load_point: list(matrix.values(Point(matrix.baseline, load_point), "p90_us").values())
            for load_point in matrix.config.load_points
        }
        results = [guards_run.baseline_spread(repeats, matrix.limits)]
        colocated = [(point.mode, item) for point, items in found.items() if matrix.batch(point.mode) for item in items]
        if colocated:
            results.append(guards_run.too_good(colocated, matrix.limits))
        progress = schedule.Progress(schedule.plan(matrix.config), matrix.config.repeat_cap)
        exhausted = progress.exhausted([item.record for item in matrix.measured])
        return cls(matrix, tuple(results), {cell: _blame(matrix, cell) for cell in exhausted})

    def rows(self) -> list[dict[str, Any]]:
        """Return one entry for each guard that applied, in the order of the table of limits."""
        rows = []
        for guard in limits.GUARDS:
            findings = guard_rows.findings(self.matrix.measured, guard.name)
            if findings:
                rows.append(self._row(guard, findings))
            rows += [
                guard_rows.run_row(guard, result, self.matrix.measured)
                for result in self.run_results
                if result.guard == guard.name
            ]
        return rows

    def invalid_reasons(self) -> tuple[verdict.Reason, ...]:
        """Return why the run does not count, one reason for each guard; empty when it does."""
        open_guards = {result.guard for result in self._open()}
        reasons = []
        for row in self.rows():
            if not row["ok"] and row["guard"] not in open_guards:
                guard = limits.BY_NAME[row["guard"]]
                counted = quantity.counted(row["measurements"], "measurement")
                extent = f" in {row['tripped']} of {counted}" if guard.scope != "run" else ""
                first = self._foremost(guard)
                brief = f"{first.text if first else guard.broken}{extent}"
                reasons.append(verdict.Reason(brief, f"{row['title']}: {row['text']}", first is not None))
        return tuple(reasons)

    def _foremost(self, guard: limits.Guard) -> GuardResult | None:
        found = guard_rows.findings(self.matrix.measured, guard.name)
        return limits.foremost(finding.result for finding in found)

    def open_reasons(self) -> tuple[str, ...]:
        """Return what keeps the run from a conclusion without making it invalid: too few repeats, or too noisy ones."""
        return tuple(result.text for result in self._open())

    def _open(self) -> list[GuardResult]:
        return [result for result in self.run_results if result.figure is None or (result.noise and not result.ok)]

    def notes(self) -> tuple[str, ...]:
        """Return what a reader should know beside the verdict: which blocks were lost to noise."""
        return (*self._collapses(), *self._lost_to_noise())

    def _collapses(self) -> tuple[str, ...]:
        points = dict.fromkeys(item.point for item in self.matrix.measured if item.record.kept)
        return tuple(
            f"{records.title_of(point.mode, self.matrix.definition(point.mode))}{point.described()}: the service could"
            " not keep up with the load, so its latencies are lower bounds"
            for point in points
            if self.collapsed_at(point)
        )

    def _lost_to_noise(self) -> tuple[str, ...]:
        noisy = [cell for cell, blame in self.lost.items() if not blame]
        if not noisy:
            return ()
        names = ", ".join(f"{cell.mode} in block {cell.block}" for cell in noisy[:3])
        more = f" and {len(noisy) - 3} more" if len(noisy) > 3 else ""
        return (f"{names}{more}: noise spoiled every attempt, so these pairs are left out",)

    def invalid_at(self, point: Point) -> tuple[str, ...]:
        """Return why a cell's comparison with its baseline does not count."""
        concerned = (point, self.matrix.baseline_of(point))
        reasons = []
        for item in self.matrix.measured:
            if item.record.kept and item.point in concerned:
                bad = [result for result in item.validity if not result.ok and not result.collapse]
                reasons += [f"{result.guard} in {item.record.name}" for result in bad]
        for cell, blame in self.lost.items():
            if Point(cell.mode, cell.load_point, cell.aggressor) in concerned:
                reasons += [f"{result.guard} in every attempt of block {cell.block}" for result in blame]
        return tuple(reasons)

    def collapsed_at(self, point: Point) -> tuple[str, ...]:
        """Return the measurements of a cell in which the service could not keep up with the load."""
        return tuple(
            item.record.name
            for item in self.matrix.measured
            if item.record.kept and item.point == point and any(result.collapse for result in item.validity)
        )

    def _row(self, guard: limits.Guard, findings: Sequence[guard_rows.Finding]) -> dict[str, Any]:
        blamed = [cell for cell, blame in self.lost.items() if any(result.guard == guard.name for result in blame)]
        return guard_rows.row(guard, findings, len(blamed))


def _blame(matrix: Matrix, cell: Cell) -> tuple[GuardResult, ...]:
    return guard_rows.blame([item for item in matrix.measured if item.record.key == cell.key])
