"""The guests after converge: booted systems with a network of their own."""

import json
import subprocess
from pathlib import Path

STATE = Path("/var/lib/colocation-testbed-lab_uml")


def test_systemd_is_up(node):
    assert node.file("/proc/1/comm").content_string == "systemd\n"
    assert node.run("systemctl is-system-running").stdout.strip() == "running"
    assert node.run("systemctl list-units --failed --plain --no-legend").stdout == ""


def test_control_groups_are_of_version_2(node):
    assert node.check_output("stat -f -c %T /sys/fs/cgroup") == "cgroup2fs"
    controllers = set(node.file("/sys/fs/cgroup/cgroup.controllers").content_string.split())
    assert {"cpu", "io", "memory", "pids"} <= controllers


def test_name_address_and_machine_id_are_its_own(node, node_vars):
    assert node.check_output("hostname") == node.backend.name
    addresses = json.loads(node.check_output("ip -j -4 addr show dev vec0"))
    assert [item["local"] for item in addresses[0]["addr_info"]] == [node_vars["ansible_host"]]
    assert len(node.file("/etc/machine-id").content_string.strip()) == 32


def test_it_reaches_the_other_guest_and_has_no_way_out(node, node_vars):
    other = {"198.18.0.1": "198.18.0.2", "198.18.0.2": "198.18.0.1"}[node_vars["ansible_host"]]
    banner = f"import socket; print(socket.create_connection(('{other}', 22), 20).recv(4).decode())"
    assert node.check_output("python3 -c %s", banner) == "SSH-"
    assert node.check_output("ip -j -4 route show default").strip() in ("", "[]", "[ ]")


def test_ssh_takes_keys_only_and_the_lab_knows_the_host(node):
    assert "passwordauthentication no" in node.check_output("sshd -T")
    assert f"{node.backend.name}," in (STATE / "ssh/known_hosts").read_text()


def test_nothing_of_it_is_in_the_network_of_the_machine():
    shown = subprocess.run(["ip", "-br", "addr"], check=True, capture_output=True, text=True, timeout=20).stdout
    assert "198.18.0." not in shown


def test_all_of_it_is_in_the_journal():
    entries = json.loads((STATE / "journal.json").read_text())["entries"]
    made = {(entry["kind"], entry["target"]) for entry in entries}
    assert ("netns", "lab_uml-switch") in made
    assert {("link", f"lab_uml-switch/{name}") for name in ("ct-br", "ct1", "ct2")} <= made
    assert {target for kind, target in made if kind == "process"} == {
        str(STATE / "guests" / name / "guest.pid") for name in ("molecule-tested", "molecule-load")
    }
