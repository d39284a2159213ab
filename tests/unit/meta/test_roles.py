"""Each role's documentation, defaults and specification agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tooling import ROOT

ROLES = sorted(path for path in (ROOT / "roles").glob("*") if path.is_dir())
EACH_ROLE = pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
README_LINES = 80


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8")) or {}


def options(role: Path) -> dict[str, dict[str, Any]]:
    return load(role / "meta" / "argument_specs.yml")["argument_specs"]["main"].get("options") or {}


def defaults(role: Path) -> dict[str, Any]:
    path = role / "defaults" / "main.yml"
    return load(path) if path.exists() else {}


def test_there_are_roles() -> None:
    assert ROLES


@EACH_ROLE
@pytest.mark.parametrize("name", ["README.md", "meta/main.yml", "meta/argument_specs.yml", "tasks/main.yml"])
def test_file_exists(role: Path, name: str) -> None:
    assert (role / name).is_file()


@EACH_ROLE
def test_every_default_is_specified_and_the_other_way_round(role: Path) -> None:
    required = {name for name, option in options(role).items() if option.get("required")}
    assert set(defaults(role)) == set(options(role)) - required


@EACH_ROLE
def test_default_values_are_those_of_the_specification(role: Path) -> None:
    documented = {name: option.get("default") for name, option in options(role).items() if not option.get("required")}
    # A computed default may be described in words instead of by its template.
    described = {name for name, value in defaults(role).items() if "{{" in str(value) and documented.get(name) is None}
    given = {name: value for name, value in defaults(role).items() if name not in described}
    assert given == {name: value for name, value in documented.items() if name not in described}


@EACH_ROLE
def test_variables_carry_the_name_of_the_role(role: Path) -> None:
    assert [name for name in options(role) if not name.startswith(f"{role.name}_")] == []


@EACH_ROLE
def test_meta(role: Path) -> None:
    meta = load(role / "meta" / "main.yml")
    assert meta["dependencies"] == []
    assert meta["galaxy_info"]["min_ansible_version"] == "2.19"
    assert meta["galaxy_info"]["license"] == "GPL-3.0-or-later"


@EACH_ROLE
def test_readme_is_short_and_names_every_variable(role: Path) -> None:
    text = (role / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= README_LINES
    assert [name for name in options(role) if name not in text] == []
