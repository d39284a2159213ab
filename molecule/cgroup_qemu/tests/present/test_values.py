"""What a distribution's kernel on two CPUs says after converge."""

import re

ROOT = "/sys/fs/cgroup/colocation-testbed"
VALUES = {
    "cpu.weight": "200",
    "cpuset.cpus": "1",
    "cpuset.cpus.partition": "root",
    "service/cpu.weight": "500",
    "service/cpuset.cpus": "1",
    "service/io.weight": "default 300",
    "service/memory.low": "33554432",
    "batch/cpu.max": "20000 50000",
    "batch/cpu.max.burst": "10000",
    "batch/cpuset.cpus": "1",
    "batch/cpuset.mems": "0",
    "batch/io.weight": "default 20",
    "batch/memory.max": "134217728",
    "batch/pids.max": "50",
    "idle/cpu.idle": "1",
}


def test_it_is_the_distributions_kernel_with_systemd(node):
    assert node.check_output("uname -r").endswith("-cloud-amd64")
    assert node.file("/proc/1/comm").content_string == "systemd\n"
    assert node.run("systemctl is-system-running").stdout.strip() == "running"
    assert node.file("/sys/devices/system/cpu/online").content_string == "0-1\n"


def test_values_are_in_the_kernel(node):
    shown = node.check_output(f"cd {ROOT} && grep '' {' '.join(VALUES)}").splitlines()
    assert dict(line.split(":", 1) for line in shown) == VALUES


def test_limits_of_the_disk_are_in_the_kernel_and_hold(node):
    number, *limits = node.file(f"{ROOT}/batch/io.max").content_string.split()
    assert number == node.file("/sys/block/vda/dev").content_string.strip()
    assert limits == ["rbps=max", "wbps=10485760", "riops=500", "wiops=max"]
    written = "dd if=/dev/zero of=/var/tmp/written bs=1M count=20 oflag=direct"
    shown = node.run(f"sh -c 'echo $$ > {ROOT}/batch/cgroup.procs; {written}; rm /var/tmp/written'")
    seconds = re.search(r"20971520 bytes .* copied, ([0-9.]+) s,", shown.stderr)
    assert seconds, shown.stderr
    assert float(seconds[1]) > 1.5


def test_the_cpu_belongs_to_the_partition_and_to_nobody_else(node):
    assert node.file("/sys/fs/cgroup/cpuset.cpus.effective").content_string == "0\n"
    assert "\nCpus_allowed_list:\t0\n" in node.file("/proc/1/status").content_string
    command = f"echo $$ > {ROOT}/idle/cgroup.procs; exec grep Cpus_allowed_list /proc/self/status"
    assert node.check_output("sh -c %s", command).split() == ["Cpus_allowed_list:", "1"]


def test_pressure_is_counted_for_each_group(node):
    spin = "import time; end = time.monotonic() + 3\nwhile time.monotonic() < end: pass"
    command = f"echo $$ > {ROOT}/service/cgroup.procs; python3 -c '{spin}' & python3 -c '{spin}'; wait"
    before, _out, after = (some_us(node), node.check_output("sh -c %s", command), some_us(node))
    assert after - before > 500_000


def some_us(node):
    line = node.file(f"{ROOT}/service/cpu.pressure").content_string.splitlines()[0]
    return int(re.search(r"^some .* total=(\d+)$", line)[1])


def test_the_quota_holds(node):
    spin = "import time; end = time.monotonic() + 2\nwhile time.monotonic() < end: pass"
    node.check_output("sh -c %s", f"echo $$ > {ROOT}/batch/cgroup.procs; exec python3 -c '{spin}'")
    counters = dict(line.split() for line in node.file(f"{ROOT}/batch/cpu.stat").content_string.splitlines())
    assert int(counters["throttled_usec"]) > 500_000


def test_types_of_the_kernel_are_there_for_bpf_programs(node):
    assert node.check_output("od -An -tx2 -N2 /sys/kernel/btf/vmlinux").strip() == "eb9f"
