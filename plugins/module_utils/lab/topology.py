# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a lab's network looks like: from the hosts that are asked for to namespaces, cables and addresses.

Two namespaces are joined by one veth pair. More hang on a bridge in a namespace of its own, and so do all guests with a
kernel of their own, and two namespaces whose link has a rate: ports of the bridge have queues, as a switch's have. No
interface is ever put into the machine's own namespace, so that nothing of the machine's network can be hit.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cpu_list
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.port_queue import PortQueue

SWITCH = "switch"
LOOPBACK = "lo"
# IFNAMSIZ is 16 with the final zero; the number of a switch port needs up to four more characters.
LINK_PREFIX = re.compile(r"[a-z][a-z0-9-]{0,10}")
HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
NAMESPACE_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
MTU_RANGE = (576, 65535)
MAX_PREFIX_BITS = 30
# Below, tokens of one packet of 64 KiB would last for seconds; above, the kernel's 32 bits of bytes a second end.
RATE_RANGE_BIT = (10**6, 32 * 10**9)
# At least one packet as the stack sends it, and what a port may hold for a second at the highest rate.
BUFFER_RANGE_KIB = (128, 1 << 20)


class TopologyError(Exception):
    """The lab that is asked for cannot be made; the text says what, why and what is allowed."""


@dataclass(frozen=True)
class Host:
    """One host that is asked for: name, and IPv4 address without prefix length."""

    name: str
    address: str


@dataclass(frozen=True)
class Endpoint:
    """An interface by namespace and name."""

    namespace: str
    name: str

    @property
    def target(self) -> str:
        """The name of the interface in the journal."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Cable:
    """A veth pair by its two ends."""

    near: Endpoint
    far: Endpoint


@dataclass(frozen=True)
class Topology:
    """The whole lab: namespaces, veth pairs, the bridge if any, interfaces' addresses, MTU in bytes, taps of guests.

    ``queue`` is what each port of the bridge has towards its host; None where links have no rate.
    """

    namespaces: tuple[str, ...]
    cables: tuple[Cable, ...]
    bridge: Endpoint | None
    addresses: tuple[tuple[Endpoint, str], ...]
    mtu_bytes: int
    taps: tuple[Endpoint, ...] = ()
    queue: PortQueue | None = None

    @property
    def ports(self) -> tuple[Endpoint, ...]:
        """Return the ports of the bridge; none where there is no bridge."""
        return (*self.taps, *(cable.far for cable in self.cables)) if self.bridge is not None else ()


@dataclass(frozen=True)
class Names:
    """How the parts are called: prefix of the namespaces, prefix of the interfaces."""

    namespace_prefix: str
    link_prefix: str

    def namespace(self, host: str) -> str:
        """Return the namespace of a host."""
        return self.namespace_prefix + host

    def link(self, host: str) -> Endpoint:
        """Return a host's end of its cable."""
        return Endpoint(self.namespace(host), f"{self.link_prefix}0")

    def port(self, number: int) -> Endpoint:
        """Return a port of the switch, counted from 1."""
        return Endpoint(self.namespace(SWITCH), f"{self.link_prefix}{number}")

    def bridge(self) -> Endpoint:
        """Return the bridge of the switch."""
        return Endpoint(self.namespace(SWITCH), f"{self.link_prefix}-br")


