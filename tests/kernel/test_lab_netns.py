# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab on the running kernel, under names of this test's own; afterwards the machine is as it was."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.colocation.testbed.plugins.module_utils import commands, undo
from ansible_collections.colocation.testbed.plugins.module_utils.journal import Journal
from ansible_collections.colocation.testbed.plugins.modules import lab_guests, lab_netns

pytestmark = pytest.mark.measures

PREFIX = "cttest-"
HOSTS = [{"name": name, "address": f"198.18.77.{number}"} for number, name in enumerate("abcd", start=1)]

# Listens on the first address, connects to it from the second, and prints what came through.
SERVER = (
    "import socket,sys; s=socket.create_server((sys.argv[1],7)); print('up',flush=True); s.accept()[0].sendall(b'ok')"
)
CLIENT = "import socket,sys; print(socket.create_connection((sys.argv[1],7),5).recv(2).decode())"


def ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=30).stdout


def network_state() -> dict[str, Any]:
    """Return what this test must leave as it was: the machine's own interfaces, and all namespaces."""
    links = json.loads(ip("-j", "link"))
    return {"links": sorted(link["ifname"] for link in links), "netns": ip("netns", "list")}


class Lab:
    """Runs the module with a state directory and names of this test's own."""

    def __init__(self, state_dir: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.journal = Journal(f"{state_dir}/journal.json")
        self._state_dir, self._capsys = state_dir, capsys

    def run(self, count: int = 2, **args: Any) -> dict[str, Any]:
        given = {
            "hosts": HOSTS[:count],
            "subnet": "198.18.77.0/24",
            "namespace_prefix": PREFIX,
            "state_dir": self._state_dir,
            **args,
        }
        with patch_module_args(given), pytest.raises(SystemExit):
            lab_netns.main()
        result: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return result


@pytest.fixture
def lab(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> Iterator[Lab]:
    before = network_state()
    made = Lab(str(tmp_path / "state"), capsys)
    yield made
    result = made.run(state="absent")
    assert "msg" not in result
    assert network_state() == before
    assert not (tmp_path / "state").exists()


def inside(host: str, *argv: str) -> list[str]:
    return ["nsenter", f"--net=/run/netns/{PREFIX}{host}", *argv]


def talk(server: str, client: str) -> str:
    """Send two bytes from one host to another over TCP."""
    address = next(host["address"] for host in HOSTS if host["name"] == server)
    argv = inside(server, sys.executable, "-c", SERVER, address)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            argv = inside(client, sys.executable, "-c", CLIENT, address)
            return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=20).stdout.strip()
        finally:
            process.kill()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_hosts_reach_each_other(lab: Lab, count: int) -> None:
    assert lab.run(count)["changed"] is True
    assert lab.run(count)["changed"] is False
    last = HOSTS[count - 1]["name"]
    assert talk("a", last) == "ok"
    assert talk(last, "a") == "ok"


def test_check_mode_predicts_and_changes_nothing(lab: Lab) -> None:
    before = network_state()
    predicted = lab.run(_ansible_check_mode=True, _ansible_diff=True)
    assert predicted["changed"] is True
    assert network_state() == before
    assert not lab.journal.entries()
    made = lab.run(_ansible_diff=True)
    assert made["changes"] == predicted["changes"]
    assert made["diff"] == predicted["diff"]


def test_removing_guests_leaves_namespaces_to_their_own_module(
    lab: Lab, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.run()
    for check in (True, False):
        given = {"state": "absent", "state_dir": str(tmp_path / "state"), "_ansible_check_mode": check}
        with patch_module_args(given), pytest.raises(SystemExit):
            lab_guests.main()
        assert json.loads(capsys.readouterr().out)["changed"] is False
    assert lab.run(state="absent", _ansible_check_mode=True)["changed"] is True
    assert lab.run(state="absent")["changed"] is True


def test_a_lab_grows_and_shrinks(lab: Lab) -> None:
    for count in (2, 4, 2, 1, 2):
        lab.run(count)
        assert lab.run(count)["changed"] is False
    assert ip("netns", "list").count(PREFIX) == 2
    assert talk("a", "b") == "ok"


@pytest.mark.parametrize(
    "drift",
    [
        ["link", "set", "ct0", "down"],
        ["link", "set", "lo", "down"],
        ["link", "set", "ct0", "mtu", "9000"],
        ["addr", "flush", "dev", "ct0"],
        ["addr", "add", "198.18.78.1/24", "dev", "ct0"],
        ["link", "del", "ct0"],
    ],
    ids=" ".join,
)
def test_what_was_changed_by_hand_is_put_right(lab: Lab, drift: list[str]) -> None:
    lab.run()
    ip("-n", f"{PREFIX}a", *drift)
    assert lab.run()["changed"] is True
    assert lab.run()["changed"] is False
    assert talk("a", "b") == "ok"


def switch_qdiscs() -> dict[str, Any]:
    argv = ["tc", "-n", f"{PREFIX}switch", "-j", "qdisc", "show"]
    found = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True, timeout=30).stdout)
    return {item["dev"]: item for item in found if item.get("root") and item["kind"] != "noqueue"}


