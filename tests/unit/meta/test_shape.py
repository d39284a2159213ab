"""Size of files and functions, and things that have no place in the repository."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tooling import ROOT, files_below, relative, tracked_files

FILE_LINES = 400
FUNCTION_LINES = 40
SHIPPED_PYTHON = files_below("plugins", "files", "tools", suffix=".py")
TEXT = [path for path in tracked_files() if path.suffix not in {".png", ".pdf", ".gz", ".o"}]

# Patterns are put together here so that this file does not contain what it looks for.
FORBIDDEN = {
    "a place on somebody's machine": re.compile(r"(?<![\w.}])/" + r"(?:home/\w|Users/\w|work/\w)"),
    "an unfinished thing": re.compile(r"\b(?:TO" + "DO|FIX" + "ME|X" + r"XX)\b"),
    "a failure that is swallowed": re.compile(r"\|\| " + r"true\b|\bignore_" + r"errors:"),
    "a merge conflict": re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE),
}


def long_functions(source: str) -> list[str]:
    """Return the functions of a source that are longer than allowed, without their docstrings."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0]
            has_docstring = ast.get_docstring(node) is not None
            docstring = (first.end_lineno or first.lineno) - first.lineno + 1 if has_docstring else 0
            length = (node.end_lineno or node.lineno) - node.lineno + 1 - docstring
            if length > FUNCTION_LINES:
                found.append(f"{node.name} ({length} lines)")
    return found


def asserts(source: str) -> list[int]:
    return [node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]


@pytest.mark.parametrize("path", SHIPPED_PYTHON, ids=relative)
def test_shape_of_shipped_python(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= FILE_LINES
    assert long_functions(source) == []
    assert asserts(source) == [], "python -O drops asserts: raise the library's exception"


def test_long_functions_are_found() -> None:
    body = "".join(f"    x{n} = {n}\n" for n in range(FUNCTION_LINES))
    assert long_functions(f"def f():\n{body}") == [f"f ({FUNCTION_LINES + 1} lines)"]
    assert long_functions(f'def f():\n    """Doc.\n\n    More.\n    """\n{body[:-1]}'.replace("    x0 = 0\n", "")) == []


@pytest.mark.parametrize("what", FORBIDDEN)
def test_nothing_forbidden_is_in_the_repository(what: str) -> None:
    found = []
    for path in TEXT:
        text = path.read_text(encoding="utf-8")
        found += [
            f"{relative(path)}:{text.count(chr(10), 0, m.start()) + 1}: {m[0]}" for m in FORBIDDEN[what].finditer(text)
        ]
    assert found == [], what


def test_the_checkout_is_nowhere_named() -> None:
    if len(ROOT.parts) < 3:
        pytest.skip(f"{ROOT} is too short a path to look for")
    assert [relative(path) for path in TEXT if f"{ROOT}/" in path.read_text(encoding="utf-8")] == []
