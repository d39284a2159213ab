# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every report knows, whatever the experiment: verdict, guards, hosts; and the values that they are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.measure import limits

Json = Mapping[str, Any]

RESULTS = ("pass", "fail", "inconclusive", "invalid", "none")


class ReportError(Exception):
    """The report cannot be made: text = what: why; do this."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval; an end without data is None."""

    value: float
    low: float | None
    high: float | None
    blocks: int | None = None


@dataclass(frozen=True)
class Metric:
    """One metric over the kept blocks of a cell."""

    median: float
    low: float | None
    high: float | None
    values: tuple[float, ...]


@dataclass(frozen=True)
class Mode:
    """A row of the matrix with its colour (its place in the order, the baseline first)."""

    name: str
    colour: int
    is_baseline: bool
    title: str
    result: str
    sentence: str


@dataclass(frozen=True)
class Guard:
    """One guard over all measurements that count."""

    name: str
    title: str
    limit: float | None
    unit: str
    worst: float | None
    measurements: int
    tripped: int
    where: tuple[str, ...]
    ok: bool
    text: str

    @property
    def extent(self) -> str:
        """Return where it tripped, in words: one that judges the repeats has no measurement of its own."""
        known = limits.BY_NAME.get(self.name)
        if known is not None and known.scope == "run":
            return "over the whole run"
        return f"in {self.tripped} of {quantity.counted(self.measurements, 'measurement')}"


@dataclass(frozen=True)
class Outcome:
    """What a run came to, and where it comes from."""

    run_id: str
    created: str
    partial: bool
    result: str
    sentence: str
    reasons: tuple[str, ...]
    guards: tuple[Guard, ...]
    reference: tuple[Json, ...]
    hosts: Json
    manifest: Json
    summary: Json


def common(summary: Json, manifest: Json) -> dict[str, Any]:
    """Return the fields of Outcome from a summary and the manifest of its run, by name."""
    verdict = summary["verdict"]
    return {
        "run_id": str(summary["run_id"]),
        "created": str(summary["created"]),
        "partial": bool(summary["partial"]),
        "result": result_word(verdict["result"]),
        "sentence": str(verdict["sentence"]),
        "reasons": tuple(map(str, verdict["reasons"])),
        "guards": tuple(_guard(item) for item in summary["guards"]),
        "reference": tuple(summary.get("reference") or ()),
        "hosts": summary.get("hosts") or {},
        "manifest": manifest,
        "summary": summary,
    }


def unreadable(summary: Json, schema: str, error: Exception) -> ReportError:
    """Return the error for a summary that lacks something that its schema requires."""
    return ReportError(
        f"summary of run {summary.get('run_id', '?')}: it does not follow {schema} "
        f"({type(error).__name__}: {error}); make it again from the run directory with the playbook report"
    )


def result_word(word: object) -> str:
    """Return a result as it is. Raises ValueError for what is none."""
    if word not in RESULTS:
        raise ValueError(f"result {word!r} is none of {', '.join(RESULTS)}")
    return str(word)


def interval(item: Json | None) -> Interval | None:
    """Read ``{"value", "low", "high"}``; None stays None, and so does one without a value."""
    if item is None or item.get("value") is None:
        return None
    blocks = item.get("blocks")
    return Interval(
        float(item["value"]),
        number(item.get("low")),
        number(item.get("high")),
        None if blocks is None else int(blocks),
    )


def number(value: object) -> float | None:
    """Return a number of JSON as it is, None for null."""
    return None if value is None else float(str(value))


def metric(item: Json) -> Metric:
    """Read a figure over blocks."""
    return Metric(float(item["median"]), number(item["low"]), number(item["high"]), tuple(map(float, item["values"])))


def _guard(item: Json) -> Guard:
    return Guard(
        name=str(item["guard"]),
        title=str(item["title"]),
        limit=number(item["limit"]),
        unit=str(item["unit"]),
        worst=number(item["worst"]),
        measurements=int(item["measurements"]),
        tripped=int(item["tripped"]),
        where=tuple(map(str, item["where"])),
        ok=bool(item["ok"]),
        text=str(item["text"]),
    )
