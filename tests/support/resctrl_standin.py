"""Mounts the stand-in for the kernel's resctrl file system, through FUSE.

    python -m tests.support.resctrl_standin /mnt/resctrl --ways 11 --closids 4

It answers as the kernel does and partitions nothing: no cache and no memory bandwidth is limited. It stays in the
foreground until it is unmounted (`umount /mnt/resctrl`); with --background it returns as soon as it is mounted.
"""

from __future__ import annotations

import argparse
import errno
import os
import stat
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import mfusepy

from tests.support.resctrl_machine import Machine, Tasks, parse_list
from tests.support.resctrl_rules import Resctrl
from tests.support.resctrl_tree import File, Tree

_START_TICKS_FIELD = 19


def all_tasks() -> list[int]:
    """Return the threads of this machine."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found += [int(tid) for tid in os.listdir(f"/proc/{name}/task")]
            except FileNotFoundError:
                continue  # it has ended meanwhile
    return found


def start_ticks(tid: int) -> int | None:
    """Return when a thread started, None where there is none of this number."""
    try:
        with open(f"/proc/{tid}/stat", encoding="utf-8", errors="replace") as handle:
            return int(handle.read().rpartition(")")[2].split()[_START_TICKS_FIELD])
    except (FileNotFoundError, ProcessLookupError):
        return None


class Standin(mfusepy.Operations):  # type: ignore[misc]
    """Hands the file system calls to the tree, one at a time."""

    use_ns = True

    def __init__(self, machine: Machine, delay_s: float = 0.0, pid_file: str | None = None) -> None:
        """Start as a fresh mount; each change takes `delay_s` longer, so that a test can step in."""
        self.served = False
        self._pid_file = pid_file
        self._tree = Tree(Resctrl(machine))
        self._lock = threading.Lock()
        self._delay_s = delay_s
        self._now_ns = time.time_ns()

    def init(self, _path: str) -> None:
        """Tell who serves the mount."""
        self.served = True
        if self._pid_file:
            with open(self._pid_file, "w", encoding="ascii") as handle:
                handle.write(f"{os.getpid()}\n")

    def getattr(self, path: str, _fh: Any = None) -> dict[str, Any]:
        """Return mode and owner."""
        with self._lock:
            place = self._tree.find(path)
        mode = stat.S_IFREG | place.mode if isinstance(place, File) else stat.S_IFDIR | 0o755
        times = dict.fromkeys(("st_atime", "st_mtime", "st_ctime"), self._now_ns)
        links = 1 if isinstance(place, File) else 2
        return {"st_mode": mode, "st_nlink": links, "st_size": 0, "st_uid": 0, "st_gid": 0, **times}

    def readdir(self, path: str, _fh: Any) -> list[str]:
        """Return the names in a directory."""
        with self._lock:
            return [".", "..", *self._tree.list(path)]

    def open(self, path: str, _flags: Any) -> int:
        """Open a file that is there."""
        with self._lock:
            self._tree.find(path)
        return 0

    def read(self, path: str, size: int, offset: int, _fh: Any) -> bytes:
        """Return a part of a file."""
        with self._lock:
            return self._tree.read(path)[offset : offset + size]

    def write(self, path: str, data: bytes, _offset: int, _fh: Any) -> int:
        """Carry out what is written; the offset means nothing, as in the kernel."""
        caller = mfusepy.fuse_get_context()[2]
        self._wait()
        with self._lock:
            self._tree.write(path, data, caller)
        return len(data)

    def truncate(self, path: str, _length: int, _fh: Any = None) -> int:
        """Do nothing: opening for writing truncates."""
        with self._lock:
            self._tree.find(path)
        return 0

    def mkdir(self, path: str, _mode: int) -> int:
        """Make a group."""
        self._wait()
        with self._lock:
            self._tree.mkdir(path)
        return 0

    def rmdir(self, path: str) -> int:
        """Remove a group."""
        self._wait()
        with self._lock:
            self._tree.rmdir(path)
        return 0

    def unlink(self, _path: str) -> int:
        """Refuse: files come and go with their group."""
        raise OSError(errno.EPERM, "not permitted")

    def create(self, _path: str, _mode: int, _fi: Any = None) -> int:
        """Refuse: files come and go with their group."""
        raise OSError(errno.EPERM, "not permitted")

    def rename(self, _old: str, _new: str) -> int:
        """Refuse: the stand-in doesn't move monitoring groups."""
        raise OSError(errno.EPERM, "not permitted")

    def _wait(self) -> None:
        # A slow kernel, not a wait for something: the lock isn't held, so that others get in between.
        if self._delay_s:
            time.sleep(self._delay_s)


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(prog="resctrl_standin", description="Stand-in for the kernel's resctrl, on FUSE.")
    parser.add_argument("mountpoint")
    parser.add_argument("--ways", type=int, default=11, help="ways of each L3 cache, 0 for none")
    parser.add_argument("--min-cbm-bits", type=int, default=1)
    parser.add_argument("--shareable-bits", type=lambda text: int(text, 16), default=0, metavar="HEX")
    parser.add_argument("--closids", type=int, default=16, help="groups that the caches can tell apart")
    parser.add_argument("--mb-closids", type=int, default=16)
    parser.add_argument("--rmids", type=int, default=64)
    parser.add_argument("--cache-ids", default="0", help="list such as 0,2,5")
    parser.add_argument("--l2-ways", type=int, default=0)
    parser.add_argument("--cpus", default="", help="CPUs that are online; default: those of this machine")
    parser.add_argument("--no-bandwidth", action="store_true")
    parser.add_argument("--amd", action="store_true", help="bandwidth in eighths of GB/s, 2048 is no limit")
    parser.add_argument("--no-monitoring", action="store_true")
    parser.add_argument("--cdp", action="store_true")
    parser.add_argument("--mba-mbps", action="store_true")
    parser.add_argument("--counter", default="0", help="what every monitoring counter says")
    parser.add_argument("--delay-s", type=float, default=0.0, help="make every change take this much longer")
    parser.add_argument("--background", action="store_true", help="return as soon as it is mounted")
    parser.add_argument("--pid-file", type=os.path.abspath, help="file for the number of the serving process")
    return parser.parse_args(argv)


