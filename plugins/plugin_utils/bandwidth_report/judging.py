# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shaper under test against its objectives, and beside the other shapers in the same blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import effects, objectives, statistics
from ansible_collections.colocation.testbed.plugins.module_utils.measure.effects import Judgement
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import TESTED_SHAPER
from ansible_collections.colocation.testbed.plugins.module_utils.measure.statistics import Interval
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.measured import Point, Traffic

if TYPE_CHECKING:
    from ansible_collections.colocation.testbed.plugins.module_utils.measure.objectives import Objective
    from ansible_collections.colocation.testbed.plugins.module_utils.measure.verdict import Reason
    from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.guards_table import GuardTable

#: Figures that are set beside the other shapers'.
COMPARED = (objectives.COST, "kernel_cpu_s_per_gbit", "rr_p50_us", "rr_p99_us", "received_mbps")
_COSTS = (objectives.COST, "kernel_cpu_s_per_gbit")
#: What a Gbit costs compares at about the same rate only: faster traffic comes in longer pieces, which cost less.
SAME_RATE_PCT = 10.0
_SWITCHES = "switch_p95_ms"


@dataclass(frozen=True)
class Comparison:
    """One figure of the shaper under test beside another shaper's, paired by block."""

    point: Point
    metric: str
    against: str
    ratio: Interval | None
    difference: Interval | None
    blocks: int
    result: str
    other_rate: bool


@dataclass(frozen=True)
class Judged:
    """One objective with its figure, what follows, and why; ``broken`` are guards that keep it from counting."""

    point: Point
    objective: Objective
    figure: Interval | None
    blocks: int
    judgement: Judgement
    broken: tuple[Reason, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the form of summary.json."""
        return {
            "scenario": self.point.scenario,
            "case": self.point.case,
            "objective": self.objective.name,
            "limit": self.objective.limit,
            "unit": self.objective.unit,
            "figure": None if self.figure is None else self.figure.as_dict(),
            "blocks": self.blocks,
            "result": self.judgement.result,
            "reasons": list(self.judgement.reasons),
        }


def judged(traffic: Traffic, table: GuardTable) -> tuple[Judged, ...]:
    """Judge every objective of every case."""
    return tuple(_judged(traffic, table, point, item) for point, asked in traffic.wanted.items() for item in asked)


def _judged(traffic: Traffic, table: GuardTable, point: Point, item: Objective) -> Judged:
    if item.against:
        figure, blocks = ratio(traffic, point, item.metric, item.against)
        concerned = [point, point.other(item.against)]
    else:
        values = traffic.values(point, item.metric)
        figure, blocks, concerned = objectives.figure_of(list(values.values())), len(values), [point]
    found = objectives.judge(item, figure, blocks)
    if item.against and other_rate(traffic, point, item.against):
        found = Judgement(effects.INCONCLUSIVE, (_rates_told(traffic, point, item.against),))
    if item.metric == _SWITCHES:
        found = objectives.enough_switches(found, sum(traffic.values(point, "switches").values()))
    attempted = min(traffic.blocks_measured(one) for one in concerned)
    if blocks >= statistics.MIN_BLOCKS and blocks * 2 < attempted:
        reason = f"only {blocks} of {attempted} blocks could be had, the others were spoiled"
        found = Judgement(effects.INCONCLUSIVE, (reason,))
    open_reasons = table.open_at(point) if item.metric.startswith("accuracy") else ()
    if open_reasons and found.result == effects.PASS:
        found = Judgement(effects.INCONCLUSIVE, (*found.reasons, *open_reasons))
    broken = table.invalid_at(concerned)
    if broken:
        found = Judgement(effects.INVALID, tuple(reason.full for reason in broken))
    return Judged(point, item, figure, blocks, found, broken)


def ratio(traffic: Traffic, point: Point, metric: str, against: str) -> tuple[Interval | None, int]:
    """Return a figure's ratio to another shaper's, paired by block, as geometric mean with interval; pairs."""
    ratios = statistics.log_ratios(traffic.values(point, metric), traffic.values(point.other(against), metric))
    change = statistics.change_pct(ratios)
    if change is None:
        return None, len(ratios)
    return Interval(*(1.0 + part / 100.0 for part in (change.value, change.low, change.high))), len(ratios)


def other_rate(traffic: Traffic, point: Point, against: str) -> bool:
    """Return whether another shaper let through so much more or less that what a Gbit costs does not compare."""
    found, _unused = ratio(traffic, point, "received_mbps", against)
    return found is not None and abs(100.0 * (found.value - 1.0)) > SAME_RATE_PCT


def _rates_told(traffic: Traffic, point: Point, against: str) -> str:
    own, other = (traffic.median(one, "received_mbps") or 0.0 for one in (point, point.other(against)))
    return f"received {own:.0f} Mbit/s beside {other:.0f} with {against}: what a Gbit costs compares at one rate only"


def comparisons(traffic: Traffic, table: GuardTable, found: tuple[Judged, ...]) -> tuple[Comparison, ...]:
    """Return every figure of COMPARED beside every other shaper's, where both were measured in two blocks or more."""
    results = {(item.point, item.objective.metric, item.objective.against): item.judgement.result for item in found}
    made = []
    for point in traffic.points():
        if point.shaper == TESTED_SHAPER:
            continue
        own = point.other(TESTED_SHAPER)
        for metric in COMPARED:
            figure, blocks = ratio(traffic, own, metric, point.shaper)
            apart, _unused = effects.points_won(traffic.values(own, metric), traffic.values(point, metric))
            elsewhere = metric in _COSTS and other_rate(traffic, own, point.shaper)
            if elsewhere:
                figure = apart = None
            result = results.get((own, metric, point.shaper), effects.NONE)
            if table.invalid_at([own, point]):
                result = effects.INVALID
            if blocks:
                made.append(Comparison(own, metric, point.shaper, figure, apart, blocks, result, elsewhere))
    return tuple(made)
