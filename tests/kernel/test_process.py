# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module process against the running kernel: supervision, control groups, and that nothing is ever left behind."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.module_utils import undo
from ansible_collections.colocation.testbed.plugins.module_utils.journal import Journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, procfs
from ansible_collections.colocation.testbed.plugins.module_utils.recorded_process import wait
from ansible_collections.colocation.testbed.plugins.modules import process
from ansible_collections.colocation.testbed.plugins.plugin_utils import node_bundle

GROUP_ROOT = f"colocation-testbed-process-{os.getpid()}"
SLEEP = ["sleep", "600"]


def alive(pid: int) -> bool:
    stat = procfs.read_stat(pid)
    return stat is not None and not stat.dead


class Host:
    """A state directory with the node tool, and the module that works on it."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.directory = directory
        self.capsys = capsys
        (directory / "node.pyz").write_bytes(node_bundle.build(ROOT).content)

    def run(self, *entries: dict[str, Any], **options: Any) -> dict[str, Any]:
        arguments = {"state_dir": str(self.directory), "cgroup_root": GROUP_ROOT, **options}
        self.capsys.readouterr()
        with patch_module_args({**arguments, "processes": list(entries)}), pytest.raises(SystemExit):
            process.main()
        return dict(json.loads(self.capsys.readouterr().out))

    def one(self, name: str = "a", **options: Any) -> dict[str, Any]:
        result = self.run({"name": name, **options})
        assert "msg" not in result, result["msg"]
        return dict(result["processes"][0])

    def pid_file(self, name: str = "a") -> dict[str, Any]:
        return dict(json.loads((self.directory / "processes" / f"{name}.pid").read_text()))

    def log(self, name: str = "a") -> str:
        return (self.directory / "processes" / f"{name}.log").read_text()

    @property
    def journal(self) -> Journal:
        return Journal(str(self.directory / "journal.json"))


@pytest.fixture
def host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Host]:
    made = Host(tmp_path, capsys)
    yield made
    names = [path.stem for path in (tmp_path / "processes").glob("*.pid")]
    made.run(*({"name": name, "state": "absent"} for name in names))


@pytest.fixture
def group() -> Iterator[str]:
    layout = cgroup.detect()
    places = [place for name in ("", "/service") for place in layout.directories(GROUP_ROOT + name)]
    for place in places:
        Path(place).mkdir()
        if (Path(place) / "cpuset.cpus").exists():
            for file in ("cpuset.cpus", "cpuset.mems"):
                (Path(place) / file).write_text((Path(place).parent / file).read_text())
    yield "service"
    for place in reversed(places):
        assert wait(lambda: not cgroup.read_pids(place), 5), place  # noqa: B023
        Path(place).rmdir()


def test_runs_once_and_again_only_when_the_specification_changes(host: Host) -> None:
    first = host.one(argv=SLEEP)
    assert first["changed"]
    assert alive(first["pid"])
    assert host.one(argv=SLEEP) == {**first, "changed": False}
    second = host.one(argv=SLEEP, env={"A": "1"})
    assert second["changed"]
    assert not alive(first["pid"])
    third = host.one(argv=SLEEP, env={"A": "1"}, state="restarted")
    assert not alive(second["pid"])
    stopped = host.one(state="stopped")
    assert (stopped["state"], stopped["changed"], stopped["exit"]["signal"]) == ("stopped", True, signal.SIGTERM)
    assert not alive(third["pid"])
    assert not host.one(state="stopped")["changed"]
    assert [entry.kind for entry in host.journal.entries()] == ["directory"]
    assert host.one(state="absent")["changed"]
    assert list((host.directory / "processes").iterdir()) == []


def test_check_mode_predicts_and_does_nothing(host: Host) -> None:
    assert host.run({"name": "a", "argv": SLEEP}, _ansible_check_mode=True, _ansible_diff=True)["changed"]
    assert not (host.directory / "processes").exists()
    before = host.one(argv=SLEEP)
    for entry in ({"state": "stopped"}, {"state": "absent"}, {"argv": ["sleep", "601"]}):
        result = host.run({"name": "a", **entry}, _ansible_check_mode=True, _ansible_diff=True)
        assert result["changed"]
        assert result["diff"][0]["before"] != result["diff"][0]["after"]
    assert not host.run({"name": "a", "argv": SLEEP}, _ansible_check_mode=True)["changed"]
    assert alive(before["pid"])


def test_group_and_cpus_are_set_before_the_program_begins(host: Host, group: str) -> None:
    cpu = str(min(os.sched_getaffinity(0)))
    script = "cat /proc/self/cgroup; grep Cpus_allowed_list /proc/self/status; sleep 600"
    entry = {"name": "a", "argv": ["sh", "-c", script], "group": group, "cpus": cpu}
    result = host.run(entry, housekeeping_cpus=cpu)
    assert wait(lambda: "Cpus_allowed" in host.log(), 10)
    paths = procfs.parse_group_paths(host.log())
    for hierarchy in cgroup.detect().used():
        key = "" if hierarchy.version == 2 else ",".join(hierarchy.controllers)
        assert paths[key] == f"/{GROUP_ROOT}/{group}", key
    assert f"Cpus_allowed_list:\t{cpu}\n" in host.log()
    supervisor = host.pid_file()["supervisor_pid"]
    assert not [path for path in procfs.read_group_paths(supervisor).values() if GROUP_ROOT in path]
    assert os.sched_getaffinity(supervisor) == {int(cpu)}
    assert result["processes"][0]["pid"] in cgroup.read_pids(cgroup.detect().path("cpu", f"{GROUP_ROOT}/{group}"))
    host.one(state="stopped")


def test_environment_is_the_same_whoever_calls(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_CALLER", "1")
    host.one(argv=["env"], env={"A": "b"}, wait=True)
    names = {line.partition("=")[0] for line in host.log().splitlines()}
    assert names == {"PATH", "LC_ALL", "HOME", "A"}


def test_one_that_does_not_end_is_killed(host: Host) -> None:
    argv = ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"]
    host.one(argv=argv, stop_timeout_s=0.2)
    assert wait(lambda: "ready" in host.log(), 10)
    assert host.one(state="stopped")["exit"]["signal"] == signal.SIGKILL
    assert "killed" in host.log()


@pytest.mark.parametrize("end", ["sleep 600", "exit 0"], ids=["stopped", "by itself"])
def test_what_it_started_ends_with_it_even_in_a_session_of_its_own(host: Host, end: str) -> None:
    both = f"until [ $(wc -l < {host.directory}/processes/a.log) = 2 ]; do sleep 0.05; done"
    script = f"setsid sh -c 'echo $$; exec sleep 600' & sleep 600 & echo $!; {both}; {end}"
    host.one(argv=["sh", "-c", script], timeout_s=10.0)
    assert wait(lambda: len(host.log().split()) == 2, 10)
    pids = [int(word) for word in host.log().split()]
    host.one(state="stopped" if "600" in end else "ended", timeout_s=10.0)
    assert not [pid for pid in pids if alive(pid)]


def test_a_killed_supervisor_takes_its_child_along(host: Host) -> None:
    pid = host.one(argv=SLEEP)["pid"]
    os.kill(host.pid_file()["supervisor_pid"], signal.SIGKILL)
    assert wait(lambda: not alive(pid), 10)
    again = host.one(argv=SLEEP)
    assert again["changed"]
    assert alive(again["pid"])


def test_orphans_of_a_killed_supervisor_are_found_and_ended(host: Host) -> None:
    script = "trap '' TERM; sleep 600 & echo $!; while :; do sleep 1; done"
    pid = host.one(argv=["sh", "-c", script], stop_timeout_s=0.2)["pid"]
    assert wait(lambda: bool(host.log()), 10)
    grandchild = int(host.log())
    os.kill(host.pid_file()["supervisor_pid"], signal.SIGKILL)
    assert wait(lambda: not alive(host.pid_file()["supervisor_pid"]), 10)
    assert alive(pid)
    assert host.one(state="stopped")["changed"]
    assert not alive(pid)
    assert not alive(grandchild)


def test_waiting_returns_how_it_ended(host: Host) -> None:
    found = host.one(argv=["sh", "-c", "echo some words; exit 3"], wait=True)
    assert (found["state"], found["exit"]["status"], found["exit"]["signal"]) == ("stopped", 3, None)
    assert found["log_tail"] == "some words\n"
    killed = host.one(argv=["sh", "-c", "kill -9 $$"], wait=True)
    assert (killed["exit"]["status"], killed["exit"]["signal"]) == (None, signal.SIGKILL)
    assert (host.directory / "processes" / "a.log.1").read_text() == "some words\n"


def test_the_longest_duration_is_kept_by_the_supervisor(host: Host) -> None:
    host.one(argv=SLEEP, max_duration_s=0.5)
    assert host.one(state="ended", timeout_s=10.0)["exit"]["signal"] == signal.SIGTERM
    assert "longest duration" in host.log()


def test_pid_files_of_another_boot_or_another_process_mean_nothing(host: Host) -> None:
    first = host.one(argv=SLEEP)
    content = host.pid_file()
    path = host.directory / "processes" / "a.pid"
    own_ticks = procfs.read_stat(os.getpid()).start_ticks  # type: ignore[union-attr]
    foreign = {"pid": os.getpid(), "supervisor_pid": os.getpid(), "supervisor_start_ticks": own_ticks - 1}
    host.one(state="stopped")
    for change in ({"boot_id": "another"}, {**foreign, "start_ticks": own_ticks - 1}):
        path.write_text(json.dumps({**content, **change}))
        assert not host.one(state="stopped")["changed"]
        started = host.one(argv=SLEEP)
        assert started["changed"]
        assert started["pid"] != first["pid"]
        host.one(state="stopped")


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"argv": ["no-such-program"]}, "process a: could not be started: no-such-program: No such file or directory"),
        ({"argv": SLEEP, "directory": "/none"}, "could not be started: /none: No such file"),
        ({"argv": SLEEP, "group": "none"}, "apply it with module cgroup before"),
        ({"argv": ["echo", "bye"], "ready": {"file": "/none"}}, "ended before it was ready (/none exists); its log"),
        ({"argv": SLEEP, "ready": {"file": "/none"}, "ready_timeout_s": 0.3}, "took longer than 0.3 s and was stopped"),
        ({"argv": SLEEP, "wait": True, "timeout_s": 0.3}, "still ran after 0.3 s and was stopped"),
        ({"state": "ended"}, "was never started here"),
        ({"tool": "sample", "spec": {"colour": 1}, "ready": {"file": "/none"}}, "see docs/node-tool.md for its keys"),
    ],
)
def test_failures_are_one_sentence_and_leave_nothing_running(host: Host, entry: dict[str, Any], sentence: str) -> None:
    result = host.run({"name": "a", **entry})
    assert sentence in result["msg"]
    assert result["processes"] == []
    assert not host.one(state="stopped")["changed"]


def test_a_taken_port_is_found_before_the_start(host: Host) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        result = host.run({"name": "a", "argv": SLEEP, "ready": {"tcp_port": port}, "port_setting": "web_port"})
    assert f"port {port} is taken by process {os.getpid()}" in result["msg"]
    assert "set web_port to a free port" in result["msg"]


def test_without_the_tool_the_role_is_named(host: Host) -> None:
    (host.directory / "node.pyz").unlink()
    assert "apply role node" in host.run({"name": "a", "argv": SLEEP})["msg"]


def test_results_of_an_earlier_run_are_never_taken_for_new_ones(host: Host) -> None:
    output = host.directory / "out"
    output.write_text("old")
    result = host.run(
        {"name": "a", "tool": "load", "spec": {"output": str(output)}, "wait": True}, results=[str(output), "/none"]
    )
    content = result["contents"][str(output)]
    assert content is None or zlib.decompress(base64.b64decode(content["content_b64_zlib"])) != b"old"
    assert result["contents"]["/none"] is None
    entry = next(item for item in host.journal.entries() if item.target == str(output))
    assert base64.b64decode(entry.previous["content_b64"]) == b"old"


@pytest.mark.parametrize("kill", [lambda _: None, lambda pid: os.kill(pid, signal.SIGKILL)], ids=["whole", "orphaned"])
def test_the_journal_ends_it(host: Host, kill: Callable[[int], None]) -> None:
    pid = host.one(argv=["sh", "-c", "trap '' TERM; while :; do sleep 1; done"], stop_timeout_s=0.2)["pid"]
    kill(host.pid_file()["supervisor_pid"])
    done = host.journal.undo(undo.Undo(term_deadline_s=1.0).handlers())
    assert {item.outcome.result for item in done} == {"undone"}
    assert not alive(pid)
    assert not (host.directory / "processes").exists()
