"""The policy in the kernel, on groups that systemd has made."""

ROOT = "/sys/fs/cgroup"
POD = f"{ROOT}/besteffort.slice/besteffort-pod1.slice"
VALUES = {
    # 60 % of one CPU; pods below such a ceiling have none of their own.
    f"{ROOT}/besteffort.slice/cpu.max": "60000 100000",
    f"{POD}/cpu.idle": "1",
    f"{POD}/cpu.max": "max 100000",
    f"{POD}/memory.max": str(64 * 2**20),
    f"{POD}/memory.oom.group": "1",
    # 500 milli-cores are 512 shares, weight 1 + 510 * 9999 / 262142; throttled in the middle between request and limit.
    f"{POD}/molecule-besteffort.service/cpu.weight": "20",
    f"{POD}/molecule-besteffort.service/memory.high": str(48 * 2**20),
    f"{POD}/molecule-besteffort.service/memory.max": str(64 * 2**20),
    f"{ROOT}/guaranteed.slice/cpu.max": "50000 100000",
    f"{ROOT}/guaranteed.slice/cpu.max.burst": "25000",
    f"{ROOT}/guaranteed.slice/memory.max": str(128 * 2**20),
    f"{ROOT}/guaranteed.slice/memory.min": str(16 * 2**20),
    f"{ROOT}/guaranteed.slice/memory.low": str(32 * 2**20),
}


def test_values_are_in_the_kernel(read):
    assert read(VALUES) == VALUES


def test_they_stay_when_systemd_starts_other_units(node, read):
    node.check_output("systemd-run --wait --quiet --slice=besteffort.slice --property=CPUWeight=5 true")
    assert read(VALUES) == VALUES


def test_the_units_of_systemd_are_where_they_were(node):
    unit = "molecule-besteffort.service"
    assert node.check_output(f"systemctl show --property=ControlGroup --value {unit}") == (
        f"/besteffort.slice/besteffort-pod1.slice/{unit}"
    )
    shown = node.check_output(f"systemctl is-active {unit} molecule-guaranteed.service molecule-moved.service")
    assert shown.split() == ["active"] * 3
