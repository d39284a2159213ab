# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which processes a case needs on each host, as entries for module process: pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import specs

if TYPE_CHECKING:
    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Node

GROUP = "bandwidth"
COUNTER, SINK, SENDER = "bw-counter", "bw-sink", "bw-sender"
TALLY = "bw-datagrams.bin"
#: More iperf3 than this would measure how processes are started; beyond it one process sends for all classes.
IPERF3_CLASSES = 16
#: Ports of a class: that of its traffic, and this far above it that of its latency probe.
PROBE_PORT_ABOVE = 2000
PROBE_HZ = 1000.0
INTERVAL_S = 0.1
#: Where times of switching are looked for.
FINE_INTERVAL_S = 0.001
#: How much faster than its rate a sender may be that makes up for a pause.
_CATCH_UP = 1.05
#: iperf3 runs longer than it is listened to, and is ended.
_LONGER_S = 30


@dataclass(frozen=True)
class End:
    """A host with its addresses on the link that is measured: of IPv4, of IPv6 where it has one, and the device."""

    node: Node
    address: str
    address6: str = ""
    device: str = ""

    def seen_from(self, other: End, family: str) -> str:
        """Return this host's address as the other one, or this one, writes it."""
        if family == "ipv4":
            return self.address
        # An address of one link only is nothing without the device that leads there.
        return f"{self.address6}%{other.device}" if self.address6.startswith("fe80:") else self.address6


@dataclass(frozen=True)
class Ends:
    """Both hosts with the addresses by which they know each other."""

    tested_end: End
    load_end: End

    @property
    def tested(self) -> Node:
        """Return the tested node."""
        return self.tested_end.node

    @property
    def load(self) -> Node:
        """Return the load node."""
        return self.load_end.node

    def receiver(self, direction: str) -> End:
        """Return the host that receives what goes in a direction, seen from the tested node."""
        return self.load_end if direction == "egress" else self.tested_end

    def sender(self, direction: str) -> End:
        """Return the host that sends."""
        return self.tested_end if direction == "egress" else self.load_end

    def bound(self, direction: str, family: str) -> str:
        """Return the address at which is received, as the receiver writes it."""
        end = self.receiver(direction)
        return end.seen_from(end, family)

    def called(self, direction: str, family: str) -> str:
        """Return the same as the sender writes it."""
        return self.receiver(direction).seen_from(self.sender(direction), family)


@dataclass(frozen=True)
class Job:
    """A case with everything that its processes must know; ports by class."""

    classes: Mapping[str, Mapping[str, Any]]
    ports: Mapping[str, int]
    congestion: str
    lifetime_s: float
    family: str = "ipv4"

    @property
    def bursting(self) -> bool:
        """Tell whether classes pause, so that times of switching are looked for."""
        return any(item["bursts"] for item in self.classes.values())

    @property
    def many(self) -> bool:
        """Tell whether one process sends for all classes."""
        return len(self.sending()) > IPERF3_CLASSES

    def sending(self, direction: str = "") -> list[str]:
        """Return the classes that send more than a probe, of one direction or of both."""
        return [
            name for name, item in self.classes.items()
            if item["flows"] and direction in ("", item["direction"])
        ]  # fmt: skip

    def by_iperf3(self, name: str) -> bool:
        """Tell whether a class's traffic is iperf3's; the others' comes from one process of our own."""
        return not (self.many or self.classes[name]["bursts"] or self.datagrams(name))

    def datagrams(self, name: str) -> bool:
        """Tell whether a class sends datagrams."""
        return bool(self.classes[name]["protocol"] == "udp")

    def by_group(self, direction: str) -> bool:
        """Tell whether classes are told apart by control groups: what is sent always, what is received if several."""
        return direction == "egress" or len(self.sending(direction)) > 1


def job(case: Mapping[str, Any], first_port: int, congestion: str, lifetime_s: float) -> Job:
    """Return what a case needs; classes get ports in their order."""
    ports = {name: first_port + number for number, name in enumerate(case["classes"])}
    return Job(case["classes"], ports, congestion, lifetime_s, case.get("family", "ipv4"))


def group(name: str) -> str:
    """Return the control group of a class below the host's root."""
    return f"{GROUP}/{name}"


