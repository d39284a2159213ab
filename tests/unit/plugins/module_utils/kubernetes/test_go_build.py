"""Programs are built once, by a stand-in for go that writes shell scripts."""

from __future__ import annotations

import dataclasses
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import cache_directory, commands
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import go_build, go_groups

RAW = {
    "name": "tools",
    "go_mod": "module x\n\ngo 1.25.0\n",
    "go_sum": "",
    "programs": {
        "hammer": {"package": "example.org/hammer/v3", "version_argv": ["--version"], "version": "v3.1.0"},
        "saw": {"package": "example.org/cmd/saw"},
    },
    "defines": {"example.org/version.version": "v3.1.0"},
}


def group(**changed: Any) -> go_groups.Group:
    return go_groups.parse([{**RAW, **changed}])[0]


class Go:
    """Stands in for go: writes a program for each package, or fails with a text."""

    def __init__(self, error: str = "", version: str = "v3.1.0") -> None:
        self.error, self.version = error, version
        self.calls: list[tuple[list[str], dict[str, str]]] = []

    def __call__(self, argv: Sequence[str], **options: Any) -> commands.Result:
        if "build" not in argv:
            return commands.run(argv, **options) if argv[0] != "go" else commands.Result(tuple(argv), 0, "go", "")
        self.calls.append((list(argv), options["environment"]))
        if self.error:
            return commands.Result(tuple(argv), 1, "", f"go: downloading x\n{self.error}\n")
        folder = Path(argv[argv.index("-o") + 1])
        for package in argv[argv.index("-o") + 2 :]:
            path = folder / go_groups.Program(package).built_name
            path.write_text(f"#!/bin/sh\necho tool {self.version}\n")
            path.chmod(0o755)
        return commands.Result(tuple(argv), 0, "", "")


@pytest.fixture
def store(tmp_path: Path) -> go_build.Store:
    return go_build.Store(str(tmp_path / "cache"), "x86_64")


@pytest.fixture(autouse=True)
def enough_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(go_build, "_MIN_FREE_BYTES", 0)


def test_a_group_is_built_once_and_linked(store: go_build.Store) -> None:
    go = Go()
    assert go_build.make([group()], store, go_build.Settings(jobs=1), go) == ("tools",)
    bin_dir = Path(store.bin_dir([group()]))
    assert sorted(path.name for path in bin_dir.iterdir()) == ["hammer", "saw"]
    argv, environment = go.calls[0]
    assert argv[:4] == ["nice", "-n", "10", "go"]
    assert "-s -w -X example.org/version.version=v3.1.0" in argv
    assert environment["CGO_ENABLED"] == "0"
    assert "-mod=readonly" in environment["GOFLAGS"]
    written = [environment[name] for name in ("GOMODCACHE", "GOCACHE", "GOTMPDIR")]
    assert all(path.startswith(f"{store.directory}/.build-") for path in written), "else a kill leaves it for good"
    assert go_build.make([group()], store, go_build.Settings(), go) == ()
    assert len(go.calls) == 1
    # Go's caches, and all that was unfinished, are gone.
    assert [name for name in os.listdir(store.directory) if name.startswith(".")] == []


def test_a_program_that_was_cut_short_is_built_again(store: go_build.Store) -> None:
    go_build.make([group()], store, go_build.Settings(), Go())
    Path(store.group_dir(group()), "saw").write_text("")
    assert not store.has(group())
    go_build.make([group()], store, go_build.Settings(), Go())
    assert store.has(group())
    assert store.linked([group()])


def test_a_changed_pin_is_another_directory(store: go_build.Store) -> None:
    keys = {group(**change).key("x86_64") for change in ({}, {"go_sum": "x"}, {"tags": ["a"]}, {"cgo": True})}
    assert len(keys) == 4
    assert group().key("aarch64") not in keys


def test_what_a_killed_build_left_is_removed(store: go_build.Store) -> None:
    left = Path(store.directory, ".build-x")
    left.mkdir(parents=True)
    go_build.make([group()], store, go_build.Settings(), Go())
    assert not left.exists()


