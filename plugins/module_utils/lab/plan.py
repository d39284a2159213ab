# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what a lab is to what it should be: the steps, in order, each an argv of iproute2 with its journal entry.

Pure: the state comes in, steps go out. Whether a namespace or an interface may be touched is decided by the journal
alone: what stands there under one of the lab's names without an entry belongs to somebody else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import port_queue
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.netns import Interface, Interfaces
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.port_queue import PortQueue
from ansible_collections.colocation.testbed.plugins.module_utils.lab.topology import (
    LOOPBACK,
    Cable,
    Endpoint,
    Topology,
)

NETNS = "netns"
LINK = "link"
TAP_KIND = "tun"  # what the kernel calls both taps and tunnels
NEW_MTU_BYTES = 1500  # what the kernel gives a new Ethernet device

State = Mapping[str, Interfaces]
"""Interfaces of each namespace that exists, by the namespace's name."""


class ForeignError(Exception):
    """Something stands under one of the lab's names that the collection did not make; the text says what."""


@dataclass(frozen=True)
class Step:
    """One change: argv, words for people, journal entries to record before it and to drop after it."""

    argv: tuple[str, ...]
    text: str
    records: tuple[tuple[str, str], ...] = ()
    forgets: tuple[tuple[str, str], ...] = ()


