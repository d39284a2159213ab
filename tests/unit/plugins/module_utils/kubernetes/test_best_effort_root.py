"""The root of best effort on a node: recorded before an agent writes it, lifted, and put back."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import files, journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import best_effort_root, koordinator_node

V1 = "1 1 0:1 / {root}/cpu rw - cgroup cgroup rw,cpu\n2 1 0:2 / {root}/cpuset rw - cgroup cgroup rw,cpuset\n"
V2 = "1 1 0:1 / {root} rw - cgroup2 cgroup2 rw\n"


def groups(tmp_path: Path, version: int, quota: str, cpus: str, below: str) -> cgroup.Layout:
    """Make the files of kubelet's groups, with a pod below best effort."""
    for place, name in (("cpu", "kubepods/besteffort"), ("cpuset", "kubepods/besteffort/pod1/c1")):
        (tmp_path / (place if version == 1 else "") / name).mkdir(parents=True, exist_ok=True)
    cpu, cpuset = (tmp_path / "cpu", tmp_path / "cpuset") if version == 1 else (tmp_path, tmp_path)
    (cpu / "kubepods/besteffort" / ("cpu.cfs_quota_us" if version == 1 else "cpu.max")).write_text(f"{quota}\n")
    every = "0-1" if version == 1 else ""
    for name, text in (("kubepods", every), ("kubepods/besteffort", cpus), ("kubepods/besteffort/pod1", below)):
        (cpuset / name / "cpuset.cpus").write_text(f"{text}\n")
    (cpuset / "kubepods/besteffort/pod1/c1/cpuset.cpus").write_text(f"{below}\n")
    if version == 2:
        for name, text in (("kubepods", "0-1"), ("kubepods/besteffort", cpus or "0-1")):
            (cpuset / name / "cpuset.cpus.effective").write_text(f"{text}\n")
        (tmp_path / "cgroup.controllers").write_text("cpuset cpu memory\n")
    return cgroup.parse_layout((V1 if version == 1 else V2).format(root=tmp_path))


@pytest.mark.parametrize(
    ("version", "quota", "cpus", "free"),
    [(1, "2000", "0", "-1"), (2, "2000 100000", "0", "max 100000")],
)
def test_the_root_of_best_effort_is_recorded_lifted_and_put_back(
    tmp_path: Path, version: int, quota: str, cpus: str, free: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = groups(tmp_path / "fs", version, quota, cpus, cpus)
    # A kernel shows more than was written into cpu.max.
    written: dict[str, str] = {}

    def write_kernel(path: str, text: str) -> None:
        written[path] = text
        shown = f"{text} 100000" if path.endswith("cpu.max") else text
        Path(path).write_text(f"{shown}\n")

    monkeypatch.setattr(files, "write_kernel", write_kernel)
    root = best_effort_root.read(layout)
    assert (root.group, root.quota_us, root.cpus, root.problem) == ("kubepods/besteffort", 2000, "0", "")
    book = journal.Journal(str(tmp_path / "state/journal.json"))
    made_by_agent = tmp_path / "var/run/koordlet"
    checked = koordinator_node.record(book, layout, [str(made_by_agent)], True, True)
    assert checked.changed
    assert not book.exists()
    assert written == {}
    done = koordinator_node.record(book, layout, [str(made_by_agent)], True, False)
    assert done.restored[0].endswith(f"2000{quota[4:]} put back to {free}")
    assert len(done.restored) == 4
    assert not koordinator_node.record(book, layout, [str(made_by_agent)], True, False).changed
    # The agent works, and is removed.
    made_by_agent.mkdir(parents=True)
    (made_by_agent / "koordlet.sock").write_text("")
    groups(tmp_path / "fs", version, quota, cpus, cpus)
    assert koordinator_node.take_back(book, layout, True).changed
    assert best_effort_root.read(layout).quota_us == 2000
    assert koordinator_node.take_back(book, layout, False).changed
    assert best_effort_root.read(layout).quota_us == -1
    assert [item for item in best_effort_root.neutral(layout) if item.differs] == []
    assert not (tmp_path / "var").exists()
    assert not koordinator_node.take_back(book, layout, False).changed


def test_an_agent_that_still_writes_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = groups(tmp_path, 1, "2000", "0-1", "0-1")
    monkeypatch.setattr(files, "write_kernel", lambda _path, _text: None)
    with pytest.raises(best_effort_root.RootError, match="somebody else writes it; look for koordlet"):
        best_effort_root.put_back([item for item in best_effort_root.neutral(layout) if item.differs])


def test_kubelets_groups_must_be_where_the_agent_looks(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    layout = cgroup.parse_layout(V1.format(root=tmp_path))
    assert "its cgroupRoot is not /" in best_effort_root.read(layout).problem
    assert best_effort_root.neutral(layout) == []
    layout = groups(tmp_path, 1, "-1", "0-1", "0-1")
    assert "cgroup driver is systemd, but the group is kubepods" in best_effort_root.read(layout, "systemd").problem
    assert best_effort_root.read(layout, "cgroupfs").problem == ""
