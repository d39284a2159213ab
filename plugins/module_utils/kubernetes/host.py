# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host must have before a kubelet runs on it, and what is written down and set before one is started."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, journal, quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cgroup,
    cpu_list,
    knob,
    listeners,
    mounts,
    netns_value,
    procfs,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import leftovers

BY = "kubernetes_host"
# capability.h: without it root may not lower oom_score_adj, and runc fails with a misleading sentence.
_CAP_SYS_RESOURCE = 24
# The hierarchies that kubelet makes pods' groups in, by controller (pkg/kubelet/cm of Kubernetes).
_CONTROLLERS = ("cpu", "cpuset", "memory", "pids")

Run = Callable[..., commands.Result]


class HostError(Exception):
    """The host is not fit for a kubelet; one sentence for each thing that is wrong."""


@dataclass(frozen=True)
class Route:
    """A way to a network: through a neighbour's address, or, where that is empty, just out of the node's interface."""

    destination: str
    via: str = ""


@dataclass(frozen=True)
class Wanted:
    """What is asked of a host: the pods' group, sysctls by name, what programs will make, what they need."""

    cgroup_root: str = "kubepods"
    sysctls: Mapping[str, str] = field(default_factory=dict)
    nft_tables: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    service_subnet: str = ""
    node_address: str = ""
    routes: tuple[Route, ...] = ()
    ports: tuple[int, ...] = ()
    programs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Host:
    """A host as its files and programs show it; roots and the command runner are injected for tests."""

    proc_root: str = procfs.PROC_ROOT
    run: Run = commands.run
    find_program: Callable[[str], str | None] = shutil.which

    def sysctl_path(self, name: str) -> str:
        """Return the file of a sysctl."""
        return os.path.join(self.proc_root, "sys", *name.split("."))

    def group_dirs(self, root: str) -> list[str]:
        """Return where the pods' group is, or would be, in every hierarchy, named ones and version 2 included."""
        points = [item.point for item in mounts.read(self.proc_root) if item.fs_type in ("cgroup", "cgroup2")]
        return [os.path.join(point, root) for point in dict.fromkeys(points)]

    def facts(self) -> dict[str, Any]:
        """Return what decides how programs are configured here. Raises CgroupError, MountsError."""
        status = procfs.read_text(f"{self.proc_root}/self/status") or ""
        effective = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
        lines = mounts.lines(mounts.table(self.proc_root))
        root_line = next((line for line in lines if line.split(" ")[4] == "/"), "")
        may_lower = bool(int(effective, 16) >> _CAP_SYS_RESOURCE & 1)
        return {
            "cap_sys_resource": may_lower,
            "oom_score_adj": None if may_lower else 0,
            "root_is_shared": " shared:" in root_line.partition(" - ")[0],
            "online_cpus": quantity.format_cpu_list(cpu_list.online()),
            "cgroup": cgroup.detect(self.proc_root).version,
            "swap": len((procfs.read_text(f"{self.proc_root}/swaps") or "").splitlines()) > 1,
        }


def problems(wanted: Wanted, host: Host, ours: set[tuple[str, str]]) -> list[str]:
    """Return one sentence for each reason why no kubelet can be started here. ``ours``: kind, target in the journal."""
    found = [
        f"{name}: is not there; install it, or let kubernetes_install do it"
        for name in wanted.programs
        if not (os.access(name, os.X_OK) if os.path.isabs(name) else host.find_program(name))
    ]
    layout = cgroup.detect(host.proc_root)
    found += [
        f"cgroup controller {name}: no hierarchy has it; mount it, or enable it on the kernel's command line"
        for name in _CONTROLLERS
        if layout.find(name) is None
    ]
    found += [f"sysctl {name}: this kernel lacks it" for name in wanted.sysctls if _sysctl(host, name) is None]
    taken = [path for path in host.group_dirs(wanted.cgroup_root) if os.path.isdir(path)]
    if taken and (leftovers.CGROUP_TREE, taken[0]) not in ours:
        return [
            *found,
            f"{taken[0]}: is there, so another kubelet runs here or has left it; remove that one",
        ]
    if not any(kind == leftovers.CGROUP_TREE for kind, _target in ours):
        found += _taken_ports(wanted.ports, host)
    return found


def _taken_ports(ports: Sequence[int], host: Host) -> list[str]:
    found = []
    for port in ports:
        listener = listeners.find_listener(port, host.proc_root)
        if listener is not None:
            found.append(f"port {port}: is taken by process {listener.pid or '?'} ({listener.command}); end that one")
    return found


def _sysctl(host: Host, name: str) -> str | None:
    text = files.read_kernel(host.sysctl_path(name))
    return None if text is None else text.strip()


