"""All CPUs are everybody's again, and nothing is left on the guest."""


def test_no_group_and_no_state(node):
    assert not node.file("/sys/fs/cgroup/colocation-testbed").exists
    assert not node.file("/var/lib/colocation-testbed").exists


def test_the_partition_is_gone(node):
    assert node.file("/sys/fs/cgroup/cpuset.cpus.effective").content_string == "0-1\n"
    assert "\nCpus_allowed_list:\t0-1\n" in node.file("/proc/1/status").content_string
