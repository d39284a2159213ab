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

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.api import Api, ApiError

_RUNTIME = re.compile(r"([a-z0-9-]+)://(.+)\Z")
_CGROUP_METRIC = re.compile(r"^kubelet_cgroup_version\s+([12])", re.MULTILINE)
# containerd switches NRI on by default from this version on.
_NRI_SINCE = (2, 0)
_NAMES_SHOWN = 8


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


def prefix(kubectl: str, kubeconfig: str, context: str) -> tuple[str, ...]:
    """Return what reaches the cluster. Raises AttachError where there is no such kubeconfig."""
    path = os.path.expanduser(kubeconfig)
    if not os.path.isfile(path):
        raise AttachError(f"kubeconfig {path}: is not there; correct kubernetes_kubeconfig")
    return (kubectl, "--kubeconfig", path, *(("--context", context) if context else ()))


def current_context(api: Api, wanted: str) -> str:
    """Return the context that is in use. Raises AttachError for one that the kubeconfig lacks, ApiError."""
    bare = Api(api.kubectl[:3], api.timeout_s, api.run)
    names = bare.call(["config", "get-contexts", "-o", "name"], "read the kubeconfig").split()
    if wanted and wanted not in names:
        raise AttachError(
            f"context {wanted}: is not in {api.kubectl[2]}, which has {', '.join(names) or 'none'}; correct "
            "kubernetes_context"
        )
    if wanted:
        return wanted
    text = bare.call(["config", "view", "-o", "jsonpath={.current-context}"], "read the kubeconfig").strip()
    if not text:
        raise AttachError(f"{api.kubectl[2]}: has no current context; set kubernetes_context")
    return text


def server_version(api: Api) -> str:
    """Return the API server's version. Raises ApiError where it does not answer or does not know us."""
    answer = api.read(["version"], "ask the API server for its version")
    version = (answer.get("serverVersion") or {}).get("gitVersion", "")
    if not version:
        raise ApiError("ask the API server for its version: it gave none; run kubectl version by hand")
    return str(version)


def missing_rights(api: Api, rights: Sequence[Right]) -> list[str]:
    """Return a sentence for each right that is missing. Raises ApiError."""
    if not rights:
        return []
    question = json.dumps({"apiVersion": "v1", "kind": "List", "items": [right.review() for right in rights]})
    text = api.call(["create", "-f", "-", "-o", "json"], "ask which rights we have", question)
    answers = _documents(text)
    if len(answers) != len(rights):
        raise ApiError(f"ask which rights we have: {len(answers)} answers to {len(rights)} questions; run it by hand")
    return [
        f"right {right.in_words()}: is missing; let the cluster's administrator grant it to these credentials"
        for right, answer in zip(rights, answers)
        if not (answer.get("status") or {}).get("allowed")
    ]


def _documents(text: str) -> list[Mapping[str, Any]]:
    """Return the objects in kubectl's output: a list, or JSON texts one after the other."""
    decoder, found, place = json.JSONDecoder(), [], 0
    while text[place:].strip():
        place += len(text[place:]) - len(text[place:].lstrip())
        value, place = decoder.raw_decode(text, place)
        found += value.get("items", [value])
    return found


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
        addresses={item["type"]: item["address"] for item in status.get("addresses", [])},
        labels=dict(raw["metadata"].get("labels") or {}),
    )


def nodes(api: Api) -> dict[str, Node]:
    """Return all nodes of the cluster by name. Raises ApiError."""
    found = [node_of(item) for item in api.read(["get", "nodes"], "list the nodes")["items"]]
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


def with_kubelet(api: Api, node: Node) -> tuple[Node, str]:
    """Return a node completed by what its kubelet says, and a sentence where it may not be asked (else empty)."""
    base = f"/api/v1/nodes/{node.name}/proxy"
    try:
        config = json.loads(api.raw(f"{base}/configz", f"ask the kubelet of {node.name}"))["kubeletconfig"]
        metrics = api.raw(f"{base}/metrics", f"ask the kubelet of {node.name}")
    except (ApiError, ValueError, KeyError) as exc:
        return node, f"{exc}; so the cgroup driver of {node.name} is not known"
    version = _CGROUP_METRIC.search(metrics)
    driver = str(config.get("cgroupDriver", ""))
    root = str(config.get("cgroupRoot", "/")).rstrip("/")
    return (
        Node(
            **{
                **vars(node),
                "cgroup_driver": driver,
                "cgroup_root": f"{root}/kubepods{'.slice' if driver == 'systemd' else ''}",
                "cgroup_version": int(version.group(1)) if version else None,
                "runtime_socket": str(config.get("containerRuntimeEndpoint", "")).replace("unix://", "", 1),
            }
        ),
        "",
    )
