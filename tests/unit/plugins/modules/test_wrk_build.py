"""Module wrk_build, run in this process, with a source tree that compiles at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.colocation.testbed.plugins.module_utils import journal
from ansible_collections.colocation.testbed.plugins.module_utils.wrk import build, source
from ansible_collections.colocation.testbed.plugins.modules import wrk_build

Run = Callable[..., dict[str, Any]]
MAKEFILE = "wrk:\n\t@printf '#!/bin/sh\\necho \"wrk $(VER) [epoll]\"\\nexit 1\\n' > wrk; chmod +x wrk\n"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the module with arguments and return its result; trees are made here, and counted in `fetched`."""
    libraries = {name: build.Library(name, True, "system 1") for name in ("luajit", "openssl")}
    monkeypatch.setattr(build, "system_library", libraries.get)
    tarball = tmp_path / "wrk.tar.gz"
    tarball.write_text("a tarball")

    def fetch(request: Any, work_dir: str) -> source.Tree:
        with (tmp_path / "fetched").open("a") as handle:
            handle.write(f"{request.source}\n")
        tree = Path(work_dir) / "tree"
        tree.mkdir()
        (tree / "Makefile").write_text(MAKEFILE)
        return source.Tree(str(tree), request.source, request.version, "x", request.commit, request.sha256)

    monkeypatch.setattr(source, "fetch", fetch)

    def _run(**arguments: Any) -> dict[str, Any]:
        given = {"state_dir": str(state), "source": "path", "path": str(tarball), **arguments}
        with patch_module_args(given), pytest.raises(SystemExit):
            wrk_build.main()
        return json.loads(capsys.readouterr().out)

    return _run


def fetched(tmp_path: Path) -> int:
    path = tmp_path / "fetched"
    return len(path.read_text().splitlines()) if path.exists() else 0


def entries(state: Path) -> list[tuple[str, str]]:
    return [(entry.kind, entry.target) for entry in journal.Journal(str(state / "journal.json")).entries()]


def test_builds_once(run: Run, state: Path, tmp_path: Path) -> None:
    first = run(scripts={"open_loop.lua": "-- script\n"})
    assert (first["changed"], first["built"]) == (True, True)
    assert first["wrk"]["path"] == f"{state}/wrk/current/wrk"
    assert (first["wrk"]["source"], first["wrk"]["version"]) == ("path", "4.2.0")
    assert (state / "wrk/scripts/open_loop.lua").read_text() == "-- script\n"
    assert ("directory", f"{state}/wrk") in entries(state)
    second = run(scripts={"open_loop.lua": "-- script\n"})
    assert (second["changed"], second["built"], second["wrk"]) == (False, False, first["wrk"])
    assert fetched(tmp_path) == 1


def test_check_mode_predicts_on_a_bare_host_and_touches_nothing(run: Run, state: Path, tmp_path: Path) -> None:
    found = run(_ansible_check_mode=True, _ansible_diff=True)
    assert (found["changed"], found["pending"], found["built"]) == (True, True, True)
    assert found["diff"] == {"before": "", "after": "wrk 4.2.0 from path\n"}
    assert not state.exists()
    assert fetched(tmp_path) == 0


def test_a_changed_pin_is_built_and_the_old_one_chosen_again_without_building(run: Run, tmp_path: Path) -> None:
    git = {"source": "git", "git_url": "file:///x"}
    run(**git, commit="a" * 40)
    other = run(source="path")
    assert (other["changed"], other["built"]) == (True, True)
    back = run(**git, commit="a" * 40, _ansible_diff=True)
    assert (back["changed"], back["built"]) == (True, False)
    assert back["diff"] == {"before": "wrk 4.2.0 from path\n", "after": "wrk 4.2.0 from git\n"}
    changed = run(**git, commit="b" * 40)
    assert (changed["built"], changed["wrk"]["commit"]) == (True, "b" * 40)
    assert fetched(tmp_path) == 3


def test_a_broken_program_is_built_again(run: Run, state: Path) -> None:
    run()
    (state / "wrk/4.2.0-path/wrk").write_text("#!/bin/sh\n")
    assert run()["built"] is True
    assert run()["changed"] is False


def test_changed_scripts_need_no_build(run: Run, state: Path) -> None:
    run(scripts={"a.lua": "1"})
    found = run(scripts={"b.lua": "2"})
    assert (found["changed"], found["built"]) == (True, False)
    assert [path.name for path in (state / "wrk/scripts").iterdir()] == ["b.lua"]


def test_absent_removes_all_and_its_entry(run: Run, state: Path) -> None:
    run()
    assert run(state="absent", _ansible_check_mode=True)["changed"] is True
    assert (state / "wrk").exists()
    assert run(state="absent")["changed"] is True
    assert not (state / "wrk").exists()
    assert ("directory", f"{state}/wrk") not in entries(state)
    assert run(state="absent")["changed"] is False


def test_absent_on_a_bare_host(run: Run, state: Path) -> None:
    assert run(state="absent")["changed"] is False
    assert not state.exists()


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"source": "svn"}, "value of source must be one of"),
        ({"source": "url", "url": "https://x.example/wrk.tar.gz"}, "source url needs sha256"),
        ({"path": "/nowhere/wrk.tar.gz"}, "is no file on this host"),
        ({"sha256": "0" * 64}, "correct sha256 or get another tarball"),
        ({"source": "git", "commit": "master"}, "not a full commit id"),
        ({"scripts": {"../x": ""}}, "not a file name"),
    ],
)
def test_bad_input_changes_nothing(
    run: Run, state: Path, check_mode: bool, arguments: dict[str, Any], said: str
) -> None:
    found = run(**arguments, _ansible_check_mode=check_mode)
    assert found["failed"] is True
    assert said in found["msg"]
    assert not state.exists()


def test_no_compiler_changes_nothing(run: Run, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "cc, make not found on this host" in run()["msg"]
    assert not state.exists()
    assert run(_ansible_check_mode=True)["changed"] is True, "the role would install one first"


def test_state_directory_that_can_not_be_made(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = run(state_dir=str(tmp_path / "file" / "state"))
    assert found["failed"] is True
    assert "file/state" in found["msg"]


def test_the_diff_shows_digests_of_our_scripts(run: Run) -> None:
    found = run(scripts={"a.lua": "x = 1\n" * 500}, _ansible_check_mode=True, _ansible_diff=True)
    lines = found["diff"]["after"].splitlines()
    assert lines[1].startswith("a.lua: 3000 bytes, sha256 ")
    other = run(scripts={"a.lua": "y = 1\n" * 500}, _ansible_check_mode=True, _ansible_diff=True)
    assert (len(lines), other["diff"]["after"] != found["diff"]["after"]) == (2, True)
