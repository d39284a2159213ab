# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All measurements of a run of the bandwidth experiment with their figures, asked by cell and block."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.measure import (
    figures_traffic,
    frames,
    objectives,
    schedule,
    schedule_traffic,
)
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import TESTED_SHAPER
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report import names
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_rundir import BandwidthRun, RunDirectoryError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.colocation.testbed.plugins.module_utils.measure.figures_traffic import ClassFigures
    from ansible_collections.colocation.testbed.plugins.module_utils.measure.objectives import Objective
    from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import GuardResult
    from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import (
        BandwidthCell,
        BandwidthRecord,
    )

_READING_ERRORS = (
    schedule.ScheduleError,
    objectives.ObjectivesError,
    frames.FramesError,
    quantity.QuantityError,
    AttributeError,
    KeyError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True)
class Point:
    """A case of a scenario with one shaper, whatever the block."""

    scenario: str
    case: str
    shaper: str

    @property
    def place(self) -> str:
        """Return the words that tell its case from others."""
        return f"{self.scenario}.{self.case}"

    def other(self, shaper: str) -> Point:
        """Return the same case with another shaper."""
        return Point(self.scenario, self.case, shaper)


@dataclass(frozen=True)
class Measured:
    """One measurement with its figures and what the guards found."""

    record: BandwidthRecord
    figures: Mapping[str, float | None]
    classes: Mapping[str, ClassFigures]
    validity: tuple[GuardResult, ...]

    @property
    def point(self) -> Point:
        """Return its cell."""
        return Point(self.record.scenario, self.record.case, self.record.shaper)


@dataclass(frozen=True)
class Traffic:
    """A run's measurements beside its manifest; ``plan`` is what was to be measured."""

    manifest: Mapping[str, Any]
    plan: tuple[BandwidthCell, ...]
    measured: tuple[Measured, ...]
    wanted: Mapping[Point, tuple[Objective, ...]]

    @classmethod
    def read(cls, run: BandwidthRun) -> Traffic:
        """Read everything that a run measured. Raises RunDirectoryError."""
        manifest = run.manifest
        try:
            plan = schedule_traffic.plan(manifest)
            measured = tuple(_measured(run, record) for record in run.measurements())
            wanted = {
                point: _objectives(manifest, point, measured)
                for point in _ordered(plan)
                if point.shaper == TESTED_SHAPER
            }
        except _READING_ERRORS as exc:
            text = f"{exc} is missing" if isinstance(exc, KeyError) else str(exc)
            raise RunDirectoryError(f"{run.path}: {text}; restore the run from a copy or measure again") from exc
        return cls(manifest, plan, measured, wanted)

    @property
    def limits(self) -> Mapping[str, Any]:
        """Return the limits that the user set."""
        return dict(self.manifest["limits"])

    @property
    def repeat_cap(self) -> int:
        """Return how often a spoiled measurement is repeated at most."""
        return int(self.manifest["schedule"]["repeat_cap"])

    def case(self, point: Point) -> Mapping[str, Any]:
        """Return the definition of a case."""
        return dict(self.manifest["scenarios"][point.scenario]["cases"][point.case])

    def points(self) -> tuple[Point, ...]:
        """Return all cells, cases in the order in which people read them, ours first among the shapers."""
        return _ordered(self.plan)

    def attempts(self, point: Point) -> tuple[Measured, ...]:
        """Return all measurements of a cell, those that failed as well."""
        return tuple(item for item in self.measured if item.point == point)

    def kept(self, point: Point) -> tuple[Measured, ...]:
        """Return the measurements of a cell that count."""
        return tuple(item for item in self.attempts(point) if item.record.kept)

    def values(self, point: Point, metric: str) -> dict[int, float]:
        """Return a figure by block, of the measurements that count."""
        return _by_block({item.record.block: item.figures[metric] for item in self.kept(point)})

    def class_values(self, point: Point, name: str, figure: str) -> dict[int, float]:
        """Return a figure of one class by block, of the measurements that count."""
        counted = [item for item in self.kept(point) if name in item.classes]
        return _by_block({item.record.block: getattr(item.classes[name], figure) for item in counted})

    def class_names(self, point: Point) -> tuple[str, ...]:
        """Return the classes of a cell in the order of its case, and then whatever else was counted."""
        counted = [name for item in self.attempts(point) for name in item.classes]
        return tuple(dict.fromkeys([*self.case(point)["classes"], *counted]))

    def median(self, point: Point, metric: str) -> float | None:
        """Return the median of a figure over the blocks; None where there is none."""
        values = self.values(point, metric)
        return statistics.median(values.values()) if values else None

    def blocks_measured(self, point: Point) -> int:
        """Return the number of blocks in which a cell was attempted."""
        return len({item.record.block for item in self.attempts(point)})


def _ordered(plan: Sequence[BandwidthCell]) -> tuple[Point, ...]:
    points = {Point(cell.scenario, cell.case, cell.shaper) for cell in plan}
    return tuple(sorted(points, key=lambda one: names.order(one.scenario, one.case, one.shaper)))


def _measured(run: BandwidthRun, record: BandwidthRecord) -> Measured:
    traffic = run.traffic(record)
    case = run.manifest["scenarios"][record.scenario]["cases"][record.case]
    return Measured(
        record=record,
        figures=figures_traffic.figures(run.manifest, case, record.shaper, traffic),
        classes=figures_traffic.class_figures(traffic),
        validity=run.validity(record),
    )


def _objectives(manifest: Mapping[str, Any], point: Point, measured: Sequence[Measured]) -> tuple[Objective, ...]:
    """Return a case's objectives; what is always judged only where a shaper holds a class."""
    case = manifest["scenarios"][point.scenario]["cases"][point.case]
    counted = [item for one in measured if one.point == point for item in one.classes.values()]
    limited = any(item.held for item in counted)
    return objectives.parse(point.place, case["objectives"], limited)


def _by_block(values: Mapping[int, float | None]) -> dict[int, float]:
    return {block: value for block, value in sorted(values.items()) if value is not None}


def median_of(values: Sequence[float]) -> float | None:
    """Return the median; None without values."""
    return statistics.median(values) if values else None
