"""The guests after one rebooted and the other was killed and started again."""

import json
from pathlib import Path

STATE = Path("/var/lib/colocation-testbed-lab_uml")


def test_both_are_up_again(node):
    assert node.run("systemctl is-system-running").stdout.strip() == "running"
    lines = node.check_output("journalctl --list-boots --no-pager").splitlines()
    assert {"-1", "0"} <= {line.split()[0] for line in lines}


def test_what_was_written_survives_a_reboot(node):
    if node.backend.name == "molecule-tested":
        assert node.file("/etc/colocation-testbed-kept").content_string == "survives\n"


def test_a_reboot_keeps_the_process_and_a_kill_does_not(node):
    recorded = json.loads((STATE / "guests" / node.backend.name / "guest.pid").read_text())
    command = Path(f"/proc/{recorded['pid']}/cmdline").read_bytes().split(b"\0")[0].decode()
    assert command == str(STATE / "guests" / node.backend.name / "kernel")
