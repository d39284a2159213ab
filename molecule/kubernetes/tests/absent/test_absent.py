"""Nothing is left after roles and journals have undone all; that the picture is the same, the scenario has compared."""

import subprocess
from pathlib import Path

import pytest

STATE = Path("/var/lib/colocation-testbed-kubernetes")


def test_no_control_group_of_pods():
    assert list(Path("/sys/fs/cgroup").glob("*/kubepods")) == []
    assert list(Path("/sys/fs/cgroup").glob("**/colocation-testbed-kubernetes")) == []


def test_no_namespace_and_no_mount():
    assert "ctkube-" not in subprocess.run(["ip", "netns"], check=True, capture_output=True, text=True).stdout
    assert str(STATE) not in Path("/proc/self/mountinfo").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", ["/etc/kubernetes", "/run/koordlet", "/run/nri", "/var/lib/kubelet", "/var/log/pods"])
def test_no_directory(path):
    assert not Path(path).exists()


def test_no_process():
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert [command for command in commands if str(STATE).encode() in command or b"containerd-shim" in command] == []
