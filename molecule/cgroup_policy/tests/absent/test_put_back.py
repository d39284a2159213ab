"""After the role is absent, the groups are as kubelet had made them, byte for byte."""

from __future__ import annotations

import json
import os
from pathlib import Path

DIRECTORY = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"])
ROOT = "colocation-testbed-molecule-policy"


def picture(name):
    """Return directories and values of the scenario's own groups: others on this machine come and go."""
    found = json.loads((DIRECTORY / f"{name}.json").read_text())
    return {key: text for key, text in found.items() if f"/{ROOT}" in key}


def test_all_values_are_what_they_were():
    before, after = picture("before"), picture("after")
    assert sum("pod1" in key for key in before) > 10
    assert before == after


def test_the_journal_has_nothing_of_the_role_left():
    entries = json.loads((DIRECTORY / "state" / "journal.json").read_text())["entries"]
    assert [entry["target"] for entry in entries if entry["by"] == "cgroup_policy"] == []
