"""The module file_tree, run in this process with real files and programs."""

from __future__ import annotations

import json
import os

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.colocation.testbed.plugins.modules import file_tree


@pytest.fixture
def run(capsys, tmp_path):
    """Run the module with arguments, and return its result."""

    def _run(**args):
        given = {"directory": str(tmp_path / "state/tree"), "state_dir": str(tmp_path / "state"), **args}
        with patch_module_args(given), pytest.raises(SystemExit):
            file_tree.main()
        return json.loads(capsys.readouterr().out)

    return _run


PAGE = {"path": "html/index.html", "text_bytes": 500}


def test_makes_journals_and_removes(run, tmp_path):
    assert run(subdirectories=["html"], files=[PAGE])["changed"] is True
    assert len((tmp_path / "state/tree/html/index.html").read_bytes()) == 500
    entries = json.loads((tmp_path / "state/journal.json").read_text())["entries"]
    tree = [(entry["kind"], entry["target"], entry["previous"]) for entry in entries if entry["by"] == "file_tree"]
    assert tree == [("directory", str(tmp_path / "state/tree"), {"tree": True})]
    assert run(subdirectories=["html"], files=[PAGE])["changed"] is False
    assert run(state="absent")["changed"] is True
    assert run(state="absent")["changed"] is False
    assert not (tmp_path / "state/tree").exists()
    assert "file_tree" not in (tmp_path / "state/journal.json").read_text()


def test_check_mode_predicts_without_programs(run, tmp_path):
    clip = {"path": "clip.mkv", "command": ["no-such-program", "{path}"]}
    result = run(files=[clip], _ansible_check_mode=True, _ansible_diff=True)
    assert result["changed"] is True
    assert "no-such-program" in result["diff"][1]["after"]
    assert not (tmp_path / "state").exists()


def test_check_mode_does_not_remove(run, tmp_path):
    run(files=[{"path": "f", "content": "x"}])
    assert run(state="absent", _ansible_check_mode=True)["changed"] is True
    assert (tmp_path / "state/tree/f").exists()


def test_a_foreign_directory_is_left_alone(run, tmp_path):
    os.makedirs(tmp_path / "state/tree")
    for state in ("present", "absent"):
        result = run(files=[{"path": "f", "content": "x"}], state=state)
        assert "exists and was not made by this collection" in result["msg"]
    assert os.listdir(tmp_path / "state/tree") == []


def test_a_missing_program_is_named(run):
    result = run(files=[{"path": "clip.mkv", "command": ["no-such-program", "{path}"]}])
    assert "no-such-program is not there; install it or correct the path" in result["msg"]


def test_a_file_that_is_refused_is_not_written(run, tmp_path):
    result = run(files=[{"path": "f", "content": "x", "validate": ["false", "{path}"]}])
    assert "ended with status 1" in result["msg"]
    assert os.listdir(tmp_path / "state/tree") == []


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"path": "f"}, "one of the following is required: content, text_bytes, command"),
        ({"path": "f", "content": "x", "text_bytes": 1}, "mutually exclusive"),
        ({"path": "../f", "content": "x"}, "must be a plain path below the directory"),
        ({"path": "f", "content": "x", "mode": "rw"}, "f: mode 'rw' is not octal; write it quoted, like '0644'"),
    ],
)
def test_refuses_with_a_sentence(run, tmp_path, entry, message):
    assert message in run(files=[entry])["msg"]
    assert not (tmp_path / "state/tree").exists()
