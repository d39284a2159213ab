# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of the preflight table, and the table."""

from __future__ import annotations

import shutil
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Level = Literal["ok", "degraded", "missing"]
HEADER = ("what", "where", "needed", "found")
SIGNS: dict[Level, str] = {"ok": "ok", "degraded": "less", "missing": "NO"}


@dataclass(frozen=True)
class Row:
    """One thing that was looked at: ``missing`` stops the run, ``degraded`` costs what ``consequence`` says."""

    what: str
    where: str
    needed: str
    found: str
    level: Level = "ok"
    consequence: str = ""


def table(rows: Sequence[Row], width: int = 0) -> str:
    """Return the rows as text, each problem below its row, folded to ``width`` columns (0: the terminal's)."""
    total = width or shutil.get_terminal_size((110, 24)).columns
    cells = [(row.what, row.where, row.needed, row.found) for row in rows]
    limit = max(16, (total - 14) // 3)
    widths = [min(limit, max(len(line[i]) for line in [HEADER, *cells])) for i in range(4)]
    lines = ["      " + _line(HEADER, widths)]
    for row, cell in zip(rows, cells, strict=True):
        lines.append(f"{SIGNS[row.level]:<6}" + _line(cell, widths))
        if row.level != "ok" and row.consequence:
            lines += textwrap.wrap(
                row.consequence, max(30, total - 8), initial_indent="      → ", subsequent_indent=" " * 8
            )
    return "\n".join(line.rstrip() for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{_short(cell, width):<{width}}" for cell, width in zip(cells, widths, strict=True))


def _short(cell: str, width: int) -> str:
    return cell if len(cell) <= width else cell[: width - 1] + "…"


def problems(rows: Sequence[Row]) -> list[str]:
    """Return one sentence for each row that stops the run."""
    return [f"{row.where}: {_said(row)}" for row in rows if row.level == "missing"]


def _said(row: Row) -> str:
    """Return the sentence of a row, with what it is about unless that is its beginning."""
    return row.consequence if row.consequence.startswith(row.what) else f"{row.what}: {row.consequence}"
