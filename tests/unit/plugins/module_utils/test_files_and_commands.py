# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files


def test_atomic_write_leaves_the_old_content_when_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    files.write_atomic(str(path), "old", 0o600)

    def fail(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(files.FilesError, match="No space left on device"):
        files.write_atomic(str(path), "new")
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["file"]


def test_mode_and_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.write_atomic(str(path), b"\x00\xff", 0o640)
    assert path.read_bytes() == b"\x00\xff"
    assert path.stat().st_mode & 0o7777 == 0o640


def test_json_is_written_the_same_twice(tmp_path: Path) -> None:
    path = str(tmp_path / "x.json")
    files.write_json(path, {"b": 1, "a": [2]})
    first = files.read_bytes(path)
    files.write_json(path, {"a": [2], "b": 1})
    assert files.read_bytes(path) == first
    assert files.read_json(path) == {"a": [2], "b": 1}


@pytest.mark.parametrize(
    ("content", "words"), [(None, "cannot be read: No such file"), (b"\xff", "is not UTF-8"), (b"{", "is not JSON")]
)
def test_unreadable_files_are_explained(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(files.FilesError, match=words):
        files.read_json(str(path))


def test_optional_reading_is_strict_about_everything_but_absence(tmp_path: Path) -> None:
    assert files.read_text_or_none(str(tmp_path / "x")) is None
    assert files.read_text_or_none("/etc/hostname/x") is None
    with pytest.raises(files.FilesError, match="Is a directory"):
        files.read_text_or_none(str(tmp_path))


def test_capture_and_restore(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert files.capture(str(path)) is None
    path.write_bytes(b"\x00old")
    path.chmod(0o604)
    captured = files.capture(str(path))
    path.write_text("new")
    path.chmod(0o777)
    files.restore(str(path), captured)
    assert path.read_bytes() == b"\x00old"
    assert path.stat().st_mode & 0o7777 == 0o604
    files.restore(str(path), None)
    files.restore(str(path), None)
    assert not path.exists()


def test_only_regular_files_are_captured(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    with pytest.raises(files.FilesError, match="is not a regular file"):
        files.capture(str(tmp_path / "link"))


def test_damaged_records_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("now")
    for damaged in ({}, {"content_b64": "!", "mode": 1, "uid": 0, "gid": 0}, {"content_b64": "", "mode": "x"}):
        with pytest.raises(files.FilesError, match="recorded content is damaged"):
            files.restore(str(path), damaged)
    assert path.read_text() == "now"


def test_kernel_files_are_never_made(tmp_path: Path) -> None:
    with pytest.raises(files.FilesError, match="the kernel refused '1': No such file"):
        files.write_kernel(str(tmp_path / "cpu.idle"), "1")
    assert list(tmp_path.iterdir()) == []


def test_a_command_runs_in_the_c_locale_without_input() -> None:
    found = commands.run(["sh", "-c", "cat; echo $LC_ALL $X; exit 3"], check=False, environment={"X": "y"})
    assert (found.status, found.stdout) == (3, "C y\n")
    assert commands.run(["cat"], input_text="in").stdout == "in"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["nonexistent-program"], "nonexistent-program is not there; install it"),
        (["/etc/passwd"], "could not be started: Permission denied"),
        (["sh", "-c", "echo first >&2; echo why >&2; exit 2"], "ended with status 2: why"),
        (["false"], "it printed no error"),
    ],
)
def test_failures_are_sentences(argv: list[str], words: str) -> None:
    with pytest.raises(commands.CommandError, match=words):
        commands.run(argv)


def test_a_command_that_hangs_is_killed() -> None:
    with pytest.raises(commands.CommandError, match=r"did not end within 0\.1 s"):
        commands.run(["sleep", "9"], timeout_s=0.1)


def test_a_missing_directory_is_named() -> None:
    with pytest.raises(commands.CommandError, match="/nonexistent is not there"):
        commands.run(["true"], directory="/nonexistent")


def test_the_reason_that_a_program_gives_before_it_fails_is_told_on_demand() -> None:
    argv = [sys.executable, "-c", "import sys; sys.exit('invalid port\\ntest failed')"]
    with pytest.raises(commands.CommandError, match=r"status 1: test failed$"):
        commands.run(argv)
    with pytest.raises(commands.CommandError, match=r"status 1: invalid port; test failed$"):
        commands.run(argv, error_lines=3)
