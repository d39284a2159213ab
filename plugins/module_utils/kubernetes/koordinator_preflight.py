# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands in the way of installing Koordinator into a cluster: all of it, in sentences, before anything changes.

Pure: the cluster's objects in, findings out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import (
    attach,
    koordinator_config,
    koordinator_leftovers,
    kubectl,
    pod_groups,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import koordinator_names as names
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.koordinator_owner import (
    HELM,
    MANIFESTS,
    PLATFORM,
    Installation,
    is_definition,
    release_of,
    whose,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import Kubectl, shown
from ansible_collections.colocation.testbed.plugins.module_utils.policy import koordinator_gates as gates
from ansible_collections.colocation.testbed.plugins.module_utils.policy import koordinator_overrides

_OLDEST, _NEWEST_TRIED = (1, 20), (1, 35)
_SKIPPED_LABEL = "control-plane"


@dataclass(frozen=True)
class Cluster:
    """What the cluster has, as far as an installation depends on it."""

    version: str
    nodes: Sequence[Mapping[str, Any]]
    workloads: Sequence[Mapping[str, Any]]
    definitions: Sequence[Mapping[str, Any]]
    namespaces: Sequence[Mapping[str, Any]]
    priority_classes: Sequence[Mapping[str, Any]]
    webhooks: Sequence[Mapping[str, Any]] = ()
    kubelets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Order:
    """What is to be installed or removed: how, under which Helm release, for which nodes, pods in which namespaces.

    ``crds`` are those of the chart's values: definitions that are not installed may be another's. ``policy`` and
    ``features`` are what the agent will get; ``cgroup_root`` is kubelet's group of all pods ("" where it isn't known).
    """

    method: str
    release: str
    release_namespace: str
    nodes: Sequence[str]
    workload_namespaces: Sequence[str] = ()
    removal: bool = False
    crds: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)
    features: str = ""
    cgroup_root: str = ""

    @property
    def installation(self) -> Installation:
        """Return whose the objects of this order are."""
        return Installation(self.method, self.release, self.release_namespace)

    def leaves_out(self, definition: str) -> bool:
        """Tell whether a definition is not installed, by its full name."""
        unwanted = {name for name, is_on in self.crds.items() if is_on is False}
        return "managed" in unwanted or definition.partition(".")[0] in unwanted


@dataclass(frozen=True)
class Found:
    """Who has installed Koordinator already ("" for nobody), what stands in the way, and remarks.

    ``node_keys`` are labels and annotations of Koordinator's domain that nodes have although nobody has installed it:
    somebody set them by hand.
    """

    owner: str
    problems: tuple[str, ...]
    remarks: tuple[str, ...]
    node_keys: tuple[str, ...] = ()


def read(cluster: Kubectl, nodes: Sequence[str] = ()) -> Cluster:
    """Return what the cluster has, and how the kubelets of nodes are configured if they may be asked.

    Raises KubectlError.
    """
    found = cluster.call("version", "-o", "json").stdout
    server = (kubectl.parse(found)[0].get("serverVersion") or {}).get("gitVersion", "")
    return Cluster(
        server,
        cluster.items("nodes"),
        cluster.items("deployments,daemonsets"),
        cluster.items("customresourcedefinitions"),
        cluster.items("namespaces"),
        cluster.items("priorityclasses"),
        cluster.items("mutatingwebhookconfigurations,validatingwebhookconfigurations"),
        {name: attach.kubelet_config(cluster, name)[0] for name in nodes},
    )


def owner(cluster: Cluster) -> str:
    """Return who has installed Koordinator: its platform, Helm, we by manifests, ``unknown``, or "" for nobody."""
    if any(item["metadata"]["name"] in names.PLATFORM_NAMES for item in cluster.workloads):
        return PLATFORM
    managers = [item for item in cluster.workloads if item["metadata"]["name"] in (names.MANAGER, names.AGENT)]
    if not managers:
        return ""
    if any(release_of(item) for item in managers):
        return HELM
    return MANIFESTS if all(kubectl.is_ours(item) for item in managers) else "unknown"


def judge(cluster: Cluster, order: Order) -> Found:
    """Return who has installed it, what stands in the way of the order, and remarks."""
    has = owner(cluster)
    if has == PLATFORM:
        text = ", ".join(shown(item) for item in cluster.workloads if item["metadata"]["name"] in names.PLATFORM_NAMES)
        return Found(has, (), (f"{text}: the platform has its own Koordinator, which is left alone",))
    if order.removal:
        return Found(has, tuple(_method(has, cluster, order)), ())
    keys = () if has else koordinator_leftovers.keys_of(cluster.nodes)
    problems = [
        *_method(has, cluster, order),
        *_version(cluster),
        *_nodes(cluster, order),
        *_owners(cluster, order),
        *_namespaces(cluster, order),
        *_kubelets_root(cluster, order),
        *(text for kind, text in _effect(cluster, order) if kind == gates.FAIL),
    ]
    remarks = [*_remarks(cluster), *(text for kind, text in _effect(cluster, order) if kind == gates.WARN)]
    return Found(has, tuple(problems), tuple(remarks), keys)


def _method(has: str, cluster: Cluster, order: Order) -> Iterator[str]:
    if has == "unknown":
        managers = [item for item in cluster.workloads if item["metadata"]["name"] in (names.MANAGER, names.AGENT)]
        yield (
            f"{', '.join(shown(item) for item in managers)}: somebody else has installed Koordinator by hand; "
            "remove it, or let it be"
        )
    elif has and has != order.method:
        yield f"Koordinator is installed by {has}, not by {order.method}; uninstall it first, or take method {has}"