def missing_routes(wanted: Wanted, host: Host) -> list[Route]:
    """Return the routes that the host lacks. Services only need one where there is no default route."""
    found = [route for route in wanted.routes if not _has_route(["exact", route.destination], host)]
    if wanted.service_subnet and not _has_route(["default"], host):
        found += [Route(wanted.service_subnet)] if not _has_route(["exact", wanted.service_subnet], host) else []
    return found


def _has_route(what: Sequence[str], host: Host) -> bool:
    return bool(json.loads(host.run(["ip", "-j", "route", "show", *what]).stdout or "[]"))


def device_of(address: str, host: Host) -> str:
    """Return the interface that has an address. Raises HostError."""
    shown = json.loads(host.run(["ip", "-j", "addr", "show", "to", address]).stdout or "[]")
    names = [item["ifname"] for item in shown if item]
    if not names:
        raise HostError(f"node address {address}: no interface of this host has it; correct kubernetes_node_address")
    return str(names[0])


@dataclass(frozen=True)
class Plan:
    """What is still to be done: what to write down, groups to make, values to set by name, routes to add."""

    changes: tuple[journal.Change, ...]
    groups: tuple[str, ...]
    sysctls: Mapping[str, str]
    routes: tuple[Route, ...]

    @property
    def empty(self) -> bool:
        """Tell whether nothing is to be done."""
        return not (self.changes or self.groups or self.sysctls or self.routes)


def plan(wanted: Wanted, host: Host, ours: set[tuple[str, str]]) -> Plan:
    """Compare; reads only. Raises CommandError, FilesError, MountsError."""
    space = leftovers.recorded_space(host.proc_root)
    changes = [journal.Change(leftovers.CGROUP_TREE, path) for path in host.group_dirs(wanted.cgroup_root)]
    changes += [
        journal.Change(leftovers.NFT_TABLE, leftovers.target(table, host.proc_root), space)
        for table in wanted.nft_tables
    ]
    changes += [journal.Change("link", leftovers.target(name, host.proc_root)) for name in wanted.links]
    different = {
        name: value for name, value in wanted.sysctls.items() if not knob.holds(_sysctl(host, name) or "", value)
    }
    new = tuple(change for change in changes if (change.kind, change.target) not in ours)
    return Plan(new, tuple(_missing_parents(wanted, host)), different, tuple(missing_routes(wanted, host)))


def _missing_parents(wanted: Wanted, host: Host) -> list[str]:
    """Return the groups above the pods' own that are missing, the highest first; kubelet refuses to make them."""
    found = []
    for path in host.group_dirs(wanted.cgroup_root):
        above = os.path.dirname(path)
        missing = []
        while not os.path.isdir(above):
            missing.append(above)
            above = os.path.dirname(above)
        found += missing[::-1]
    return found


def _make_group(path: str) -> None:
    """Make a group; a new one of version 1 has no CPUs, and nobody could join it."""
    os.mkdir(path)
    for name in ("cpuset.cpus", "cpuset.mems"):
        text = files.read_kernel(f"{os.path.dirname(path)}/{name}")
        if text is not None and os.path.exists(f"{path}/{name}"):
            files.write_kernel(f"{path}/{name}", text.strip())


def apply(todo: Plan, wanted: Wanted, host: Host, book: journal.Journal) -> None:
    """Write down, then make groups, set values and add routes, and read back. Raises HostError."""
    space = netns_value.current(host.proc_root)
    changes = list(todo.changes)
    for name, value in todo.sysctls.items():
        text = _sysctl(host, name) or ""
        own = space is not None and name.startswith("net.")
        previous = netns_value.recorded(text, space) if own and space is not None else text
        changes.append(journal.Change("value", host.sysctl_path(name), previous, value))
    for route in todo.routes:
        target = leftovers.target(route.destination, host.proc_root)
        changes.append(journal.Change(leftovers.ROUTE, target, leftovers.recorded_space(host.proc_root)))
    changes = [*(journal.Change("cgroup", path) for path in todo.groups), *changes]
    book.record_many(changes, BY)
    for path in todo.groups:
        _make_group(path)
    for name, value in todo.sysctls.items():
        files.write_kernel(host.sysctl_path(name), value)
        left = _sysctl(host, name) or ""
        if not knob.holds(left, value):
            raise HostError(f"sysctl {name}: wrote {value}, read {left}; does something else write it?")
    for route in todo.routes:
        way = ["via", route.via] if route.via else ["dev", device_of(wanted.node_address, host)]
        host.run(["ip", "route", "add", route.destination, *way])
    left_out = missing_routes(wanted, host)
    if left_out:
        raise HostError(f"route to {left_out[0].destination}: was added and is not there; look at ip route")
