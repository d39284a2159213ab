"""The kernel holds what the inventory asks for, and the journal what was there before."""

from __future__ import annotations

import json
import os

STATE = os.environ["MOLECULE_EPHEMERAL_DIRECTORY"] + "/state"


def sysctls(node_vars):
    """Return path and value of each sysctl of the inventory that every kernel has."""
    wanted = [
        item for item in node_vars["host_tuning_settings"] if item["kind"] == "sysctl" and "on_missing" not in item
    ]
    return {f"/proc/sys/{item['name'].replace('.', '/')}": item["value"] for item in wanted}


def test_values_are_in_effect_in_the_host(node, node_vars):
    wanted = sysctls(node_vars)
    assert len(wanted) == 3
    for path, value in wanted.items():
        assert node.check_output(f"cat {path}").split() == value.split()


def test_the_machine_itself_is_not_tuned(node_vars):
    for path, value in sysctls(node_vars).items():
        with open(path, encoding="ascii") as handle:
            assert handle.read().split() != value.split()


def test_the_journal_has_the_previous_values(node_vars):
    with open(f"{STATE}/journal.json", encoding="utf-8") as handle:
        entries = {entry["target"]: entry for entry in json.load(handle)["entries"]}
    for path, value in sysctls(node_vars).items():
        assert entries[path]["by"] == "host_tuning"
        assert entries[path]["note"] == value
        assert entries[path]["previous"]["netns"]["name"] == "ctmol-tuning"
