"""Scenarios and roles are where people look for them."""

from __future__ import annotations

from tooling import ROOT


def test_development_says_what_each_scenario_shows() -> None:
    text = (ROOT / "docs/development.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    names = sorted(path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml"))
    assert names
    assert [name for name in names if not any(f"`{name}`" in row for row in rows)] == []


def test_the_readme_has_every_role() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    roles = sorted(path.name for path in (ROOT / "roles").iterdir() if path.is_dir())
    assert roles
    assert [name for name in roles if f"[{name}](roles/{name})" not in text] == []
    assert len(text.splitlines()) <= 200
