# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules through Ansible on this machine: prediction, change, no second change, undo, and an equal host."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, procfs

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.kernel


class Playbook:
    """Runs tasks on this machine and returns what each registered."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.root = f"colocation-testbed-test-{os.getpid()}-modules"
        self.state = str(directory / "state")

    def run(self, *tasks: dict[str, Any]) -> list[dict[str, Any]]:
        found = self.directory / "results.json"
        registered = [{**task, "register": f"result_{number}"} for number, task in enumerate(tasks)]
        names = ", ".join(f"result_{number}" for number in range(len(tasks)))
        write = {
            "ansible.builtin.copy": {"content": f"{{{{ [{names}] | to_json }}}}", "dest": str(found), "mode": "0600"}
        }
        play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [*registered, write]}
        book = self.directory / "play.yml"
        book.write_text(yaml.safe_dump([play]))
        argv = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "localhost,", str(book)]
        variables = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3"}
        environment = {**os.environ, **variables, "LC_ALL": "C.UTF-8"}
        done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            raise AssertionError(done.stdout + done.stderr)
        return list(json.loads(found.read_text()))

    def module(self, name: str, **options: Any) -> dict[str, Any]:
        more = options.pop("task", {})
        return {f"colocation.testbed.{name}": options, **more}

    def groups(self, **more: Any) -> dict[str, Any]:
        batch = {"name": "batch", "cpu_idle": True, "cpu_shares": 2, "memory_max_bytes": 2**30}
        groups = [{"name": "service", "cpu_shares": 512}, batch]
        return self.module("cgroup", root=self.root, state_dir=self.state, groups=groups, **more)


@pytest.fixture
def playbook(tmp_path: Path) -> Iterator[Playbook]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    made = Playbook(tmp_path)
    yield made
    for directory in cgroup.detect().directories(made.root):
        for place, _, _ in os.walk(directory, topdown=False):
            os.rmdir(place)


def test_change_once_predict_and_undo_to_an_equal_host(playbook: Playbook) -> None:
    # Only our own part of the machine is compared: other programs make groups and processes as they like.
    snapshot = {"paths": [playbook.state], "ignore": ["sysctls/*", "processes/*", "mounts/*", "links/*", "routes/*"]}
    before, check, change, again, info, undo_check, undone, undone_again, after = playbook.run(
        playbook.module("host_snapshot", **snapshot),
        playbook.groups(task={"check_mode": True, "diff": True}),
        playbook.groups(task={"diff": True}),
        playbook.groups(),
        playbook.module("cgroup_info", root=playbook.root, names=["batch", "none"]),
        playbook.module("journal_undo", state_dir=playbook.state, task={"check_mode": True}),
        playbook.module("journal_undo", state_dir=playbook.state),
        playbook.module("journal_undo", state_dir=playbook.state),
        playbook.module("host_snapshot", **snapshot),
    )
    assert [item["changed"] for item in (check, change, again)] == [True, True, False]
    assert check["diff"] == change["diff"]
    assert check["diff"]["after"][f"{playbook.root}/batch"]["cpu_idle"] == 1
    assert info["groups"]["batch"]["values"]["cpu_idle"] == 1
    assert info["groups"]["none"]["exists"] is False
    assert change["policy_values"]["batch/cpu.idle"] == "1"
    assert undo_check["undone"] == undone["undone"]
    assert [item["changed"] for item in (undo_check, undone, undone_again)] == [True, True, False]
    assert not any(playbook.root in key for item in (before, after) for key in item["snapshot"]["cgroups"])
    assert before["snapshot"]["files"] == after["snapshot"]["files"]


BAD_GROUPS: list[tuple[dict[str, Any], str]] = [
    ({"name": "../x"}, "not allowed"),
    ({"name": "a", "cpu_shares": 1}, "write a number from 2 to 262144"),
    ({"name": "a", "cpuset_cpus": "0-4000"}, "is not within its parent's"),
    ({"name": "a", "cpu_shares": 5, "cpu_weight": 5}, "mutually exclusive"),
    ({"name": "a", "pids": [4194304]}, "process 4194304 does not exist"),
    ({"name": "a", "io_max": [{"device": "/dev/null", "rbps": 5}]}, "/dev/null: is no block device"),
    ({"name": "a", "io_max": [{"rbps": 5}]}, "missing required arguments: device"),
    ({"name": "a", "process_names": ["a-name-of-sixteen"]}, "the first 15 bytes"),
    ({"name": "a", "cpuset_partition": "alone"}, "must be one of: member, root, isolated"),
]


def test_bad_input_is_one_sentence_and_changes_nothing(playbook: Playbook) -> None:
    options = {"root": playbook.root, "state_dir": playbook.state, "task": {"ignore_errors": True}}
    results = playbook.run(*(playbook.module("cgroup", groups=[group], **options) for group, _ in BAD_GROUPS))
    for result, (_, words) in zip(results, BAD_GROUPS, strict=True):
        assert words in result["msg"]
        assert "\n" not in result["msg"]
    assert not os.path.exists(playbook.state)
    assert not os.path.isdir(cgroup.detect().path("cpu", playbook.root))


def test_a_corrupt_journal_stops_everything(playbook: Playbook) -> None:
    os.mkdir(playbook.state)
    Path(playbook.state, "journal.json").write_text("{")
    results = playbook.run(
        playbook.groups(task={"ignore_errors": True}),
        playbook.module("journal_undo", state_dir=playbook.state, task={"ignore_errors": True}),
    )
    for result in results:
        assert "is not JSON" in result["msg"]
        assert "nothing was touched" in result["msg"]
    assert not os.path.isdir(cgroup.detect().path("cpu", playbook.root))


def test_the_example_of_the_page_works_twice(playbook: Playbook) -> None:
    page = (ROOT / "docs/cgroup.md").read_text(encoding="utf-8")
    (task,) = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[0])
    task["vars"] = {"cgroup_example_root": playbook.root, "cgroup_example_state_dir": playbook.state}
    first, again, undone = playbook.run(task, task, playbook.module("journal_undo", state_dir=playbook.state))
    assert (first["changed"], again["changed"], undone["failed_entries"]) == (True, False, [])
    assert first["groups"]["batch"]["values"]["cpu_idle"] == 1
    assert not os.path.isdir(cgroup.detect().path("cpu", playbook.root))


def test_disks_programs_and_what_info_tells(playbook: Playbook, sleeper: int) -> None:
    options = {"root": playbook.root, "state_dir": playbook.state}
    comm = Path(f"/proc/{sleeper}/comm").read_text().strip()
    limits = [{"device": "/dev/loop0", "rbps": 1048576, "wiops": -1}]
    batch = {"name": "batch", "io_weight": 200, "io_max": limits, "cpu_quota_us": 50_000, "process_names": [comm]}
    groups = [{"name": "", "memory_max_bytes": 2**30, "cpuset_cpus": "0"}, batch]
    info = {"root": playbook.root, "recursive": True, "patterns": [f"{playbook.root}/*", "**/nothing-of-this-name"]}
    joined, predicted, changed, again, told, lacking = playbook.run(
        playbook.module("cgroup", groups=[groups[0], {"name": "service", "pids": [sleeper]}], **options),
        playbook.module("cgroup", groups=groups, **options, task={"check_mode": True, "diff": True}),
        playbook.module("cgroup", groups=groups, **options, task={"diff": True}),
        playbook.module("cgroup", groups=groups, **options),
        playbook.module("cgroup_info", **info),
        playbook.module(
            "cgroup", groups=[{"name": "batch", "memory_oom_group": True}], **options, task={"ignore_errors": True}
        ),
    )
    try:
        assert joined["changed"] is True
        assert predicted["diff"] == changed["diff"]
        assert changed["diff"]["after"][f"{playbook.root}/batch"]["io_max"] == [
            {"device": "7:0", "rbps": 1048576, "wiops": -1}
        ]
        assert [item["text"] for item in changed["translated"] if item["key"] == "io_weight"] == ["109"]
        assert changed["groups"]["batch"]["values"]["io_max"] == [{"device": "7:0", "rbps": 1048576}]
        assert again["changed"] is False
        found = told["groups"]["batch"]
        assert set(told["groups"]) == {"", "batch", "service"}
        assert set(told["matches"]) == {f"{playbook.root}/batch", f"{playbook.root}/service"}
        assert told["matches"][f"{playbook.root}/batch"] == found
        assert found["pids"] == [sleeper]
        assert found["tasks"] == 1
        assert found["effective"]["cpu_limit_milli"] == 500
        assert found["effective"]["memory_max_bytes"] == 2**30
        assert found["effective"]["cpuset_cpus"] == "0"
        assert set(found["pressure"]) == {"cpu", "memory", "io"}
        assert "memory_oom_group of group batch needs cgroup v2" in lacking["msg"]
    finally:
        for directory in cgroup.detect().directories(""):
            cgroup.move(directory, sleeper)
        undone = playbook.run(playbook.module("journal_undo", state_dir=playbook.state))
    assert undone[0]["failed_entries"] == []
    assert procfs.read_stat(sleeper) is not None
    assert not os.path.isdir(cgroup.detect().path("io", playbook.root))


def test_groups_for_packets_are_made_on_version_2_and_undone(playbook: Playbook) -> None:
    mounts = [item.mount for item in cgroup.detect().hierarchies if item.version == 2]
    if not mounts:
        pytest.skip("needs cgroup2 mounted")
    place = Path(mounts[0], playbook.root)
    change, again = playbook.run(playbook.groups(cgroup2=True), playbook.groups(cgroup2=True))
    assert (change["changed"], again["changed"]) == (True, False)
    assert sorted(item.name for item in place.iterdir() if item.is_dir()) == ["batch", "service"]
    (undone,) = playbook.run(playbook.module("journal_undo", state_dir=playbook.state))
    assert undone["changed"] is True
    assert not place.exists()
