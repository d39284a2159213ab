"""Nothing of wrk is left after the teardown."""

from __future__ import annotations

import json
import os

from testinfra.host import Host

STATE = os.environ["MOLECULE_EPHEMERAL_DIRECTORY"] + "/state"


def test_store_is_gone(host: Host) -> None:
    assert not host.file(f"{STATE}/wrk").exists


def test_journal_has_forgotten_it(host: Host) -> None:
    journal = json.loads(host.file(f"{STATE}/journal.json").content_string)
    assert f"{STATE}/wrk" not in [entry["target"] for entry in journal["entries"]]
