"""Nothing of the roles is left; that files, values and groups are the same, the scenario has compared by then."""

UNITS = ("molecule-besteffort", "molecule-guaranteed", "molecule-moved")


def test_no_group_no_state_no_unit(node):
    assert not node.file("/sys/fs/cgroup/colocation-testbed").exists
    assert not node.file("/var/lib/colocation-testbed").exists
    units = [f"colocation-testbed-{name}.service" for name in ("nginx", "batch", "worker", "load")]
    assert (
        node.check_output(f"systemctl show --property=LoadState --value {' '.join(units)}").split() == ["not-found"] * 4
    )


def test_the_units_of_others_run_where_they_did(node):
    assert node.check_output(f"systemctl is-active {' '.join(UNITS)}").split() == ["active"] * len(UNITS)
    group = node.check_output("systemctl show --property=ControlGroup --value molecule-moved.service")
    pid = node.check_output("systemctl show --property=MainPID --value molecule-moved.service")
    assert node.file(f"/sys/fs/cgroup{group}/cgroup.procs").content_string.split() == [pid]


def test_swap_is_in_use_again_and_systemd_is_well(node):
    assert node.check_output("swapon --show=NAME --noheadings") == "/swap"
    assert node.check_output("systemctl is-system-running") == "running"
