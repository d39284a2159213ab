"""The stand-in after converge: Koordinator's groups with its values, and the other program's group as it was."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

BASE = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"])


@pytest.mark.parametrize(("group", "mask"), [("LSR", "7ff"), ("LS", "7ff"), ("BE", "f"), ("theirs", "7ff")])
def test_values(group, mask):
    lines = (BASE / "standin" / group / "schemata").read_text().split()
    assert lines == [f"L3:0={mask};2={mask}", "MB:0=100;2=100"]


def test_the_journal_names_the_groups_that_were_made():
    entries = json.loads((BASE / "state-standin/journal.json").read_text())["entries"]
    made = {Path(entry["target"]).name for entry in entries if entry["kind"] == "resctrl"}
    assert made == {"LSR", "LS", "BE"}


def test_nothing_was_changed_where_there_is_no_resctrl():
    assert not (BASE / "state-without").exists()
    assert not (BASE / "without").exists()
