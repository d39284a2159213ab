"""Figures of benchmarks: what each says, how they are shown and where they are written."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


class BenchError(Exception):
    """A benchmark could not be run, or its result could not be read."""


@dataclass(frozen=True)
class Figure:
    """One number of a benchmark; `low` and `high` bound its 95 % interval where it was repeated."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    unit: str
    goal: str
    holds: bool
    method: str
    machine: dict[str, Any]


def table(figures: list[Figure]) -> str:
    """Return the figures as lines for a terminal."""

    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.2f}"

    rows = [("name", "value", "low", "high", "unit", "goal", "holds")]
    rows += [
        (f.name, number(f.value), number(f.low), number(f.high), f.unit, f.goal, "yes" if f.holds else "NO")
        for f in figures
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def kept(path: Path, figures: list[Figure]) -> list[Figure]:
    """Return the figures with those of an earlier run of other parts before them. Raises BenchError."""
    if not path.exists():
        return figures
    new = {figure.name for figure in figures}
    try:
        earlier = [Figure(**raw) for raw in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, TypeError, ValueError) as exc:
        raise BenchError(f"cannot read {path}: {exc}; remove it and run all parts") from exc
    return [figure for figure in earlier if figure.name not in new] + figures


def write(name: str, figures: list[Figure], folder: Path, keep: bool = False) -> Path:
    """Write the figures of a benchmark atomically and return the file; with ``keep``, beside those of other parts."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    figures = kept(path, figures) if keep else figures
    draft = folder / f".{name}.json.tmp"
    draft.write_text(json.dumps([asdict(f) for f in figures], indent=2, sort_keys=True) + "\n", encoding="utf-8")
    draft.replace(path)
    return path
