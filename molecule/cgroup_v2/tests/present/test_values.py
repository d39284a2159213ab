"""What the kernel of a booted host with cgroup v2 says after converge."""

import json

ROOT = "/sys/fs/cgroup/colocation-testbed"
STATE = "/var/lib/colocation-testbed"
VALUES = {
    "cpu.weight": "200",
    "service/cpu.weight": "500",
    "service/memory.min": "16777216",
    "service/memory.low": "33554432",
    "service/pids.max": "300",
    "batch/cpu.max": "20000 50000",
    "batch/cpu.max.burst": "10000",
    "batch/memory.max": "134217728",
    "batch/memory.high": "100663296",
    "batch/memory.swap.max": "0",
    "batch/memory.oom.group": "1",
    "batch/io.max": "98:0 rbps=20971520 wbps=10485760 riops=max wiops=500",
    "batch/pids.max": "50",
    "idle/cpu.idle": "1",
    "idle/pids.max": "20",
}


def test_values_are_in_the_kernel(read):
    wanted = {f"{ROOT}/{name}": text for name, text in VALUES.items()}
    assert read(wanted) == wanted


def test_controllers_are_passed_on_and_systemd_keeps_them(node):
    node.check_output("systemctl daemon-reload")
    node.check_output("systemd-run --wait --quiet true")
    for path in ("/sys/fs/cgroup", ROOT):
        enabled = set(node.file(f"{path}/cgroup.subtree_control").content_string.split())
        assert "cpu" in enabled, path
    assert node.file(f"{ROOT}/batch/cpu.max").content_string.strip() == VALUES["batch/cpu.max"]


def test_the_process_is_a_unit_and_in_its_group(node):
    pid_file = json.loads(node.file(f"{STATE}/processes/worker.pid").content_string)
    assert node.file(f"/proc/{pid_file['pid']}/cgroup").content_string.strip() == "0::/colocation-testbed/batch"
    assert node.check_output("systemctl is-active colocation-testbed-worker.service") == "active"
    main = node.check_output("systemctl show --property=MainPID --value colocation-testbed-worker.service")
    assert int(main) == pid_file["supervisor_pid"]


def test_the_limit_on_tasks_holds(node):
    command = f"echo $$ > {ROOT}/idle/cgroup.procs; for number in $(seq 40); do sleep 1 & done; wait"
    assert node.run("sh -c %s", command).rc != 0
    events = dict(line.split() for line in node.file(f"{ROOT}/idle/pids.events").content_string.splitlines())
    assert int(events["max"]) > 0


def test_the_quota_holds(node):
    spin = "import time; end = time.monotonic() + 2\nwhile time.monotonic() < end: pass"
    command = f"echo $$ > {ROOT}/batch/cgroup.procs; exec python3 -c '{spin}'"
    node.check_output("sh -c %s", command)
    counters = dict(line.split() for line in node.file(f"{ROOT}/batch/cpu.stat").content_string.splitlines())
    assert int(counters["nr_throttled"]) > 10
    assert int(counters["throttled_usec"]) > 500_000
