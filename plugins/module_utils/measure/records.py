# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run consists of: cells, measurements and modes, as typed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class RecordsError(Exception):
    """A stored value does not describe what it should; the text says which key and what is allowed."""


@dataclass(frozen=True)
class Cell:
    """One cell of the matrix in one block, and which attempt at it this is (1 is the first).

    ``load_point`` is a share of the service's peak rate; ``aggressor`` is None where no batch workload runs.
    """

    mode: str
    block: int
    load_point: float
    aggressor: str | None
    seed: int
    attempt: int = 1

    @property
    def key(self) -> tuple[int, str, float, str]:
        """Return what identifies the cell whatever the attempt."""
        return (self.block, self.mode, self.load_point, self.aggressor or "")


@dataclass(frozen=True)
class MeasurementRecord:
    """A measurement on disk (``measurement.json``): a cell that was measured, and whether it counts."""

    mode: str
    block: int
    load_point: float
    aggressor: str | None
    attempt: int
    kept: bool
    reasons: tuple[str, ...]
    seed: int
    rate_rps: float | None
    n: int = 0

    @property
    def key(self) -> tuple[int, str, float, str]:
        """Return what identifies the cell whatever the attempt."""
        return (self.block, self.mode, self.load_point, self.aggressor or "")

    @property
    def name(self) -> str:
        """Return the name of the measurement's directory."""
        return f"{self.n:03d}-{self.mode}-{self.block}"

    @classmethod
    def of(
        cls, cell: Cell, rate_rps: float | None, kept: bool = True, reasons: tuple[str, ...] = ()
    ) -> MeasurementRecord:
        """Return the record of a cell that was measured at ``rate_rps`` (None in a closed loop)."""
        return cls(
            mode=cell.mode,
            block=cell.block,
            load_point=cell.load_point,
            aggressor=cell.aggressor,
            attempt=cell.attempt,
            kept=kept,
            reasons=reasons,
            seed=cell.seed,
            rate_rps=rate_rps,
        )

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> MeasurementRecord:
        """Return the record in a ``measurement.json``. Raises RecordsError naming what is missing or wrong."""
        try:
            rate = value["rate_rps"]
            return cls(
                n=int(value["n"]),
                mode=str(value["mode"]),
                block=int(value["block"]),
                load_point=float(value["load_point"]),
                aggressor=None if value["aggressor"] is None else str(value["aggressor"]),
                attempt=int(value["attempt"]),
                kept=bool(value["kept"]),
                reasons=tuple(str(reason) for reason in value["reasons"]),
                seed=int(value["seed"]),
                rate_rps=None if rate is None else float(rate),
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
            "mode": self.mode,
            "block": self.block,
            "load_point": self.load_point,
            "aggressor": self.aggressor,
            "attempt": self.attempt,
            "kept": self.kept,
            "reasons": list(self.reasons),
            "seed": self.seed,
            "rate_rps": self.rate_rps,
        }


@dataclass(frozen=True)
class Guard:
    """One guard: ``title`` says what it asks, ``broken`` what is so when it tripped.

    ``repeatable`` and ``noise`` as in GuardResult; ``scope`` is measurement or run. ``foremost`` is what leaves nothing
    to judge: the mode was not there at all. The verdict then names it first, and no other guard repeats a window.
    """

    name: str
    title: str
    broken: str
    limit: float
    unit: str
    why: str
    repeatable: bool
    noise: bool
    scope: str = "measurement"
    foremost: bool = False


@dataclass(frozen=True)
class GuardResult:
    """What a guard found: a figure that must not exceed its limit. ``figure`` None is no data, which is not ok.

    ``repeatable`` tells what follows when it tripped: True, the window was spoiled and is measured again; False, a
    repeat would meet the same (or picking windows would bend the result), so the measurement counts as measured and
    the run is invalid. ``noise`` tells the two kinds of repeatable guards apart: a cell that is never had because of
    noise leaves the verdict open, because of anything else makes it invalid. ``collapse`` tells that a colocated mode
    left the service too little to keep up with the load: that is a finding, and latencies are lower bounds.
    """

    guard: str
    figure: float | None
    limit: float
    unit: str
    ok: bool
    text: str
    repeatable: bool = True
    noise: bool = True
    collapse: bool = False

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> GuardResult:
        """Return the result in an element of ``validity.json``. Raises RecordsError."""
        try:
            figure = value["figure"]
            return cls(
                guard=str(value["guard"]),
                figure=None if figure is None else float(figure),
                limit=float(value["limit"]),
                unit=str(value["unit"]),
                ok=bool(value["ok"]),
                text=str(value["text"]),
                repeatable=bool(value.get("repeatable", True)),
                noise=bool(value.get("noise", True)),
                collapse=bool(value.get("collapse", False)),
            )
        except (KeyError, TypeError, ValueError) as exc:
            raise RecordsError(f"validity: an entry is damaged ({exc!r}); restore the file from a copy") from exc

    def as_dict(self) -> dict[str, Any]:
        """Return the value to store in ``validity.json``."""
        return {
            "guard": self.guard,
            "figure": self.figure,
            "limit": self.limit,
            "unit": self.unit,
            "ok": self.ok,
            "text": self.text,
            "repeatable": self.repeatable,
            "noise": self.noise,
            "collapse": self.collapse,
        }


def has_batch(definition: Mapping[str, Any]) -> bool:
    """Return whether a batch workload runs in a mode.

    A definition without the key ``batch`` runs one unless its list of ``workloads`` leaves it out.
    """
    if "batch" in definition:
        return bool(definition["batch"])
    return "batch" in definition.get("workloads", ("service", "batch"))


def on_pods(manifest: Mapping[str, Any]) -> bool:
    """Return whether the workloads of a run were pods; runs of before there were any say nothing."""
    return manifest.get("substrate") == "pod"


def title_of(name: str, definition: Mapping[str, Any]) -> str:
    """Return how a mode is called in sentences and tables."""
    return str(definition.get("title") or name)
