"""The guest after a reboot."""

import json
from pathlib import Path

STATE = Path("/var/lib/colocation-testbed-cgroup_qemu")


def test_it_is_up_again(node):
    assert node.run("systemctl is-system-running").stdout.strip() == "running"
    lines = node.check_output("journalctl --list-boots --no-pager").splitlines()
    assert {"-1", "0"} <= {line.split()[0] for line in lines}


def test_it_is_still_the_process_that_was_recorded(node):
    recorded = json.loads((STATE / "guests" / node.backend.name / "guest.pid").read_text())
    command = Path(f"/proc/{recorded['pid']}/cmdline").read_bytes().split(b"\0")[0].decode()
    assert command == str(STATE / "guests" / node.backend.name / "kernel")