class _Planner:
    """Collects steps and keeps the picture of the lab as it will be after them."""

    def __init__(self, state: State, own: AbstractSet[tuple[str, str]]) -> None:
        self.state: dict[str, dict[str, Interface]] = {name: dict(found) for name, found in state.items()}
        self.own = own
        self.steps: list[Step] = []

    def interface(self, end: Endpoint) -> Interface | None:
        return self.state.get(end.namespace, {}).get(end.name)

    def add(self, end: Endpoint, *argv: str, text: str, records: tuple[tuple[str, str], ...] = ()) -> None:
        self.steps.append(Step(("ip", "-n", end.namespace, *argv), text, records))

    def claim(self, kind: str, target: str, what: str) -> None:
        if (kind, target) not in self.own:
            raise ForeignError(
                f"{what} exists and was not made by this collection (it is not in the journal): choose another "
                "lab_namespace_prefix or lab_link_prefix, or remove it yourself"
            )

    def namespace(self, name: str) -> None:
        key = (NETNS, name)
        if name in self.state:
            self.claim(*key, what=f"network namespace {name}")
            return
        self.steps.append(Step(("ip", "netns", "add", name), f"add network namespace {name}", (key,)))
        self.state[name] = {LOOPBACK: Interface(1, None, "loopback", False, 65536, None, ())}

    def connected(self, cable: Cable) -> bool:
        near, far = self.interface(cable.near), self.interface(cable.far)
        if near is None or far is None:
            return False
        kinds = near.kind == far.kind == "veth"
        return kinds and near.peer_index == far.index and far.peer_index == near.index

    def cable(self, cable: Cable) -> None:
        near, far = cable.near, cable.far
        if self.connected(cable):
            self.claim(LINK, near.target, f"interface {near.target}")
            return
        for end in (near, far):
            self.remove_link(end)
        self.add(
            near,
            *("link", "add", near.name, "type", "veth", "peer", "name", far.name, "netns", far.namespace),
            text=f"connect {near.target} with {far.target}",
            records=((LINK, near.target), (LINK, far.target)),
        )
        for end in (near, far):
            self.state[end.namespace][end.name] = Interface(0, 0, "veth", False, NEW_MTU_BYTES, None, ())

    def tap(self, end: Endpoint) -> None:
        found = self.interface(end)
        if found is not None and found.kind == TAP_KIND:
            self.claim(LINK, end.target, f"interface {end.target}")
            return
        self.remove_link(end)
        self.add(
            end,
            *("tuntap", "add", "dev", end.name, "mode", "tap"),
            text=f"add tap {end.target}",
            records=((LINK, end.target),),
        )
        self.state[end.namespace][end.name] = Interface(0, None, TAP_KIND, False, NEW_MTU_BYTES, None, ())

    def remove_link(self, end: Endpoint) -> None:
        found = self.interface(end)
        if found is None:
            return
        self.claim(LINK, end.target, f"interface {end.target}")
        ends = [end, *(self._far_end(end, found) if found.kind == "veth" else ())]
        self.steps.append(
            Step(
                ("ip", "-n", end.namespace, "link", "del", end.name),
                f"remove interface {' and '.join(one.target for one in ends)}",
                forgets=tuple((LINK, one.target) for one in ends),
            )
        )
        for one in ends:
            del self.state[one.namespace][one.name]

    def _far_end(self, end: Endpoint, found: Interface) -> Iterator[Endpoint]:
        for namespace, interfaces in self.state.items():
            for name, other in interfaces.items():
                far = Endpoint(namespace, name)
                paired = other.index == found.peer_index and other.peer_index == found.index
                if far != end and other.kind == "veth" and paired and (LINK, far.target) in self.own:
                    yield far
                    return

    def remove_namespace(self, name: str) -> None:
        gone = tuple(
            (kind, target) for kind, target in sorted(self.own) if kind == LINK and target.startswith(name + "/")
        )
        self.steps.append(
            Step(("ip", "netns", "delete", name), f"remove network namespace {name}", forgets=((NETNS, name), *gone))
        )
        self.state.pop(name, None)

    def bridge(self, end: Endpoint, ports: tuple[Endpoint, ...], mtu_bytes: int) -> None:
        found = self.interface(end)
        if found is not None and found.kind != "bridge":
            self.remove_link(end)
            found = None
        if found is None:
            self.add(
                end,
                "link",
                "add",
                end.name,
                "type",
                "bridge",
                text=f"add bridge {end.target}",
                records=((LINK, end.target),),
            )
            self.state[end.namespace][end.name] = Interface(0, None, "bridge", False, NEW_MTU_BYTES, None, ())
        else:
            self.claim(LINK, end.target, f"interface {end.target}")
        for port in ports:
            current = self.interface(port)
            if current is not None and current.bridge != end.name:
                self.add(port, "link", "set", port.name, "master", end.name, text=f"put {port.target} on {end.target}")
        self.settle(end, mtu_bytes)

    def settle(self, end: Endpoint, mtu_bytes: int | None) -> None:
        found = self.interface(end)
        if found is None:
            return
        if mtu_bytes is not None and found.mtu_bytes != mtu_bytes:
            self.add(
                end,
                "link",
                "set",
                end.name,
                "mtu",
                str(mtu_bytes),
                text=f"set MTU of {end.target} to {mtu_bytes} bytes",
            )
        if not found.up:
            self.add(end, "link", "set", end.name, "up", text=f"bring {end.target} up")

    def queue(self, port: Endpoint, wanted: PortQueue | None) -> None:
        found = self.interface(port)
        present = None if found is None else found.qdisc
        here = ("tc", "-n", port.namespace, "qdisc")
        if wanted is None:
            # A queue that somebody else gave a port without a rate is left alone.
            if present is not None and present.is_ours:
                self.steps.append(
                    Step((*here, "delete", "dev", port.name, "root"), f"take the queue off {port.target}")
                )
        elif present is None or not present.is_like(wanted):
            # What somebody put there by hand cannot be changed into ours, and would be in the way.
            if present is not None and not (present.is_ours and present.kind == port_queue.KIND):
                text = f"remove queueing discipline {present.kind} from {port.target}"
                self.steps.append(Step((*here, "delete", "dev", port.name, "root"), text))
            place = ("replace", "dev", port.name, "root", "handle", port_queue.HANDLE)
            self.steps.append(Step((*here, *place, *wanted.argv), f"give {port.target} a queue of {wanted.text}"))

    def address(self, end: Endpoint, wanted: str | None) -> None:
        found = self.interface(end)
        present = found.addresses if found is not None else ()
        for address in present:
            if address != wanted:
                self.add(end, "addr", "del", address, "dev", end.name, text=f"remove {address} from {end.target}")
        if wanted is not None and wanted not in present:
            self.add(end, "addr", "add", wanted, "dev", end.name, text=f"give {end.target} the address {wanted}")