def groups(found: Job) -> list[dict[str, Any]]:
    """Return the entries of module cgroup for the processes; hundreds of classes need theirs as identities only."""
    names = [] if found.many else list(found.classes)
    return [{"name": GROUP}, {"name": group("tools")}, *({"name": group(name)} for name in names)]


def receiving(found: Job, ends: Ends, node: Node) -> list[dict[str, Any]]:
    """Return the entries of what receives on a host, and counts; none where nothing is received there."""
    direction = "egress" if node is ends.load else "ingress"
    address = ends.bound(direction, found.family)
    names = found.sending(direction)
    entries = [_iperf3_server(found, node, name, address) for name in names if found.by_iperf3(name)]
    entries += _sink(found, node, [name for name in names if not found.by_iperf3(name)], address)
    entries += [_echo(found, node, name, address) for name in _probed(found, direction)]
    if names:
        entries.append(_counter(found, node, names))
    return entries


def _sink(found: Job, node: Node, names: Sequence[str], address: str) -> list[dict[str, Any]]:
    """Return the entry of what receives for all classes that iperf3 does not receive for; none without any."""
    if not names:
        return []
    received = [name for name in names if found.classes[name]["direction"] == "ingress"]
    spec = {
        "address": address,
        "ports": [found.ports[name] for name in names if not found.datagrams(name)],
        "datagram_ports": [found.ports[name] for name in names if found.datagrams(name)],
        "tally": node.path(TALLY),
        "groups": {str(found.ports[name]): _group_path(node, name) for name in received if found.by_group("ingress")},
        "output": node.path("bw-sink.json"),
    }
    return [_tool(node, SINK, "receive", spec, found.lifetime_s)]


def _group_path(node: Node, name: str) -> str:
    return f"{node.cgroup_root}/{group(name)}"


def sending(found: Job, ends: Ends, node: Node) -> list[dict[str, Any]]:
    """Return the entries of what sends on a host, and of the latency probes there."""
    direction = "egress" if node is ends.tested else "ingress"
    address = ends.called(direction, found.family)
    names = found.sending(direction)
    entries = [_probe(found, node, name, address) for name in _probed(found, direction)]
    entries += [_iperf3_client(found, node, name, address) for name in names if found.by_iperf3(name)]
    flows = [_flow(found, node, name, address) for name in names if not found.by_iperf3(name)]
    if flows:
        spec = {
            "flows": flows, "output": node.path("bw-sender.json"), "max_duration_s": found.lifetime_s,
            "congestion": found.congestion,
        }  # fmt: skip
        # The last one, so that classes which pause begin when all others run.
        entries.append(_tool(node, SENDER, "send", spec, found.lifetime_s))
    return entries


def results(found: Job, ends: Ends, node: Node) -> list[str]:
    """Return the files that a host's processes leave."""
    there = [specs.SAMPLES]
    received = found.sending("egress" if node is ends.load else "ingress")
    direction = "egress" if node is ends.tested else "ingress"
    sent = found.sending(direction)
    there += ["bw-counter.json"] if received else []
    there += ["bw-sender.json"] if any(not found.by_iperf3(name) for name in sent) else []
    there += [f"bw-probe-{name}.json" for name in _probed(found, direction)]
    there += [f"processes/{client(name)}.log" for name in sent if found.by_iperf3(name)]
    return [node.path(name) for name in there]


def names(scenarios: Mapping[str, Any]) -> list[str]:
    """Return every process that a run of these scenarios may start on a host."""
    classes = dict.fromkeys(
        name
        for scenario in scenarios.values()
        for case in scenario["cases"].values()
        if len(case["classes"]) <= IPERF3_CLASSES
        for name in case["classes"]
    )
    each = [f"bw-{kind}-{name}" for name in classes for kind in ("send", "probe", "recv", "echo")]
    return [*each, SENDER, SINK, COUNTER, specs.SAMPLER]


def client(name: str) -> str:
    """Return what the process is called that sends for a class."""
    return f"bw-send-{name}"


def _probed(found: Job, direction: str) -> list[str]:
    return [name for name, item in found.classes.items() if item["probe"] and item["direction"] == direction]


