# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands, snapshot
from tests.support.resctrl_dump import Dumped

MOUNTINFO = """\
23 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
32 23 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
33 23 0:29 / /mnt rw - tmpfs tmpfs rw
34 23 0:30 / /mnt rw - tmpfs tmpfs rw,size=1k
"""
ADDRESSES = [
    {"ifname": "v0", "ifindex": 7, "mtu": 1500, "addr_info": [{"local": "198.18.0.1", "valid_life_time": 1}]},
    {},
]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    proc = tmp_path / "proc"
    for name, text in {
        "self/mountinfo": MOUNTINFO.replace("/sys/fs/cgroup/cpu", str(tmp_path / "cpu")),
        "sys/vm/swappiness": "60\n",
        "sys/kernel/random/uuid": "changes\n",
        "sys/net/ipv4/tcp_rmem": "1\t2\t3\n",
        "swaps": "Filename Type Size Used Priority\n/dev/vdb partition 8 0 -2\n",
    }.items():
        (proc / name).parent.mkdir(parents=True, exist_ok=True)
        (proc / name).write_text(text)
    (tmp_path / "sys/kernel/mm/ksm").mkdir(parents=True)
    (tmp_path / "sys/kernel/mm/ksm/run").write_text("0\n")
    (tmp_path / "cpu/batch").mkdir(parents=True)
    (tmp_path / "cpu/batch/cpu.shares").write_text("2\n")
    (tmp_path / "cpu/batch/cpu.stat").write_text("nr_periods 1\n")
    (tmp_path / "netns").mkdir()
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/file").write_text("x")
    (tmp_path / "etc/link").symlink_to("file")

    def run(argv: list[str], **_more: Any) -> commands.Result:
        return commands.Result(tuple(argv), 0, json.dumps(ADDRESSES) if "addr" in argv else "", "")

    return snapshot.Wanted(
        paths=(str(tmp_path / "etc"), str(tmp_path / "absent")),
        proc_root=str(proc),
        sys_root=str(tmp_path / "sys"),
        netns_root=str(tmp_path / "netns"),
        run=run,
    )


def test_shows_everything_but_what_changes_by_itself(host: snapshot.Wanted, tmp_path: Path) -> None:
    picture = snapshot.take(host)
    assert picture["sysctls"] == {"net.ipv4.tcp_rmem": "1 2 3", "vm.swappiness": "60"}
    assert picture["tuning"] == {"swap /dev/vdb": "-2", f"{tmp_path}/sys/kernel/mm/ksm/run": "0"}
    assert picture["cgroups"][f"{tmp_path}/cpu/batch/cpu.shares"] == "2"
    assert f"{tmp_path}/cpu/batch/cpu.stat" not in picture["cgroups"]
    assert json.loads(picture["links"]["v0#1"]) == {"ifname": "v0", "mtu": 1500, "addr_info": [{"local": "198.18.0.1"}]}
    assert [key for key in picture["mounts"] if key.startswith("/mnt")] == ["/mnt#1", "/mnt#2"]
    assert "shared" in picture["mounts"]["/#1"].split()
    assert picture["files"][f"{tmp_path}/absent"] == "missing"
    assert picture["files"][f"{tmp_path}/etc/link"].endswith("-> file")


def test_the_same_host_gives_the_same_picture(host: snapshot.Wanted) -> None:
    assert snapshot.digest(snapshot.take(host)) == snapshot.digest(snapshot.take(host))


def test_every_kind_of_change_is_told(host: snapshot.Wanted, tmp_path: Path) -> None:
    before = snapshot.take(host)
    (tmp_path / "etc/file").chmod(0o777)
    (tmp_path / "etc/new").write_text("")
    (tmp_path / "netns/lab").touch()
    (tmp_path / "cpu/batch/cpu.shares").write_text("3\n")
    (tmp_path / "proc/sys/vm/swappiness").unlink()
    after = snapshot.take(host)
    assert [line.split(": ")[0] for line in snapshot.differences(before, after)] == [
        f"cgroups {tmp_path}/cpu/batch/cpu.shares",
        f"files {tmp_path}/etc/file",
        f"files {tmp_path}/etc/new",
        "netns lab",
        "sysctls vm.swappiness",
    ]
    assert "was 2, is 3" in snapshot.differences(before, after)[0]
    assert snapshot.digest(before) != snapshot.digest(after)
    assert snapshot.differences(before, before) == []


def test_patterns_leave_things_out(host: snapshot.Wanted) -> None:
    wanted = snapshot.Wanted(**{**host.__dict__, "ignore": ("cgroups/*/batch*", "sysctls/vm.*")})
    picture = snapshot.take(wanted)
    assert not any("batch" in key for key in picture["cgroups"])
    assert list(picture["sysctls"]) == ["net.ipv4.tcp_rmem"]


def test_processes_of_ours_are_shown(host: snapshot.Wanted, tmp_path: Path) -> None:
    for pid, group, argv in (
        (70, "/colocation-testbed/batch", "ffmpeg"),
        (71, "/", "cat\0/var/lib/colocation-testbed/x"),
    ):
        place = tmp_path / f"proc/{pid}"
        place.mkdir()
        (place / "stat").write_text(f"{pid} (x) S 1 1 1 " + "0 " * 46)
        (place / "cgroup").write_text(f"1:cpu:{group}\n")
        (place / "cmdline").write_text(argv + "\0")
    assert list(snapshot.take(host)["processes"]) == ["cat /var/lib/colocation-testbed/x#1", "ffmpeg#1"]


def test_unexpected_output_is_a_sentence(host: snapshot.Wanted) -> None:
    broken = snapshot.Wanted(
        **{**host.__dict__, "run": lambda argv, **_: commands.Result(tuple(argv), 0, "no json", "")}
    )
    with pytest.raises(snapshot.SnapshotError, match="printed no JSON"):
        snapshot.take(broken)
    missing = snapshot.Wanted(**{**host.__dict__, "proc_root": str(host.netns_root)})
    with pytest.raises(snapshot.SnapshotError, match=r"snapshot of cgroups: .*mountinfo: not there; mount /proc"):
        snapshot.take(missing)


def test_groups_of_resctrl_with_their_values(tmp_path: Path) -> None:
    host = Dumped(tmp_path)
    for path in ("/BE", "/BE/mon_groups/m"):
        host.tree.mkdir(path)
    host.tree.write("/BE/schemata", b"L3:0=f\n", 1)
    host.state()
    shown = dict(snapshot._resctrl(str(host.proc)))
    assert shown == {
        f"{host.point}": "mode shareable; L3:0=7ff; MB:0=100; CPUs [0, 1]",
        f"{host.point}/BE": "mode shareable; L3:0=f; MB:0=100; CPUs []",
        f"{host.point}/BE/mon_groups/m": "CPUs []",
    }
