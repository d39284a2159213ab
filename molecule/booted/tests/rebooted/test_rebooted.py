"""After a reboot, before anything has run again: what was to persist is there, and nothing else."""

import json

CGROUPS = "/sys/fs/cgroup"
STATE = "/var/lib/colocation-testbed"
KEPT = {
    "/proc/sys/vm/swappiness": "10",
    "/proc/sys/net/core/somaxconn": "8192",
    "/sys/block/ubda/queue/read_ahead_kb": "16",
}
LOST = {
    "/proc/sys/vm/dirty_background_bytes": "0",
    "/proc/sys/vm/watermark_scale_factor": "10",
    "/sys/block/ubda/queue/nomerges": "0",
    f"{CGROUPS}/besteffort.slice/cpu.max": "max 100000",
    f"{CGROUPS}/besteffort.slice/besteffort-pod1.slice/cpu.idle": "0",
    f"{CGROUPS}/besteffort.slice/besteffort-pod1.slice/molecule-besteffort.service/memory.high": "max",
    f"{CGROUPS}/guaranteed.slice/memory.min": "0",
}


def test_it_has_booted_twice(node):
    rows = [line.split()[0] for line in node.check_output("journalctl --list-boots --no-pager").splitlines()]
    assert [row for row in rows if row != "IDX"] == ["-1", "0"]


def test_what_persists_is_in_the_kernel(read):
    assert read(KEPT) == KEPT


def test_what_cannot_persist_is_as_at_every_boot(node, read):
    assert read(LOST) == LOST
    assert node.check_output("swapon --show=NAME --noheadings") == "/swap"
    assert not node.file(f"{CGROUPS}/colocation-testbed").exists


def test_units_of_the_workloads_are_transient(node):
    units = [f"colocation-testbed-{name}.service" for name in ("nginx", "batch", "worker")]
    assert (
        node.check_output(f"systemctl show --property=LoadState --value {' '.join(units)}").split() == ["not-found"] * 3
    )


def test_the_journal_still_knows_all_of_it(node):
    entries = json.loads(node.file(f"{STATE}/journal.json").content_string)["entries"]
    targets = {entry["target"] for entry in entries}
    # Of two settings that exclude each other, it has the one that was not 0.
    pair = {"/proc/sys/vm/dirty_background_bytes": "/proc/sys/vm/dirty_background_ratio"}
    assert {*KEPT, *(pair.get(path, path) for path in LOST), "/swap"} <= targets
    assert f"{CGROUPS}/colocation-testbed/batch" in targets
