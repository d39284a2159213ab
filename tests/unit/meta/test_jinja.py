"""Roles of the cluster have data in YAML, and what follows from it in plugins: templates call one filter or two."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tooling import ROOT, relative

ROLES = ("kubernetes", "control_plane", "koordinator", "reset")
FILES = sorted(
    path for name in ROLES for kind in ("tasks", "vars") for path in (ROOT / "roles" / name / kind).glob("*.yml")
)
FILTERS = 2
_EXPRESSION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_TEXT = re.compile(r"'[^']*'")


def heavy(text: str) -> list[str]:
    """Return the expressions that decide something, or go through more filters than two."""
    found = []
    for match in _EXPRESSION.finditer(text):
        expression = " ".join(_TEXT.sub("''", match[1]).split())
        decides = " if " in expression and not expression.endswith("else omit")
        if decides or " for " in expression or expression.count("|") > FILTERS:
            found.append(expression)
    return found


def test_there_are_roles() -> None:
    assert len(FILES) > 15


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_templates_compute_nothing(path: Path) -> None:
    assert heavy(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "is_heavy"),
    [
        ("a: '{{ x | default([]) }}'", False),
        ("a: '{{ x if y else omit }}'", False),
        ("a: '{{ x if y else z }}'", True),
        ("a: '{{ x | dictsort | map(''join'') | list }}'", True),
        ("a: '{{ 'a | b | c | d' }}'", False),
    ],
)
def test_what_computes_is_found(text: str, is_heavy: bool) -> None:
    assert bool(heavy(text)) is is_heavy
