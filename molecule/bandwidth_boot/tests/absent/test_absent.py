"""Nothing is left on the guest; that files, links and qdiscs are the same, the scenario has compared by then."""


def test_no_pin_no_state_no_unit(node):
    assert not node.file("/sys/fs/bpf/colocation-testbed").exists
    assert not node.file("/var/lib/colocation-testbed").exists
    assert node.run("systemctl cat colocation-testbed-bandwidth-main.service").rc != 0


def test_systemd_is_as_well_as_before(node):
    assert node.run("systemctl is-system-running").stdout.strip() == "running"
