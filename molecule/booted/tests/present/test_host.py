"""Settings of the host: live, kept for the next boot, and told where there is nothing to set."""

import json

LIVE = {
    "/proc/sys/vm/swappiness": "10",
    "/proc/sys/net/core/somaxconn": "8192",
    "/proc/sys/vm/dirty_background_bytes": "16777216",
    # The policy's, which role cgroup_policy hands on.
    "/proc/sys/vm/watermark_scale_factor": "150",
    "/sys/block/ubda/queue/read_ahead_kb": "16",
    "/sys/block/ubda/queue/nomerges": "1",
}
STATE = "/var/lib/colocation-testbed"


def test_values_are_in_the_kernel(node, read):
    assert read(LIVE) == LIVE
    assert node.check_output("swapon --show --noheadings") == ""


def test_those_that_persist_are_in_drop_ins(node):
    sysctls = node.file("/etc/sysctl.d/90-colocation-testbed.conf").content_string.splitlines()
    assert sysctls[1:] == ["net.core.somaxconn = 8192", "vm.swappiness = 10"]
    assert node.file("/etc/tmpfiles.d/90-colocation-testbed.conf").content_string.splitlines()[1:] == [
        "w /sys/block/ubda/queue/read_ahead_kb - - - - 16"
    ]


def test_grub_passes_the_argument_on_in_its_normal_entries(node):
    lines = [line.split() for line in node.file("/boot/grub/grub.cfg").content_string.splitlines()]
    entries = [words for words in lines if words[:1] == ["linux"]]
    assert ["rdt=l3cat,mba" in words for words in entries] == ["single" not in words for words in entries]
    assert len(entries) == 3


def test_resctrl_is_neither_mounted_nor_written_into_the_journal(node):
    assert "resctrl" not in node.file("/proc/mounts").content_string
    entries = json.loads(node.file(f"{STATE}/journal.json").content_string)["entries"]
    assert [entry for entry in entries if entry["by"].startswith("resctrl")] == []
    assert {"cgroup", "cgroup_policy", "host_tuning", "kernel_args"} <= {entry["by"] for entry in entries}
