# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at a cluster that somebody else runs: may we do what we need, and what are its versions and nodes like.

Nothing is changed: rights are asked for by SelfSubjectAccessReview, which the API server answers and does not keep.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import kubectl
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import Kubectl, KubectlError

_RUNTIME = re.compile(r"([a-z0-9-]+)://(.+)\Z")
_CGROUP_METRIC = re.compile(r"^kubelet_cgroup_version\s+([12])", re.MULTILINE)
# containerd switches NRI on by default from this version on.
_NRI_SINCE = (2, 0)
_NAMES_SHOWN = 8
_ASK_TIMEOUT_S = 20.0


class AttachError(Exception):
    """The cluster cannot be used as it is; one sentence for each reason."""


@dataclass(frozen=True)
class Right:
    """Something that must be allowed: verb and resource (`pods`, `pods/log`), API group, namespace (empty: all)."""

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""

    def review(self) -> dict[str, Any]:
        """Return the question to the API server."""
        resource, _slash, subresource = self.resource.partition("/")
        attributes = {"verb": self.verb, "resource": resource, "group": self.group, "namespace": self.namespace}
        if subresource:
            attributes["subresource"] = subresource
        return {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }

    def in_words(self) -> str:
        """Return the right as a message shows it."""
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {resource} in {f'namespace {self.namespace}' if self.namespace else 'all namespaces'}"


@dataclass(frozen=True)
class Node:
    """A node of the cluster as its object and its kubelet show it; what is not known is an empty text or None."""

    name: str
    ready: bool
    kubelet_version: str
    runtime_name: str
    runtime_version: str
    kernel: str
    architecture: str
    addresses: Mapping[str, str]
    labels: Mapping[str, str]
    cgroup_driver: str = ""
    cgroup_root: str = ""
    cgroup_version: int | None = None
    runtime_socket: str = ""

    @property
    def nri(self) -> bool:
        """Tell whether the runtime has NRI on by default."""
        numbers = tuple(int(word) for word in re.findall(r"\d+", self.runtime_version)[:2])
        return self.runtime_name == "containerd" and numbers >= _NRI_SINCE


def prefix(program: str, kubeconfig: str, context: str) -> tuple[str, ...]:
    """Return what reaches the cluster. Raises AttachError where there is no such kubeconfig.

    ``kubeconfig`` may be several files, as the variable KUBECONFIG has them: kubectl puts them together, and passes
    over those that are not there. Its option takes one only.
    """
    paths = [os.path.expanduser(path) for path in kubeconfig.split(os.pathsep) if path]
    if not any(os.path.isfile(path) for path in paths):
        raise AttachError(f"kubeconfig {os.pathsep.join(paths)}: is not there; correct kubernetes_kubeconfig")
    chosen = ("--context", context) if context else ()
    if len(paths) > 1:
        return ("env", f"KUBECONFIG={os.pathsep.join(paths)}", program, *chosen)
    return (program, "--kubeconfig", paths[0], *chosen)


def _place(cluster: Kubectl) -> str:
    """Return the kubeconfig of what ``prefix`` returned."""
    return cluster.argv[2] if cluster.argv[1] == "--kubeconfig" else cluster.argv[1].partition("=")[2]


def current_context(cluster: Kubectl, wanted: str) -> str:
    """Return the context that is in use. Raises AttachError for one that the kubeconfig lacks, KubectlError."""
    bare = Kubectl(cluster.argv[:3], cluster.run)
    names = bare.call("config", "get-contexts", "-o", "name").stdout.split()
    if wanted and wanted not in names:
        raise AttachError(
            f"context {wanted}: is not in {_place(cluster)}, which has {', '.join(names) or 'none'}; correct "
            "kubernetes_context"
        )
    if wanted:
        return wanted
    text = bare.call("config", "view", "-o", "jsonpath={.current-context}").stdout.strip()
    if not text:
        raise AttachError(f"{_place(cluster)}: has no current context; set kubernetes_context")
    return text


def server_version(cluster: Kubectl) -> str:
    """Return the API server's version. Raises KubectlError where it does not answer or does not know us."""
    (answer,) = kubectl.parse(cluster.call("version", "-o", "json", timeout_s=_ASK_TIMEOUT_S).stdout)
    version = (answer.get("serverVersion") or {}).get("gitVersion", "")
    if not version:
        raise AttachError("the API server gave no version; look with: kubectl version")
    return str(version)


