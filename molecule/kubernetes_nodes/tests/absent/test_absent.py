"""Nothing is left after the journals have undone all."""

import subprocess
from pathlib import Path

import pytest

NAME = "colocation-testbed-nodes"


def test_no_control_group():
    assert list(Path("/sys/fs/cgroup").glob("*/kubepods")) == []
    assert list(Path("/sys/fs/cgroup").glob(f"*/{NAME}*")) == []


def test_no_namespace_no_mount_no_state():
    assert "ctnodes-" not in subprocess.run(["ip", "netns"], check=True, capture_output=True, text=True).stdout
    assert NAME not in Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    assert not list(Path("/var/lib", NAME).glob("hosts/*/kubernetes"))


@pytest.mark.parametrize("path", ["/etc/kubernetes", "/run/koordlet", "/run/nri", "/var/lib/kubelet", "/var/log/pods"])
def test_no_directory(path):
    assert not Path(path).exists()


def test_no_process():
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert [command for command in commands if NAME.encode() in command or b"containerd-shim" in command] == []
