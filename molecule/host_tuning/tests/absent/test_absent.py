"""Nothing is left after the role was asked to put the host back."""

from __future__ import annotations

import os

STATE = os.environ["MOLECULE_EPHEMERAL_DIRECTORY"] + "/state"


def test_values_are_no_longer_those_of_the_inventory(node, node_vars):
    for item in node_vars["host_tuning_settings"]:
        if item["kind"] == "sysctl" and "on_missing" not in item:
            path = f"/proc/sys/{item['name'].replace('.', '/')}"
            assert node.check_output(f"cat {path}").split() != item["value"].split()


def test_no_journal_is_left(node):
    assert node.check_output("hostname")
    assert not os.path.exists(STATE)
