# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts of an inventory out of a cluster's nodes: groups by labels, variables from what a node says of itself. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

NODE_POD = "colocation.testbed.node_pod"
ADDRESS_TYPES = ("InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS")
_KEY = r"[A-Za-z0-9](?:[A-Za-z0-9_./-]*[A-Za-z0-9])?"
_VALUE = r"[A-Za-z0-9_.-]*"
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s+\(([^()]*)\)\Z")
_EQUAL = re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})\Z")
_EXISTS = re.compile(rf"(!?)\s*({_KEY})\Z")
# Commas within parentheses separate values, not requirements.
_REQUIREMENT = re.compile(r"(?:[^,(]|\([^)]*\))+")

Labels = Mapping[str, str]
Matcher = Callable[[Labels], bool]


class NodeInventoryError(Exception):
    """Nodes can't become hosts; the text says what is wrong, and what to write or to look at."""


@dataclass(frozen=True)
class Host:
    """A host: the node's name, the groups that it is in, its variables."""

    name: str
    groups: tuple[str, ...]
    variables: Mapping[str, Any] = field(default_factory=dict)


def selector(text: str, where: str) -> Matcher:
    """Return what tells whether labels meet a selector, in kubectl's notation: ``a=b,c!=d,e in (f,g),h,!i``.

    The empty selector meets no node: a group of everything is never meant. Raises NodeInventoryError.
    """
    rules = [_rule(part.strip(), where) for part in _REQUIREMENT.findall(text) if part.strip()]
    return lambda labels: bool(rules) and all(rule(labels) for rule in rules)


def _rule(text: str, where: str) -> Matcher:
    found = _SET.match(text)
    if found:
        key, negated = found.group(1), found.group(2) == "notin"
        values = {value.strip() for value in found.group(3).split(",")}
        return lambda labels: (labels.get(key) in values) != negated
    found = _EQUAL.match(text)
    if found:
        key, negated, value = found.group(1), found.group(2) == "!=", found.group(3)
        return lambda labels: (labels.get(key) == value) != negated
    found = _EXISTS.match(text)
    if found:
        key, negated = found.group(2), bool(found.group(1))
        return lambda labels: (key in labels) != negated
    raise NodeInventoryError(
        f"{where}: {text!r} is no label selector; write key=value, key!=value, key in (a,b), key or !key, with commas"
    )


def hosts(
    nodes: Sequence[Mapping[str, Any]],
    groups: Mapping[str, str],
    address_types: Sequence[str] = ("InternalIP", "ExternalIP", "Hostname"),
    configurations: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Host]:
    """Return the nodes that are in any group, as hosts, in the order of their names.

    :param groups: name of a group to the label selector of its nodes.
    :param address_types: what ``ansible_host`` is taken from, the first that a node has.
    :param configurations: kubelet's configuration by node, as it tells it itself.
    :raises NodeInventoryError: for wrong selectors and types, for groups without a node, and for nodes without address.
    """
    unknown = [name for name in address_types if name not in ADDRESS_TYPES]
    if unknown:
        raise NodeInventoryError(f"address_types: {unknown[0]!r} is not known; allowed: {', '.join(ADDRESS_TYPES)}")
    matchers = {name: selector(text, f"node_groups.{name}") for name, text in groups.items()}
    found = []
    for node in sorted(nodes, key=lambda item: str(item["metadata"]["name"])):
        labels = node["metadata"].get("labels") or {}
        member = tuple(name for name, matches in matchers.items() if matches(labels))
        if member:
            name = str(node["metadata"]["name"])
            own = (configurations or {}).get(name) or {}
            found.append(Host(name, member, _variables(node, address_types, own)))
    empty = [name for name in groups if not any(name in host.groups for host in found)]
    if empty:
        known = ", ".join(sorted(str(node["metadata"]["name"]) for node in nodes)) or "none"
        raise NodeInventoryError(
            f"node_groups.{empty[0]}: no node of {known} has labels {groups[empty[0]]!r}; label one: kubectl label "
            f"node NAME {groups[empty[0]]}"
        )
    return found


def through_pod(node: str, kubectl: str, kubeconfig: str, context: str) -> dict[str, str]:
    """Return the variables of a host that is reached through a pod; what is empty is left to their defaults."""
    place = {"kubernetes_kubeconfig": kubeconfig, "kubernetes_context": context}
    return {
        "ansible_connection": NODE_POD,
        "ansible_python_interpreter": "/usr/bin/python3",
        "kubernetes_kubectl": kubectl,
        "kubernetes_node_name": node,
        **{name: value for name, value in place.items() if value},
    }


def _variables(node: Mapping[str, Any], kinds: Sequence[str], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of a host; ``own`` is what its kubelet told of its configuration."""
    status, name = node.get("status") or {}, node["metadata"]["name"]
    info = status.get("nodeInfo") or {}
    addresses: dict[str, list[str]] = {}
    for item in status.get("addresses") or ():
        addresses.setdefault(item["type"], []).append(item["address"])
    chosen = next((addresses[kind][0] for kind in kinds if addresses.get(kind)), None)
    if chosen is None:
        raise NodeInventoryError(
            f"node {name}: has no address of type {', '.join(kinds)} (it has {', '.join(addresses) or 'none'}); "
            "name another type in address_types"
        )
    runtime, _separator, version = str(info.get("containerRuntimeVersion", "")).partition("://")
    ready = {item["type"]: item["status"] for item in status.get("conditions") or ()}.get("Ready")
    return {
        "ansible_host": chosen,
        "kubernetes_node": {
            "name": name,
            "addresses": addresses,
            "labels": dict(node["metadata"].get("labels") or {}),
            "ready": ready == "True",
            "schedulable": not (node.get("spec") or {}).get("unschedulable", False),
            "kubelet_version": info.get("kubeletVersion", ""),
            "runtime": {"name": runtime, "version": version},
            "kernel": info.get("kernelVersion", ""),
            "os": info.get("osImage", ""),
            "architecture": info.get("architecture", ""),
            "capacity": dict(status.get("capacity") or {}),
            "allocatable": dict(status.get("allocatable") or {}),
            "cgroup_driver": own.get("cgroupDriver", ""),
            "cgroup_root": own.get("cgroupRoot", ""),
            "cpu_manager_policy": own.get("cpuManagerPolicy", ""),
        },
    }
