"""A tree of files: what is missing or different is made, never half, and nothing else is touched."""

from __future__ import annotations

import os
import stat

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import file_tree
from ansible_collections.colocation.testbed.plugins.module_utils.file_tree import FileTreeError, Wanted


class Programs:
    """Stands for the programs that make and validate files."""

    def __init__(self, content: bytes | None = b"made", error: Exception | None = None) -> None:
        self.calls: list[list[str]] = []
        self._content, self._error = content, error

    def __call__(self, argv):
        self.calls.append(list(argv))
        if self._content is not None and argv[0] == "make":
            with open(argv[-1], "wb") as handle:
                handle.write(self._content)
        if self._error is not None:
            raise self._error


@pytest.fixture
def directory(tmp_path):
    return str(tmp_path / "tree")


def apply(directory, *wanted, run=None, subdirectories=()):
    changes = file_tree.plan(directory, subdirectories, wanted)
    file_tree.apply(changes, run or Programs())
    return [change.text.replace(directory, "D") for change in changes]


def test_makes_directories_and_files_once(directory):
    wanted = Wanted("html/index.html", 0o644, b"hello\n")
    assert apply(directory, wanted, subdirectories=["html"]) == [
        "make directory D",
        "make directory D/html",
        "write D/html/index.html",
    ]
    assert apply(directory, wanted, subdirectories=["html"]) == []
    with open(os.path.join(directory, "html/index.html"), "rb") as handle:
        assert handle.read() == b"hello\n"


def test_directories_can_be_read_whatever_the_umask(directory):
    before = os.umask(0o077)
    try:
        apply(directory, Wanted("f", 0o644, b""))
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(directory).st_mode) == 0o755
    assert stat.S_IMODE(os.stat(os.path.join(directory, "f")).st_mode) == 0o644


def test_content_and_mode_are_put_right(directory):
    wanted = Wanted("f", 0o644, b"x")
    apply(directory, wanted)
    os.chmod(os.path.join(directory, "f"), 0o600)
    assert apply(directory, wanted) == ["set mode of D/f"]
    assert apply(directory, Wanted("f", 0o644, b"y")) == ["write D/f"]
    assert apply(directory, Wanted("f", 0o644, b"y")) == []


def test_a_made_file_is_made_again_only_by_another_command(directory):
    run = Programs()
    wanted = Wanted("clip.mkv", 0o644, command=("make", "{path}"))
    assert apply(directory, wanted, run=run) == ["make directory D", "make D/clip.mkv"]
    assert apply(directory, wanted, run=run) == []
    assert apply(directory, Wanted("clip.mkv", 0o644, command=("make", "-4", "{path}")), run=run) == ["make D/clip.mkv"]
    assert run.calls == [["make", f"{directory}/clip.new.mkv"], ["make", "-4", f"{directory}/clip.new.mkv"]]
    assert sorted(os.listdir(directory)) == ["clip.mkv", "clip.mkv.recipe.json"]


def test_a_made_file_that_was_deleted_is_made_again(directory):
    wanted = Wanted("clip.mkv", 0o644, command=("make", "{path}"))
    apply(directory, wanted)
    os.unlink(os.path.join(directory, "clip.mkv"))
    assert apply(directory, wanted) == ["make D/clip.mkv"]


def test_a_program_that_fails_leaves_no_file(directory):
    wanted = Wanted("clip.mkv", 0o644, command=("make", "{path}"))
    with pytest.raises(ValueError, match="no encoder"):
        apply(directory, wanted, run=Programs(error=ValueError("no encoder")))
    assert os.listdir(directory) == []


@pytest.mark.parametrize("content", [None, b""])
def test_a_program_that_makes_nothing_is_named(directory, content):
    with pytest.raises(FileTreeError, match=r"clip.mkv: make succeeded but left no content"):
        apply(directory, Wanted("clip.mkv", 0o644, command=("make", "{path}")), run=Programs(content=content))
    assert os.listdir(directory) == []


def test_a_refused_file_leaves_the_old_one(directory):
    path = os.path.join(directory, "nginx.conf")
    run = Programs()
    apply(directory, Wanted("nginx.conf", 0o644, b"good", validate=("check", "-c", "{path}")), run=run)
    assert run.calls == [["check", "-c", f"{path}.new"]]
    bad = Wanted("nginx.conf", 0o644, b"bad", validate=("check", "{path}"))
    with pytest.raises(ValueError, match="line 1"):
        apply(directory, bad, run=Programs(error=ValueError("line 1")))
    assert os.listdir(directory) == ["nginx.conf"]
    with open(path, "rb") as handle:
        assert handle.read() == b"good"


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "", "a//b", "./a"])
def test_paths_stay_below_the_directory(directory, path):
    with pytest.raises(FileTreeError, match="must be a plain path below the directory"):
        file_tree.plan(directory, [], [Wanted(path, 0o644, b"")])
    with pytest.raises(FileTreeError, match="must be a plain path below the directory"):
        file_tree.plan(directory, [path], [])


def test_a_path_named_twice_is_refused(directory):
    with pytest.raises(FileTreeError, match="'a' is named twice"):
        file_tree.plan(directory, ["a"], [Wanted("a", 0o644, b"")])


def test_links_are_not_followed(directory, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "tree").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileTreeError, match="tree: is not a directory"):
        file_tree.plan(directory, [], [])
    (tmp_path / "tree").unlink()
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/f").symlink_to("/etc/passwd")
    with pytest.raises(FileTreeError, match="f: is not a regular file"):
        file_tree.plan(directory, [], [Wanted("f", 0o644, b"")])


def test_planning_touches_nothing(directory):
    changes = file_tree.plan(directory, ["a"], [Wanted("a/f", 0o644, b"x"), Wanted("g", 0o644, command=("make",))])
    assert len(changes) == 4
    assert not os.path.exists(directory)


def test_large_content_is_not_shown_in_a_diff(directory):
    change = file_tree.plan(directory, [], [Wanted("f", 0o644, b"x" * 83_000)])[1]
    assert change.after == "83000 bytes\n"


def test_two_runs_work_on_one_tree_one_after_the_other(tmp_path):
    directory = str(tmp_path / "not" / "there" / "yet")
    with (
        file_tree.alone(directory, 1.0),
        pytest.raises(file_tree.FileTreeError, match="another run"),
        file_tree.alone(directory, 0.1),
    ):
        raise AssertionError("both had it")
    with file_tree.alone(directory, 0.1):
        assert list(tmp_path.iterdir()) == []
