"""A wrk that runs, a record of what it is, and scripts that fit it."""

from __future__ import annotations

import json
import os

import pytest
from testinfra.host import Host

EPHEMERAL = os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]
STORE = f"{EPHEMERAL}/state/wrk"


@pytest.fixture(scope="module")
def fact() -> dict:
    with open(f"{EPHEMERAL}/fact.json", encoding="utf-8") as handle:
        return json.load(handle)


def test_program_reports_the_recorded_version(host: Host, fact: dict) -> None:
    assert fact["path"] == f"{STORE}/current/wrk"
    printed = host.run(f"{fact['path']} -v").stdout
    assert printed.startswith(f"wrk {fact['version']} [epoll]")


def test_record_says_what_was_built(host: Host, fact: dict) -> None:
    record = json.loads(host.file(f"{STORE}/current/build.json").content_string)
    assert record["program"] == f"{STORE}/{fact['version']}-{fact['source']}/wrk"
    assert record["compiler"]
    assert set(record["libraries"]) == {"luajit", "openssl"}
    assert record["commit"] if record["source"] == "git" else record["sha256"]
    assert {key: record[key] for key in record if key in fact} == {key: fact[key] for key in record if key in fact}


def test_scripts_are_beside_it(host: Host, fact: dict) -> None:
    for name in ("open_loop", "closed_loop", "schedule", "report", "clock", "wakeup"):
        assert host.file(f"{fact['scripts']}/{name}.lua").is_file


def test_nothing_is_left_of_the_build(host: Host) -> None:
    assert [name for name in host.file(STORE).listdir() if name.startswith(".")] == []


def test_journal_knows_the_directory(host: Host) -> None:
    journal = json.loads(host.file(f"{EPHEMERAL}/state/journal.json").content_string)
    assert (STORE, {"tree": True}) in [(entry["target"], entry["previous"]) for entry in journal["entries"]]
