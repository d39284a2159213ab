# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the report knows: the summary and the manifest of a run, read once into typed values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import (
    Interval,
    Json,
    Metric,
    Mode,
    Outcome,
    common,
    interval,
    metric,
    number,
    result_word,
    unreadable,
)


@dataclass(frozen=True)
class Condition:
    """Under what a mode was measured: load point (share of the peak) and aggressor."""

    load_point: float | None
    aggressor: str | None

    def covers(self, other: Condition) -> bool:
        """Whether what was measured here stands for another condition too.

        A mode without batch workload has no aggressor; it is measured once for each load point and
        stands beside every aggressor of that load point.
        """
        return self.load_point == other.load_point and self.aggressor in (None, other.aggressor)


@dataclass(frozen=True)
class Cell:
    """One mode under one condition."""

    mode: str
    condition: Condition
    measured: int
    kept: int
    rate_rps: float | None
    metrics: Mapping[str, Metric]

    def median(self, metric: str) -> float | None:
        """Median of a metric over the kept blocks, None without data."""
        found = self.metrics.get(metric)
        return found.median if found else None


@dataclass(frozen=True)
class Effect:
    """Change of one metric of a mode against the baseline of the same blocks."""

    mode: str
    condition: Condition
    metric: str
    change_pct: Interval | None
    blocks: int
    detectable_pct: float | None
    objective_pct: float | None
    result: str
    reasons: tuple[str, ...]
    unfiltered: Interval | None


@dataclass(frozen=True)
class Objective:
    """A limit that a gain must not fall short of, and how it was judged."""

    name: str
    limit: float
    result: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Gain:
    """What a mode wins under one condition."""

    utilisation_won_points: Interval | None
    batch_work_kept_pct: Interval | None
    p99_cost_pct_per_point: Interval | None
    objectives: tuple[Objective, ...]


@dataclass(frozen=True)
class View(Outcome):
    """Everything that sections, plots and tables of the matrix draw from."""

    modes: tuple[Mode, ...]
    conditions: tuple[Condition, ...]
    cells: Mapping[tuple[str, Condition], Cell]
    effects: Mapping[tuple[str, Condition, str], Effect]
    gains: Mapping[tuple[str, Condition], Gain]
    best_effort: Mapping[tuple[str, Condition], Json]

    def cell(self, mode: str, condition: Condition) -> Cell | None:
        """Find a cell; None when it was not measured."""
        alone = (mode, Condition(condition.load_point, None))
        return self.cells.get((mode, condition)) or self.cells.get(alone)

    def effect(self, mode: str, condition: Condition, metric: str) -> Effect | None:
        """Find the effect of a mode on a metric."""
        return self.effects.get((mode, condition, metric))

    def gain(self, mode: str, condition: Condition) -> Gain | None:
        """Find what a mode wins."""
        return self.gains.get((mode, condition))

    def held_back(self, mode: str, condition: Condition) -> Json | None:
        """Find what the quota of best effort did, as summary.json has it; None where it was not sampled."""
        alone = (mode, Condition(condition.load_point, None))
        return self.best_effort.get((mode, condition)) or self.best_effort.get(alone)

    @property
    def candidates(self) -> tuple[Mode, ...]:
        """Modes other than the baseline."""
        return tuple(mode for mode in self.modes if not mode.is_baseline)

    @property
    def is_grid(self) -> bool:
        """Whether there is more than one condition."""
        return len(self.conditions) > 1


def build(summary: Json, manifest: Json) -> View:
    """Read a summary and the manifest of its run.

    Raises ReportError when the summary lacks something that its schema requires.
    """
    try:
        return _view(summary, manifest)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise unreadable(summary, "colocation.testbed/summary/1", error) from error


def _view(summary: Json, manifest: Json) -> View:
    cells = [_cell(item) for item in summary["cells"]]
    effects = [_effect(item) for item in summary["effects"]]
    return View(
        **common(summary, manifest),
        modes=_modes(summary, manifest, [cell.mode for cell in cells]),
        conditions=_conditions(cells),
        cells={(cell.mode, cell.condition): cell for cell in cells},
        effects={(effect.mode, effect.condition, effect.metric): effect for effect in effects},
        gains={(str(item["mode"]), _condition(item)): _gain(item) for item in summary["gains"]},
        best_effort={(str(item["mode"]), _condition(item)): item for item in summary.get("best_effort") or ()},
    )


def _conditions(cells: Sequence[Cell]) -> tuple[Condition, ...]:
    found = list(dict.fromkeys(cell.condition for cell in cells))
    pressed = {condition.load_point for condition in found if condition.aggressor is not None}
    return tuple(item for item in found if item.aggressor is not None or item.load_point not in pressed)


def _condition(item: Json) -> Condition:
    load_point, aggressor = item["load_point"], item["aggressor"]
    return Condition(
        None if load_point is None else float(load_point),
        None if aggressor is None else str(aggressor),
    )


def _cell(item: Json) -> Cell:
    metrics = {name: metric(value) for name, value in item["metrics"].items() if value is not None}
    return Cell(
        str(item["mode"]),
        _condition(item),
        int(item["measured"]),
        int(item["kept"]),
        number(item["rate_rps"]),
        metrics,
    )


def _effect(item: Json) -> Effect:
    return Effect(
        mode=str(item["mode"]),
        condition=_condition(item),
        metric=str(item["metric"]),
        change_pct=interval(item["change_pct"]),
        blocks=int(item["blocks"]),
        detectable_pct=number(item["detectable_pct"]),
        objective_pct=number(item["objective_pct"]),
        result=result_word(item["result"]),
        reasons=tuple(map(str, item["reasons"])),
        unfiltered=interval(item.get("unfiltered")),
    )


def _gain(item: Json) -> Gain:
    return Gain(
        interval(item["utilisation_won_points"]),
        interval(item["batch_work_kept_pct"]),
        interval(item["p99_cost_pct_per_point"]),
        tuple(map(_objective, item.get("objectives") or ())),
    )


def _objective(item: Json) -> Objective:
    reasons = tuple(map(str, item.get("reasons") or ()))
    return Objective(str(item["objective"]), float(item["limit"]), result_word(item["result"]), reasons)


def _modes(summary: Json, manifest: Json, measured: Sequence[str]) -> tuple[Mode, ...]:
    """Order the measured modes as the schedule does, the baseline first; its colour is never another mode's."""
    baseline = str(summary["baseline"])
    planned = [str(name) for name in (manifest.get("schedule") or {}).get("modes", [])]
    names = [name for name in dict.fromkeys([*planned, *measured]) if name in set(measured)]
    names.sort(key=lambda name: name != baseline)
    shift = 0 if baseline in names else 1
    judged = summary.get("modes") or {}
    definitions = manifest.get("modes") or {}
    modes = []
    for place, name in enumerate(names):
        facts = judged.get(name) or {}
        title = facts.get("title") or (definitions.get(name) or {}).get("title") or ""
        modes.append(
            Mode(
                name=name,
                colour=place + shift,
                is_baseline=name == baseline,
                title="" if title == name else str(title),
                result=result_word(facts.get("result", "none")),
                sentence=str(facts.get("sentence") or ""),
            )
        )
    return tuple(modes)
