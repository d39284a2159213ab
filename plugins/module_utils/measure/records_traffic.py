# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of the bandwidth experiment consists of: cells and measurements, as typed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import RecordsError

#: The shaper under test; the others are what it is compared with.
TESTED_SHAPER = "ebpf"


@dataclass(frozen=True)
class BandwidthCell:
    """One case of a scenario with one shaper in one block, and which attempt at it this is (1 is the first)."""

    scenario: str
    case: str
    direction: str
    shaper: str
    block: int
    seed: int
    attempt: int = 1

    @property
    def key(self) -> tuple[int, str, str, str]:
        """Return what identifies the cell whatever the attempt."""
        return (self.block, self.scenario, self.case, self.shaper)


@dataclass(frozen=True)
class BandwidthRecord:
    """A measurement on disk (``measurement.json``): a cell that was measured, and whether it counts."""

    scenario: str
    case: str
    direction: str
    shaper: str
    block: int
    attempt: int
    kept: bool
    reasons: tuple[str, ...]
    seed: int
    n: int = 0

    @property
    def key(self) -> tuple[int, str, str, str]:
        """Return what identifies the cell whatever the attempt."""
        return (self.block, self.scenario, self.case, self.shaper)

    @property
    def name(self) -> str:
        """Return the name of the measurement's directory."""
        return f"{self.n:03d}-{self.scenario}.{self.case}.{self.shaper}-{self.block}"

    @classmethod
    def of(cls, cell: BandwidthCell, kept: bool = True, reasons: tuple[str, ...] = ()) -> BandwidthRecord:
        """Return the record of a cell that was measured."""
        return cls(
            scenario=cell.scenario,
            case=cell.case,
            direction=cell.direction,
            shaper=cell.shaper,
            block=cell.block,
            attempt=cell.attempt,
            kept=kept,
            reasons=reasons,
            seed=cell.seed,
        )

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> BandwidthRecord:
        """Return the record in a ``measurement.json``. Raises RecordsError naming what is missing or wrong."""
        try:
            return cls(
                n=int(value["n"]),
                scenario=str(value["scenario"]),
                case=str(value["case"]),
                direction=str(value["direction"]),
                shaper=str(value["shaper"]),
                block=int(value["block"]),
                attempt=int(value["attempt"]),
                kept=bool(value["kept"]),
                reasons=tuple(str(reason) for reason in value["reasons"]),
                seed=int(value["seed"]),
            )
        except KeyError as exc:
            raise RecordsError(f"measurement: key {exc} is missing; restore the file from a copy") from exc
        except (TypeError, ValueError) as exc:
            raise RecordsError(
                f"measurement: a value has the wrong type ({exc}); restore the file from a copy"
            ) from exc

    def as_dict(self) -> dict[str, Any]:
        """Return the value to store in ``measurement.json``."""
        return {
            "n": self.n,
            "scenario": self.scenario,
            "case": self.case,
            "direction": self.direction,
            "shaper": self.shaper,
            "block": self.block,
            "attempt": self.attempt,
            "kept": self.kept,
            "reasons": list(self.reasons),
            "seed": self.seed,
        }
