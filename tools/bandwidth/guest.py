"""Run a shell script as the init of a User-Mode Linux guest: another kernel, without JIT, with this machine's files."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

MODULES = Path("/usr/lib/uml/modules")
PROGRAM = "linux.uml"
INSERT = Path(__file__).with_name("insert_modules.py")
ENDED = "guest ended"
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
TAIL = f"""
echo "{ENDED}"
echo o > /proc/sysrq-trigger
read -r wait_for_the_end < /dev/zero
"""

Watch = Callable[[str], None]


class GuestError(Exception):
    """A guest cannot be run, or did not come to its end; the text says why, and what to do or what it showed."""


def is_there() -> bool:
    """Tell whether this machine has such a kernel."""
    return shutil.which(PROGRAM) is not None


def module(name: str) -> Path:
    """Return the file of a kernel module of the guest's. Raises GuestError."""
    found = sorted(MODULES.glob(f"*/kernel/**/{name}.ko"))
    if not found:
        raise GuestError(f"the guest's kernel has no module {name}: install Debian's package user-mode-linux again")
    return found[-1]


def run(
    directory: Path,
    script: str,
    modules: Sequence[str] = (),
    timeout_s: float = 300,
    watch: Watch | None = None,
    join: Callable[[], None] | None = None,
) -> str:
    """Boot a guest that runs the script and return what its console showed. Raises GuestError.

    ``watch`` is given each line of the console as it comes; ``join`` is called in the guest's process before it starts.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise GuestError(f"{PROGRAM} is not there: install Debian's package user-mode-linux")
    init = directory / "init.sh"
    insert = f"{sys.executable} {INSERT} {' '.join(str(module(name)) for name in modules)}\n" if modules else ""
    init.write_text(HEAD + insert + script + TAIL)
    init.chmod(0o755)
    argv = [program, "mem=1G", "rootfstype=hostfs", "rootflags=/", "rw", f"init={init}", "con=null", "con0=fd:0,fd:1"]
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(directory), "TMPDIR": "/dev/shm"}
    options = {"env": environment, "preexec_fn": join}
    text = _console([*argv, "quiet"], timeout_s, watch or (lambda _line: None), options)
    if ENDED not in text:
        raise GuestError(f"the guest did not come to its end: {text[-4000:]}")
    return text


def _console(argv: list[str], timeout_s: float, watch: Watch, options: dict[str, Any]) -> str:
    lines: list[str] = []
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
        **options,
    ) as guest:
        # The guest is several processes: all of them are ended when it takes too long.
        alarm = threading.Timer(timeout_s, os.killpg, (guest.pid, signal.SIGKILL))
        alarm.start()
        try:
            for line in guest.stdout or ():
                lines.append(line)
                watch(line.rstrip("\r\n"))
            guest.wait()
        except BaseException:
            os.killpg(guest.pid, signal.SIGKILL)
            raise
        finally:
            alarm.cancel()
    return "".join(lines)
