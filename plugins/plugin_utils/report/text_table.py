# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Set tables in a fixed-width terminal: drop what matters least, stack what still does not fit."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

GAP = "  "
INDENT = "  "
LONGEST_NAME = 28

_PLAIN = str.maketrans(
    {
        "─": "-", "\u2013": "-", "\u2212": "-", "·": "-", "✓": "+", "✕": "x", "…": "~", "→": ">", "µ": "u", "≤": "<",
        "≥": ">", "\u00a0": " ", "\u202f": " ", "\u2019": "'", "\u201c": '"', "\u201d": '"',
    }
)  # fmt: skip


@dataclass(frozen=True)
class Column:
    """One column: title, cells, and how soon it is dropped when the line is too short (0 is never)."""

    title: str
    cells: tuple[str, ...]
    drop: int = 0
    left: bool = False

    @property
    def width(self) -> int:
        """Width in terminal cells."""
        return max(map(display_width, (self.title, *self.cells)))


def display_width(text: str) -> int:
    """Count terminal cells: wide characters take two, combining ones none."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


def shorten(text: str, most: int = LONGEST_NAME) -> str:
    """Cut a long name in the middle, so that both of its ends can still be told apart."""
    text = "".join(char if char.isprintable() else "?" for char in text)
    if display_width(text) <= most:
        return text
    head = (most - 1) // 2
    return text[:head] + "…" + text[len(text) - (most - 1 - head) :]


def wrap(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Wrap words; a word longer than the line stands alone."""
    lines, line = [], first
    empty = True
    for word in text.split():
        if not empty and display_width(line) + 1 + display_width(word) > width:
            lines.append(line)
            line, empty = rest, True
        line += word if empty else " " + word
        empty = False
    return [*lines, line]


def render(columns: Sequence[Column], width: int) -> list[str]:
    """Set a table into so many terminal cells; returns its lines."""
    shown = list(columns)
    while _total(shown) > width and any(column.drop for column in shown):
        shown.remove(max(shown, key=lambda column: column.drop))
    if _total(shown) > width:
        return _stacked(columns, width)
    head = _line(shown, [column.title for column in shown])
    rows = [_line(shown, cells) for cells in zip(*[column.cells for column in shown], strict=True)]
    return [head, INDENT + "─" * (_total(shown) - len(INDENT)), *rows]


def _total(columns: Sequence[Column]) -> int:
    return len(INDENT) + sum(column.width for column in columns) + len(GAP) * (len(columns) - 1)


def _line(columns: Sequence[Column], cells: Sequence[str]) -> str:
    padded = []
    for column, cell in zip(columns, cells, strict=True):
        space = " " * (column.width - display_width(cell))
        padded.append(cell + space if column.left else space + cell)
    return (INDENT + GAP.join(padded)).rstrip()


def _stacked(columns: Sequence[Column], width: int) -> list[str]:
    first, *others = columns
    names = max((display_width(column.title) for column in others), default=0)
    lines = []
    for place, name in enumerate(first.cells):
        lines.extend(wrap(name, width, INDENT, INDENT))
        for column in others:
            label = column.title + " " * (names - display_width(column.title))
            lines.append(f"{INDENT}{INDENT}{label}{GAP}{column.cells[place].strip()}".rstrip())
    return lines


def to_ascii(text: str) -> str:
    """Replace what a terminal without Unicode cannot show, character for character."""
    return text.translate(_PLAIN).encode("ascii", "replace").decode("ascii")
