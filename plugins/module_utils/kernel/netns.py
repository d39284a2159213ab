# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Named network namespaces and the interfaces in them, as iproute2 shows them.

Interfaces are read by netlink (``ip -j``), never from /sys/class/net: a process that only changed its network namespace
still sees the interfaces of the one in which /sys was mounted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import mounts, port_queue

RUN_ROOT = "/run/netns"
# Of a queueing discipline that the kernel chose by itself.
_DEFAULT_HANDLE = "0:"

Argv = Sequence[str]
Run = Callable[[Argv], str]
"""Runs argv and returns its standard output; raises when the program fails."""


class NetnsError(Exception):
    """A namespace or an interface is not as it must be; the text says which, why and what to do."""


@dataclass(frozen=True)
class Interface:
    """One interface: its index, the index of a veth's other end, kind, state, MTU in bytes, bridge, IPv4 addresses.

    ``qdisc`` is the root queueing discipline that somebody gave it; None where it has what the kernel gives.
    """

    index: int
    peer_index: int | None
    kind: str
    up: bool
    mtu_bytes: int
    bridge: str | None
    addresses: tuple[str, ...]
    qdisc: port_queue.RootQdisc | None = None


Interfaces = Mapping[str, Interface]
"""Interfaces of one namespace by name."""


def path(name: str, run_root: str = RUN_ROOT) -> str:
    """Return the file that a named namespace is bound to."""
    return os.path.join(run_root, name)


def exists(name: str, run_root: str = RUN_ROOT, proc_root: str = "/proc") -> bool:
    """Tell whether the name stands for a namespace that can be entered.

    A plain file is left over when a namespace's mount went away without ``ip netns delete``; entering that fails.
    """
    try:
        found = os.stat(path(name, run_root))
        own = os.stat(os.path.join(proc_root, "self/ns/net"))
    except OSError:
        return False
    return found.st_dev == own.st_dev


def names(run_root: str = RUN_ROOT) -> tuple[str, ...]:
    """Return all names below ``run_root``, stale ones included, sorted. Raises NetnsError."""
    try:
        return tuple(sorted(os.listdir(run_root)))
    except FileNotFoundError:
        return ()
    except OSError as exc:
        raise NetnsError(f"{run_root}: cannot be read: {exc.strerror}; run as root") from exc


def is_mount(run_root: str = RUN_ROOT, proc_root: str = "/proc") -> bool:
    """Tell whether ``run_root`` is a mount point, which the first ``ip netns add`` after boot makes of it.

    os.path.ismount does not see it, as the directory is bound to itself.
    """
    try:
        return mounts.at(run_root, proc_root) is not None
    except mounts.MountsError as exc:
        raise NetnsError(str(exc)) from exc


def pids(name: str, run_root: str = RUN_ROOT, proc_root: str = "/proc") -> tuple[int, ...]:
    """Return the processes in a namespace, in ascending order; none when it does not exist.

    A namespace lives on without its name while a process is in it. Processes that end meanwhile are left out.
    """
    try:
        wanted = os.stat(path(name, run_root))
    except OSError:
        return ()
    found = []
    for entry in os.listdir(proc_root):
        if not entry.isdigit():
            continue
        try:
            if os.path.samestat(os.stat(os.path.join(proc_root, entry, "ns/net")), wanted):
                found.append(int(entry))
        except OSError:
            continue
    return tuple(sorted(found))


def parse_interfaces(text: str) -> dict[str, Interface]:
    """Return the interfaces in the output of ``ip -j -d addr show``. Raises NetnsError for anything else."""
    try:
        raw = json.loads(text)
        # iproute2 prints an empty object for each interface that a filter left out.
        return {item["ifname"]: _interface(item) for item in raw if item}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise NetnsError(
            f"ip -j -d addr show: unexpected output ({exc!r}); iproute2 of Debian 12 or later is needed"
        ) from exc


def _interface(item: Mapping[str, Any]) -> Interface:
    addresses = (
        f"{address['local']}/{address['prefixlen']}"
        for address in item["addr_info"]
        if address.get("family") == "inet" and address.get("scope") == "global"
    )
    return Interface(
        index=int(item["ifindex"]),
        peer_index=int(item["link_index"]) if "link_index" in item else None,
        kind=str(item.get("linkinfo", {}).get("info_kind", item["link_type"])),
        up="UP" in item["flags"],
        mtu_bytes=int(item["mtu"]),
        bridge=item.get("master"),
        addresses=tuple(sorted(addresses)),
    )


def read_interfaces(name: str, run: Run) -> dict[str, Interface]:
    """Return the interfaces of an existing namespace. Raises NetnsError, or what ``run`` raises.

    Only where there is a bridge queueing disciplines are asked for, as only ports have some.
    """
    found = parse_interfaces(run(["ip", "-n", name, "-j", "-d", "addr", "show"]))
    if not any(item.kind == "bridge" for item in found.values()):
        return found
    try:
        qdiscs = port_queue.parse(run(["tc", "-n", name, "-j", "qdisc", "show"]))
    except port_queue.PortQueueError as exc:
        raise NetnsError(str(exc)) from exc
    given = {device: item for device, item in qdiscs.items() if item.handle != _DEFAULT_HANDLE}
    return {device: replace(item, qdisc=given.get(device)) for device, item in found.items()}
