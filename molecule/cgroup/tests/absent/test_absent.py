"""After the undo the groups are what they were, byte for byte."""

from __future__ import annotations

import json
import os

ROOT = "colocation-testbed-molecule-cgroup"
DIRECTORY = os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]


def _picture(host, name):
    taken = json.loads(host.file(f"{DIRECTORY}/snapshots/{name}.json").content_string)
    return {key: text for key, text in taken.items() if f"/{ROOT}" in key}


def test_the_groups_of_the_other_program_are_as_they_were(host):
    before = _picture(host, "before")
    assert any(text == "77" for text in before.values())
    assert any("7:0 1048576" in text for text in before.values())
    assert _picture(host, "after") == before


def test_the_journal_is_gone(host):
    assert not host.file(f"{DIRECTORY}/state").exists