def _number(text: str) -> tuple[int, int] | None:
    found = re.match(r"v?(\d+)\.(\d+)", text)
    return (int(found.group(1)), int(found.group(2))) if found else None


def _version(cluster: Cluster) -> Iterator[str]:
    server = _number(cluster.version)
    if server is not None and server < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        yield f"the cluster has Kubernetes {cluster.version}; Koordinator needs {oldest} or newer, upgrade the cluster"


def _remarks(cluster: Cluster) -> Iterator[str]:
    server = _number(cluster.version)
    if server is not None and server > _NEWEST_TRIED:
        newest = ".".join(map(str, _NEWEST_TRIED))
        yield f"the cluster has Kubernetes {cluster.version}; Koordinator 1.8 was tried up to {newest}"


def _nodes(cluster: Cluster, order: Order) -> Iterator[str]:
    there = {item["metadata"]["name"]: item for item in cluster.nodes}
    for name in order.nodes:
        if name not in there:
            known = ", ".join(sorted(there)) or "none"
            yield f"node {name}: is not in the cluster, which has {known}; the agent's NODE_NAME must be such a name"
            continue
        conditions = {item["type"]: item for item in (there[name].get("status") or {}).get("conditions") or ()}
        ready = conditions.get("Ready", {})
        if ready.get("status") != "True":
            why = ready.get("message") or "it has never reported"
            yield f"node {name}: is not ready ({why}); look with: kubectl describe node {name}"


def _kubelets_root(cluster: Cluster, order: Order) -> Iterator[str]:
    roots = [f"/{name}" for name in pod_groups.ALL_PODS.values()]
    for name in order.nodes:
        root = order.cgroup_root or attach.pods_group(cluster.kubelets.get(name) or {})
        if root and root not in roots:
            yield (
                f"node {name}: kubelet has its pods in the control group {root}, and Koordinator's agent looks only in "
                f"{' and '.join(roots)}; set kubelet's cgroupRoot to /; look with: kubectl get --raw "
                f"/api/v1/nodes/{name}/proxy/configz"
            )


def _effect(cluster: Cluster, order: Order) -> Iterator[tuple[str, str]]:
    """Find what of the policy would do nothing on a node, by what the cluster says of that: suppress on two CPUs."""
    if not order.policy:
        return
    switched = gates.parse(order.features)
    for item in cluster.nodes:
        name = item["metadata"]["name"]
        labels = item["metadata"].get("labels") or {}
        kubelet = cluster.kubelets.get(name) or {}
        known = gates.Host(cpu_manager=kubelet.get("cpuManagerPolicy"), cgroup_driver=kubelet.get("cgroupDriver"))
        host = koordinator_config.completed(known, item)
        effects = (
            *gates.findings(order.policy, labels, switched, host),
            *koordinator_overrides.findings(order.policy, item),
        )
        for found in effects if name in order.nodes else ():
            yield found.kind, f"node {name}: policy.{found.text}"


def _owners(cluster: Cluster, order: Order) -> Iterator[str]:
    """Find what has a name of Koordinator's and another owner, at which an installation would stop in the middle."""
    named = (names.MUTATING, names.VALIDATING, *names.PRIORITY_CLASSES)
    foreign = [
        item
        for item in (*cluster.definitions, *cluster.priority_classes, *cluster.webhooks)
        if not order.installation.made(item)
    ]
    for owner_of, found in _by_owner(item for item in foreign if is_definition(item["metadata"]["name"])):
        found = [name for name in found if not order.leaves_out(name)]
        if found:
            values = ", ".join(f"crds.{name.partition('.')[0]}" for name in found)
            yield (
                f"definition {', '.join(found)}: there already, of {owner_of}; leave it out of the installation with "
                f"{values}: false among koordinator_values, or remove it; look with: kubectl get crd {found[0]} -o yaml"
            )
    for item in foreign:
        if item["metadata"]["name"] in named:
            yield (
                f"{shown(item)}: there already, of {whose(item)}; remove that installation first; look with: kubectl "
                f"get {item['kind'].lower()} {item['metadata']['name']} -o yaml"
            )


def _by_owner(items: Iterable[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """Return names of objects by their owner, so that thirteen definitions of one owner make one sentence."""
    found: dict[str, list[str]] = {}
    for item in items:
        found.setdefault(whose(item), []).append(item["metadata"]["name"])
    return sorted(found.items())


def _namespaces(cluster: Cluster, order: Order) -> Iterator[str]:
    for item in cluster.namespaces:
        name, labels = item["metadata"]["name"], item["metadata"].get("labels") or {}
        if name in order.workload_namespaces and _SKIPPED_LABEL in labels:
            yield f"namespace {name}: has label {_SKIPPED_LABEL}, so webhooks skip its pods; remove the label"
        if name in order.workload_namespaces and not kubectl.is_ours(item):
            yield (
                f"namespace {name}: exists and is not ours, and what is in it would not be left alone; choose another "
                "koordinator_workload_namespace"
            )
        if name != names.NAMESPACE:
            continue
        if (item.get("status") or {}).get("phase") == "Terminating":
            yield f"namespace {name}: is being deleted; wait until it is gone, or look what keeps it"
        elif order.method == HELM and release_of(item) != (order.release, order.release_namespace):
            yield (
                f"namespace {name}: exists without belonging to the release, which makes it itself, so Helm "
                f"would stop; delete it with: kubectl delete namespace {name}"
            )
        elif order.method == MANIFESTS and not kubectl.is_ours(item):
            yield f"namespace {name}: exists and is not ours; delete it with: kubectl delete namespace {name}"
    if order.method == HELM and order.release_namespace == names.NAMESPACE:
        yield (
            f"the release's namespace is {names.NAMESPACE}, which the chart makes itself, so Helm would stop; choose "
            "another one, such as default"
        )
