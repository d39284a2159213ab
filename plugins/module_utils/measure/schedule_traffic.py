# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of measurements of the bandwidth experiment: cases and shapers of a scenario, shuffled in each block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import schedule
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import BandwidthCell
from ansible_collections.colocation.testbed.plugins.module_utils.measure.schedule import ScheduleError


def plan(manifest: Mapping[str, Any]) -> tuple[BandwidthCell, ...]:
    """Return all cells in the order in which they are measured. Raises ScheduleError.

    Within a block scenarios follow each other, the cases of one are shuffled, and so are the shapers of each case, one
    right after the other: what is compared lies close together in time. ``schedule.cells`` of the manifest chooses;
    without it everything is measured.
    """
    chosen = manifest["schedule"].get("cells") or _everything(manifest)
    seed, scenarios = int(manifest["schedule"]["seed"]), manifest["scenarios"]
    _check(chosen, scenarios)
    order: list[BandwidthCell] = []
    for block in range(1, max((int(item["blocks"]) for item in chosen), default=0) + 1):
        for scenario in dict.fromkeys(str(item["scenario"]) for item in chosen):
            for case in _cases(chosen, scenario, schedule.derive_seed("cases", seed, block, scenario)):
                direction = str(scenarios[scenario]["cases"][case]["direction"])
                drawn = schedule.derive_seed("traffic", seed, block, scenario, case)
                cells = [
                    BandwidthCell(scenario, case, direction, str(item["shaper"]), block, drawn)
                    for item in chosen
                    if (item["scenario"], item["case"]) == (scenario, case) and block <= int(item["blocks"])
                ]
                order.extend(schedule.shuffled(cells, schedule.derive_seed("order", seed, block, scenario, case)))
    return tuple(order)


def _cases(chosen: Sequence[Mapping[str, Any]], scenario: str, seed: int) -> list[str]:
    names = dict.fromkeys(str(item["case"]) for item in chosen if item["scenario"] == scenario)
    return schedule.shuffled(list(names), seed)


def _everything(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    blocks = manifest["schedule"]["blocks"]
    return [
        {"scenario": name, "case": case, "shaper": shaper, "blocks": blocks}
        for name, scenario in sorted(manifest["scenarios"].items())
        for case in sorted(scenario["cases"])
        for shaper in scenario["shapers"]
    ]


def _check(chosen: list[dict[str, Any]], scenarios: Mapping[str, Any]) -> None:
    seen = set()
    for item in chosen:
        key = (item["scenario"], item["case"], item["shaper"])
        if item["scenario"] not in scenarios or item["case"] not in scenarios[item["scenario"]]["cases"]:
            raise ScheduleError(f"schedule: {item['scenario']}.{item['case']} has no definition among the scenarios")
        if key in seen:
            raise ScheduleError(f"schedule: {'.'.join(key)} is named twice; each may be named once")
        seen.add(key)
