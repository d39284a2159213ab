"""The kernel's values after converge."""

from __future__ import annotations

import json
import os

import pytest

ROOT = "colocation-testbed-molecule-cgroup"
STATE = os.environ["MOLECULE_EPHEMERAL_DIRECTORY"] + "/state"
V1, V2 = f"/sys/fs/cgroup/{{}}/{ROOT}", f"/sys/fs/cgroup/{ROOT}"
# Group, controller of v1, file and text on v1, file and text on v2.
VALUES = [
    ("other", "cpu", "cpu.idle", "1", "cpu.idle", "1"),
    ("other", "cpu", "cpu.cfs_quota_us", "95000", "cpu.max", "95000 100000"),
    ("other", "cpu", "cpu.cfs_burst_us", "10000", "cpu.max.burst", "10000"),
    ("other", "memory", "memory.limit_in_bytes", "1073741824", "memory.max", "1073741824"),
    ("other", "blkio", "blkio.throttle.read_bps_device", "7:1 2097152", "", ""),
    ("other", "blkio", "blkio.throttle.write_iops_device", "7:0 100", "", ""),
    ("service", "cpu", "cpu.shares", "998", "cpu.weight", "39"),
    ("service", "cpuset", "cpuset.cpus", "0", "cpuset.cpus", "0"),
    ("batch", "pids", "pids.max", "500", "pids.max", "500"),
    ("batch/ffmpeg", "cpu", "cpu.cfs_quota_us", "50000", "cpu.max", "50000 100000"),
    ("batch/ffmpeg", "memory", "memory.limit_in_bytes", "268435456", "memory.max", "268435456"),
    ("batch/ffmpeg", "blkio", "blkio.bfq.weight", "109", "io.weight", "default 200"),
]


@pytest.mark.parametrize(("group", "controller", "v1", "v1_text", "v2", "v2_text"), VALUES)
def test_values(host, group, controller, v1, v1_text, v2, v2_text):
    is_v1 = host.file(V1.format(controller)).is_directory
    if not is_v1 and not v2:
        pytest.skip("this file is of cgroup v1")
    path = f"{V1.format(controller)}/{group}/{v1}" if is_v1 else f"{V2}/{group}/{v2}"
    assert host.file(path).content_string.strip() == (v1_text if is_v1 else v2_text)


def test_what_was_there_before_is_in_the_journal_value_by_value(host):
    entries = json.loads(host.file(f"{STATE}/journal.json").content_string)["entries"]
    kinds = {entry["kind"] for entry in entries if "/other/" in entry["target"]}
    assert kinds == {"value", "line"}
    assert not [entry for entry in entries if entry["kind"] == "value" and "/batch/" in entry["target"]]
