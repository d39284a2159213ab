# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first screen: the verdict, and price and gain of every mode at one glance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.plugin_utils.report import numerals, words
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.markup import Child, Html, details, join, tag
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.model import Condition, View
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Interval, Mode, Outcome

HEADLINE_MODE = "slo_aware"
MOST_REASONS = 6


@dataclass(frozen=True)
class Bar:
    """One mode's row of a tile: share of the bar that is filled, the figure, its interval."""

    mode: Mode
    size: float | None
    figure: str
    note: str


def verdict(view: Outcome) -> Html:
    """Make the banner: result, sentence, reasons."""
    return tag(
        "section",
        tag(
            "p",
            words.icon(view.result),
            tag("span", words.RESULT_TITLES[view.result]),
            class_="result",
        ),
        tag("h1", view.sentence),
        _reasons(view.reasons),
        _partial_note(view),
        tag("p", words.RESULT_MEANINGS[view.result], class_="meaning"),
        class_=f"verdict {view.result}",
        id="verdict",
    )


def _reasons(reasons: Sequence[str]) -> Html | None:
    """List the reasons; many conditions have many, and the page begins with what they amount to."""
    if not reasons:
        return None
    shown, rest = reasons[:MOST_REASONS], reasons[MOST_REASONS:]
    first = tag("ul", [tag("li", reason) for reason in shown], class_="reasons")
    if not rest:
        return first
    folded = tag("ul", [tag("li", reason) for reason in rest], class_="reasons")
    return join(first, details(f"{len(rest)} more reasons", folded))


def _partial_note(view: Outcome) -> Html | None:
    if not view.partial:
        return None
    return tag(
        "p",
        tag("strong", "Partial run."),
        " It was cut short: the figures are those of the blocks that were finished. Starting it again with the same "
        "run id goes on where it stopped.",
        class_="partial",
    )


def headline_condition(view: View) -> Condition | None:
    """Choose the condition that the tiles show: where the headline mode's P99 suffers most."""
    mode = headline_mode(view)
    if mode is None or not view.conditions:
        return view.conditions[0] if view.conditions else None

    def suffering(condition: Condition) -> float:
        effect = view.effect(mode.name, condition, "p99_us")
        return effect.change_pct.value if effect and effect.change_pct else float("-inf")

    return max(view.conditions, key=suffering)


def headline_mode(view: View) -> Mode | None:
    """Choose the mode that the big figures are about: slo_aware, else the last one."""
    named = [mode for mode in view.candidates if mode.name == HEADLINE_MODE]
    candidates = named or list(view.candidates)
    return candidates[-1] if candidates else None


def tiles(view: View) -> Html | None:
    """Make the three tiles: price, use of the machine, batch work."""
    condition = headline_condition(view)
    if condition is None:
        return None
    where = tag("p", _where(view, condition), class_="where")
    made = [_price_tile(view, condition), _use_tile(view, condition), _work_tile(view, condition)]
    return tag("section", where, tag("div", made, class_="tiles"), aria_label="Price and gain", class_="figures")


def _where(view: View, condition: Condition) -> str:
    text = f"At {words.condition_words(condition)}" if condition.load_point is not None else "As measured"
    if not view.is_grid:
        return text
    mode = headline_mode(view)
    return f"{text}, the worst of {len(view.conditions)} conditions for {mode.name if mode else 'the service'}"


def _price_tile(view: View, condition: Condition) -> Html:
    bars = []
    for mode in view.candidates:
        effect = view.effect(mode.name, condition, "p99_us")
        change = effect.change_pct if effect else None
        bars.append(Bar(mode, _value(change), numerals.change(_value(change)), numerals.change_span(change)))
    return _tile(
        "Price",
        "added to the service's P99 latency",
        view,
        bars,
        "95 % interval {note}",
    )


def _use_tile(view: View, condition: Condition) -> Html:
    bars = []
    for mode in view.modes:
        cell = view.cell(mode.name, condition)
        used = cell.median("utilisation_pct") if cell else None
        gain = view.gain(mode.name, condition)
        won = gain.utilisation_won_points if gain else None
        note = f"{numerals.signed(won.value)} points against {_baseline(view)}" if won else ""
        bars.append(Bar(mode, used, numerals.percent(used), note))
    return _tile("Use of the machine", "CPU time of the measured CPUs in use", view, bars, "{note}", full=100.0)


def _work_tile(view: View, condition: Condition) -> Html:
    bars = []
    for mode in view.candidates:
        cell = view.cell(mode.name, condition)
        work = cell.median("batch_work_per_s") if cell else None
        gain = view.gain(mode.name, condition)
        kept = gain.batch_work_kept_pct if gain else None
        figure = (
            f"{numerals.plain(work)}{numerals.NBSP}{words.batch_unit(view, condition)}"
            if work is not None
            else numerals.NONE
        )
        note = f"{numerals.percent(kept.value)} of what colocation does" if kept else ""
        bars.append(Bar(mode, work, figure, note))
    return _tile("Batch work", "done beside the service", view, bars, "{note}")


def _baseline(view: View) -> str:
    return next((mode.name for mode in view.modes if mode.is_baseline), "the baseline")


def _value(interval: Interval | None) -> float | None:
    return None if interval is None else interval.value


def _tile(
    title: str, subtitle: str, view: View, bars: Sequence[Bar], note_form: str, full: float | None = None
) -> Html:
    headline = headline_mode(view)
    chosen = next((one for one in bars if headline and one.mode.name == headline.name), None)
    return tile(title, subtitle, bars, chosen, note_form, full)


def tile(
    title: str, subtitle: str, bars: Sequence[Bar], chosen: Bar | None, note_form: str, full: float | None = None
) -> Html:
    """Make a tile: one big figure with its note, and a bar for each mode."""
    top = full or max((abs(one.size) for one in bars if one.size is not None), default=0.0)
    head: list[Child] = [tag("h2", title), tag("p", subtitle, class_="sub")]
    if chosen is not None:
        note = note_form.format(note=chosen.note) if chosen.note not in ("", numerals.NONE) else ""
        head.append(tag("p", tag("span", chosen.figure, class_="big figure"), class_="headline"))
        head.append(tag("p", tag("b", chosen.mode.name), f" {note}", class_="note"))
    return tag("article", head, tag("ul", [_bar(one, top) for one in bars], class_="bars"), class_="tile")


def _bar(one: Bar, top: float) -> Html:
    filled = 0.0 if one.size is None or top <= 0 else max(min(abs(one.size) / top * 100.0, 100.0), 0.6)
    return tag(
        "li",
        tag("span", one.mode.name, class_="name"),
        tag("span", one.figure, class_="value figure"),
        tag(
            "span",
            tag("span", style=f"width:{filled:.1f}%;background:var(--mode-{one.mode.colour % 8})", class_="fill"),
            class_="track",
            aria_hidden="true",
        ),
    )