def _tool(node: Node, name: str, command: str, spec: Mapping[str, Any], lifetime_s: float) -> dict[str, Any]:
    ready = {"file": spec["output"]}
    more = {"group": group("tools"), "ready": ready, "ready_timeout_s": 10, "max_duration_s": lifetime_s}
    return specs.tool(node, name, command, spec, **{**more, "cpus": node.cpus})


def _iperf3_server(found: Job, node: Node, name: str, address: str) -> dict[str, Any]:
    port = found.ports[name]
    own = found.classes[name]["direction"] == "ingress"
    return {
        "name": f"bw-recv-{name}",
        "argv": ["iperf3", "-s", "-B", address, "-p", str(port)],
        "group": group(name if own else "tools"),
        "cpus": node.cpus,
        "ready": {"tcp_port": port, "address": address},
        "port_setting": "bandwidth_matrix_port",
        "max_duration_s": found.lifetime_s,
        "state": "started",
    }


def _iperf3_client(found: Job, node: Node, name: str, address: str) -> dict[str, Any]:
    item = found.classes[name]
    argv = ["iperf3", "-c", address, "-p", str(found.ports[name]), "-J", "-P", str(item["flows"])]
    argv += ["-l", str(item["message_bytes"]), "-t", str(round(found.lifetime_s + _LONGER_S))]
    argv += ["-C", found.congestion] if found.congestion else []
    if item["offered_bps"]:
        each_bps = item["offered_bps"] // item["flows"]
        # iperf3 makes up for pauses that it had no processor in; the kernel's pacing keeps that from being a burst.
        argv += ["-b", str(each_bps), "--fq-rate", str(round(each_bps * _CATCH_UP))]
    return {
        "name": client(name),
        "argv": argv,
        "group": group(name if item["direction"] == "egress" else "tools"),
        "cpus": node.cpus,
        "max_duration_s": found.lifetime_s,
        "state": "started",
    }


def _flow(found: Job, node: Node, name: str, address: str) -> dict[str, Any]:
    item = found.classes[name]
    return {
        "name": name,
        "address": address,
        "port": found.ports[name],
        "connections": item["flows"],
        "message_bytes": item["message_bytes"],
        "group": _group_path(node, name) if item["direction"] == "egress" else "",
        "rate_bps": item["offered_bps"],
        "bursts": item["bursts"],
        "protocol": item["protocol"],
    }


def _echo(found: Job, node: Node, name: str, address: str) -> dict[str, Any]:
    port = found.ports[name] + PROBE_PORT_ABOVE
    spec = {"address": address, "port": port, "output": node.path(f"bw-echo-{name}.json")}
    return _tool(node, f"bw-echo-{name}", "echo", spec, found.lifetime_s)


def _probe(found: Job, node: Node, name: str, address: str) -> dict[str, Any]:
    spec = {
        "address": address,
        "port": found.ports[name] + PROBE_PORT_ABOVE,
        "output": node.path(f"bw-probe-{name}.json"),
        "rate_hz": PROBE_HZ,
        "max_duration_s": found.lifetime_s,
    }
    entry = _tool(node, f"bw-probe-{name}", "probe", spec, found.lifetime_s)
    return {**entry, "group": group(name)} if found.classes[name]["direction"] == "egress" else entry


def _counter(found: Job, node: Node, names: Sequence[str]) -> dict[str, Any]:
    datagrams = [name for name in names if found.datagrams(name)]
    spec = {
        "ports": {name: [found.ports[name]] for name in names if name not in datagrams},
        "datagram_ports": {name: [found.ports[name]] for name in datagrams},
        "tally": node.path(TALLY),
        "tally_ports": [found.ports[name] for name in datagrams],
        "family": found.family,
        "interval_s": FINE_INTERVAL_S if found.bursting else INTERVAL_S,
        "output": node.path("bw-counter.json"),
        "max_duration_s": found.lifetime_s,
    }
    # As the sampler: beside the workloads, on CPUs that their groups may not have.
    return specs.tool(
        node, COUNTER, "count-received", spec, ready={"file": spec["output"]}, max_duration_s=found.lifetime_s
    )
