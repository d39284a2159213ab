"""Which wrk is wanted, and whether one that is there will do."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.wrk import record
from ansible_collections.colocation.testbed.plugins.module_utils.wrk.record import Build, Request, Store

COMMIT = "a211dd5a7050b1f9e8a9870b95513060e72ac4a0"
SUM = "0" * 64
ASKED = Request(source="auto", version="4.2.0", commit=COMMIT)
GIT = Build("git", "4.2.0", "/s/wrk/4.2.0-git/wrk", COMMIT, "", "https://x", "cc", {}, "2026-01-01T00:00:00Z", None)
DEBIAN = replace(GIT, source="debian_source", version="4.1.0-3", commit="", stands_in_for=ASKED.pin)


def store_with(tmp_path: Path, build: Build, prints: str | None = None) -> tuple[Store, Build]:
    """Make a store that holds a build whose program is a shell script."""
    store = Store(str(tmp_path))
    folder = tmp_path / build.name
    folder.mkdir()
    program = folder / "wrk"
    program.write_text(f"#!/bin/sh\necho 'wrk {prints or build.version} [epoll] Copyright'\nexit 1\n")
    program.chmod(0o755)
    build = replace(build, program=str(program))
    store.write(str(folder), build)
    store.choose(build)
    return store, build


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("wrk 4.2.0 [epoll] Copyright (C) 2012 Will Glozer\nUsage: wrk", "4.2.0"),
        ("wrk debian/4.1.0-3+b2 [epoll] Copyright", "4.1.0-3+b2"),
        ("ab 2.3", ""),
        ("wrk", ""),
        ("", ""),
    ],
)
def test_version_that_wrk_prints(printed: str, version: str) -> None:
    assert record.parse_version(printed) == version


@given(st.text())
def test_any_print_has_a_version_or_none(text: str) -> None:
    assert isinstance(record.parse_version(text), str)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"source": "svn"}, "choose one of auto, git, url, path, debian_source, package"),
        ({"version": "../x"}, "is not a version such as 4.2.0"),
        ({"commit": "master"}, "not a full commit id"),
        ({"source": "git", "commit": COMMIT[:12]}, "not a full commit id"),
        ({"source": "url", "url": "https://x.example/wrk.tar.gz"}, "source url needs sha256"),
        ({"source": "url", "url": "ftp://x.example/wrk.tar.gz", "sha256": SUM}, "does not begin with http"),
        ({"source": "url", "url": "https://x.example", "sha256": "12"}, "not 64 lower-case hexadecimal digits"),
        ({"source": "path", "path": "/nowhere/wrk.tar.gz"}, "path '/nowhere/wrk.tar.gz' is no file on this host"),
        ({"source": "path"}, "path '' is no file on this host"),
    ],
)
def test_bad_requests_are_named(change: dict[str, str], said: str) -> None:
    with pytest.raises(record.RecordError) as caught:
        record.check(replace(ASKED, **change))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("build", "change", "good"),
    [
        (GIT, {}, True),
        (GIT, {"source": "git"}, True),
        (GIT, {"commit": "b" * 40}, False),
        (GIT, {"version": "4.3.0"}, False),
        (GIT, {"source": "debian_source"}, False),
        (DEBIAN, {}, True),
        (DEBIAN, {"commit": "b" * 40}, False),
        (DEBIAN, {"source": "git"}, False),
        (DEBIAN, {"source": "debian_source", "commit": "b" * 40}, True),
        (replace(DEBIAN, stands_in_for=None), {}, False),
        (replace(GIT, source="path", sha256=SUM), {"source": "path", "sha256": SUM}, True),
        (replace(GIT, source="path", sha256=SUM), {"source": "path", "sha256": "1" * 64}, False),
        (replace(GIT, source="url", sha256=SUM), {"source": "path", "sha256": SUM}, False),
        (replace(GIT, source="package"), {"source": "package"}, True),
    ],
)
def test_a_changed_pin_is_another_wrk(build: Build, change: dict[str, str], good: bool) -> None:
    assert record.satisfies(build, replace(ASKED, **change)) is good


def test_store_finds_what_was_written(tmp_path: Path) -> None:
    store, build = store_with(tmp_path, GIT)
    assert store.builds() == (build,)
    assert store.current() == build
    assert Path(store.program).resolve() == Path(build.program)


def test_a_program_that_says_another_version_does_not_count(tmp_path: Path) -> None:
    store, _ = store_with(tmp_path, GIT, prints="4.0.0")
    assert store.builds() == ()


def test_a_program_that_does_not_run_does_not_count(tmp_path: Path) -> None:
    store, build = store_with(tmp_path, GIT)
    Path(build.program).unlink()
    assert store.builds() == ()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "colocation.testbed/wrk/1"}'])
def test_a_damaged_record_does_not_count(tmp_path: Path, text: str) -> None:
    store, build = store_with(tmp_path, GIT)
    (tmp_path / build.name / record.RECORD).write_text(text)
    assert store.builds() == ()
    assert store.current() is None


def test_record_with_wrong_types_is_refused() -> None:
    raw = {"schema": record.SCHEMA, **asdict(GIT), "version": 4}
    with pytest.raises(record.RecordError, match="is damaged"):
        record.parse(json.loads(json.dumps(raw)), "build.json")


def test_an_empty_store(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "none"))
    assert store.builds() == ()
    assert store.current() is None
    assert store.read_scripts() == {}


def test_scripts_are_those_given_and_no_others(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.write_scripts({"a.lua": "1", "b.lua": "2"})
    store.write_scripts({"a.lua": "3"})
    assert store.read_scripts() == {"a.lua": "3"}


@pytest.mark.parametrize("name", ["../a.lua", "a", "a.lua/", "A.lua"])
def test_names_of_scripts(name: str) -> None:
    with pytest.raises(record.RecordError, match="not a file name"):
        record.checked_scripts({name: ""})
