# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands in the way of installing Koordinator into a cluster: all of it, in sentences, before anything changes.

Pure: the cluster's objects in, findings out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import koordinator_names as names
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import kubectl
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import Kubectl, shown

MANIFESTS, HELM, PLATFORM = "manifests", "helm", "platform"
_RELEASE, _RELEASE_NAMESPACE = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
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


@dataclass(frozen=True)
class Order:
    """What is to be installed or removed: how, under which Helm release, for which nodes, pods in which namespaces."""

    method: str
    release: str
    release_namespace: str
    nodes: Sequence[str]
    workload_namespaces: Sequence[str] = ()
    removal: bool = False


@dataclass(frozen=True)
class Found:
    """Who has installed Koordinator already ("" for nobody), what stands in the way, and remarks."""

    owner: str
    problems: tuple[str, ...]
    remarks: tuple[str, ...]


def read(cluster: Kubectl) -> Cluster:
    """Return what the cluster has. Raises KubectlError."""
    found = cluster.call("version", "-o", "json").stdout
    server = (kubectl.parse(found)[0].get("serverVersion") or {}).get("gitVersion", "")
    return Cluster(
        server,
        cluster.items("nodes"),
        cluster.items("deployments,daemonsets"),
        cluster.items("customresourcedefinitions"),
        cluster.items("namespaces"),
        cluster.items("priorityclasses"),
    )


def owner(cluster: Cluster) -> str:
    """Return who has installed Koordinator: its platform, Helm, we by manifests, ``unknown``, or "" for nobody."""
    if any(item["metadata"]["name"] in names.PLATFORM_NAMES for item in cluster.workloads):
        return PLATFORM
    managers = [item for item in cluster.workloads if item["metadata"]["name"] in (names.MANAGER, names.AGENT)]
    if not managers:
        return ""
    if any(_release(item) for item in managers):
        return HELM
    return MANIFESTS if all(kubectl.is_ours(item) for item in managers) else "unknown"


def _release(item: Mapping[str, Any]) -> tuple[str, str] | None:
    notes = item["metadata"].get("annotations") or {}
    return (notes[_RELEASE], notes.get(_RELEASE_NAMESPACE, "")) if _RELEASE in notes else None


def judge(cluster: Cluster, order: Order) -> Found:
    """Return who has installed it, what stands in the way of the order, and remarks."""
    has = owner(cluster)
    if has == PLATFORM:
        text = ", ".join(shown(item) for item in cluster.workloads if item["metadata"]["name"] in names.PLATFORM_NAMES)
        return Found(has, (), (f"{text}: the platform has its own Koordinator, which is left alone",))
    if order.removal:
        return Found(has, tuple(_method(has, cluster, order)), ())
    problems = [
        *_method(has, cluster, order),
        *_version(cluster),
        *_nodes(cluster, order),
        *_owners(cluster, order),
        *_namespaces(cluster, order),
    ]
    return Found(has, tuple(problems), tuple(_remarks(cluster)))


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


def _is_koordinators(name: str) -> bool:
    group = name.partition(".")[2]
    return group in names.CRD_GROUPS or name in names.SHARED_CRDS


def _owners(cluster: Cluster, order: Order) -> Iterator[str]:
    """Find definitions and priority classes of another owner, which would stop Helm in the middle."""
    mine = (order.release, order.release_namespace) if order.method == HELM else None
    for item in cluster.definitions:
        name = item["metadata"]["name"]
        expected = kubectl.is_ours(item) if mine is None else _release(item) == mine
        if expected or not _is_koordinators(name):
            continue
        yield (
            f"definition {name}: is there already and belongs to {_whose(item)}; leave it out of the installation with "
            f"crds.{name.partition('.')[0]}: false among the values, or remove it"
        )
    for item in cluster.priority_classes:
        name = item["metadata"]["name"]
        expected = kubectl.is_ours(item) if mine is None else _release(item) == mine
        if name in names.PRIORITY_CLASSES and not expected:
            yield f"priority class {name}: is there already and belongs to {_whose(item)}; remove it"


def _whose(item: Mapping[str, Any]) -> str:
    release = _release(item)
    if release:
        return f"Helm release {release[1]}/{release[0]}"
    return "an installation by manifests" if kubectl.is_ours(item) else "somebody else"


def _namespaces(cluster: Cluster, order: Order) -> Iterator[str]:
    for item in cluster.namespaces:
        name, labels = item["metadata"]["name"], item["metadata"].get("labels") or {}
        if name in order.workload_namespaces and _SKIPPED_LABEL in labels:
            yield f"namespace {name}: has label {_SKIPPED_LABEL}, so webhooks skip its pods; remove the label"
        if name != names.NAMESPACE:
            continue
        if (item.get("status") or {}).get("phase") == "Terminating":
            yield f"namespace {name}: is being deleted; wait until it is gone, or look what keeps it"
        elif order.method == HELM and _release(item) != (order.release, order.release_namespace):
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


def left_out(problems: Sequence[str], crds: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the problems without those about definitions that the values leave out of the installation."""
    unwanted = [name for name, is_on in crds.items() if is_on is False]
    if "managed" in unwanted:
        return tuple(text for text in problems if not text.startswith("definition "))
    prefixes = tuple(f"definition {name}." for name in unwanted)
    return tuple(text for text in problems if not prefixes or not text.startswith(prefixes))
