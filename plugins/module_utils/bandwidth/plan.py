# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wanted of an instance against what the host has: numbers of pools and classes, cgroups and devices."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import commands
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
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup


@dataclass(frozen=True)
class Wanted:
    """The whole instance as it shall be: pools and classes by name, devices by name and hook."""

    pools: Mapping[str, Pool]
    classes: Mapping[str, Class]
    devices: Mapping[str, Device]


@dataclass(frozen=True)
class Host:
    """How the host is reached: running programs, and where control groups are."""

    run: devices.Run = commands.run
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


def resolve_cgroup(path: str, proc_root: str) -> tuple[int, int] | None:
    """Return id and depth of a cgroup v2 directory, None when it is gone. Raises BandwidthError without cgroup2."""
    try:
        found = [item.mount for item in cgroup.detect(proc_root).hierarchies if item.version == 2]
        if not found:
            raise BandwidthError(f"cgroup {path}: no cgroup2 is mounted; mount one, or use classids")
        below = path[len(found[0]) :] if path.startswith(found[0] + "/") else path
        place = cgroup.join_path(found[0], below.strip("/"))
    except cgroup.CgroupError as exc:
        raise BandwidthError(str(exc)) from exc
    try:
        return os.stat(place).st_ino, len([part for part in below.split("/") if part])
    except OSError:
        return None


def find(wanted: Wanted, named: frozenset[str], host: Host) -> tuple[Wanted, tables.Found, list[str]]:
    """Look up cgroups and devices of classes; what is gone is an error where it was named now, else left out."""
    indexes = host.indexes()
    groups: dict[str, tuple[int, int]] = {}
    warnings, classes = [], {}
    for name, item in wanted.classes.items():
        gone = []
        for path in item.cgroups:
            identity = groups.get(path) or resolve_cgroup(path, host.proc_root)
            if identity is None:
                gone.append(f"cgroup {path}")
            else:
                groups[path] = identity
        gone += [f"device {device}" for device in item.devices if device not in indexes]
        if gone and name in named:
            raise BandwidthError(f"class {name}: {gone[0]} does not exist; correct it, or make it first")
        if gone:
            warnings.append(f"class {name}: {', '.join(gone)} is gone; it is left out until it is back")
        classes[name] = replace(
            item,
            cgroups=tuple(path for path in item.cgroups if path in groups),
            devices=tuple(device for device in item.devices if device in indexes),
        )
    found = tables.Found(groups, {name: indexes[name] for item in classes.values() for name in item.devices})
    return replace(wanted, classes=classes), found, warnings


def picture(state: State) -> dict[str, Any]:
    """Return a state as a person compares it."""
    hidden = ("number", "index", "name")
    return {
        kind: {name: {key: value for key, value in raw.items() if key not in hidden} for name, raw in found.items()}
        for kind, found in (("pools", state.pools), ("classes", state.classes), ("devices", state.devices))
    }
