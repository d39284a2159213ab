# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of measurements: modes, load points and aggressors, shuffled within each block, resumable from disk."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, Union

from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import (
    Cell,
    MeasurementRecord,
    has_batch,
)
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import (
    BandwidthCell,
    BandwidthRecord,
)

__all__ = ["Cell", "Config", "Progress", "ScheduleError", "arrival_seed", "derive_seed", "plan", "shuffled"]

#: Lua keeps numbers as doubles and wrk's script multiplies them, so arrival seeds stay below this.
_SEED_LIMIT = 2**31 - 1

CellT = TypeVar("CellT", bound=Union[Cell, BandwidthCell])
ItemT = TypeVar("ItemT")
Done = Sequence[Union[MeasurementRecord, BandwidthRecord]]
Key = tuple[Any, ...]


class ScheduleError(Exception):
    """A schedule cannot be made; the text says which value and what is allowed."""


@dataclass(frozen=True)
class Config:
    """What spans the matrix. ``batch_modes`` are those modes in which a batch workload runs."""

    blocks: int
    modes: tuple[str, ...]
    batch_modes: tuple[str, ...]
    load_points: tuple[float, ...]
    aggressors: tuple[str, ...]
    seed: int
    repeat_cap: int

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Config:
        """Return the schedule of a run. Raises ScheduleError naming what is wrong."""
        schedule: Mapping[str, Any] = manifest["schedule"]
        definitions: Mapping[str, Mapping[str, Any]] = manifest["modes"]
        names = tuple(str(name) for name in schedule["modes"])
        unknown = [name for name in names if name not in definitions]
        if unknown:
            raise ScheduleError(
                f"schedule: mode {unknown[0]!r} has no definition; defined are {', '.join(sorted(definitions))}"
            )
        return cls(
            blocks=int(schedule["blocks"]),
            modes=names,
            batch_modes=tuple(name for name in names if has_batch(definitions[name])),
            load_points=tuple(float(point) for point in schedule["load_points"]),
            aggressors=tuple(str(name) for name in schedule["aggressors"]),
            seed=int(schedule["seed"]),
            repeat_cap=int(schedule["repeat_cap"]),
        )


def derive_seed(*parts: object) -> int:
    """Return a seed that depends on all parts and on nothing else, equal on every machine and Python version."""
    digest = hashlib.sha256("\n".join(repr(part) for part in parts).encode("utf-8")).digest()
    return int.from_bytes(digest[:8], "big") % _SEED_LIMIT + 1


def arrival_seed(run_seed: int, block: int, load_point: float) -> int:
    """Return the seed of the arrivals: the same in every mode, aggressor and attempt of a block and load point."""
    return derive_seed("arrivals", run_seed, block, float(load_point))


def shuffled(items: Sequence[ItemT], seed: int) -> list[ItemT]:
    """Return the items in an order that depends on the seed only.

    Fisher and Yates by hand, since only ``random()`` is guaranteed to give the same sequence in all Python versions
    (documentation of ``random``, "Notes on reproducibility"); ``shuffle`` changed before.
    """
    source = random.Random(seed)  # noqa: S311 - an order is no secret
    result = list(items)
    for last in range(len(result) - 1, 0, -1):
        other = int(source.random() * (last + 1))
        result[last], result[other] = result[other], result[last]
    return result


def _check(config: Config) -> None:
    if config.blocks < 0 or config.repeat_cap < 0:
        raise ScheduleError("schedule: blocks and repeat_cap must be 0 or more")
    if not config.modes or not config.load_points:
        raise ScheduleError("schedule: modes and load_points must name at least one each")
    if config.batch_modes and not config.aggressors:
        raise ScheduleError(
            f"schedule: mode {config.batch_modes[0]!r} runs a batch workload; aggressors must name at least one"
        )
    for what, values in (("mode", config.modes), ("load point", config.load_points), ("aggressor", config.aggressors)):
        if len(set(values)) != len(values):
            raise ScheduleError(f"schedule: a {what} is named twice in {list(values)}; each may be named once")


def plan(config: Config) -> tuple[Cell, ...]:
    """Return all cells in the order in which they are measured. Raises ScheduleError.

    A mode without batch workload has no aggressor: it is measured once for each block and load point, and every
    aggressor of the block is compared with that one measurement.
    """
    _check(config)
    order: list[Cell] = []
    for block in range(1, config.blocks + 1):
        cells = [
            Cell(mode, block, point, aggressor, arrival_seed(config.seed, block, point))
            for mode in config.modes
            for point in config.load_points
            for aggressor in (config.aggressors if mode in config.batch_modes else (None,))
        ]
        order.extend(shuffled(cells, derive_seed("order", config.seed, block)))
    return tuple(order)


class Progress(Generic[CellT]):
    """What is left of a plan: a pure function of the plan and of the measurements on disk, so resuming is no case."""

    def __init__(self, cells: Sequence[CellT], repeat_cap: int) -> None:
        """Keep the plan; a cell is attempted at most ``repeat_cap`` + 1 times."""
        self._cells = tuple(cells)
        self._repeat_cap = repeat_cap
        self._blocks = sorted({cell.block for cell in self._cells})

    def next_cell(self, done: Done) -> CellT | None:
        """Return the cell to measure next, with its attempt, or None when nothing is left.

        Within a block the cells that were never measured come first, in the order of the plan; then those whose
        measurements all failed, fewest attempts first.
        """
        for block in self._blocks:
            open_cells = self._open(block, done)
            if open_cells:
                return min(open_cells, key=lambda cell: cell.attempt)
        return None

    def remaining(self, done: Done) -> int:
        """Return how many measurements are left at least, when none of them has to be repeated."""
        return sum(len(self._open(block, done)) for block in self._blocks)

    def exhausted(self, done: Done) -> tuple[CellT, ...]:
        """Return the cells that were attempted as often as the cap allows, and of which no measurement counts."""
        attempts, kept = _tally(done)
        return tuple(
            cell for cell in self._cells if cell.key not in kept and attempts.get(cell.key, 0) > self._repeat_cap
        )

    def complete(self, done: Done) -> bool:
        """Return whether every cell was had or given up."""
        return self.next_cell(done) is None

    def _open(self, block: int, done: Done) -> list[CellT]:
        attempts, kept = _tally(done)
        return [
            replace(cell, attempt=attempts.get(cell.key, 0) + 1)
            for cell in self._cells
            if cell.block == block and cell.key not in kept and attempts.get(cell.key, 0) <= self._repeat_cap
        ]


def _tally(done: Done) -> tuple[dict[Key, int], dict[Key, bool]]:
    attempts: dict[Key, int] = {}
    kept: dict[Key, bool] = {}
    for record in done:
        attempts[record.key] = attempts.get(record.key, 0) + 1
        if record.kept:
            kept[record.key] = True
    return attempts, kept
