# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Assemble the page of a bandwidth run: a pure function of the run directory and its summary."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import (
    TESTED_SHAPER,
    BandwidthRecord,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report import digest, figures, names, tables
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.view import (
    BandwidthView,
    Cell,
    shaper_mode,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_rundir import BandwidthRun
from ansible_collections.colocation.testbed.plugins.plugin_utils.report import (
    evidence,
    hero,
    numerals,
    page,
    setup_facts,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.hero import Bar
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.markup import Html, details, join, tag
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.page import Section

_LEADS = {
    "rates": "What receivers counted every 100 ms with the programs in the way. Grey is the time in which online "
    "traffic is above the waterline, so that offline traffic must hold back.",
    "settling": "From the moment at which online traffic rises above the waterline to the moment from which offline "
    "traffic keeps to its lower rate, to the millisecond. The dashed line is the objective for 19 of 20.",
    "count": "A limit is kept by each class on its own, so the classes are looked at one by one, not as a sum.",
    "cost": "CPU time of the tested host, whatever it was spent on, for each Gbit that receivers counted. The shapers "
    "take turns in the same blocks. Lines are 95 % intervals of the median. What a Gbit costs compares at about the "
    "same rate only, since faster traffic comes in longer pieces; what ran at another rate is left out.",
    "latency": "A request and its answer a thousand times a second, while other classes send what they may. Lines are "
    "the median block, bands reach from the least to the greatest. The further right a line stays low, the better.",
}


def render(run: BandwidthRun, view: BandwidthView) -> str:
    """Make the page of a run.

    Raises ReportError when a template is missing, and RunDirectoryError when a file of the run cannot be read.
    """
    records = run.measurements()
    sections = [*_results(view, run, records), *_evidence(view, run, records)]
    return page.assemble(view, sections, _tiles(view))


def _results(view: BandwidthView, run: BandwidthRun, records: Sequence[BandwidthRecord]) -> list[Section]:
    wide, cards = figures.rates(view, run, records)
    costs = figures.cost(view)
    return [
        Section(
            "rates",
            "Rates",
            "Rates over time",
            _LEADS["rates"],
            join(wide, tag("div", cards, class_="cards") if cards else None) if wide else None,
        ),
        Section(
            "settling", "Giving way", "How quickly offline traffic gives way", _LEADS["settling"],
            figures.settling(view, run, records),
        ),
        Section("objectives", "Objectives", "What was wanted", "", tables.judged(view)),
        Section("count", "Classes", "Accuracy by number of classes", _LEADS["count"], figures.errors(view)),
        Section("cost", "Cost", "What it costs beside other shapers", _LEADS["cost"], join(costs, tables.cost(view))),
        Section("latency", "Latency", "Round trips", _LEADS["latency"], join(figures.latency(view, run, records))),
        Section(
            "scenarios", "Scenarios", "Every case in numbers", "",
            join([tables.scenario(view, name) for name in view.scenarios]),
        ),
    ]  # fmt: skip


def _evidence(view: BandwidthView, run: BandwidthRun, records: Sequence[BandwidthRecord]) -> list[Section]:
    manifest = view.manifest
    facts = {
        "Experiment": {
            "plane": names.PLANES.get(view.plane, view.plane),
            "accounting": view.accounting,
            "link_bps": manifest.get("link_bps"),
        },
        "Schedule": {key: value for key, value in (manifest.get("schedule") or {}).items() if key != "cells"},
        "Guard limits": manifest.get("limits"),
    }
    load = Section("settings", "Settings", "Settings", "", setup_facts.fact_cards(facts))
    return [
        page.guards_section(view),
        Section("failed", "Failed", "Measurements that do not count", "", _failed(records)),
        Section("published", "Published", "Beside the published results", "", tables.published(view)),
        Section(
            "shaping",
            "Shaping",
            "Shaping as applied",
            "What was asked for, and what was read back from the kernel.",
            join([_applied(view, run, records, cell) for cell in view.cells]),
        ),
        *page.origin_sections(view, load),
    ]


def _failed(records: Sequence[BandwidthRecord]) -> Html:
    rows = [
        [
            tag("span", record.name, class_="mono"),
            f"{record.scenario}.{record.case}",
            names.shaper(record.shaper),
            str(record.block),
            str(record.attempt),
            "; ".join(record.reasons) or "no reason was recorded",
        ]
        for record in records
        if not record.kept
    ]
    head = ["Measurement", "Case", "Shaper", "Block", "Attempt", "Why it does not count"]
    return evidence.failed_table(head, rows, records)


def _applied(view: BandwidthView, run: BandwidthRun, records: Sequence[BandwidthRecord], cell: Cell) -> Html | None:
    chosen = digest.kept(records, cell)
    if not chosen:
        return None
    caption = f"Values read back for {chosen[0].name}"
    nothing = "Nothing was set: the device keeps the kernel's queueing discipline."
    listed = setup_facts.applied(run.policy(chosen[0]), caption, "Value", nothing)
    return details(f"{view.title(cell.scenario)}: {cell.case}, {names.shaper(cell.shaper)}", listed)


def _tiles(view: BandwidthView) -> Html | None:
    """Make the tiles: how exact, how quick, at what cost."""
    made = [tile for tile in (_exact(view), _quick(view), _cost(view)) if tile is not None]
    if not made:
        return None
    where = tag("p", f"Plane {names.PLANES.get(view.plane, view.plane)}, accounting {view.accounting}", class_="where")
    return tag("section", where, tag("div", made, class_="tiles"), aria_label="Accuracy, speed, cost", class_="figures")


def _beside(view: BandwidthView, metric: str) -> list[Cell]:
    """Return the cells of the first case that has a figure of the shaper under test, ours first."""
    own = next((cell for cell in view.cells if cell.shaper == TESTED_SHAPER and cell.median(metric) is not None), None)
    return list(view.cells_of(own.scenario, own.case)) if own else []


def _exact(view: BandwidthView) -> Html | None:
    cells = _beside(view, "accuracy_pct")
    bars = [
        Bar(shaper_mode(cell.shaper), value, numerals.percent(value, 2), "")
        for cell in cells
        if cell.shaper != "none"
        for value in [cell.median("accuracy_pct")]
    ]
    if not bars:
        return None
    where = f"{cells[0].scenario}.{cells[0].case}"
    return hero.tile("Accuracy", f"what receivers counted against what was set, {where}", bars, bars[0], "", 100.0)


def _quick(view: BandwidthView) -> Html | None:
    cells = [cell for cell in _beside(view, "switch_p95_ms") if cell.shaper == TESTED_SHAPER]
    if not cells:
        return None
    ways = (("giving way", "switch_p95_ms", 2), ("coming back", "switch_up_p95_ms", 0))
    bars = [
        Bar(
            dataclasses.replace(shaper_mode(TESTED_SHAPER), name=name, colour=colour),
            value,
            f"{numerals.plain(value, 1)}{numerals.NBSP}ms",
            "",
        )
        for name, metric, colour in ways
        if (value := cells[0].median(metric)) is not None
    ]
    return hero.tile("Giving way", "19 of 20 changes of the waterline within", bars, bars[0], "")


def _cost(view: BandwidthView) -> Html | None:
    cells = [cell for cell in _beside(view, "cpu_s_per_gbit") if view.costs_compare(cell)]
    bars = []
    for cell in cells:
        value = cell.median("cpu_s_per_gbit")
        found = view.comparison(cell, "cpu_s_per_gbit")
        note = ""
        if found is not None and found.ratio is not None:
            note = f"{numerals.change(100.0 * (found.ratio.value - 1.0))} against {names.shaper(cell.shaper)}"
        bars.append(Bar(shaper_mode(cell.shaper), value, f"{numerals.plain(value, 3)}{numerals.NBSP}s", note))
    if not bars:
        return None
    notes = ", ".join(bar.note for bar in bars if bar.note)
    first = Bar(bars[0].mode, bars[0].size, bars[0].figure, notes)
    return hero.tile("Cost", "CPU time for each Gbit received", bars, first, "{note}")
