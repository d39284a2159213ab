# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of the bandwidth experiment: figures of every case, objectives, cost beside others, published results."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from ansible_collections.colocation.testbed.plugins.module_utils.measure import objectives
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import TESTED_SHAPER
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report import names
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.reference import PUBLISHED_SHAPER
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report.view import (
    BandwidthView,
    Cell,
    Comparison,
    Objective,
    shaper_mode,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.report import numerals, words
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.markup import (
    Child,
    Html,
    details,
    join,
    table,
    tag,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.matrix_tables import mode_label, stack
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Interval, Json, Metric, Mode

#: Figures of the table of a scenario: name, heading, decimals, factor.
_COLUMNS = (
    ("accuracy_pct", "Accuracy", 2, 1.0),
    ("accuracy_p95_pct", "19 of 20 classes", 2, 1.0),
    ("request_kept_pct", "Requests kept", 1, 1.0),
    ("received_mbps", "Received Mbit/s", 1, 1.0),
    ("fluctuation_pct", "Fluctuation", 1, 1.0),
    ("cpu_s_per_gbit", "CPU s/Gbit", 3, 1.0),
    ("rr_p50_us", "RTT P50 ms", 2, 0.001),
    ("rr_p99_us", "RTT P99 ms", 2, 0.001),
    ("switch_p95_ms", "Gives way ms", 1, 1.0),
    ("switch_up_p95_ms", "Comes back ms", 1, 1.0),
    ("transitions_per_change", "Transitions", 2, 1.0),
    ("program_ns_per_packet", "Program ns", 0, 1.0),
    ("apply_ms", "Applied ms", 1, 1.0),
)
#: A case of more classes shows the outermost ones only.
_MOST_CLASSES = 12


def shaper_label(name: str) -> Html:
    """Name a shaper with its colour."""
    return mode_label(shaper_mode(name))


def shaper_legend(modes: Sequence[Mode]) -> Html:
    """Explain the colours of bars."""
    return tag("ul", [tag("li", mode_label(mode)) for mode in modes], class_="legend")


def _nothing(text: str = numerals.NONE) -> Html:
    return tag("span", text, class_="nothing")


def scenario(view: BandwidthView, name: str) -> Html | None:
    """Make the table of one scenario, a row for each case and shaper, and below it the classes of each case."""
    cells = [cell for cell in view.cells_of(name) if cell.measured]
    if not cells:
        return None
    shown = [column for column in _COLUMNS if any(column[0] in cell.metrics for cell in cells)]
    rows: list[list[Child]] = []
    for case in view.cases_of(name):
        rows.append([case])
        rows.extend(_row(cell, shown) for cell in cells if cell.case == case)
    head = ["Shaper", *(title for _unused, title, _decimals, _factor in shown), "Blocks"]
    caption = f"{view.title(name)}: medians over blocks with 95 % intervals"
    listed = table(head, rows, caption=caption, class_="modes")
    classes = [made for cell in cells if (made := _classes(cell)) is not None]
    folded = details("Class by class", *classes) if classes else None
    return tag("div", tag("h3", view.title(name)), listed, folded, class_="mode-part")


def _row(cell: Cell, shown: Sequence[tuple[str, str, int, float]]) -> list[Child]:
    values = [_figure(cell.metrics.get(name), decimals, factor) for name, _title, decimals, factor in shown]
    failed = cell.measured - cell.kept
    counts = None if cell.counts else words.result_chip("invalid", "no evidence")
    blocks = stack(f"{cell.kept} used", f"{failed} failed" if failed else "none failed", counts)
    return [shaper_label(cell.shaper), *values, blocks]


def _figure(found: Metric | None, decimals: int, factor: float = 1.0) -> Html:
    if found is None:
        return _nothing()
    span = None
    if found.low is not None and found.high is not None:
        span = numerals.plain_span(factor * found.low, factor * found.high, decimals)
    return stack(numerals.plain(factor * found.median, decimals), span)


def _classes(cell: Cell) -> Html | None:
    """Make the table of a case's classes with one shaper; of many the most exact and the least exact ones."""
    ordered = sorted(
        cell.classes.items(), key=lambda item: abs(item[1].error_pct.median) if item[1].error_pct else -1.0
    )
    if not ordered:
        return None
    half = _MOST_CLASSES // 2
    chosen = ordered if len(ordered) <= _MOST_CLASSES else [*ordered[:half], *ordered[-half:]]
    rows: list[list[Child]] = [
        [
            name,
            item.role or numerals.NONE,
            names.traffic(item.protocol, cell.family),
            _nothing() if item.expected_bps is None else numerals.plain(item.expected_bps / 1e6, 2),
            _figure(item.received_bps, 2, 1e-6),
            _nothing() if item.error_pct is None else f"{numerals.signed(item.error_pct.median, 2)}{numerals.NBSP}%",
            _figure(item.rr_p99_us, 2, 0.001),
        ]
        for name, item in chosen
    ]
    left = len(ordered) - len(chosen)
    extent = f"; the {half} most and the {half} least exact, {left} between them left out" if left else ""
    head = ["Class", "Role", "Over", "Expected Mbit/s", "Received Mbit/s", "Off", "RTT P99 ms"]
    return table(head, rows, caption=f"{cell.case}, {names.shaper(cell.shaper)}{extent}", class_="plain tight")


def judged(view: BandwidthView) -> Html | None:
    """Make the table of objectives; that limits were kept where nothing else was asked is folded away."""
    if not view.objectives:
        return None
    quiet = [item for item in view.objectives if item.result == "pass" and item.name in objectives.ALWAYS]
    asked = [item for item in view.objectives if item not in quiet]
    made = [_judged(view, asked)] if asked else []
    if quiet:
        made.append(details(f"Nothing received above the limit in {len(quiet)} cases", _judged(view, quiet)))
    return join(*made)


def _judged(view: BandwidthView, chosen: Sequence[Objective]) -> Html:
    rows: list[list[Child]] = []
    for place in dict.fromkeys((item.scenario, item.case) for item in chosen):
        rows.append([f"{view.title(place[0])}: {place[1]}"])
        rows.extend(_objective(item) for item in chosen if (item.scenario, item.case) == place)
    head = ["Objective", "Figure, 95 % interval", "Wanted", "Blocks", "Result"]
    caption = "Mean over blocks; ratios compare with another shaper in the same block, as geometric mean"
    return table(head, rows, caption=caption, class_="effects")


def _objective(item: Objective) -> list[Child]:
    sign = "≥" if item.name.endswith("_min") else "≤"
    unit = f"{numerals.NBSP}{names.unit(item.unit)}" if item.unit else ""
    decimals = 3 if not item.unit else objectives.digits_of(item.name.rpartition("_")[0])
    reasons = item.reasons if item.result != "pass" else ()
    return [
        names.objective_name(item.name),
        _interval(item.figure, decimals, unit),
        f"{sign}{numerals.NBSP}{item.limit:g}{unit}",
        str(item.blocks),
        join(words.result_chip(item.result), words.reasons_note(reasons)),
    ]


def _interval(found: Interval | None, decimals: int, unit: str = "") -> Html:
    if found is None:
        return _nothing("no data")
    return stack(numerals.plain(found.value, decimals) + unit, numerals.plain_span(found.low, found.high, decimals))


def cost(view: BandwidthView) -> Html | None:
    """Make the table of cost beside the other shapers: ratio and difference, paired by block."""
    rows: list[list[Child]] = []
    for cell in view.cells:
        found = [view.comparison(cell, name) for name in ("cpu_s_per_gbit", "kernel_cpu_s_per_gbit")]
        if found[0] is not None:
            rows.append([f"{cell.scenario}.{cell.case}", shaper_label(cell.shaper), *_compared(found)])
    head = ["Case", "Against", "CPU per Gbit", "Difference s/Gbit", "Kernel's part", "Blocks", "Result"]
    caption = "The programs' cost by the other shaper's in the same block; below 100 % is cheaper"
    return table(head, rows, caption=caption, class_="plain wordy") if rows else None


def _compared(found: Sequence[Comparison | None]) -> list[Child]:
    whole, kernel = found
    if whole is None:
        return [_nothing()] * 5
    return [
        _ratio(whole),
        _interval(whole.difference, 3),
        _ratio(kernel) if kernel else _nothing(),
        str(whole.blocks),
        words.result_chip(whole.result),
    ]


def _ratio(found: Comparison) -> Html:
    ratio = found.ratio
    if ratio is None or ratio.low is None or ratio.high is None:
        return _nothing("other rate" if found.other_rate else "too few blocks")
    span = f"{numerals.plain_span(100.0 * ratio.low, 100.0 * ratio.high, 1)}{numerals.NBSP}%"
    return stack(numerals.percent(100.0 * ratio.value), span)


def published(view: BandwidthView) -> Html | None:
    """Make the table of published figures beside those of this run; impossible ones say why."""
    if not view.reference:
        return None
    rows: list[list[Child]] = []
    for name in dict.fromkeys(str(item["scenario"]) for item in view.reference):
        rows.append([view.title(name)])
        rows.extend(_published(view, item) for item in view.reference if item["scenario"] == name)
    sources = ", ".join(dict.fromkeys(str(item["source"]) for item in view.reference))
    note = (
        f"Published figures come from the {sources}: other hardware, other kernels, other units. They show what was "
        "claimed; the two columns are not a contest."
    )
    head = ["Published for", "Figure", "Shaper", "Published", "This run", "Note"]
    return join(
        tag("p", note), table(head, rows, caption="Published and measured here", class_="plain reference wordy")
    )


def _published(view: BandwidthView, item: Json) -> list[Child]:
    shaper = str(item["shaper"])
    note: Child = str(item["note"]) or numerals.NONE
    if not item["possible"]:
        note = join(
            words.result_chip("fail", "impossible"), tag("span", str(item["why_impossible"]), class_="interval")
        )
    value = f"{float(item['value']):g}{numerals.NBSP}{names.unit(str(item['unit']))}"
    return [
        str(item["label"]),
        names.metric(str(item["metric"])),
        names.shaper(shaper),
        tag("span", value, class_="tagged"),
        _own(view, item, TESTED_SHAPER if shaper == PUBLISHED_SHAPER else shaper),
        note,
    ]


def _own(view: BandwidthView, item: Json, shaper: str) -> Html:
    """Write this run's figure beside a published one: the same case, and where it says so the same classes."""
    cell = view.cell(str(item["scenario"]), str(item["case"]), shaper)
    metric, role = str(item["metric"]), str(item["role"])
    value = None
    if cell is not None:
        value = _of_role(cell, role, metric) if role else cell.median(metric)
    if value is None:
        return _nothing("not measured")
    return tag("span", names.figure(metric, value, str(item["unit"])), class_="figure")


def _of_role(cell: Cell, role: str, metric: str) -> float | None:
    """Return a figure of the classes of a role: what they received together, or what the median one has."""
    chosen = [item for item in cell.classes.values() if item.role == role]
    received = [item.received_bps.median for item in chosen if item.received_bps]
    if metric == "received_mbps":
        return sum(received) / 1e6 if received else None
    found = {
        "accuracy_pct": [100.0 - abs(item.error_pct.median) for item in chosen if item.error_pct],
        "rr_p50_us": [item.rr_p50_us.median for item in chosen if item.rr_p50_us],
    }.get(metric)
    return median(found) if found else None
