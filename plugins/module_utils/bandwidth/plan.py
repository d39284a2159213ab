# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wanted of an instance against what the host has: numbers of pools and classes, cgroups and devices."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import (
    devices,
    tables,
    values,
)
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.instance import State
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.values import (
    BandwidthError,
    Class,
    Device,
    Pool,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, htb_classes, pod_cgroup


@dataclass(frozen=True)
class Wanted:
    """The whole instance as it shall be: pools and classes by name, devices by name and hook."""

    pools: Mapping[str, Pool]
    classes: Mapping[str, Class]
    devices: Mapping[str, Device]


@dataclass(frozen=True)
class Host:
    """How the host is reached: running programs, classes of a device by its index (None asks tc(8)), control groups."""

    run: devices.Run = commands.run
    classes: devices.Classes | None = htb_classes.read
    proc_root: str = "/proc"
    sys_root: str = "/sys"
    indexes: Callable[[], Mapping[str, int]] = devices.indexes


def _tuples(raw: Mapping[str, Any], kind: type) -> Any:
    # JSON has no tuples.
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in raw.items()}
    return kind(**{key: value for key, value in fields.items() if key in kind.__dataclass_fields__})  # type: ignore[attr-defined]


def wanted_of(state: State) -> Wanted:
    """Return what the state file says was asked for so far."""
    return Wanted(
        {name: _tuples(raw, Pool) for name, raw in state.pools.items()},
        {name: _tuples(raw, Class) for name, raw in state.classes.items()},
        {key: _tuples(raw, Device) for key, raw in state.devices.items()},
    )


def policy_of(wanted: Wanted, state: State) -> values.Policy:
    """Return pools and classes with their numbers, checked against each other. Raises BandwidthError."""
    pools = values.assign(
        wanted.pools, {name: raw["number"] for name, raw in state.pools.items()}, 0, values.MAX_POOLS, "pool"
    )
    numbers = {name: raw["number"] for name, raw in state.classes.items()}
    # The numbers of pools stand for what no class of theirs claims.
    classes = values.assign(wanted.classes, numbers, values.MAX_POOLS, values.MAX_CLASSES, "class")
    found = values.Policy(wanted.pools, wanted.classes, pools, classes)
    values.check(found)
    for item in wanted.devices.values():
        if item.pool not in wanted.pools:
            raise BandwidthError(f"device {item.name}: pool {item.pool!r} does not exist; make it first")
    return found


class _Groups:
    """Control groups of this host. Mounts and pods are looked for once, and only when a class has such members."""

    def __init__(self, proc_root: str) -> None:
        self._proc_root = proc_root
        self._known: list[cgroup.Hierarchy] | None = None
        self._pods: list[tuple[cgroup.Hierarchy, dict[str, str]]] | None = None

    def _hierarchies(self) -> list[cgroup.Hierarchy]:
        """Return those whose groups sockets remember, version 2 first. Raises BandwidthError."""
        if self._known is None:
            try:
                found = cgroup.detect(self._proc_root).hierarchies
            except cgroup.CgroupError as exc:
                raise BandwidthError(str(exc)) from exc
            usable = [item for item in found if item.version == 2 or "net_cls" in item.controllers]
            self._known = sorted(usable, key=lambda item: -item.version)
        return self._known

    def identity(self, path: str) -> tuple[int, int] | None:
        """Return id and depth of a group of version 2, None when it is gone. Raises BandwidthError without cgroup2."""
        mount = next((item.mount for item in self._hierarchies() if item.version == 2), None)
        if mount is None:
            raise BandwidthError(f"cgroup {path}: no cgroup2 is mounted; mount one, or use classids")
        below = path[len(mount) :] if path.startswith(mount + "/") else path
        try:
            place = cgroup.join_path(mount, below.strip("/"))
            return os.stat(place).st_ino, len([part for part in below.split("/") if part])
        except cgroup.CgroupError as exc:
            raise BandwidthError(str(exc)) from exc
        except OSError:
            return None

    def pod(self, uid: str) -> tuple[str, int]:
        """Return a pod's group of version 2, or its classid; the empty text and 0 where it has neither."""
        if self._pods is None:
            self._pods = [(item, pod_cgroup.scan(item.mount)) for item in self._hierarchies()]
        for hierarchy, groups in self._pods:
            path = groups.get(uid)
            if path is not None and hierarchy.version == 2:
                return path, 0
            if path is not None:
                text = files.read_kernel(os.path.join(hierarchy.mount, path, "net_cls.classid"))
                return "", int((text or "").strip() or 0)
        return "", 0


@dataclass(frozen=True)
class _Members:
    """What a class is recognised by on this host, and what of it is gone."""

    groups: Mapping[str, tuple[int, int]]
    classids: tuple[int, ...]
    devices: tuple[str, ...]
    gone: tuple[str, ...]


def _members(item: Class, indexes: Mapping[str, int], groups: _Groups) -> _Members:
    paths, classids, gone = list(item.cgroups), list(item.classids), []
    for uid in item.pods:
        path, classid = groups.pod(uid)
        if path:
            paths.append(path)
        elif classid:
            classids.append(classid)
        else:
            gone.append(f"control group (version 2) or net_cls classid of pod {uid}")
    found = {}
    for path in paths:
        identity = groups.identity(path)
        if identity is None:
            gone.append(f"cgroup {path}")
        else:
            found[path] = identity
    gone += [f"device {device}" for device in item.devices if device not in indexes]
    there = tuple(device for device in item.devices if device in indexes)
    return _Members(found, tuple(classids), there, tuple(gone))


def find(wanted: Wanted, named: frozenset[str], host: Host) -> tuple[Wanted, tables.Found, list[str]]:
    """Look up what classes are recognised by; what is gone is an error where it was named now, else left out."""
    indexes, host_groups = host.indexes(), _Groups(host.proc_root)
    groups: dict[str, tuple[int, int]] = {}
    warnings, classes = [], {}
    for name, item in wanted.classes.items():
        if not (item.cgroups or item.devices or item.pods):
            classes[name] = item
            continue
        members = _members(item, indexes, host_groups)
        if members.gone and name in named:
            raise BandwidthError(f"class {name}: {members.gone[0]} does not exist; correct it, or make it first")
        if members.gone:
            warnings.append(f"class {name}: {', '.join(members.gone)} is gone; it is left out until it is back")
        groups.update(members.groups)
        classes[name] = replace(item, cgroups=tuple(members.groups), classids=members.classids, devices=members.devices)
    found = tables.Found(groups, {name: indexes[name] for item in classes.values() for name in item.devices})
    return replace(wanted, classes=classes), found, warnings


def picture(state: State) -> dict[str, Any]:
    """Return a state as a person compares it."""
    hidden = ("number", "index", "name")
    return {
        kind: {name: {key: value for key, value in raw.items() if key not in hidden} for name, raw in found.items()}
        for kind, found in (("pools", state.pools), ("classes", state.classes), ("devices", state.devices))
    }