def test_a_link_with_a_rate_is_a_switch_whose_ports_have_queues(lab: Lab) -> None:
    predicted = lab.run(link_rate="100Mbit/s", link_buffer_kib=256, _ansible_check_mode=True, _ansible_diff=True)
    made = lab.run(link_rate="100Mbit/s", link_buffer_kib=256, _ansible_diff=True)
    assert made["diff"] == predicted["diff"]
    assert made["changes"] == predicted["changes"]
    assert lab.run(link_rate="100Mbit/s", link_buffer_kib=256)["changed"] is False
    assert {name: item["options"]["rate"] for name, item in switch_qdiscs().items()} == dict.fromkeys(
        ("ct1", "ct2"), 12_500_000
    )
    assert talk("a", "b") == "ok"
    assert lab.run(link_rate="200Mbit/s", link_buffer_kib=256)["changes"] == [
        f"give {PREFIX}switch/ct{port} a queue of 200 Mbit/s and 256 KiB" for port in (1, 2)
    ]
    lab.run()
    assert f"{PREFIX}switch" not in ip("netns", "list")
    assert talk("a", "b") == "ok"


@pytest.mark.parametrize(
    "drift",
    [
        "qdisc delete dev ct1 root",
        "qdisc replace dev ct1 root handle c000: tbf rate 10mbit burst 128kb limit 512kb",
        "qdisc replace dev ct1 root pfifo limit 3",
    ],
)
def test_a_queue_that_was_changed_by_hand_is_put_right(lab: Lab, drift: str) -> None:
    lab.run(link_rate="100Mbit/s")
    before = switch_qdiscs()
    subprocess.run(["tc", "-n", f"{PREFIX}switch", *drift.split()], check=True, timeout=30)
    assert lab.run(link_rate="100Mbit/s")["changed"] is True
    assert switch_qdiscs() == before
    assert lab.run(link_rate="100Mbit/s")["changed"] is False


def test_a_port_drops_what_its_buffer_has_no_room_for(lab: Lab) -> None:
    lab.run(link_rate="8Mbit/s", link_buffer_kib=128)
    address = HOSTS[1]["address"]
    # Of one socket alone the kernel lets no more wait than its send buffer.
    flood = (
        "import socket,sys; s=[socket.socket(2,2) for _ in range(8)]\n"
        "for n in range(400): s[n % 8].sendto(bytes(1400), (sys.argv[1], 9))"
    )
    assert talk("b", "a") == "ok", "and now the addresses are known"
    subprocess.run(inside("a", sys.executable, "-c", flood, address), check=True, timeout=60)
    argv = ["tc", "-n", f"{PREFIX}switch", "-s", "-j", "qdisc", "show", "dev", "ct2"]
    (found,) = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True, timeout=30).stdout)
    # 400 frames of 1442 bytes: 73,728 bytes pass at once, 131,072 wait, a few are sent meanwhile.
    assert 150 < found["drops"] < 400 - (73_728 + 131_072) // 1442 + 1


def test_a_namespace_of_somebody_else_is_not_touched(lab: Lab) -> None:
    ip("netns", "add", f"{PREFIX}b")
    try:
        before = network_state()
        assert f"network namespace {PREFIX}b exists and was not made by this collection" in lab.run()["msg"]
        lab.run(state="absent")
        assert network_state() == before
    finally:
        ip("netns", "delete", f"{PREFIX}b")


def test_a_namespace_in_use_is_kept_and_its_process_named(lab: Lab) -> None:
    lab.run()
    with subprocess.Popen(inside("b", "sleep", "600")) as process:
        try:
            deadline = 200
            while str(process.pid) not in ip("netns", "pids", f"{PREFIX}b").split() and deadline:
                deadline -= 1
            message = lab.run(state="absent")["msg"]
            assert f"network namespace {PREFIX}b is in use by process {process.pid} (sleep)" in message
            assert talk("a", "b") == "ok", "nothing was removed"
            assert f"in use by process {process.pid}" in lab.run(1)["msg"]
        finally:
            process.kill()


def test_cpus_that_do_not_exist_are_refused_before_anything_is_made(lab: Lab) -> None:
    before = network_state()
    hosts = [{**HOSTS[0], "cpus": "0"}, {**HOSTS[1], "cpus": "1-4095"}]
    assert "lab host b: node_cpus (of guests lab_cpus) in the inventory: CPU" in lab.run(hosts=hosts)["msg"]
    hosts = [{**HOSTS[0], "cpus": "0"}, {**HOSTS[1], "cpus": "0"}]
    assert "lab hosts a and b share CPU 0" in lab.run(hosts=hosts)["msg"]
    assert network_state() == before


def test_a_run_that_was_killed_is_undone_by_the_journal(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    run, left = commands.run, [6]

    def killed(argv: Any, **more: Any) -> Any:
        if list(argv)[:1] in (["ip"], ["tc"]) and "-j" not in argv:
            left[0] -= 1
            if left[0] == 0:
                raise commands.CommandError("killed")
        return run(argv, **more)

    monkeypatch.setattr(lab_netns.commands, "run", killed)
    assert lab.run(3)["msg"] == "killed"
    monkeypatch.undo()
    assert PREFIX in ip("netns", "list")
    done = lab.journal.undo(undo.Undo().handlers())
    assert [item.outcome.text for item in done if item.outcome.result != "undone"] == []
    assert PREFIX not in ip("netns", "list")
