"""Mount the stand-in for a test, and leave nothing mounted and nothing running after it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_DEADLINE_S = 20.0
_POLL_S = 0.02


def is_mounted(point: Path) -> bool:
    """Tell whether something is mounted on a directory."""
    return any(line.split()[4] == str(point) for line in Path("/proc/self/mountinfo").read_text().splitlines())


@contextlib.contextmanager
def standin(point: Path, *options: str) -> Iterator[Path]:
    """Mount the stand-in on a directory while the block runs."""
    point.mkdir(exist_ok=True)
    argv = [sys.executable, "-m", "tests.support.resctrl_standin", str(point), *options]
    process = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.DEVNULL)
    try:
        deadline_s = time.monotonic() + _DEADLINE_S
        while not is_mounted(point):
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise AssertionError(f"the stand-in did not mount on {point} (status {process.poll()})")
            time.sleep(_POLL_S)
        yield point
    finally:
        if is_mounted(point):
            subprocess.run(["umount", str(point)], check=True, timeout=_DEADLINE_S)
        # It ends by itself, but not while a mount namespace that was made meanwhile has a copy of the mount.
        process.terminate()
        try:
            process.wait(_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_DEADLINE_S)
