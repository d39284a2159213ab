# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Koordinator leaves in a cluster when it is uninstalled, and how that is taken away.

Its webhooks, definitions and namespace go with the installation when that is complete; extended resources in the
status of nodes, labels and annotations of nodes, and what a broken uninstall left, do not. Everybody's Koordinator has
the same names, so whose an object is decides, never its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import koordinator_names as names
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import kubectl
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.koordinator_owner import (
    Installation,
    is_definition,
    whose,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import Kubectl, wait
from ansible_collections.colocation.testbed.plugins.module_utils.policy.koordinator_batch import EXTENDED

_WEBHOOKS = (
    ("mutatingwebhookconfiguration", names.MUTATING),
    ("validatingwebhookconfiguration", names.VALIDATING),
)


class LeftoversError(Exception):
    """Something of Koordinator is still there, or must not be touched; the text says what and what to do."""


@dataclass(frozen=True)
class NodePatch:
    """What is removed from a node: patches (RFC 6902) of the object and of its status."""

    name: str
    metadata: list[dict[str, Any]]
    status: list[dict[str, Any]]

    def texts(self) -> list[str]:
        """Return one sentence for each thing that is removed."""
        return [f"node {self.name}: {_words(item['path'])} removed" for item in (*self.metadata, *self.status)]


def _words(path: str) -> str:
    _empty, *parts = path.split("/")
    return f"{parts[-2].rstrip('s') if parts[-2] != 'capacity' else 'capacity'} {_unescaped(parts[-1])}"


def _unescaped(key: str) -> str:
    return key.replace("~1", "/").replace("~0", "~")


def is_of_koordinator(key: str) -> bool:
    """Tell whether a label or annotation belongs to Koordinator's domain."""
    prefix, slash, _name = key.partition("/")
    return bool(slash) and (prefix == names.DOMAIN or prefix.endswith(f".{names.DOMAIN}"))


def node_patch(node: Mapping[str, Any], keep: Sequence[str] = ()) -> NodePatch | None:
    """Return what must be removed from a node, None where nothing is left; keys in ``keep`` stay."""
    metadata, status = node["metadata"], node.get("status") or {}
    keys = [
        {"op": "remove", "path": f"/metadata/{part}/{_escaped(key)}"}
        for part in ("labels", "annotations")
        for key in sorted(metadata.get(part) or {})
        if is_of_koordinator(key) and key not in keep
    ]
    figures = [
        {"op": "remove", "path": f"/status/{part}/{_escaped(name)}"}
        for part in ("capacity", "allocatable")
        for name in EXTENDED
        if name in (status.get(part) or {})
    ]
    return NodePatch(metadata["name"], keys, figures) if keys or figures else None


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def running(cluster: Kubectl) -> list[str]:
    """Return the names of Koordinator's workloads and pods that are still in the cluster, the platform's own too."""
    wanted = {names.MANAGER, names.AGENT, *names.PLATFORM_NAMES}
    found = [item for item in cluster.items("deployments,daemonsets") if item["metadata"]["name"] in wanted]
    # A pod outlives its workload by its time of grace, and writes until then.
    found += [item for item in cluster.items("pods", names.NAMESPACE) if _app(item) in wanted]
    return [kubectl.shown(item) for item in found]


def _app(pod: Mapping[str, Any]) -> str:
    return str((pod["metadata"].get("labels") or {}).get("koord-app", ""))


def platform(cluster: Kubectl) -> list[str]:
    """Return the workloads of a Koordinator that the platform installed itself (ACK's add-on), wherever they are."""
    found = cluster.items("deployments,daemonsets")
    return [kubectl.shown(item) for item in found if item["metadata"]["name"] in names.PLATFORM_NAMES]


def nodes(cluster: Kubectl, keep: Sequence[str] = ()) -> list[NodePatch]:
    """Return what must be removed from the cluster's nodes. Raises KubectlError."""
    found = (node_patch(node, keep) for node in cluster.items("nodes"))
    return [item for item in found if item is not None]


def keys_of(found: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the labels and annotations of Koordinator's domain that nodes have."""
    parts = [item["metadata"].get(part) or {} for item in found for part in ("labels", "annotations")]
    return tuple(sorted({key for part in parts for key in part if is_of_koordinator(key)}))


@dataclass(frozen=True)
class Objects:
    """What is there under Koordinator's names: ours, to be removed, and a sentence for each thing that is another's."""

    ours: tuple[Mapping[str, Any], ...]
    left: tuple[str, ...]


def objects(cluster: Kubectl, namespace: str, installation: Installation) -> Objects:
    """Return webhooks, priority classes, definitions and the namespace, by whether they are this installation's."""
    found = [cluster.get(kind, name) for kind, name in _WEBHOOKS]
    found += [item for item in cluster.items("priorityclasses") if item["metadata"]["name"] in names.PRIORITY_CLASSES]
    found += [item for item in cluster.items("customresourcedefinitions") if is_definition(item["metadata"]["name"])]
    found.append(cluster.get("namespace", namespace))
    there = [item for item in found if item is not None]
    left = [f"{kubectl.shown(item)}: left, as it is of {whose(item)}" for item in there if not installation.owns(item)]
    return Objects(tuple(item for item in there if installation.owns(item)), tuple(left))


def clean_nodes(cluster: Kubectl, patches: Sequence[NodePatch], keep: Sequence[str], deadline_s: float) -> None:
    """Patch nodes and see that nothing comes back. Raises LeftoversError when it does, and KubectlError."""
    for item in patches:
        if item.metadata:
            cluster.patch("node", item.name, item.metadata)
        if item.status:
            cluster.patch("node", item.name, item.status, subresource="status")
    left: list[NodePatch] = []

    def is_clean() -> bool:
        left[:] = nodes(cluster, keep)
        return not left

    if patches and not wait(is_clean, deadline_s):
        text = "; ".join(left[0].texts())
        raise LeftoversError(f"{text}: came back; look who writes it with: kubectl get node {left[0].name} -o yaml")
