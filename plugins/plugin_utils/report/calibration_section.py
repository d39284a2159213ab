# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The section of calibration runs: does the judge find what is there, and nothing that is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansible_collections.colocation.testbed.plugins.plugin_utils.report import numerals, words
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.markup import Child, Html, join, table, tag
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Json, interval


def render(found: Json) -> Html:
    """Make the section from the summary's ``calibration``."""
    trusted = bool(found["trusted"])
    words_of_trust = "The judge can be trusted here" if trusted else "The judge cannot be trusted here"
    sentences = [tag("li", str(sentence)) for sentence in found["sentences"]]
    return join(
        tag("p", words.result_chip("pass" if trusted else "fail", words_of_trust), class_="trust"),
        tag("ul", sentences, class_="plain-list"),
        _repeated(found),
        _slowed(found),
        _detectable(found["detectable_pct"]),
    )


def _repeated(found: Json) -> Html:
    items = found["aa"]
    sizes = _sizes(items, "permuted")
    head = ["Same mode, other name", "Metric", "Change", "Found", *[f"False at {size} blocks" for size in sizes]]
    caption = (
        "Nothing was changed here. \u201cFalse\u201d is the share of trials with exchanged signs in which the judge "
        f"saw a difference all the same: about {numerals.plain(found['level_pct'], 0)} % are its level, up to "
        f"{numerals.percent(found['tolerated_pct'])} are chance."
    )
    rows = [[*_common(item), *_shares(item["permuted"], sizes)] for item in items]
    return table(head, rows, caption=caption, class_="plain wordy")


def _slowed(found: Json) -> Html | None:
    items = found["slowdowns"]
    if not items:
        return None
    sizes = _sizes(items, "subsets")
    head = ["Slowed mode", "Metric", "Change", "Found", *[f"Found at {size} blocks" for size in sizes]]
    rows = [[*_common(item, f" (+{item['slowdown_pct']:g} % of work)"), *_shares(item["subsets"], sizes)]
            for item in items]  # fmt: skip
    caption = "Known slowdowns. \u201cFound at\u201d is the share of random choices of so many blocks that show it."
    return table(head, rows, caption=caption, class_="plain wordy")


def _common(item: Json, note: str = "") -> list[Child]:
    change = interval(item["change_pct"])
    shown = numerals.NONE if change is None else f"{numerals.change(change.value)} ({numerals.change_span(change)})"
    return [str(item["mode"]) + note, words.metric_name(str(item["metric"])), shown, "yes" if item["found"] else "no"]


def _sizes(items: Sequence[Json], key: str) -> list[int]:
    return sorted({int(entry["blocks"]) for item in items for entry in item[key]})


def _shares(entries: Sequence[Json], sizes: Sequence[int]) -> list[str]:
    by_size = {int(entry["blocks"]): float(entry["found_pct"]) for entry in entries}
    return [numerals.percent(by_size.get(size)) for size in sizes]


def _detectable(found: Mapping[str, Mapping[str, float]]) -> Html:
    sizes = sorted({int(size) for by_size in found.values() for size in by_size})
    head = ["Smallest detectable change", *[f"{size} blocks" for size in sizes]]
    rows = [
        [words.metric_name(metric), *[numerals.percent(by_size.get(str(size))) for size in sizes]]
        for metric, by_size in found.items()
    ]
    return table(head, rows, caption="Found four times of five on this machine", class_="plain")
