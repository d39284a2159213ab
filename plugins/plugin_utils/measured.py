# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All measurements of a run with their figures, asked by mode, load point, aggressor and block."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.measure import (
    best_effort,
    effects,
    figures,
    records,
    schedule,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir import RunDirectory, RunDirectoryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import (
        GuardResult,
        MeasurementRecord,
    )

_READING_ERRORS = (
    schedule.ScheduleError,
    effects.EffectsError,
    quantity.QuantityError,
    KeyError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True)
class Point:
    """A cell of the matrix, whatever the block."""

    mode: str
    load_point: float
    aggressor: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the form of summary.json."""
        return {"mode": self.mode, "load_point": self.load_point, "aggressor": self.aggressor}

    def described(self) -> str:
        """Return the words that tell this cell from the mode's others."""
        beside = f" beside {self.aggressor}" if self.aggressor else ""
        return f" at {100 * self.load_point:g} % of the peak{beside}"


@dataclass(frozen=True)
class Measured:
    """One measurement with its figures and what the guards found."""

    record: MeasurementRecord
    figures: Mapping[str, float | None]
    validity: tuple[GuardResult, ...]
    best_effort: best_effort.BestEffort | None = None

    @classmethod
    def read(cls, run: RunDirectory, record: MeasurementRecord) -> Measured:
        """Read one measurement. Raises RunDirectoryError."""
        load, samples = run.load(record), run.samples(record)
        return cls(
            record,
            figures.figures(run.manifest, load, samples),
            run.validity(record),
            best_effort.of(run.manifest, load, samples),
        )

    @property
    def point(self) -> Point:
        """Return its cell."""
        return Point(self.record.mode, self.record.load_point, self.record.aggressor)


@dataclass(frozen=True)
class Matrix:
    """A run's measurements beside its manifest."""

    manifest: Mapping[str, Any]
    config: schedule.Config
    measured: tuple[Measured, ...]

    @classmethod
    def read(cls, run: RunDirectory) -> Matrix:
        """Read everything that a run measured. Raises RunDirectoryError."""
        try:
            config = schedule.Config.from_manifest(run.manifest)
            schedule.plan(config)
            for mode in config.modes:
                effects.check_objectives(mode, run.manifest["modes"][mode].get("objectives") or {})
            measured = tuple(Measured.read(run, record) for record in run.measurements())
        except _READING_ERRORS as exc:
            raise RunDirectoryError(f"{run.path}: {exc}; restore the run from a copy or measure again") from exc
        return cls(run.manifest, config, measured)

    @property
    def baseline(self) -> str:
        """Return the name of the baseline mode."""
        return str(self.manifest["baseline"])

    @property
    def modes(self) -> tuple[str, ...]:
        """Return the names of all modes in the order of the schedule."""
        return self.config.modes

    @property
    def limits(self) -> Mapping[str, Any]:
        """Return the limits that the user set."""
        return dict(self.manifest["limits"])

    def definition(self, mode: str) -> Mapping[str, Any]:
        """Return a mode's definition."""
        return dict(self.manifest["modes"].get(mode, {}))

    def objectives(self, mode: str) -> Mapping[str, Any]:
        """Return a mode's objectives."""
        return dict(self.definition(mode).get("objectives") or {})

    def batch(self, mode: str) -> bool:
        """Return whether a mode runs a batch workload."""
        return records.has_batch(self.definition(mode))

    def points(self) -> tuple[Point, ...]:
        """Return all cells in the order of modes, load points and aggressors."""
        return tuple(
            Point(mode, load_point, aggressor)
            for mode in self.modes
            for load_point in self.config.load_points
            for aggressor in (self.config.aggressors if mode in self.config.batch_modes else (None,))
        )

    def compared_points(self) -> tuple[Point, ...]:
        """Return all cells but the baseline's."""
        return tuple(point for point in self.points() if point.mode != self.baseline)

    def baseline_of(self, point: Point) -> Point:
        """Return the baseline's cell with which a cell is compared."""
        aggressor = point.aggressor if self.baseline in self.config.batch_modes else None
        return Point(self.baseline, point.load_point, aggressor)

    def blocks_measured(self) -> frozenset[int]:
        """Return the blocks of which anything was measured."""
        return frozenset(item.record.block for item in self.measured)

    def attempts(self, point: Point) -> tuple[Measured, ...]:
        """Return all measurements of a cell, those that failed as well."""
        return tuple(item for item in self.measured if item.point == point)

    def values(self, point: Point, metric: str) -> dict[int, float]:
        """Return a figure by block, of the measurements that count."""
        return self._by_block(metric, [item for item in self.attempts(point) if item.record.kept])

    def first_values(self, point: Point, metric: str) -> dict[int, float]:
        """Return a figure by block, of the first attempts, whether they count or not."""
        return self._by_block(metric, [item for item in self.attempts(point) if item.record.attempt == 1])

    def median(self, point: Point, metric: str) -> float | None:
        """Return the median of a figure over the blocks; None where there is none."""
        values = self.values(point, metric)
        return statistics.median(values.values()) if values else None

    @staticmethod
    def _by_block(metric: str, items: list[Measured]) -> dict[int, float]:
        found: dict[int, float] = {}
        for item in items:
            value = item.figures[metric]
            if value is not None:
                found[item.record.block] = value
        return dict(sorted(found.items()))
