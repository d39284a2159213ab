"""Run a shell script as the init of a User-Mode Linux guest: another kernel, without JIT, with this machine's files."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

MODULES = Path("/usr/lib/uml/modules")
INSERT = Path(__file__).with_name("insert_modules.py")
HEAD = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t bpf bpf /sys/fs/bpf
mount -t tmpfs run /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up
exec >/dev/console 2>&1
"""
TAIL = """
echo "guest ended"
echo o > /proc/sysrq-trigger
read -r wait_for_the_end < /dev/zero
"""


def module(name: str) -> Path:
    """Return the file of a kernel module of the guest's."""
    found = sorted(MODULES.glob(f"*/kernel/**/{name}.ko"))
    assert found, f"the guest's kernel has no module {name}"
    return found[-1]


def run(directory: Path, script: str, modules: tuple[str, ...] = (), timeout_s: float = 300) -> str:
    """Boot a guest that runs the script and return what its console showed; skips where there is no such kernel."""
    program = shutil.which("linux.uml")
    if program is None:
        pytest.skip("needs linux.uml (Debian package user-mode-linux)")
    init = directory / "init.sh"
    insert = f"{sys.executable} {INSERT} {' '.join(str(module(name)) for name in modules)}\n" if modules else ""
    init.write_text(HEAD + insert + script + TAIL)
    init.chmod(0o755)
    argv = [program, "mem=1G", "rootfstype=hostfs", "rootflags=/", "rw", f"init={init}", "con=null", "con0=fd:0,fd:1"]
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(directory), "TMPDIR": "/dev/shm"}
    text = _console([*argv, "quiet"], environment, timeout_s)
    assert "guest ended" in text, text[-4000:]
    return text


def _console(argv: list[str], environment: dict[str, str], timeout_s: float) -> str:
    # The guest is several processes: all of them are ended when it takes too long.
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    ) as guest:
        try:
            shown, _ = guest.communicate(timeout=timeout_s)
        except BaseException:
            os.killpg(guest.pid, signal.SIGKILL)
            raise
    return shown.decode("utf-8", "replace")
