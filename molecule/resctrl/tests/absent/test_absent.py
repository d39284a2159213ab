"""Only what was there before the role is left."""

from __future__ import annotations

import os
from pathlib import Path

BASE = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"])


def test_only_the_other_programs_group_is_left():
    groups = {path.name for path in (BASE / "standin").iterdir() if (path / "tasks").exists()}
    assert groups == {"theirs"}


def test_no_journal_is_left():
    assert list(BASE.glob("state-*/")) == []
