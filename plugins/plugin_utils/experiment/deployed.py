# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the roles left on the hosts, as the facts that they set: the only way from deploying to measuring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.substrates import OWN, PLATFORM

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


#: The connection to a host that is a namespace of the controller's own machine.
NETNS = "colocation.testbed.netns"
#: Namespace of the experiment's pods, unless role koordinator has another.
NAMESPACE = "colocation-testbed"


class DeployedError(Exception):
    """A host lacks what the matrix needs."""


class Host(Protocol):
    """A host that modules can be run on."""

    name: str

    def variable(self, name: str, default: Any = None) -> Any:
        """Return a variable or fact of the host."""

    def variables(self, wanted: Callable[[str], bool]) -> dict[str, Any]:
        """Return the variables of the host whose names are wanted."""

    def run(self, module: str, args: Mapping[str, Any], check_mode: bool | None = None) -> dict[str, Any]:
        """Run a module of this collection on the host and return its result."""


@dataclass(frozen=True)
class Node:
    """A prepared host: the ``node_deployed`` fact of role node."""

    host: Host
    state_dir: str
    cgroup_root: str
    cpus: str
    housekeeping_cpus: str
    python: str
    manager: str

    @property
    def name(self) -> str:
        """The inventory's name of the host."""
        return self.host.name

    def path(self, *parts: str) -> str:
        """Return a path below the host's state directory."""
        return "/".join((self.state_dir, *parts))


@dataclass(frozen=True)
class PodTemplate:
    """What a workload's pod is made from: image, host directories, network, and who places it on the node."""

    image: str
    directories: tuple[str, ...]
    host_network: bool
    scheduled: bool


@dataclass(frozen=True)
class Service:
    """The latency service: the ``latency_service_deployed`` fact. ``pod`` is None where it is a process."""

    process: dict[str, Any]
    pod: PodTemplate | None
    address: str
    port: int
    page: str
    slow_pages: dict[str, str]
    headers: dict[str, str]
    requests: dict[str, str]
    description: dict[str, Any]

    def url(self, slowdown_pct: float) -> str:
        """Return the URL of the page, or of the one that costs so many percent more CPU time.

        :raises DeployedError: where no page of that cost was deployed.
        """
        page = self.page
        if slowdown_pct:
            key = f"{slowdown_pct:g}"
            if key not in self.slow_pages:
                known = ", ".join(sorted(self.slow_pages)) or "none"
                raise DeployedError(
                    f"a mode wants service_slowdown_pct {key}, but pages are deployed for: {known}; "
                    "add it to latency_service_slow_pages_pct and provision again"
                )
            page = self.slow_pages[key]
        return f"http://{self.address}:{self.port}{page}"


@dataclass(frozen=True)
class Batch:
    """The batch workload's material: the ``batch_workload_deployed`` fact; ``pods`` by aggressor."""

    pods: dict[str, PodTemplate]
    placeholders: dict[str, str]
    requests: dict[str, str]
    description: dict[str, Any]


@dataclass(frozen=True)
class Wrk:
    """The load generator: the ``load_generator_wrk`` fact."""

    path: str
    description: dict[str, Any]


@dataclass(frozen=True)
class Koordinator:
    """Koordinator in the cluster: the ``koordinator_deployed`` fact."""

    version: str
    method: str
    namespace: str
    features: str
    host: dict[str, Any]
    policy: dict[str, Any]


@dataclass(frozen=True)
class Cluster:
    """The cluster that the tested node belongs to: the ``kubernetes_deployed`` fact.

    ``api`` is the host on which kubectl reaches it; ``own`` tells that the collection made it, on the tested host;
    ``agent`` is whose agent of Koordinator is there, as in substrates; the platform's takes no policies from us.
    """

    api: Host
    kubectl: tuple[str, ...]
    node_name: str
    namespace: str
    own: bool
    description: dict[str, Any]
    koordinator: Koordinator | None
    agent: str = ""


@dataclass(frozen=True)
class Testbed:
    """Everything that the matrix needs, on both hosts. Without a cluster workloads are processes, with one pods."""

    tested: Node
    load: Node
    service: Service
    batch: Batch
    wrk: Wrk
    cluster: Cluster | None = None

    @property
    def nodes(self) -> tuple[Node, Node]:
        """Both hosts, the tested one first."""
        return (self.tested, self.load)

    @property
    def substrate(self) -> str:
        """In what workloads run: ``process`` or ``pod``."""
        return "process" if self.cluster is None else "pod"

    @property
    def load_address(self) -> str:
        """The address of the load node."""
        return str(self.load.host.variable("ansible_host", self.load.name))

    @property
    def shares_machine(self) -> bool:
        """Tell whether both hosts are namespaces of one machine, so that the load runs on the tested CPUs too."""
        return all(str(node.host.variable("ansible_connection", "")) == NETNS for node in self.nodes)

    def placeholders(self, progress: str) -> dict[str, str]:
        """Return what is filled into an aggressor's arguments; ``progress`` is the file for its progress."""
        return {**self.batch.placeholders, "progress": progress, "peer_address": self.load_address}


