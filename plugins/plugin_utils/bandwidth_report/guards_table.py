# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the guards found over a run of the bandwidth experiment, and which cells do not count because of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import guards_traffic, limits, schedule
from ansible_collections.colocation.testbed.plugins.module_utils.measure.verdict import Reason
from ansible_collections.colocation.testbed.plugins.plugin_utils import guard_rows
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.measured import (
    Point,
    Traffic,
    median_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import GuardResult
    from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import BandwidthCell

_HEADROOM = "sender_headroom"


@dataclass(frozen=True)
class GuardTable:
    """The guards of a run.

    ``lost`` maps each cell that was never had to the guards that are to blame, see guard_rows.blame. ``headroom`` is
    whether senders could offer more than the limits, of each judged case that asks for accuracy.
    """

    traffic: Traffic
    lost: Mapping[BandwidthCell, tuple[GuardResult, ...]]
    headroom: Mapping[Point, GuardResult]

    @classmethod
    def of(cls, traffic: Traffic) -> GuardTable:
        """Find the cells that were given up, and judge what only the run as a whole can show."""
        progress = schedule.Progress(traffic.plan, traffic.repeat_cap)
        exhausted = progress.exhausted([item.record for item in traffic.measured])
        lost = {
            cell: guard_rows.blame([item for item in traffic.measured if item.record.key == cell.key])
            for cell in exhausted
        }
        return cls(traffic, lost, {point: _headroom(traffic, [point]) for point in _needing_headroom(traffic)})

    def rows(self) -> list[dict[str, Any]]:
        """Return one entry for each guard that applied, in the order of the table of limits."""
        rows = []
        for guard in limits.TRAFFIC:
            found = guard_rows.findings(self.traffic.measured, guard.name)
            if found:
                blamed = sum(any(result.guard == guard.name for result in blame) for blame in self.lost.values())
                rows.append(guard_rows.row(guard, found, blamed))
            if guard.name == _HEADROOM and self.headroom:
                rows.append(guard_rows.run_row(guard, _headroom(self.traffic, self.headroom), self.traffic.measured))
        return rows

    def invalid_at(self, points: Iterable[Point]) -> tuple[Reason, ...]:
        """Return why figures that these cells take part in do not count, in the order of the guards."""
        concerned = set(points)
        where: dict[str, list[str]] = {}
        for item in self.traffic.measured:
            if item.record.kept and item.point in concerned:
                for result in item.validity:
                    if not result.ok:
                        where.setdefault(result.guard, []).append(f"{item.record.name}: {result.text}")
        for cell, blame in self.lost.items():
            if Point(cell.scenario, cell.case, cell.shaper) in concerned:
                for result in blame:
                    where.setdefault(result.guard, []).append(f"every attempt in block {cell.block}: {result.text}")
        for point, result in self.headroom.items():
            if point in concerned and result.figure is not None and not result.ok:
                where.setdefault(_HEADROOM, []).append(result.text)
        return tuple(_reason(name, where[name]) for name in limits.BY_NAME if name in where)

    def open_at(self, point: Point) -> tuple[str, ...]:
        """Return what keeps a cell from passing without making it invalid."""
        result = self.headroom.get(point)
        return (result.text,) if result is not None and result.figure is None else ()

    def notes(self) -> tuple[str, ...]:
        """Return which cells were lost to noise."""
        noisy = [cell for cell, blame in self.lost.items() if not blame]
        if not noisy:
            return ()
        names = ", ".join(f"{cell.scenario}.{cell.case} with {cell.shaper} in block {cell.block}" for cell in noisy[:3])
        more = f" and {len(noisy) - 3} more" if len(noisy) > 3 else ""
        return (f"{names}{more}: noise spoiled every attempt, so these are left out",)


def _reason(name: str, where: list[str]) -> Reason:
    guard = limits.BY_NAME[name]
    more = f" (and {len(where) - 1} more)" if len(where) > 1 else ""
    return Reason(guard.broken, f"{guard.title}: {where[0]}{more}")


def _needing_headroom(traffic: Traffic) -> tuple[Point, ...]:
    """Return the judged cells that ask for accuracy: a sender at its own limit would look exact there."""
    return tuple(
        point
        for point, asked in traffic.wanted.items()
        if any(item.metric.startswith("accuracy") for item in asked) and _needed_bps(traffic, point)
    )


def _needed_bps(traffic: Traffic, point: Point) -> float | None:
    """Return the sum of what receivers should count of a cell's limited classes, as median over its measurements."""
    sums = [
        sum(item.expected_bps for item in measured.classes.values() if item.expected_bps is not None)
        for measured in traffic.attempts(point)
    ]
    return median_of(sums)


def _capacity_bps(traffic: Traffic, point: Point) -> float | None:
    """Return what a case's senders get through when nothing holds them: as noted, or as measured without shaping."""
    noted = traffic.case(point).get("capacity_bps")
    if noted is not None:
        return float(noted)
    if any(item.get("offered_bps") is not None for item in traffic.case(point)["classes"].values()):
        return None
    unshaped = traffic.median(point.other(guards_traffic.UNSHAPED), "received_mbps")
    return None if unshaped is None else 1e6 * unshaped


def _headroom(traffic: Traffic, points: Iterable[Point]) -> GuardResult:
    needed: dict[str, float] = {}
    capacity: dict[str, float] = {}
    for point in points:
        needed[point.place] = _needed_bps(traffic, point) or 0.0
        found = _capacity_bps(traffic, point)
        if found:
            capacity[point.place] = found
    return guards_traffic.sender_headroom(needed, capacity, traffic.limits)
