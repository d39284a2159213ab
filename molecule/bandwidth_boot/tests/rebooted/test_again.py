"""After a reboot, before anything has run again: the host has shaped its devices itself."""

UNIT = "colocation-testbed-bandwidth-main.service"


def test_the_unit_did_it(node):
    assert node.check_output(f"systemctl is-active {UNIT}") == "active"
    said = node.check_output(f"journalctl --boot --no-pager --output=cat --unit={UNIT}")
    assert "warning" not in said, said


def test_devices_and_programs_are_as_before(node, state, kinds):
    intermediate = state["devices"]["vec0/ingress"]["intermediate"]
    assert (kinds["vec0"], kinds[intermediate]) == ("fq", "fq")
    assert "bpf" in node.check_output("tc filter show dev vec0 egress")
    assert f"to device {intermediate}" in node.check_output("tc filter show dev vec0 ingress")
    assert node.check_output("ls /sys/fs/bpf/colocation-testbed/main") == "maps\nprograms"
