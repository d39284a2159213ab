# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say the result of a run in a terminal: verdict, mode table, what tripped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.plugin_utils.report import causes, hero, numerals, text_table, words
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.model import Cell, Condition, View
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Mode, Outcome
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.text_table import Column

SIGNS = {"pass": "✓", "fail": "✕", "inconclusive": "~", "invalid": "✕", "none": numerals.NONE}
NARROWEST = 40
MOST_TABLES = 3
_DROP_ORDER = {"p50_us": 5, "p999_us": 4, "p90_us": 2, "p99_us": 0}


@dataclass(frozen=True)
class Line:
    """One line and its tone: a result word when it should be coloured, else empty."""

    text: str
    tone: str = ""


def render(view: View, width: int = 100, unicode: bool = True) -> list[Line]:
    """Say the result in lines of at most ``width`` terminal cells (user's own long words apart)."""
    width = max(width, NARROWEST)
    lines = [
        *head(view, width, _extent(view)),
        *_tables(view, width),
        *_doubts(view, width),
        *_calibration(view, width),
        *guards(view, width, sum(cell.measured - cell.kept for cell in view.cells.values())),
    ]
    return adapt(lines, unicode)


def adapt(lines: Sequence[Line], unicode: bool) -> list[Line]:
    """Keep to characters that the terminal has."""
    if unicode:
        return [Line(line.text.replace("\u00a0", " ").replace("\u202f", " "), line.tone) for line in lines]
    return [Line(text_table.to_ascii(line.text), line.tone) for line in lines]


def as_text(lines: Sequence[Line]) -> str:
    """Join lines."""
    return "\n".join(line.text for line in lines)


def head(view: Outcome, width: int, extent: str) -> list[Line]:
    """Say the verdict and its first reasons."""
    word = words.RESULT_TITLES[view.result].upper()
    # A sentence that begins with the result itself would say it twice.
    first = f"{SIGNS[view.result]} " + ("" if view.sentence.startswith(f"{view.result}: ") else f"{word}  ")
    lines = [Line(text) for text in text_table.wrap(f"Run {view.run_id} · {extent}", width)]
    lines.append(Line(""))
    sentence = text_table.wrap(view.sentence, width, first, " " * text_table.display_width(first))
    lines.extend(Line(text, view.result) for text in sentence)
    for reason in view.reasons[: hero.MOST_REASONS]:
        lines.extend(Line(text) for text in text_table.wrap(reason, width, "  - ", "    "))
    if len(view.reasons) > hero.MOST_REASONS:
        lines.append(Line(f"    … {len(view.reasons) - hero.MOST_REASONS} more in report.html"))
    if view.partial:
        text = "Partial run: cut short, the figures are those of the blocks that were finished."
        lines.extend(Line(text, "inconclusive") for text in text_table.wrap(text, width, "  ! ", "    "))
    return lines


def _extent(view: View) -> str:
    kept = max((cell.kept for cell in view.cells.values()), default=0)
    blocks = f"{kept} block{'' if kept == 1 else 's'}"
    modes = f"{len(view.modes)} mode{'' if len(view.modes) == 1 else 's'}"
    conditions = f" · {len(view.conditions)} conditions" if view.is_grid else ""
    return f"{modes} · {blocks}{conditions}"


def _tables(view: View, width: int) -> list[Line]:
    if len(view.conditions) <= MOST_TABLES:
        shown = list(view.conditions)
    else:
        shown = [condition for condition in (hero.headline_condition(view),) if condition is not None]
    lines: list[Line] = []
    for condition in shown:
        title = f"At {words.condition_words(condition)}"
        if len(shown) < len(view.conditions):
            title += f" (the worst of {len(view.conditions)} conditions; all of them are in report.html)"
        lines.append(Line(""))
        lines.extend(Line(text) for text in text_table.wrap(title, width))
        lines.extend(Line(text) for text in text_table.render(_mode_columns(view, condition), width))
        lines.extend(_causes(view, condition, width))
    if view.is_grid and view.candidates:
        lines.append(Line(""))
        title = "P99 in % of the baseline's under the same condition"
        lines.extend(Line(text) for text in text_table.wrap(title, width))
        lines.extend(Line(text) for text in text_table.render(_heat_columns(view), width))
    return lines


def _causes(view: View, condition: Condition, width: int) -> list[Line]:
    """Say where each colocated mode's latency comes from."""
    found = [(mode, causes.cause(view, mode, condition)) for mode in view.candidates]
    said = [causes.sentence(mode, cause) for mode, cause in found if cause is not None]
    return [Line(part) for text in said for part in text_table.wrap(text, width, "  · ", "    ")]


