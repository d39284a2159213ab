# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sections that say why the figures may be believed: guards, failed measurements, published results."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import MeasurementRecord
from ansible_collections.colocation.testbed.plugins.plugin_utils.report import numerals, words
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.digest import condition_of
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.markup import (
    Child,
    Html,
    details,
    join,
    table,
    tag,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.matrix_tables import mode_label
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.model import View
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Guard, Json, Outcome

MOST_NAMES = 6
_REFERENCE_METRICS = (("p90_added_pct", "p90_us"), ("p99_added_pct", "p99_us"))


def guards(view: Outcome) -> Html:
    """Make the list of guards: tripped ones first and open."""
    if not view.guards:
        return tag("p", "No measurement was taken, so no guard has data: nothing here counts.", class_="nothing")
    ordered = sorted(view.guards, key=lambda guard: guard.ok)
    return tag("ul", [_guard(guard) for guard in ordered], class_="guards")


def _guard(guard: Guard) -> Html:
    state = "pass" if guard.ok else "invalid"
    figure = numerals.quantity(guard.worst, guard.unit)
    share = "%" if guard.unit.startswith("%") else ""
    limit = "" if guard.limit is None else f"limit {numerals.quantity(guard.limit, share)}"
    counted = f"{'tripped' if guard.measurements or not guard.ok else 'held'} {guard.extent}"
    facts: Child = [tag("b", figure, class_="figure"), tag("span", limit), tag("span", counted)]
    return tag(
        "li",
        words.icon(state),
        tag("h3", guard.title, tag("span", " (held)" if guard.ok else " (tripped)", class_="sr")),
        tag("p", facts, class_="guard-facts"),
        tag("p", words.guard_reason(guard.name)),
        tag("p", guard.text, class_="found") if guard.tripped or not guard.ok else None,
        _where(guard.where),
        class_=state,
    )


def _where(names: Sequence[str]) -> Html | None:
    if not names:
        return None
    shown = ", ".join(names[:MOST_NAMES])
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return tag("p", "In ", tag("span", shown, class_="mono"), more, class_="where-tripped")


def failed(records: Sequence[MeasurementRecord]) -> Html:
    """List the measurements that do not count, each with its reasons."""
    rows = [
        [
            tag("span", record.name, class_="mono"),
            record.mode,
            str(record.block),
            words.condition_words(condition_of(record)),
            str(record.attempt),
            "; ".join(record.reasons) or "no reason was recorded",
        ]
        for record in records
        if not record.kept
    ]
    return failed_table(
        ["Measurement", "Mode", "Block", "Condition", "Attempt", "Why it does not count"], rows, records
    )


def failed_table(head: Sequence[str], rows: Sequence[Sequence[Child]], of: Sequence[object]) -> Html:
    """Make the table of measurements that do not count, of so many."""
    if not rows:
        return tag("p", "Every measurement counts.")
    listed = table(head, rows, caption=f"{len(rows)} of {len(of)} measurements", class_="plain wordy")
    note = tag("p", "They stay in the run directory under their own names; each was repeated up to the cap.")
    if len(rows) <= 8:
        return join(note, listed)
    return join(note, details(f"Show all {len(rows)}", listed))


def reference(view: View) -> Html | None:
    """Make the table of published results beside those of this run."""
    if not view.reference:
        return None
    head = ["Mode", "From", "Utilisation", "Added to P90", "Added to P99"]
    rows = []
    for item in view.reference:
        rows.append(_published_row(view, item))
        own = _own_row(view, str(item["mode"]))
        if own:
            rows.append(own)
    sources = ", ".join(dict.fromkeys(str(item["source"]) for item in view.reference))
    note = (
        f"Published rows come from {sources}: other hardware, other load, other software versions. "
        "They show the order of magnitude to expect; the two kinds of rows are not a contest."
    )
    return join(tag("p", note), table(head, rows, caption="Published and measured here", class_="plain reference"))


def _published_row(view: View, item: Json) -> list[Child]:
    mode = next((mode for mode in view.modes if mode.name == item["mode"]), None)
    label: Child = mode_label(mode) if mode else str(item["mode"])
    return [
        label,
        tag("span", "published, other hardware", class_="tagged"),
        numerals.percent(item.get("utilisation_pct")),
        *[numerals.change(item.get(key)) for key, _unused in _REFERENCE_METRICS],
    ]


def _own_row(view: View, name: str) -> list[Child] | None:
    mode = next((mode for mode in view.modes if mode.name == name), None)
    cells = [cell for condition in view.conditions if (cell := view.cell(name, condition)) and cell.kept]
    if mode is None or not cells:
        return None
    cell = cells[0]
    changes = []
    for _unused, metric in _REFERENCE_METRICS:
        effect = view.effect(name, cell.condition, metric)
        change = effect.change_pct if effect else None
        changes.append(numerals.NONE if change is None else f"{numerals.change(change.value)}")
    where = f"this run, {words.condition_words(cell.condition)}" if view.is_grid else "this run"
    return [mode_label(mode), where, numerals.percent(cell.median("utilisation_pct")), *changes]
