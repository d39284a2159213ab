# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The section about the quota of best effort: does it follow what the service uses, second by second."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ansible_collections.colocation.testbed.plugins.module_utils.measure import best_effort
from ansible_collections.colocation.testbed.plugins.module_utils.measure.best_effort import BestEffort, Moment
from ansible_collections.colocation.testbed.plugins.plugin_utils.report import digest, numerals, plots, words
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.digest import Digest
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.markup import Html, details, table, tag
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.matrix_tables import mode_label, per_condition
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.model import Condition, View
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Mode
from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir import RunDirectory

_LINES = (
    ("batch", "7 3", "quota of best effort: what all batch pods together may use"),
    ("service", "none", "what the service used"),
)


def render(view: View, run: RunDirectory, found: Sequence[Digest], condition: Condition) -> Html | None:
    """Make the part of one condition; None where the quota was not sampled."""
    sampled = [mode for mode in view.modes if view.held_back(mode.name, condition) is not None]
    if not sampled:
        return None
    cards = [card for mode in sampled if (card := _card(view, run, found, mode, condition)) is not None]
    said = tag("ul", [_said(view, mode, condition) for mode in sampled], class_="plain-list")
    if not cards:
        return per_condition(view, condition, said)
    return per_condition(view, condition, _legend(), said, tag("div", cards, class_="cards quotas"))


def _said(view: View, mode: Mode, condition: Condition) -> Html:
    sentence = str((view.held_back(mode.name, condition) or {}).get("sentence") or "")
    return tag("li", mode_label(mode), ": ", sentence)


def _legend() -> Html:
    """Explain the lines, the mark and the band."""
    keys = []
    for name, dash, text in _LINES:
        line = Html(
            '<svg viewBox="0 0 34 10" class="line" aria-hidden="true"><path d="M1 5H33" '
            f'style="stroke:var(--cpu-{name});stroke-dasharray:{dash}"/></svg>'
        )
        keys.append(tag("li", line, text))
    keys.append(tag("li", "the thin dashed line is where the load began, the grey band the window"))
    return tag("ul", keys, class_="legend")


def _card(view: View, run: RunDirectory, found: Sequence[Digest], mode: Mode, condition: Condition) -> Html | None:
    """Draw the window with the median P99, or the first of those that there are; None where nothing was limited."""
    for item, why in digest.cards(view, found, mode.name, condition)[:1]:
        sampled = best_effort.of(run.manifest, item.window, run.samples(item.record))
        if sampled is None or not sampled.limited:
            continue
        name = item.record.name
        title = f"{name}: quota of best effort and CPU use of the service in CPUs, second by second"
        drawing = plots.quota_over_time(_series(sampled), title, f"quota {name} {words.condition_id(view, condition)}")
        chosen = f"block {item.record.block}{f' · {why}' if why else ''}"
        caption = tag("figcaption", mode_label(mode), tag("p", chosen, class_="sub"))
        return tag("figure", caption, drawing, _numbers(name, sampled), class_="card quota")
    return None


def _series(sampled: BestEffort) -> plots.QuotaSeries:
    return plots.QuotaSeries(
        np.array([moment.t_s for moment in sampled.moments]),
        np.array([_or_nan(moment.quota.cpus) for moment in sampled.moments]),
        np.array([_or_nan(moment.service_cpus) for moment in sampled.moments]),
        sampled.load_s,
        sampled.window_s,
    )


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _numbers(name: str, sampled: BestEffort) -> Html:
    head = ["Second", "when", "quota µs", "quota CPUs", "may run on CPUs", "service CPUs"]
    rows = [
        [
            numerals.plain(moment.t_s, 1),
            _when(moment, sampled),
            "no limit" if moment.quota.quota_us is None else numerals.plain(moment.quota.quota_us, 0),
            "no limit" if moment.quota.cpus is None else numerals.plain(moment.quota.cpus, 2),
            moment.cpus or numerals.NONE,
            numerals.plain(moment.service_cpus, 2),
        ]
        for moment in sampled.moments
    ]
    caption = f"{name}: quota in each {sampled.moments[0].quota.period_us} µs"
    return details("The same in numbers", table(head, rows, caption=caption, class_="plain tight"))


def _when(moment: Moment, sampled: BestEffort) -> str:
    if moment.t_s < sampled.load_s:
        return "before the load"
    if moment.t_s < 0.0:
        return "warm-up"
    return "window" if moment.t_s <= sampled.window_s else "after"
