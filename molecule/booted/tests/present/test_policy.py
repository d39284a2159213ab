"""The policy in the kernel, on groups that systemd has made."""

ROOT = "/sys/fs/cgroup"
VALUES = {
    # 60 % of one CPU.
    "besteffort.slice/cpu.max": "60000 100000",
    "besteffort.slice/besteffort-pod1.slice/cpu.idle": "1",
    "besteffort.slice/besteffort-pod1.slice/cpu.max": "50000 100000",
    "besteffort.slice/besteffort-pod1.slice/memory.max": str(64 * 2**20),
    # Request + half of what lies between it and the limit.
    "besteffort.slice/besteffort-pod1.slice/memory.high": str(48 * 2**20),
    "besteffort.slice/besteffort-pod1.slice/memory.oom.group": "1",
    "guaranteed.slice/cpu.max": "50000 100000",
    "guaranteed.slice/cpu.max.burst": "25000",
    "guaranteed.slice/memory.max": str(128 * 2**20),
    "guaranteed.slice/memory.min": str(16 * 2**20),
    "guaranteed.slice/memory.low": str(32 * 2**20),
}


def read(node):
    return {name: node.file(f"{ROOT}/{name}").content_string.strip() for name in VALUES}


def test_values_are_in_the_kernel(node):
    assert read(node) == VALUES


def test_they_stay_when_systemd_starts_other_units(node):
    node.check_output("systemd-run --wait --quiet --slice=besteffort.slice --property=CPUWeight=5 true")
    assert read(node) == VALUES


def test_the_units_of_systemd_are_where_they_were(node):
    assert node.check_output("systemctl show --property=ControlGroup --value molecule-besteffort.service") == (
        "/besteffort.slice/besteffort-pod1.slice/molecule-besteffort.service"
    )
    for unit in ("molecule-besteffort", "molecule-guaranteed", "molecule-moved"):
        assert node.check_output(f"systemctl is-active {unit}.service") == "active"