def read(tested: Host, load: Host, cluster: Cluster | None = None) -> Testbed:
    """Read what was deployed from both hosts' facts.

    :raises DeployedError: where a role has not run on a host; the text names fact, host and remedy.
    """
    service = fact(tested, "latency_service_deployed")
    batch = fact(tested, "batch_workload_deployed")
    wrk = fact(load, "load_generator_wrk")
    return Testbed(
        tested=node(tested),
        load=node(load),
        service=Service(
            process=dict(service["process"]),
            pod=_template(service["pod"]) if cluster else None,
            address=str(service["address"]),
            port=int(service["port"]),
            page=str(service["page"]),
            slow_pages={str(key): str(page) for key, page in service["slow_pages"].items()},
            headers={str(key): str(value) for key, value in service["headers"].items()},
            requests={"cpu": str(service["cpu_request"]), "memory": str(service["memory_request"])},
            description=dict(service["description"]),
        ),
        batch=Batch(
            pods=_templates(batch["pods"]) if cluster else {},
            placeholders={str(key): str(value) for key, value in batch["placeholders"].items()},
            requests={"cpu": str(batch["cpu_request"]), "memory": str(batch["memory_request"])},
            description=dict(batch["description"]),
        ),
        wrk=Wrk(path=str(wrk["path"]), description=dict(wrk)),
        cluster=cluster,
    )


def _template(found: Mapping[str, Any]) -> PodTemplate:
    return PodTemplate(
        image=str(found["image"]),
        directories=tuple(map(str, found["directories"])),
        host_network=bool(found["host_network"]),
        scheduled=bool(found["scheduled"]),
    )


def _templates(found: Mapping[str, Any]) -> dict[str, PodTemplate]:
    """Return what the batch pod is made from for each aggressor that has an image."""
    return {str(name): _template({**found, "image": image}) for name, image in found["images"].items()}


def cluster(tested: Host, host_named: Callable[[str], Host]) -> Cluster:
    """Read what roles kubernetes and koordinator left on the tested host.

    :param host_named: returns a host of the inventory.
    :raises DeployedError: where role kubernetes has not run.
    """
    found = fact(tested, "kubernetes_deployed")
    runtime = found["runtime"]
    agent = tested.variable("koordinator_deployed") or {}
    koordinator = _koordinator(agent)
    described = None if koordinator is None else {"version": koordinator.version, "method": koordinator.method}
    return Cluster(
        api=host_named(str(found["api_host"])),
        kubectl=tuple(map(str, found["kubectl"])),
        node_name=str(found["node_name"]),
        namespace=str(tested.variable("koordinator_workload_namespace", NAMESPACE)),
        own=found["provider"] != "existing",
        description={
            "server_version": str(found["server_version"]),
            "node_name": str(found["node_name"]),
            "runtime": f"{runtime['name']} {runtime['version']}".strip(),
            "cgroup_driver": str(found["cgroup_driver"]),
            "provider": str(found["provider"]),
            "koordinator": described,
        },
        koordinator=koordinator,
        agent="" if not agent else PLATFORM if agent["method"] == PLATFORM else OWN,
    )


def _koordinator(found: Mapping[str, Any]) -> Koordinator | None:
    if not found or found["method"] == PLATFORM:
        return None
    names = ("version", "method", "namespace", "features")
    return Koordinator(
        **{name: str(found[name]) for name in names}, host=dict(found["host"]), policy=dict(found["policy_sections"])
    )


def node(host: Host) -> Node:
    """Return how role node prepared a host. Raises DeployedError."""
    found = fact(host, "node_deployed")
    names = ("state_dir", "cgroup_root", "cpus", "housekeeping_cpus", "python", "manager")
    return Node(host=host, **{name: str(found[name]) for name in names})


def fact(host: Host, name: str) -> dict[str, Any]:
    """Return a fact that a role sets. Raises DeployedError where it is missing."""
    found = host.variable(name)
    if not found:
        raise DeployedError(
            f"{host.name}: the fact {name} is missing, so nothing was deployed in this play; "
            "run site.yml, or playbook provision before the matrix in the same command"
        )
    return dict(found)
