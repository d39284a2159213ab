"""Service, batch work and load as units of systemd, each process in the group that was asked for."""

import base64
import json
import os
import zlib
from pathlib import Path

import pytest

ROOT = "/sys/fs/cgroup/colocation-testbed"
STATE = "/var/lib/colocation-testbed"
VALUES = {
    f"{ROOT}/batch/cpu.idle": "1",
    f"{ROOT}/batch/pids.max": "100",
    f"{ROOT}/named/cpu.weight": "50",
    f"{ROOT}/named/memory.oom.group": "1",
    f"{ROOT}/units/memory.high": "67108864",
}


def test_groups_have_their_values(read):
    assert read(VALUES) == VALUES


@pytest.mark.parametrize(("name", "group"), [("nginx", "service"), ("batch", "batch"), ("worker", "named")])
def test_processes_are_units_and_in_their_groups(node, name, group):
    pid = json.loads(node.file(f"{STATE}/processes/{name}.pid").content_string)
    assert node.file(f"/proc/{pid['pid']}/cgroup").content_string.strip() == f"0::/colocation-testbed/{group}"
    unit = f"colocation-testbed-{name}.service"
    shown = node.check_output(f"systemctl show --property=ActiveState,MainPID {unit}").split()
    assert dict(pair.split("=") for pair in shown) == {"ActiveState": "active", "MainPID": str(pid["supervisor_pid"])}


def test_the_process_of_a_unit_was_moved_and_systemd_does_not_mind(node):
    pid = node.check_output("systemctl show --property=MainPID --value molecule-moved.service")
    assert node.file(f"{ROOT}/units/cgroup.procs").content_string.split() == [pid]
    assert node.check_output("systemctl is-active molecule-moved.service") == "active"
    assert node.check_output("systemctl is-system-running") == "running"


def test_the_batch_work_runs(node):
    path = f"{ROOT}/batch/cpu.stat"
    wait = (
        "import time\n"
        f"def used_us(): return int(open({path!r}).readline().split()[1])\n"
        "goal, end = used_us() + 100_000, time.monotonic() + 30\n"
        "while used_us() < goal: assert time.monotonic() < end"
    )
    node.check_output("python3 -c %s", wait)


def test_every_request_of_the_load_was_answered():
    contents = json.loads((Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "load.json").read_text())
    packed = contents["/var/lib/colocation-testbed/load.json"]["content_b64_zlib"]
    load = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert load["scheduled"] == load["requests"] == 30
    assert set(load["errors"].values()) == {0}