def machine(options: argparse.Namespace) -> Machine:
    """Return the machine that the options describe."""
    if options.cpus:
        online = options.cpus
    else:
        with open("/sys/devices/system/cpu/online", encoding="ascii") as handle:
            online = handle.read()
    return Machine(
        tasks=Tasks(all_tasks, start_ticks),
        cpus=parse_list(online),
        cache_ids=tuple(sorted(parse_list(options.cache_ids))),
        ways=options.ways,
        min_cbm_bits=options.min_cbm_bits,
        shareable_bits=options.shareable_bits,
        num_closids=options.closids,
        mb_closids=options.mb_closids,
        num_rmids=options.rmids,
        l2_ways=options.l2_ways,
        bandwidth=not options.no_bandwidth,
        absolute_bandwidth=options.amd,
        monitoring=not options.no_monitoring,
        cdp=options.cdp,
        mba_mbps=options.mba_mbps,
        counters=lambda _group, _event: options.counter,
    )


def main() -> None:
    """Mount, and serve until it is unmounted or told to end."""
    options = parse_arguments()
    standin = Standin(machine(options), options.delay_s, options.pid_file)
    try:
        mfusepy.FUSE(
            standin,
            os.path.abspath(options.mountpoint),
            foreground=not options.background,
            fsname="resctrl-standin",
            subtype="resctrl",
            allow_other=True,
            direct_io=True,
            entry_timeout=0,
            attr_timeout=0,
            negative_timeout=0,
            ac_attr_timeout=0,
        )
    except RuntimeError:
        # FUSE calls being ended by a signal an error too.
        if not standin.served:
            raise


if __name__ == "__main__":
    sys.exit(main())
