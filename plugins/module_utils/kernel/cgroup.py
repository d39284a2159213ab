# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where control groups are mounted (v1, hybrid, v2), and who is in them (cgroups(7), cgroup-v2.rst)."""

from __future__ import annotations

import errno
import functools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import mounts

PROC_ROOT = "/proc"
# The controllers that a workload's group is made in, by their names on v2, where they are one directory.
CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "pids", "io")
_NAMES = {("cpuacct", 2): "cpu", ("io", 1): "blkio"}
# systemd writes other signs as \x2d and the like.
_PART = re.compile(r"[A-Za-z0-9_@:.\\-]+\Z")
# What a hierarchy of version 1 may be of; its other options (seclabel of SELinux, xattr, cpuset_v2_mode) are not.
_V1_CONTROLLERS = frozenset(
    {"blkio", "cpu", "cpuacct", "cpuset", "debug", "devices", "freezer", "hugetlb"}
    | {"memory", "misc", "net_cls", "net_prio", "perf_event", "pids", "rdma"}
)


class CgroupError(Exception):
    """A control group cannot be found, read or changed; the text says which file, why, and what to do."""


@dataclass(frozen=True)
class Hierarchy:
    """One mounted hierarchy: its mount point, interface version (1 or 2) and the controllers bound to it.

    ``root`` is the group that is mounted there: a container without a cgroup namespace sees only its own.
    """

    mount: str
    version: int
    controllers: tuple[str, ...]
    root: str = "/"


@dataclass(frozen=True)
class Layout:
    """All hierarchies of a host. ``version`` is v1, hybrid (both kinds are mounted) or v2.

    ``also`` are hierarchies without a controller that groups are made in all the same.
    """

    version: str
    hierarchies: tuple[Hierarchy, ...]
    also: tuple[Hierarchy, ...] = ()

    def find(self, controller: str) -> Hierarchy | None:
        """Return the hierarchy that has a controller; cpuacct is part of v2's cpu, and io is called blkio on v1."""
        for hierarchy in self.hierarchies:
            if _NAMES.get((controller, hierarchy.version), controller) in hierarchy.controllers:
                return hierarchy
        return None

    def hierarchy(self, controller: str) -> Hierarchy:
        """Return the hierarchy that has a controller. Raises CgroupError when none is mounted."""
        found = self.find(controller)
        if found is None:
            have = sorted({name for item in self.hierarchies for name in item.controllers})
            raise CgroupError(
                f"cgroup controller {controller}: not mounted (mounted: {', '.join(have) or 'none'}); "
                "mount it or enable it on the kernel command line"
            )
        return found

    def path(self, controller: str, group: str = "") -> str:
        """Return the directory of a group (path below the hierarchy) for a controller. Raises CgroupError."""
        return join_path(self.hierarchy(controller).mount, group)

    def used(self) -> tuple[Hierarchy, ...]:
        """Return the hierarchies that a workload's group is made in, each once."""
        found = [self.find(controller) for controller in CONTROLLERS]
        return tuple(dict.fromkeys(item for item in (*found, *self.also) if item is not None))

    def with_version_2(self) -> Layout:
        """Return the layout with groups in the hierarchy of version 2 too. Raises CgroupError when none is mounted."""
        found = next((item for item in self.hierarchies if item.version == 2), None)
        if found is None:
            raise CgroupError(
                "cgroup2: is not mounted, and packets are told apart by its groups; mount it, for example on "
                "/sys/fs/cgroup/unified"
            )
        return replace(self, also=(found,))

    def directories(self, group: str) -> tuple[str, ...]:
        """Return all directories that make up a group, one for each hierarchy in use."""
        return tuple(join_path(item.mount, group) for item in self.used())


def join_path(mount: str, group: str) -> str:
    """Return mount + group, after checking the group's name. The empty group is the hierarchy's root."""
    if not group:
        return mount
    return f"{mount.rstrip('/')}/{check_name(group)}"


def below(root: str, name: str) -> str:
    """Return the path of a group that is named below a root; the empty name is the root. Raises CgroupError."""
    return "/".join(part for part in (root, check_name(name)) if part) if name else root


@functools.lru_cache(maxsize=4096)
def check_name(group: str) -> str:
    r"""Return a relative group path unchanged when it is safe. Raises CgroupError otherwise.

    Each part is of letters, digits and ``_ @ : . - \``: no empty part, no ``..``, nothing absolute, no line feed.
    """
    parts = group.split("/")
    if not all(_PART.match(part) and part not in (".", "..") and len(part) < 256 for part in parts):
        raise CgroupError(
            f"cgroup name {group!r}: not allowed; give a path below the hierarchy of letters, digits and _ @ : . - \\, "
            "parts joined by '/', without '..' and without a leading '/'"
        )
    return group


def _mounts(text: str) -> Iterable[tuple[str, str, str, str]]:
    """Yield (group, mount point, type, super options) of cgroup mounts in the text of mountinfo (proc(5))."""
    for line in mounts.lines(text):
        head, dash, tail = line.partition(" - ")
        fields, kind = head.split(" "), tail.split(" ")
        if dash and len(fields) >= 5 and len(kind) >= 3 and kind[0] in ("cgroup", "cgroup2"):
            yield mounts.unescape(fields[3]), mounts.unescape(fields[4]), kind[0], kind[2]


