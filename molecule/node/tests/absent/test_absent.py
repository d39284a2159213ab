"""Nothing is left after the undo."""

from __future__ import annotations

import os

STATE = os.environ["MOLECULE_EPHEMERAL_DIRECTORY"] + "/state"


def test_the_state_directory_is_gone(host):
    assert not host.file(STATE).exists


def test_no_process_of_the_tool_is_left(host):
    assert [process.args for process in host.process.filter() if STATE in process.args] == []