def _mode_columns(view: View, condition: Condition) -> list[Column]:
    found = [(mode, view.cell(mode.name, condition)) for mode in view.modes]
    unit = words.batch_unit(view, condition)
    columns = [Column("mode", tuple(text_table.shorten(mode.name) for mode in view.modes), left=True)]
    for metric, name in words.PERCENTILES.items():
        parts = [_latency(view, mode, cell, condition, metric) for mode, cell in found]
        longest = max(len(change) for _unused, change in parts)
        cells = tuple(f"{median} {change.rjust(longest)}" if longest else median for median, change in parts)
        columns.append(Column(f"{name} ms{' ' * (longest + 1 if longest else 0)}", cells, _DROP_ORDER[metric]))
    used = tuple(numerals.plain(cell.median("utilisation_pct") if cell else None, 1) for _unused, cell in found)
    work = tuple(numerals.plain(cell.median("batch_work_per_s") if cell else None) for _unused, cell in found)
    kept = tuple(_kept(view, mode, condition) for mode, _unused in found)
    blocks = tuple(f"{cell.kept}/{cell.measured}" if cell else numerals.NONE for _unused, cell in found)
    columns.append(Column("CPU use %", used, 0))
    columns.append(Column(unit, work, 3))
    columns.append(Column("kept %", kept, 1))
    columns.append(Column("used/tried", blocks, 6))
    return columns


def _latency(view: View, mode: Mode, cell: Cell | None, condition: Condition, metric: str) -> tuple[str, str]:
    """Say a median and the change against the baseline, apart so that both can be aligned."""
    median = cell.median(metric) if cell else None
    effect = view.effect(mode.name, condition, metric)
    change = effect.change_pct if effect else None
    return numerals.millis(median, unit=False), "" if change is None else f"({numerals.signed(change.value)} %)"


def _kept(view: View, mode: Mode, condition: Condition) -> str:
    gain = view.gain(mode.name, condition)
    kept = gain.batch_work_kept_pct if gain else None
    return numerals.NONE if kept is None else numerals.plain(kept.value, 1)


def _heat_columns(view: View) -> list[Column]:
    names = tuple(words.condition_short(condition) for condition in view.conditions)
    columns = [Column("load and aggressor", names, left=True)]
    for mode in view.candidates:
        cells = []
        for condition in view.conditions:
            effect = view.effect(mode.name, condition, "p99_us")
            change = effect.change_pct if effect else None
            cells.append(numerals.NONE if change is None else numerals.plain(100.0 + change.value, 0))
        columns.append(Column(text_table.shorten(mode.name, 14), tuple(cells)))
    return columns


def _doubts(view: View, width: int) -> list[Line]:
    """Say for each open question what these blocks could have seen."""
    lines: list[Line] = []
    for effect in view.effects.values():
        asked = effect.objective_pct is not None and effect.result == "inconclusive"
        if asked and effect.detectable_pct is not None:
            where = f" at {words.condition_words(effect.condition)}" if view.is_grid else ""
            text = (
                f"{effect.mode}, {words.metric_name(effect.metric)}{where}: inconclusive; {effect.blocks} blocks of "
                f"this noise show an effect from {numerals.plain(effect.detectable_pct, 1)} % on"
            )
            lines.extend(Line(part) for part in text_table.wrap(text, width, "  ~ ", "    "))
    most = 6
    if len(lines) > most:
        lines = [*lines[:most], Line("    … more in report.html")]
    return [Line(""), *lines] if lines else []


def _calibration(view: View, width: int) -> list[Line]:
    found = view.summary.get("calibration")
    if not found:
        return []
    word, tone = ("The judge can be trusted here:", "pass") if found["trusted"] else ("The judge erred:", "fail")
    lines = [Line(""), Line(word, tone)]
    for sentence in found["sentences"]:
        lines.extend(Line(text) for text in text_table.wrap(str(sentence), width, "  - ", "    "))
    return lines


def guards(view: Outcome, width: int, failed: int) -> list[Line]:
    """Say what tripped, and how many measurements failed and were repeated."""
    tripped = [guard for guard in view.guards if not guard.ok]
    lines = [Line("")]
    if view.guards and not tripped:
        lines.append(Line(f"Guards: all {len(view.guards)} held.", "pass"))
    elif not view.guards:
        lines.append(Line("Guards: no data.", "invalid"))
    for guard in tripped:
        figure = numerals.quantity(guard.worst, guard.unit)
        limit = "" if guard.limit is None else f", limit {numerals.quantity(guard.limit, guard.unit)}"
        text = f"{guard.title}: {figure}{limit}, {guard.extent}"
        lines.extend(Line(part, "invalid") for part in text_table.wrap(text, width, "✕ ", "  "))
    if failed:
        text = f"{failed} measurement{'' if failed == 1 else 's'} failed and do not count; report.html says why."
        lines.extend(Line(part) for part in text_table.wrap(text, width))
    return lines
