"""Style and types of the Python code."""

from __future__ import annotations

import pytest
from tooling import ROOT, run


def test_ruff_check() -> None:
    run(["ruff", "check", "."])


def test_ruff_format() -> None:
    run(["ruff", "format", "--check", "."])


def test_mypy_plugins() -> None:
    run(["mypy"])


@pytest.mark.parametrize("folder", ["files/node", "tools"])
def test_mypy_beside_the_plugins(folder: str) -> None:
    """Each folder has an entry point of its own, which mypy can't see as one package with the others."""
    sources = sorted((ROOT / folder).rglob("*.py"))
    assert sources, f"{folder} holds no Python"
    run(["mypy", *sources])
