# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is who in a cluster that role kubernetes makes, where its files are, and how each host gets at them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes.cluster_nodes import cluster_nodes

PROCESSES, KUBEADM = "processes", "kubeadm"
_NETNS_CONNECTION = "colocation.testbed.netns"
_ETC = "/etc/kubernetes"


class LayoutError(Exception):
    """The hosts can't make a cluster; the text says which host, what it lacks and what to do."""


@dataclass(frozen=True)
class Place:
    """What the layout depends on beside the hosts: who asks, who leads, and settings of role kubernetes."""

    host: str
    control_plane_host: str
    provider: str
    pod_subnet: str
    cgroup_parent: str
    registry: str
    registry_images: Sequence[str]
    cache_dir: str
    urls: Sequence[Mapping[str, Any]]

    @property
    def leads(self) -> bool:
        """Tell whether this host carries the control plane."""
        return self.host == self.control_plane_host


@dataclass(frozen=True)
class Host:
    """A host of the cluster: its state directory, its network namespace ("" where it has none of its own)."""

    state_dir: str
    network_namespace: str
    bin_dir: str

    @property
    def directory(self) -> str:
        """Return where the role keeps everything of the node."""
        return f"{self.state_dir}/kubernetes"

    @property
    def namespace_file(self) -> str:
        """Return the file that keeps the mount namespace."""
        return f"{self.directory}/ns/mnt"

    def enter(self) -> list[str]:
        """Return what comes before a program that runs inside, also when it is started outside of the network."""
        network = [f"--net={self.network_namespace}"] if self.network_namespace else []
        return ["nsenter", *network, f"--mount={self.namespace_file}"]


def host_of(name: str, variables: Mapping[str, Mapping[str, Any]]) -> Host:
    """Return a host by its variables. Raises LayoutError for one that role node has not prepared."""
    found = variables.get(name) or {}
    prepared = found.get("node_deployed")
    if not prepared:
        raise LayoutError(
            f"{name}: is not prepared, the fact node_deployed is missing; let role colocation.testbed.node run on it "
            "before, in the same command, and don't leave it out with --limit"
        )
    in_lab = found.get("ansible_connection") == _NETNS_CONNECTION
    network = f"/run/netns/{found.get('ansible_netns')}" if in_lab else ""
    return Host(str(prepared["state_dir"]), network, str(found.get("__kubernetes_bin_dir") or ""))


def _parts(place: Place) -> list[str]:
    """Return the names of what is needed, by which data of the role is chosen."""
    filled = ["registry", *place.registry_images, f"{place.provider}_registry"] if place.registry else []
    return ["node", place.provider, *filled]


def _fetched_dir(place: Place) -> str:
    """Return where programs are that were fetched: a changed list is another directory."""
    text = json.dumps([dict(item) for item in place.urls], sort_keys=True)
    name = f"url-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return os.path.join(os.path.expanduser(place.cache_dir), name, "bin")


def _credentials(place: Place, own: Host) -> tuple[str, str]:
    """Return the directory of what a node needs of the control plane, and the authority that clients are checked by."""
    made = f"{own.state_dir}/control-plane"
    if not place.leads:
        return f"{own.directory}/node", f"{own.directory}/node/ca.crt"
    if place.provider == KUBEADM:
        return f"{own.directory}/node", f"{_ETC}/pki/ca.crt"
    return made, f"{made}/pki/ca.crt"


def _access(place: Place, lead: Host) -> dict[str, Any]:
    """Return how the API server is reached, from outside and inside of the namespaces of the leading host."""
    made = f"{lead.state_dir}/control-plane/admin.conf"
    inside, outside = (
        (f"{_ETC}/admin.conf", f"{lead.directory}/root{_ETC}/admin.conf") if place.provider == KUBEADM else (made, made)
    )
    argv = [*lead.enter(), f"{lead.bin_dir}/kubectl", "--cache-dir", f"{lead.directory}/kubectl"]
    return {"enter": lead.enter(), "kubectl": [*argv, "--kubeconfig", inside], "kubeconfig": outside}


def layout(hosts: Sequence[str], variables: Mapping[str, Mapping[str, Any]], place: Place) -> dict[str, Any]:
    """Return the cluster as the role's tasks and templates read it.

    Raises LayoutError, and ClusterNodesError for hosts that make no cluster.
    """
    members = cluster_nodes(hosts, variables, place.pod_subnet)
    if place.host not in hosts or place.control_plane_host not in hosts:
        raise LayoutError(
            f"kubernetes_nodes: {', '.join(hosts)} must have {place.host} and {place.control_plane_host} among them; "
            "correct it, or kubernetes_control_plane_host"
        )
    own, lead = host_of(place.host, variables), host_of(place.control_plane_host, variables)
    by_host = {item["host"]: item for item in members}
    others = [item for item in members if item["host"] != place.host]
    credentials, client_ca = _credentials(place, own)
    user = by_host[place.host]["user"]
    signing = ["kubeconfig", "user", "--client-name", user["client_name"], "--org", "system:nodes"]
    access = _access(place, lead)
    kubeadm = [*access["enter"], f"{lead.bin_dir}/kubeadm"]
    waiting = [*access["kubectl"], "wait", "--timeout=120s", f"node/{by_host[place.host]['name']}"]
    return {
        **access,
        "waits": [[*waiting, "--for=create"], [*waiting, "--for=condition=Ready"]],
        "own": by_host[place.host],
        "others": others,
        "leads": place.leads,
        "parts": _parts(place),
        "directory": own.directory,
        "control_plane_directory": f"{own.state_dir}/control-plane",
        "namespace_file": own.namespace_file,
        "network_namespace": own.network_namespace,
        "lead_state_dir": lead.state_dir,
        "credentials": credentials,
        "client_ca": client_ca,
        "cgroup_root": f"{place.cgroup_parent}/kubepods".lstrip("/"),
        "prefix": ["nsenter", f"--mount={own.namespace_file}"],
        "fetched_dir": _fetched_dir(place),
        "kubeadm": kubeadm,
        "sign": [*kubeadm, *signing, "--config", f"{lead.directory}/kubeadm/config.yaml"],
        "users": [{"name": "kube-proxy", "client_name": "system:kube-proxy"}, *(item["user"] for item in others)],
    }


def chosen(data: Mapping[str, Sequence[Any]], parts: Sequence[str]) -> list[Any]:
    """Return what data has for some parts, in their order and each thing once; a part without any has none."""
    found: list[Any] = []
    for part in parts:
        found += [item for item in data.get(part) or () if item not in found]
    return found
