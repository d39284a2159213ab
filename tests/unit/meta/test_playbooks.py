"""Playbooks and inventories as they are shipped fit together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tooling import ROOT, run

PLAYBOOKS = [ROOT / "site.yml", *sorted((ROOT / "playbooks").glob("*.yml"))]
INVENTORIES = sorted(path for path in (ROOT / "inventories").glob("*") if path.is_dir())
EACH_INVENTORY = pytest.mark.parametrize("inventory", INVENTORIES, ids=lambda path: path.name)


def test_there_are_playbooks_and_inventories() -> None:
    assert {path.stem for path in PLAYBOOKS} >= {"site", "preflight", "provision", "matrix", "report", "reset"}
    assert {path.name for path in INVENTORIES} >= {"local", "cluster"}


@EACH_INVENTORY
def test_all_playbooks_pass_the_syntax_check(inventory: Path) -> None:
    """One start for all playbooks: most of the time goes into starting."""
    run(["ansible-playbook", "-i", inventory, "--syntax-check", *PLAYBOOKS])


@EACH_INVENTORY
def test_tasks_can_be_listed(inventory: Path) -> None:
    output = run(["ansible-playbook", "-i", inventory, "--list-tasks", ROOT / "site.yml"])
    assert "TAGS:" in output


@EACH_INVENTORY
def test_inventory_parses_and_names_both_groups(inventory: Path) -> None:
    listing = json.loads(run(["ansible-inventory", "-i", inventory, "--list"]))
    assert listing["tested"]["hosts"]
    assert listing["load"]["hosts"]


def test_playbooks_do_not_bring_group_variables() -> None:
    """playbooks/group_vars/all.yml of a collection would override what users put into their inventory."""
    assert not (ROOT / "playbooks" / "group_vars").exists()
    assert not (ROOT / "playbooks" / "host_vars").exists()


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_playbook_names_can_be_part_of_a_qualified_name(playbook: Path) -> None:
    assert playbook.stem.isidentifier()
