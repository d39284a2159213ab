"""The modules through Ansible, in a network namespace of this test's own: predict, change, read, undo, refuse."""

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
from tooling import ROOT, checkout_environment, run

from tools.bandwidth.namespaces import Pair

LINK = {"name": "link", "total": "1Gbit/s", "waterline": "200Mbit/s", "low": "160Mbit/s", "high": "800Mbit/s"}
BATCH = {"name": "batch", "pool": "link", "role": "offline", "limit": "500Mbit/s", "prefixes": ["10.99.0.0/28"]}
LEFT = {"name": "left", "pool": "link"}


class Playbook:
    """Runs tasks in a network namespace and returns what each registered."""

    def __init__(self, pair: Pair, directory: Path) -> None:
        self.pair, self.directory = pair, directory
        (directory / "bpf").mkdir()
        self.common = {"bpffs": str(directory / "bpf"), "state_dir": str(directory / "state")}

    def play(self, *tasks: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        found = self.directory / "results.json"
        names = ", ".join(f"result_{number}" for number in range(len(tasks)))
        registered = [{**task, "register": f"result_{number}"} for number, task in enumerate(tasks)]
        write = {
            "ansible.builtin.copy": {"content": f"{{{{ [{names}] | to_json }}}}", "dest": str(found), "mode": "0600"}
        }
        play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [*registered, write]}
        book = self.directory / "play.yml"
        book.write_text(yaml.safe_dump([play]))
        argv = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "localhost,", str(book)]
        environment = checkout_environment(ANSIBLE_PYTHON_INTERPRETER="/usr/bin/python3")
        return subprocess.run(
            self.pair.argv(argv),
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def run(self, *tasks: dict[str, Any]) -> list[dict[str, Any]]:
        done = self.play(*tasks)
        assert done.returncode == 0, done.stdout + done.stderr
        return list(json.loads((self.directory / "results.json").read_text()))

    def role(self, *arguments: str, **variables: Any) -> str:
        """Run the role, and return the recap."""
        common = {"node_state_dir": self.common["state_dir"], "bandwidth_bpffs": self.common["bpffs"], **variables}
        play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "vars": common,
                "roles": ["colocation.testbed.bandwidth"]}  # fmt: skip
        book = self.directory / "role.yml"
        book.write_text(yaml.safe_dump([play]))
        argv = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "localhost,", str(book), *arguments]
        environment = checkout_environment(ANSIBLE_PYTHON_INTERPRETER="/usr/bin/python3")
        return run(self.pair.argv(argv), env=environment).split("PLAY RECAP")[1]

    def task(self, name: str, task: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        common = self.common if name.startswith("bandwidth") else {"state_dir": self.common["state_dir"]}
        return {f"colocation.testbed.{name}": {**common, **options}, **(task or {})}

    def everything(self) -> list[dict[str, Any]]:
        return [
            self.task("bandwidth_pool", pools=[LINK]),
            self.task("bandwidth_class", classes=[BATCH]),
            self.task("bandwidth_device", devices=[LEFT]),
        ]


@pytest.fixture
def playbook(tmp_path: Path) -> Iterator[Playbook]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with Pair("modules") as pair:
        made = Playbook(pair, tmp_path)
        yield made
        if os.path.ismount(made.common["bpffs"]):
            made.run(made.task("journal_undo"))


def test_predict_change_read_and_undo(playbook: Playbook) -> None:
    before = playbook.pair.run(["tc", "qdisc", "show"]).stdout
    pool = playbook.task("bandwidth_pool", {"check_mode": True, "diff": True}, pools=[LINK])
    check, none, *made = playbook.run(pool, playbook.task("bandwidth_info"), *playbook.everything())
    assert (check["changed"], none["exists"]) == (True, False)
    assert check["diff"]["before"]["pools"] == {}
    assert check["diff"]["after"]["pools"]["link"]["total"] == 125_000_000
    assert [item["changed"] for item in made] == [True] * 3
    assert all(0 < item["elapsed_ms"] < 60_000 for item in made)
    assert made[1]["classes"]["batch"]["limit"] == 62_500_000
    assert made[2]["devices"]["left/egress"]["chosen"] in ("edt", "htb", "police")
    again = playbook.run(*playbook.everything(), playbook.task("bandwidth_info"))
    assert [item["changed"] for item in again] == [False] * 4
    info = again[3]
    assert (info["exists"], info["pools"]["link"]["figures"]["state"]) == (True, "high")
    assert info["classes"]["batch"]["figures"]["packets"] == 0
    assert info["programs"]["shape"]["id"] > 0
    undone = playbook.run(playbook.task("journal_undo"))[0]
    assert any(text.startswith("bandwidth main: removed") for text in undone["undone"])
    assert playbook.pair.run(["tc", "qdisc", "show"]).stdout == before
    assert not os.path.ismount(playbook.common["bpffs"])


def test_removing_what_was_made_needs_no_journal(playbook: Playbook) -> None:
    playbook.run(*playbook.everything())
    gone = playbook.run(
        playbook.task("bandwidth_device", devices=[], purge=True),
        playbook.task("bandwidth_class", classes=[{"name": "batch", "state": "absent"}]),
        playbook.task("bandwidth_pool", pools=[{"name": "link", "state": "absent"}]),
        playbook.task("bandwidth_info"),
    )
    assert [item["changed"] for item in gone] == [True, True, True, False]
    assert gone[3]["exists"] is False
    assert not os.path.ismount(playbook.common["bpffs"])


def test_the_role_predicts_makes_keeps_and_removes(playbook: Playbook) -> None:
    playbook.pair.run(["ip", "route", "add", "default", "via", "10.99.0.2"])
    batch = {"name": "batch", "pool": "link", "role": "offline", "devices": ["left"]}
    wanted = {
        "bandwidth_pools": [LINK],
        "bandwidth_classes": [batch],
        "bandwidth_devices": [{"default_route": True, "pool": "link"}, {"name": "le*", "pool": "link"}],
    }
    before = playbook.pair.run(["tc", "qdisc", "show"]).stdout
    assert "failed=0" in playbook.role("--check", "--diff", **wanted)
    assert playbook.pair.run(["tc", "qdisc", "show"]).stdout == before
    assert "changed=3 " in playbook.role(**wanted)
    assert "changed=0 " in playbook.role(**wanted)
    assert "clsact" in playbook.pair.run(["tc", "qdisc", "show", "dev", "left"]).stdout
    # A device that is plugged in later is shaped by the next run, when the pattern means it too.
    playbook.pair.run(["ip", "link", "add", "left2", "type", "veth", "peer", "far"])
    assert "changed=1 " in playbook.role(**wanted)
    assert "clsact" in playbook.pair.run(["tc", "qdisc", "show", "dev", "left2"]).stdout
    assert "changed=0 " in playbook.role(**wanted)
    playbook.pair.run(["ip", "link", "delete", "left2"])
    assert "changed=3 " in playbook.role(bandwidth_state="absent")
    assert playbook.pair.run(["tc", "qdisc", "show"]).stdout == before


def test_the_role_reads_annotations_of_pods(playbook: Playbook) -> None:
    pod = {
        "metadata": {"namespace": "shop", "name": "web", "uid": "0f5a1b2c-3d4e-5f60-7182-93a4b5c6d7e8",
                     "annotations": {"kubernetes.io/egress-bandwidth": "10M"}},
        "spec": {"nodeName": "worker1"},
        "status": {"phase": "Running", "qosClass": "Burstable", "podIPs": [{"ip": "10.99.0.1"}]},
    }  # fmt: skip
    other = {**pod, "spec": {"nodeName": "worker2"}}
    wanted = {"bandwidth_pools": [LINK], "bandwidth_pods": [pod, other], "bandwidth_pods_egress_pool": "link"}
    assert "failed=0" in playbook.role(bandwidth_pods_node="worker1", **wanted)
    assert "changed=0 " in playbook.role(bandwidth_pods_node="worker1", **wanted)
    (info,) = playbook.run(playbook.task("bandwidth_info"))
    assert list(info["classes"]) == ["shop.web:egress"]
    assert info["classes"]["shop.web:egress"]["limit"] == 1_250_000
    assert "changed=1 " in playbook.role(bandwidth_pods_node="worker3", **wanted)


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        (
            "bandwidth_pool",
            {"pools": [{**LINK, "total": "1Gbps"}]},
            "has no unit that says bits or bytes without doubt",
        ),
        ("bandwidth_class", {"classes": [BATCH]}, "class batch: pool 'link' does not exist (there are: none)"),
        ("bandwidth_device", {"devices": [LEFT]}, "device left: pool 'link' does not exist; make it first"),
    ],
)
def test_a_refusal_is_the_message(playbook: Playbook, name: str, options: dict[str, Any], text: str) -> None:
    done = playbook.play(playbook.task(name, **options))
    assert done.returncode == 2
    assert text in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


GUIDE = (ROOT / "docs" / "bandwidth.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(- name:.*?)```", GUIDE, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_of_the_guide_works(playbook: Playbook, example: str) -> None:
    # Names of this test's own in the place of a real device and group.
    tasks = yaml.safe_load(
        example.replace("eth0", "left").replace("cgroups: [colocation-testbed/batch]", 'classids: ["10:1"]')
    )
    for task in tasks:
        (name,) = (key for key in task if key.startswith("colocation."))
        task[name].update(playbook.common)
    assert [item["changed"] for item in playbook.run(*tasks)] == [True] * 3
    assert [item["changed"] for item in playbook.run(*tasks)] == [False] * 3