def port_queue(rate: str, buffer_kib: int) -> PortQueue | None:
    """Return the queue of a port for a rate such as ``1Gbit/s``; None for no rate. Raises TopologyError."""
    if not rate:
        return None
    try:
        rate_bit = quantity.parse_bit_rate(rate)
    except quantity.QuantityError as exc:
        raise TopologyError(f"lab_link_rate: {exc}") from exc
    low, high = RATE_RANGE_BIT
    if not low <= rate_bit <= high:
        raise TopologyError(f"lab_link_rate {rate}: a link has 1Mbit/s to 32Gbit/s; correct it, or leave it empty")
    low, high = BUFFER_RANGE_KIB
    if not low <= buffer_kib <= high:
        raise TopologyError(f"lab_link_buffer_kib {buffer_kib}: a port holds {low} to {high} KiB; correct it")
    return PortQueue(rate_bit // 8, buffer_kib * 1024)


def build(hosts: Sequence[Host], subnet: str, names: Names, mtu_bytes: int, queue: PortQueue | None = None) -> Topology:
    """Return the lab for these hosts. Raises TopologyError for names, addresses or sizes that cannot be."""
    network = _checked(hosts, subnet, names, mtu_bytes)
    links = [names.link(host.name) for host in hosts]
    addresses = tuple((link, f"{host.address}/{network.prefixlen}") for link, host in zip(links, hosts))
    namespaces = tuple(link.namespace for link in links)
    if len(links) == 1:
        # A lone host keeps its address, so that what runs on it can be reached by the same variables.
        alone = (Endpoint(links[0].namespace, LOOPBACK), f"{hosts[0].address}/32")
        return Topology(namespaces, (), None, (alone,), mtu_bytes)
    if len(links) == 2 and queue is None:
        return Topology(namespaces, (Cable(links[0], links[1]),), None, addresses, mtu_bytes)
    cables = tuple(Cable(link, names.port(number)) for number, link in enumerate(links, start=1))
    spaces = (*namespaces, names.namespace(SWITCH))
    return Topology(spaces, cables, names.bridge(), addresses, mtu_bytes, queue=queue)


def build_for_guests(
    hosts: Sequence[Host], subnet: str, names: Names, mtu_bytes: int, queue: PortQueue | None = None
) -> Topology:
    """Return the lab for guests with kernels of their own: a tap for each on a bridge in one namespace.

    The bridge has the highest free address of the subnet, from which the machine reaches the guests. Raises
    TopologyError.
    """
    network = _checked(hosts, subnet, names, mtu_bytes)
    taken = {ipaddress.IPv4Address(host.address) for host in hosts}
    # Of a host more than there are guests, one is free; nothing has to go through a large subnet.
    candidates = (network.broadcast_address - step for step in range(1, len(hosts) + 2))
    own = next((address for address in candidates if address in network and address not in taken), None)
    if own is None or own == network.network_address:
        raise TopologyError(
            f"lab_subnet {subnet}: all addresses belong to hosts, and the machine needs one to reach them; give a "
            "larger subnet"
        )
    taps = tuple(names.port(number) for number in range(1, len(hosts) + 1))
    bridge = names.bridge()
    addresses = ((bridge, f"{own}/{network.prefixlen}"),)
    return Topology((names.namespace(SWITCH),), (), bridge, addresses, mtu_bytes, taps, queue)


def check_cpus(cpus: Mapping[str, str]) -> None:
    """Raise where a CPU of a host (name to CPU list) is not online (CpuListError) or another's too (TopologyError)."""
    owner: dict[int, str] = {}
    for name, wanted in cpus.items():
        for cpu in cpu_list.require_online(wanted, f"lab host {name}: node_cpus (of guests lab_cpus) in the inventory"):
            other = owner.setdefault(cpu, name)
            if other != name:
                raise TopologyError(
                    f"lab hosts {other} and {name} share CPU {cpu}: they would disturb each other; give each CPUs of "
                    "its own (node_cpus), or none"
                )


def _checked(hosts: Sequence[Host], subnet: str, names: Names, mtu_bytes: int) -> ipaddress.IPv4Network:
    _check_names(hosts, names)
    network = _network(subnet)
    _check_addresses(hosts, network)
    if not MTU_RANGE[0] <= mtu_bytes <= MTU_RANGE[1]:
        raise TopologyError(
            f"lab_mtu_bytes {mtu_bytes}: an interface takes {MTU_RANGE[0]} to {MTU_RANGE[1]}; correct it"
        )
    return network


def _check_names(hosts: Sequence[Host], names: Names) -> None:
    if not hosts:
        raise TopologyError("lab_hosts is empty: a lab needs at least one host; name them in the inventory's group lab")
    if not LINK_PREFIX.fullmatch(names.link_prefix):
        raise TopologyError(
            f"lab_link_prefix {names.link_prefix!r}: must match {LINK_PREFIX.pattern}, as interface names end at 15 "
            "characters; shorten it"
        )
    if not NAMESPACE_PREFIX.fullmatch(names.namespace_prefix):
        raise TopologyError(
            f"lab_namespace_prefix {names.namespace_prefix!r}: must match {NAMESPACE_PREFIX.pattern}, so that no "
            "foreign namespace is hit; correct it"
        )
    seen: set[str] = set()
    for host in hosts:
        if not HOST_NAME.fullmatch(host.name):
            raise TopologyError(
                f"lab host {host.name!r}: a name must match {HOST_NAME.pattern}; rename it in lab_hosts"
            )
        if host.name == SWITCH:
            raise TopologyError(f"lab host {SWITCH!r}: this name is kept for the bridge; rename it in lab_hosts")
        if host.name in seen:
            raise TopologyError(f"lab host {host.name!r} is named twice; remove one from lab_hosts")
        seen.add(host.name)


def _network(subnet: str) -> ipaddress.IPv4Network:
    try:
        network = ipaddress.IPv4Network(subnet)
    except ValueError as exc:
        raise TopologyError(
            f"lab_subnet {subnet!r}: {exc}; give an IPv4 network in 198.18.0.0/15, the range for benchmarks"
        ) from exc
    if network.prefixlen > MAX_PREFIX_BITS:
        raise TopologyError(
            f"lab_subnet {subnet}: has no room for two hosts; give a prefix of at most {MAX_PREFIX_BITS} bits"
        )
    return network


def _check_addresses(hosts: Sequence[Host], network: ipaddress.IPv4Network) -> None:
    owner: dict[ipaddress.IPv4Address, str] = {}
    for host in hosts:
        try:
            address = ipaddress.IPv4Address(host.address)
        except ValueError as exc:
            raise TopologyError(
                f"lab host {host.name}: address {host.address!r} is not an IPv4 address; set ansible_host to one "
                f"in {network}"
            ) from exc
        if address not in network or address in (network.network_address, network.broadcast_address):
            raise TopologyError(
                f"lab host {host.name}: address {address} is not a host address of lab_subnet {network}; choose "
                f"one from {network[1]} to {network[-2]}"
            )
        if address in owner:
            raise TopologyError(
                f"lab hosts {owner[address]} and {host.name} have the same address {address}; change one in lab_hosts"
            )
        owner[address] = host.name
