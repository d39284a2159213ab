# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the workloads ran: as processes in groups of our own, or as pods of which cluster, and what that means."""

from __future__ import annotations

from ansible_collections.colocation.testbed.plugins.module_utils.measure import records
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.markup import (
    Child,
    Html,
    definitions,
    join,
    tag,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Json, Outcome

PROVIDERS = {
    "processes": "made by the collection out of processes",
    "kubeadm": "made by the collection with kubeadm",
    "existing": "was there before",
}
METHODS = {"manifests": "from its own manifests", "helm": "by its Helm chart"}
SHARED = (
    "Load generator and control plane ran on the tested machine: what they used of it the workloads did not have, and"
    " the latencies contain no network between machines. So modes of this run compare with each other; as absolute"
    " figures, latencies and CPU use are not those of a cluster whose load comes from elsewhere."
)
APART = (
    "Load generator and control plane ran on other machines: on the tested one there were the workloads and what every"
    " node has (kubelet, container runtime, agents), and the latencies contain the network between the machines."
)


def render(view: Outcome) -> Html:
    """Make the part that says what the workloads ran on."""
    if not records.on_pods(view.manifest):
        return definitions({"Substrate": "process: host processes in control groups of our own"})
    cluster: Json = view.manifest.get("cluster") or {}
    pairs: dict[str, Child] = {
        "Substrate": "pod: pods of a Kubernetes node",
        "Kubernetes": str(cluster.get("server_version") or ""),
        "Container runtime": str(cluster.get("runtime") or ""),
        "Node": str(cluster.get("node_name") or ""),
        "Control groups made by": str(cluster.get("cgroup_driver") or ""),
        "Cluster": _known(PROVIDERS, cluster.get("provider")),
        "Koordinator": _koordinator(cluster.get("koordinator")),
        "Load generator and control plane": "on the tested machine" if cluster.get("shares_machine") else "elsewhere",
    }
    meaning = tag("p", SHARED if cluster.get("shares_machine") else APART, class_="meaning")
    return join(meaning, tag("div", definitions(pairs), class_="card facts-card"))


def _known(names: Json, word: object) -> str:
    return str(names.get(str(word), word or ""))


def _koordinator(found: object) -> str:
    if not isinstance(found, dict):
        return "not installed"
    method = found.get("method")
    return f"{found.get('version') or 'of an unknown version'}, installed {_known(METHODS, method) or 'somehow'}"