def test_a_group_that_fails_does_not_cost_the_others(store: go_build.Store) -> None:
    bad = group(name="bad", programs={"axe": {"package": "example.org/axe"}})

    class Half(Go):
        def __call__(self, argv: Sequence[str], **options: Any) -> commands.Result:
            self.error = "axe.go:1: undefined: x" if "example.org/axe" in argv else ""
            return super().__call__(argv, **options)

    with pytest.raises(go_build.GoBuildError, match=r"programs of group bad: axe.go:1: undefined: x"):
        go_build.make([bad, group()], store, go_build.Settings(), Half())
    assert store.has(group())
    assert not os.path.exists(store.bin_dir([bad, group()]))


@pytest.mark.parametrize(
    ("output", "remedy"),
    [
        ("write /x: no space left on device", "the disk is full"),
        ("verifying x@v1: checksum mismatch", "not what go.sum pins"),
        ("go: go.mod requires go >= 1.26 (running go 1.19; GOTOOLCHAIN=local)", "needs a newer Go"),
        (
            'Get "https://proxy.golang.org/x": dial tcp: lookup proxy.golang.org: no such host',
            "proxy cannot be reached",
        ),
        ("x.go:1:10: fatal error: perfmon/pfmlib.h: No such file or directory", "install gcc, libpfm4-dev"),
        ('cgo: C compiler "gcc" not found: exec: "gcc"', "install gcc, libpfm4-dev"),
        ("compile: signal: killed", "fewer jobs"),
        ("something new", "go build failed"),
        ("", "go printed nothing"),
    ],
)
def test_why_a_build_failed_is_one_sentence(output: str, remedy: str) -> None:
    text = go_build.explain(output, group(packages=["gcc", "libpfm4-dev"]))
    assert remedy in text
    assert "\n" not in text


def test_a_program_that_says_another_version_is_refused(store: go_build.Store) -> None:
    with pytest.raises(go_build.GoBuildError, match=r"hammer: says 'tool v9' instead of v3.1.0"):
        go_build.make([group()], store, go_build.Settings(), Go(version="v9"))
    assert not store.has(group())


def test_no_go_is_one_sentence(store: go_build.Store) -> None:
    def run(argv: Sequence[str], **_options: Any) -> commands.Result:
        raise commands.CommandError(f"{argv[0]} is not there")

    with pytest.raises(go_build.GoBuildError, match="install Go"):
        go_build.make([group()], store, go_build.Settings(), run)


def test_another_builder_is_waited_for_only_so_long(store: go_build.Store) -> None:
    settings = go_build.Settings(lock_timeout_s=0.1)
    with (
        cache_directory.locked(store.directory, "programs", "x", 1),
        pytest.raises(cache_directory.CacheError, match=r"another run has been making programs for 0\.1 s"),
    ):
        go_build.make([group()], store, settings, Go())


def test_a_full_disk_is_found_before_building(store: go_build.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(go_build, "_MIN_FREE_BYTES", 1 << 62)
    with pytest.raises(cache_directory.CacheError, match="choose another kubernetes_cache_dir"):
        go_build.make([group()], store, go_build.Settings(), Go())


def test_the_record_is_of_this_schema(store: go_build.Store) -> None:
    go_build.make([group()], store, go_build.Settings(), Go())
    record = json.loads(Path(store.group_dir(group()), go_build.RECORD).read_text())
    assert record["schema"] == go_build.SCHEMA
    assert stat.S_IMODE(os.stat(store.group_dir(group()) + "/saw").st_mode) == 0o755


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"name": "Big"}, "is no name"),
        ({"go_mod": "module x\n"}, "has no line such as"),
        ({"programs": {}}, "it has no programs"),
        ({"programs": {"saw": {}}}, "needs a name such as kubelet and its Go package"),
        ({"defines": {"a.b": "two words"}}, "has a blank"),
    ],
)
def test_what_is_wrong_with_a_group_is_one_sentence(changed: dict[str, Any], text: str) -> None:
    with pytest.raises(go_groups.GoGroupsError, match=text):
        group(**changed)


def test_a_program_belongs_to_one_group() -> None:
    with pytest.raises(go_groups.GoGroupsError, match="program hammer is in group tools too"):
        go_groups.parse([RAW, {**RAW, "name": "other"}])


def test_groups_are_plain_values() -> None:
    assert dataclasses.asdict(group())["programs"]["saw"]["package"] == "example.org/cmd/saw"
