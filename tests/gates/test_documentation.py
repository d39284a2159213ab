"""Documentation strings, role specifications and the changelog."""

from __future__ import annotations

import json

import pytest
from tooling import COLLECTION, ROOT, run

# Action plugins are documented by the module of the same name; shared fragments render with what uses them.
DOCUMENTED = ("become", "callback", "connection", "filter", "inventory", "lookup", "module", "strategy", "test")


def plugins(kind: str) -> list[str]:
    folder = "modules" if kind == "module" else kind
    names = sorted(path.stem for path in (ROOT / "plugins" / folder).glob("*.py") if path.stem != "__init__")
    return [f"{COLLECTION}.{name}" for name in names]


def roles() -> list[str]:
    return [f"{COLLECTION}.{path.name}" for path in sorted((ROOT / "roles").glob("*")) if path.is_dir()]


def test_antsibull_docs() -> None:
    run(["antsibull-docs", "lint-collection-docs", "--plugin-docs", "."])


def test_antsibull_changelog() -> None:
    run(["antsibull-changelog", "lint"])


def test_there_is_something_to_document() -> None:
    assert plugins("module")
    assert roles()


@pytest.mark.parametrize("kind", [kind for kind in DOCUMENTED if plugins(kind)])
def test_plugins_render(kind: str) -> None:
    names = plugins(kind)
    rendered = json.loads(run(["ansible-doc", "--type", kind, "--json", *names]))
    assert sorted(rendered) == names
    for name in names:
        assert rendered[name]["doc"]["short_description"], name


def test_roles_render() -> None:
    names = roles()
    rendered = json.loads(run(["ansible-doc", "--type", "role", "--json", *names]))
    assert sorted(rendered) == names
    for name in names:
        assert rendered[name]["entry_points"]["main"]["short_description"], name
