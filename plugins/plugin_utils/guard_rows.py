# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one guard found over a run, as a row of summary.json: the same for every experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ansible_collections.colocation.testbed.plugins.module_utils import quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import (
        Guard,
        GuardResult,
        MeasurementRecord,
    )
    from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import BandwidthRecord


class Judged(Protocol):
    """A measurement of which the guards were run."""

    @property
    def record(self) -> MeasurementRecord | BandwidthRecord:
        """Return which measurement it is."""

    @property
    def validity(self) -> tuple[GuardResult, ...]:
        """Return what the guards found."""


@dataclass(frozen=True)
class Finding:
    """One guard in one measurement."""

    item: Judged
    result: GuardResult


def findings(measured: Sequence[Judged], name: str) -> list[Finding]:
    """Return what one guard found, in the order of execution."""
    return [Finding(item, result) for item in measured for result in item.validity if result.guard == name]


def row(guard: Guard, found: Sequence[Finding], blamed: int) -> dict[str, Any]:
    """Return the row of a guard that looks at measurements.

    :param found: one finding or more.
    :param blamed: how many cells were never had because of this guard.
    """
    tripped = [finding for finding in found if not finding.result.ok]
    counted = [finding for finding in found if finding.item.record.kept]
    bad = [finding for finding in counted if not finding.result.ok and not finding.result.collapse]
    figures = [finding.result.figure for finding in counted or found]
    return {
        "guard": guard.name,
        "title": guard.title,
        "limit": found[0].result.limit,
        "unit": guard.unit,
        "worst": None if None in figures else max(figure for figure in figures if figure is not None),
        "measurements": len(found),
        "tripped": len(tripped),
        "where": [finding.item.record.name for finding in tripped],
        "ok": not bad and not blamed,
        "text": _text(len(found), tripped, bad, blamed),
    }


def run_row(guard: Guard, result: GuardResult, measured: Sequence[Judged]) -> dict[str, Any]:
    """Return the row of a guard that looks at the run as a whole."""
    return {
        "guard": guard.name,
        "title": guard.title,
        "limit": result.limit,
        "unit": guard.unit,
        "worst": result.figure,
        "measurements": sum(item.record.kept for item in measured),
        "tripped": int(not result.ok),
        "where": [],
        "ok": result.ok,
        "text": result.text,
    }


def _text(total: int, tripped: Sequence[Finding], bad: Sequence[Finding], blamed: int) -> str:
    if not tripped:
        return "held in the only measurement" if total == 1 else f"held in all {total} measurements"
    counted = quantity.counted(total, "measurement")
    shown = (bad or tripped)[0]
    first = f"first in {shown.item.record.name}: {shown.result.text}"
    if bad:
        return f"tripped in {len(bad)} of {counted} that count; {first}"
    if blamed:
        return f"tripped in every attempt at {quantity.counted(blamed, 'cell')}; {first}"
    starved = sum(finding.result.collapse for finding in tripped)
    if starved:
        return f"the service could not keep up in {starved} of {counted}, which count; {first}"
    return f"tripped in {len(tripped)} of {counted}, which do not count and were measured again; {first}"


def blame(attempts: Sequence[Judged]) -> tuple[GuardResult, ...]:
    """Return what spoiled a lost cell for good; nothing when one attempt at least was spoiled by noise alone."""
    causes = [[result for result in item.validity if not result.ok and not result.noise] for item in attempts]
    return tuple(causes[0]) if causes and all(causes) else ()
