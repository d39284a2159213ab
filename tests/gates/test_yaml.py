"""Style of the YAML files, roles and playbooks."""

from __future__ import annotations

from tooling import run


def test_yamllint() -> None:
    run(["yamllint", "-s", "."])


def test_ansible_lint() -> None:
    output = run(["ansible-lint", "--nocolor"])
    assert "production" in output
