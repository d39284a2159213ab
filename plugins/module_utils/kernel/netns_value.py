# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values below /proc/sys/net, which each network namespace has for itself, reached from another namespace."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import netns, procfs

# $(cat) ends before printf writes, and dash's printf writes a short text at once.
_SCRIPT = 'set -e; cat "$1"; text=$(cat); printf %s "$text" > "$1"; cat "$1"'

Run = Callable[..., commands.Result]


@dataclass(frozen=True)
class Space:
    """A network namespace as it is written down: number of its file, the boot it belongs to, its name or ''."""

    inode: int
    boot_id: str
    name: str


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def current(proc_root: str = procfs.PROC_ROOT, run_root: str = netns.RUN_ROOT) -> Space | None:
    """Return the namespace of this process, or None when it is the machine's own (that of process 1)."""
    own, first = _inode(os.path.join(proc_root, "self/ns/net")), _inode(os.path.join(proc_root, "1/ns/net"))
    if own is None or own == first:
        return None
    name = next((name for name in netns.names(run_root) if _inode(netns.path(name, run_root)) == own), "")
    # Some hosts show nobody, not even root, the namespace of process 1; then only a named one is known to be another.
    if first is None and not name:
        return None
    return Space(own, procfs.read_boot_id(proc_root), name)


def recorded(text: str, space: Space) -> dict[str, Any]:
    """Return a value's previous text as the journal keeps it when the value belongs to a namespace."""
    return {"text": text, "netns": {"inode": space.inode, "boot_id": space.boot_id, "name": space.name}}


def parse(previous: Any) -> tuple[str, Space] | None:
    """Return what recorded() was given, or None for anything else."""
    if not isinstance(previous, Mapping) or not isinstance(previous.get("text"), str):
        return None
    raw = previous.get("netns")
    if not isinstance(raw, Mapping) or set(raw) != {"inode", "boot_id", "name"}:
        return None
    return previous["text"], Space(raw["inode"], raw["boot_id"], raw["name"])


def entering(space: Space, proc_root: str = procfs.PROC_ROOT, run_root: str = netns.RUN_ROOT) -> tuple[str, ...] | None:
    """Return what to put before a command so that it runs in a namespace, None when the namespace is gone.

    A namespace without a name is looked for among the running processes, with which it ends.
    """
    if space.boot_id != procfs.read_boot_id(proc_root):
        return None
    if _inode(os.path.join(proc_root, "self/ns/net")) == space.inode:
        return ()
    named = netns.path(space.name, run_root) if space.name else ""
    members = (os.path.join(proc_root, entry, "ns/net") for entry in os.listdir(proc_root) if entry.isdigit())
    place = next((path for path in (named, *members) if path and _inode(path) == space.inode), None)
    return None if place is None else ("nsenter", f"--net={place}")


def read(path: str, prefix: tuple[str, ...], run: Run = commands.run) -> str:
    """Return a file's text as the namespace sees it. Raises CommandError."""
    return run([*prefix, "cat", path]).stdout.strip()


def put_back(path: str, text: str, prefix: tuple[str, ...], run: Run = commands.run) -> tuple[str, str]:
    """Write a value of one line as the namespace sees it; return what was there and what is. Raises CommandError.

    One program does it all, as there may be hundreds of values.
    """
    done = run([*prefix, "sh", "-c", _SCRIPT, "sh", path], input_text=text)
    found, _end, left = done.stdout.partition("\n")
    return found.strip(), left.strip()
