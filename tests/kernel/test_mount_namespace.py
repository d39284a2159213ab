"""A mount namespace is made, entered and removed, and so are the control groups, routes and tables of pods."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import journal, undo
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import host, leftovers, mount_namespace
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.mount_namespace import Bind, Space
from ansible_collections.colocation.testbed.plugins.module_utils.recorded_process import wait

pytestmark = pytest.mark.kernel
TARGET = "/run/colocation-testbed-test-private"


@pytest.fixture
def book(tmp_path: Path) -> Iterator[journal.Journal]:
    made = journal.Journal(str(tmp_path / "state/journal.json"))
    yield made
    made.undo({**undo.Undo().handlers(), **leftovers.handlers()})


@pytest.fixture
def space(tmp_path: Path) -> Space:
    return Space(str(tmp_path / "ns/mnt"))


def binds(tmp_path: Path) -> list[Bind]:
    return [Bind(str(tmp_path / "root/private"), TARGET)]


def undone(book: journal.Journal) -> list[str]:
    done = book.undo({**undo.Undo().handlers(), **leftovers.handlers()})
    return [item.outcome.text for item in done if item.outcome.result != "undone"]


def test_what_is_written_inside_is_ours_and_nothing_is_left(
    book: journal.Journal, space: Space, tmp_path: Path
) -> None:
    before = Path("/proc/self/mountinfo").read_text()
    wanted = binds(tmp_path)
    mount_namespace.make(space, wanted, book)
    assert mount_namespace.missing(space, wanted) == []
    space.run([*space.prefix, "touch", f"{TARGET}/file"])
    assert (tmp_path / "root/private/file").exists()
    assert not Path(TARGET, "file").exists()
    # Shared within, so that a mount made by one process is seen by all.
    space.run([*space.prefix, "mount", "-t", "tmpfs", "tmpfs", f"{TARGET}"])
    assert space.bound().count(TARGET) == 2
    mount_namespace.make(space, wanted, book)
    mount_namespace.remove(space, wanted, book)
    assert not Path(TARGET).exists()
    assert not space.exists()
    assert Path("/proc/self/mountinfo").read_text() == before
    assert [entry.kind for entry in book.entries() if entry.by == mount_namespace.BY] == []


def test_the_journal_takes_it_away_too(book: journal.Journal, space: Space, tmp_path: Path) -> None:
    before = Path("/proc/self/mountinfo").read_text()
    mount_namespace.make(space, binds(tmp_path), book)
    assert undone(book) == []
    assert not Path(TARGET).exists()
    assert Path("/proc/self/mountinfo").read_text() == before


@pytest.mark.parametrize("by_journal", [False, True])
def test_what_still_runs_inside_is_ended(book: journal.Journal, space: Space, tmp_path: Path, by_journal: bool) -> None:
    mount_namespace.make(space, binds(tmp_path), book)
    with subprocess.Popen([*space.prefix, "sleep", "60"]) as inside, subprocess.Popen(["sleep", "60"]) as outside:
        wait(lambda: inside.pid in space.pids(), 5)
        if by_journal:
            assert undone(book) == []
        else:
            mount_namespace.remove(space, binds(tmp_path), book)
        assert inside.wait(timeout=5) == -9
        assert outside.poll() is None
        outside.kill()


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("relative", "is no absolute path"),
        ("/var/run/x", "is a symbolic link; name /run/x"),
        ("/", "is no absolute path"),
    ],
)
def test_bad_paths_are_refused(space: Space, target: str, text: str) -> None:
    with pytest.raises(mount_namespace.MountNamespaceError, match=text):
        mount_namespace.check(space, [Bind("/source", target)])


def test_pods_are_ended_with_their_groups(book: journal.Journal) -> None:
    name = "colocation-testbed-test-kubepods"
    here = host.Host()
    wanted = host.Wanted(cgroup_root=name)
    todo = host.plan(wanted, here, set())
    host.apply(todo, wanted, here, book)
    folders = [Path(path) for path in here.group_dirs(name)]
    pids = next(path for path in folders if path.parent.name in ("pids", "unified", "cgroup"))
    for path in folders:
        (path / "burstable/pod1").mkdir(parents=True)
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        (pids / "burstable/pod1/cgroup.procs").write_text(str(sleeper.pid))
        assert undone(book) == []
        assert sleeper.wait(timeout=5) == -9
    assert [path for path in folders if path.exists()] == []


def test_a_kubelet_of_others_is_left_alone() -> None:
    here = host.Host()
    path = Path(here.group_dirs("colocation-testbed-test-other")[0])
    path.mkdir()
    try:
        (found,) = host.problems(host.Wanted(cgroup_root=path.name), here, set())
        assert "another kubelet runs here or has left it" in found
    finally:
        path.rmdir()