def to_topology(topology: Topology, state: State, own: AbstractSet[tuple[str, str]]) -> tuple[Step, ...]:
    """Return the steps from ``state`` to ``topology``; ``own`` are the (kind, target) of the journal.

    ``state`` has to hold all namespaces that exist among the wanted ones and those in ``own``. Raises ForeignError.
    """
    planner = _Planner(state, own)
    for kind, name in sorted(own):
        if kind == NETNS and name not in topology.namespaces and name in planner.state:
            _remove_whole(planner, name)
    for name in topology.namespaces:
        planner.namespace(name)
    for end in _surplus_taps(topology, planner):
        planner.remove_link(end)
    for cable in topology.cables:
        planner.cable(cable)
    for tap in topology.taps:
        planner.tap(tap)
    ends = [*topology.taps, *(end for cable in topology.cables for end in (cable.near, cable.far))]
    if topology.bridge is not None:
        planner.bridge(topology.bridge, topology.ports, topology.mtu_bytes)
    # A lone host has its address on the loopback, from where it goes when a second one joins; a bridge has one only
    # where guests hang on it.
    without: dict[Endpoint, str | None] = {Endpoint(name, LOOPBACK): None for name in topology.namespaces}
    if topology.bridge is not None:
        without[topology.bridge] = None
    for end, wanted in {**without, **dict(topology.addresses)}.items():
        planner.address(end, wanted)
    for name in topology.namespaces:
        planner.settle(Endpoint(name, LOOPBACK), None)
    for end in ends:
        planner.settle(end, topology.mtu_bytes)
    for port in topology.ports:
        planner.queue(port, topology.queue)
    return tuple(planner.steps)


def _surplus_taps(topology: Topology, planner: _Planner) -> list[Endpoint]:
    """Return our taps of guests that are not wanted any more, in namespaces that stay."""
    owned = [Endpoint(*target.partition("/")[::2]) for kind, target in sorted(planner.own) if kind == LINK]
    found = {end: planner.interface(end) for end in owned if end not in topology.taps}
    return [end for end, interface in found.items() if interface is not None and interface.kind == TAP_KIND]


def _remove_whole(planner: _Planner, name: str) -> None:
    # Deleting a namespace destroys its interfaces some time later, in the background; asked for one by one they are
    # gone when the command returns, so that a new lab never meets the old one's ends.
    for kind, target in sorted(planner.own):
        namespace, _slash, interface = target.partition("/")
        if kind == LINK and namespace == name:
            planner.remove_link(Endpoint(name, interface))
    planner.remove_namespace(name)


def describe(topology: Topology) -> list[str]:
    """Return one line for each namespace and interface of the lab that is wanted, for a diff."""
    return sorted([*topology.namespaces, *(_wanted_line(topology, end) for end in _ends(topology))])


def describe_state(state: State, own: AbstractSet[tuple[str, str]], queue: PortQueue | None = None) -> list[str]:
    """Return one line for each namespace and interface of the lab that exists, for a diff.

    A queue that is like ``queue`` is told in its words, since the kernel's are rounded.
    """
    lines = []
    for name in sorted(state):
        if (NETNS, name) not in own:
            continue
        lines.append(name)
        for link, found in state[name].items():
            if (LINK, f"{name}/{link}") in own or (link == LOOPBACK and found.addresses):
                lines.append(
                    _line(Endpoint(name, link), found.kind, found.mtu_bytes, found.addresses, _shown(found, queue))
                )
    return sorted(lines)


def _ends(topology: Topology) -> list[Endpoint]:
    ends = [end for cable in topology.cables for end in (cable.near, cable.far)]
    extra = (*topology.taps, *(end for end, _address in topology.addresses), topology.bridge)
    return ends + [end for end in dict.fromkeys(extra) if end is not None and end not in ends]


def _wanted_line(topology: Topology, end: Endpoint) -> str:
    addresses = tuple(address for owner, address in topology.addresses if owner == end)
    if end.name == LOOPBACK:
        return _line(end, "loopback", 65536, addresses)
    kind = "bridge" if end == topology.bridge else TAP_KIND if end in topology.taps else "veth"
    queue = topology.queue.text if topology.queue is not None and end in topology.ports else ""
    return _line(end, kind, topology.mtu_bytes, addresses, queue)


def _shown(found: Interface, queue: PortQueue | None) -> str:
    """Return a port's queue as it would be asked for, or what stands in its place."""
    if found.qdisc is None:
        return ""
    if queue is not None and found.qdisc.is_like(queue):
        return queue.text
    if found.qdisc.kind != port_queue.KIND:
        return found.qdisc.kind
    options = found.qdisc.options
    waiting = options.get("lat", 0) * options.get("rate", 0) / 1e6
    return PortQueue(options.get("rate", 0), round((waiting + options.get("burst", 0)) / 1024) * 1024).text


def _line(end: Endpoint, kind: str, mtu_bytes: int, addresses: tuple[str, ...], queue: str = "") -> str:
    return " ".join([end.target, kind, f"mtu={mtu_bytes}", *addresses, *([f"queue={queue}"] if queue else [])])