def parse_layout(mountinfo: str, prefix: str = "") -> Layout:
    """Return the layout that mountinfo's text describes; ``prefix`` is put before each mount point.

    Reads ``cgroup.controllers`` at the root of a v2 hierarchy, since mountinfo does not tell its controllers.
    Raises CgroupError when no hierarchy with a cpu controller is mounted.
    """
    found: list[Hierarchy] = []
    kinds = set()
    for root, mount, kind, options in _mounts(mountinfo):
        place = prefix + mount
        if kind == "cgroup2":
            text = _read_optional(f"{place}/cgroup.controllers") or ""
            kinds.add(2)
            found.append(Hierarchy(place, 2, tuple(text.split()), root))
        else:
            names = [name for name in options.split(",") if name in _V1_CONTROLLERS]
            if names:
                kinds.add(1)
                found.append(Hierarchy(place, 1, tuple(names), root))
    layout = Layout("v1" if kinds == {1} else "v2" if kinds == {2} else "hybrid", _each_once(found))
    if layout.find("cpu") is None:
        raise CgroupError(_without_cpu(layout))
    return layout


def _each_once(found: Sequence[Hierarchy]) -> tuple[Hierarchy, ...]:
    """Return each hierarchy once: containers mount some several times, where the first place of the whole serves."""
    chosen: dict[tuple[str, ...], Hierarchy] = {}
    for item in sorted(found, key=lambda item: item.root != "/"):
        chosen.setdefault(item.controllers if item.version == 1 else ("version 2",), item)
    return tuple(dict.fromkeys(item for item in found if item in chosen.values()))


def _without_cpu(layout: Layout) -> str:
    """Return why there is no cpu controller: nothing is mounted, or a container was not given it."""
    unified = next((item for item in layout.hierarchies if item.version == 2), None)
    if unified is None:
        return "cgroup controller cpu: not mounted; mount cgroup2 on /sys/fs/cgroup (systemd does it)"
    have = ", ".join(unified.controllers) or "no controller"
    return (
        f"cgroup controller cpu: {unified.mount} has {have}, and no other hierarchy has cpu; delegate cpu to this host "
        "(systemd: Delegate=cpu cpuset memory), or run on the machine itself"
    )


def detect(proc_root: str = PROC_ROOT, prefix: str = "") -> Layout:
    """Return how control groups are mounted on this host. Raises CgroupError."""
    try:
        text = mounts.table(proc_root)
    except mounts.MountsError as exc:
        raise CgroupError(str(exc)) from exc
    return parse_layout(text, prefix)


def _read_optional(path: str) -> str | None:
    try:
        return files.read_text_or_none(path)
    except files.FilesError as exc:
        raise CgroupError(str(exc)) from exc


def read_pids(directory: str) -> list[int]:
    """Return the processes of one group directory, none when it does not exist. Raises CgroupError.

    A threaded group, as libvirt makes them for virtual CPUs, has threads only: the group above has their processes.
    """
    try:
        text = files.read_text_or_none(f"{directory}/cgroup.procs") or ""
    except files.FilesError as exc:
        # A directory that is removed between open and read answers ENODEV.
        if not os.path.isdir(directory) or refuses(exc, errno.EOPNOTSUPP):
            return []
        raise CgroupError(str(exc)) from exc
    return [int(word) for word in text.split()]


def refuses(exc: files.FilesError, number: int) -> bool:
    """Tell whether a file could not be read for one reason."""
    return isinstance(exc.__cause__, OSError) and exc.__cause__.errno == number


def path_in(paths: Mapping[str, str], hierarchy: Hierarchy) -> str:
    """Return a process's group as it is called below a hierarchy's mount point, from procfs.read_group_paths().

    The kernel calls it by its path in the hierarchy, of which a container may have only a part mounted.
    """
    if hierarchy.version == 2:
        path = paths.get("", "/")
    else:
        path = next((path for names, path in paths.items() if hierarchy.controllers[0] in names.split(",")), "/")
    above = hierarchy.root.rstrip("/")
    return (path[len(above) :] or "/") if path == above or path.startswith(f"{above}/") else path


def group_pids(layout: Layout, group: str) -> list[int]:
    """Return the processes that are in a group in any hierarchy, in ascending order."""
    return sorted({pid for directory in layout.directories(group) for pid in read_pids(directory)})


def join(layout: Layout, group: str, pid: int) -> None:
    """Move a process into a group in every hierarchy in use; the group must exist. Raises CgroupError."""
    for directory in layout.directories(group):
        move(directory, pid)


def move(directory: str, pid: int) -> None:
    """Move a process into one group directory. Raises CgroupError with the kernel's reason."""
    try:
        files.write_kernel(f"{directory}/cgroup.procs", str(pid))
    except files.FilesError as exc:
        raise CgroupError(f"process {pid} cannot be moved: {exc}") from exc


def children(directory: str) -> list[str]:
    """Return the names of a group's child groups in ascending order; none when the group does not exist."""
    try:
        with os.scandir(directory) as found:
            return sorted(item.name for item in found if item.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []


def refuse_symlinks(mount: str, group: str) -> None:
    """Raise CgroupError when a part of the group's path below the mount is a symbolic link."""
    place = mount
    for part in group.split("/") if group else []:
        place = f"{place}/{part}"
        if os.path.islink(place):
            raise CgroupError(f"{place}: is a symbolic link, which a control group never is; remove it")