def missing_rights(cluster: Kubectl, rights: Sequence[Right]) -> list[str]:
    """Return a sentence for each right that is missing. Raises KubectlError, AttachError."""
    if not rights:
        return []
    question = kubectl.listing(right.review() for right in rights)
    answers = kubectl.parse(cluster.call("create", "-f", "-", "-o", "json", input_text=question).stdout)
    if len(answers) != len(rights):
        raise AttachError(
            f"the API server gave {len(answers)} answers about {len(rights)} rights; look with: kubectl "
            "auth can-i --list"
        )
    return [
        f"right {right.in_words()}: is missing; let the cluster's administrator grant it to these credentials"
        for right, answer in zip(rights, answers)
        if not (answer.get("status") or {}).get("allowed")
    ]


def node_of(raw: Mapping[str, Any]) -> Node:
    """Return a node by its object."""
    info, status = raw["status"]["nodeInfo"], raw["status"]
    found = _RUNTIME.match(info["containerRuntimeVersion"])
    conditions = {item["type"]: item["status"] for item in status.get("conditions", [])}
    return Node(
        name=raw["metadata"]["name"],
        ready=conditions.get("Ready") == "True",
        kubelet_version=info["kubeletVersion"],
        runtime_name=found.group(1) if found else info["containerRuntimeVersion"],
        runtime_version=found.group(2) if found else "",
        kernel=info["kernelVersion"],
        architecture=info["architecture"],
        # The first of a kind is the primary one; a node with two families has two.
        addresses={item["type"]: item["address"] for item in reversed(status.get("addresses") or [])},
        labels=dict(raw["metadata"].get("labels") or {}),
    )


def nodes(cluster: Kubectl) -> dict[str, Node]:
    """Return all nodes of the cluster by name. Raises KubectlError."""
    found = [node_of(item) for item in cluster.items("nodes")]
    return {node.name: node for node in found}


def node_problems(found: Mapping[str, Node], wanted: Sequence[str]) -> list[str]:
    """Return a sentence for each wanted node that the cluster lacks or that is not ready."""
    problems = []
    for name in wanted:
        if name not in found:
            names = sorted(found)
            shown = ", ".join(names[:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")
            problems.append(
                f"node {name}: is not in the cluster, which has {shown or 'no nodes'}; set kubernetes_node_name"
            )
        elif not found[name].ready:
            problems.append(f"node {name}: is not Ready; look with kubectl describe node {name}")
    return problems


def kubelet_config(cluster: Kubectl, name: str) -> tuple[dict[str, Any], str]:
    """Return what a node's kubelet is configured to, and a sentence where it may not be asked (else empty)."""
    try:
        found = json.loads(cluster.raw(f"/api/v1/nodes/{name}/proxy/configz"))["kubeletconfig"]
    except (KubectlError, ValueError, KeyError, TypeError) as exc:
        return {}, f"{exc}; so the cgroup driver of {name} is not known"
    return dict(found), ""


def pods_group(config: Mapping[str, Any]) -> str:
    """Return kubelet's control group of all pods by its configuration, "" where that isn't known."""
    if not config:
        return ""
    driver = str(config.get("cgroupDriver", ""))
    root = str(config.get("cgroupRoot", "/")).rstrip("/")
    return f"{root}/kubepods{'.slice' if driver == 'systemd' else ''}"


def with_kubelet(cluster: Kubectl, node: Node) -> tuple[Node, str]:
    """Return a node completed by what its kubelet says, and a sentence where it may not be asked (else empty)."""
    config, note = kubelet_config(cluster, node.name)
    if note:
        return node, note
    try:
        version = _CGROUP_METRIC.search(cluster.raw(f"/api/v1/nodes/{node.name}/proxy/metrics"))
    except KubectlError as exc:
        return node, f"{exc}; so the cgroup driver of {node.name} is not known"
    known = {
        "cgroup_driver": str(config.get("cgroupDriver", "")),
        "cgroup_root": pods_group(config),
        "cgroup_version": int(version.group(1)) if version else None,
        "runtime_socket": str(config.get("containerRuntimeEndpoint", "")).replace("unix://", "", 1),
    }
    return Node(**{**vars(node), **known}), ""
