# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what the ladder looks at: the cluster's objects, the last words of crashed agents, a batch pod that is tried."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import koordinator_names as names
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import pod_reasons
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.koordinator_ladder import (
    Readings,
    Step,
    Wanted,
    climb,
    failing,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import (
    Kubectl,
    KubectlError,
    wait,
)

_LOG_LINES = 200


@dataclass(frozen=True)
class Look:
    """What is looked at: the node, Koordinator's namespace, the batch pod that is tried (None: none is)."""

    node_name: str
    namespace: str = names.NAMESPACE
    probe: Mapping[str, Any] | None = None


def read(cluster: Kubectl, look: Look) -> Readings:
    """Return everything that the ladder looks at on the API's side. Raises KubectlError."""
    pods = cluster.items("pods", look.namespace)
    probe, refusal = (None, "") if look.probe is None else cluster.try_create(_unnamed(look.probe))
    hooks = [cluster.get("mutatingwebhookconfiguration", names.MUTATING)]
    hooks.append(cluster.get("validatingwebhookconfiguration", names.VALIDATING))
    found = Readings(
        node=cluster.get("node", look.node_name),
        node_slo=cluster.get("nodeslo.slo.koordinator.sh", look.node_name),
        node_metric=cluster.get("nodemetric.slo.koordinator.sh", look.node_name),
        config_map=cluster.get("configmap", names.CONFIG_MAP, look.namespace),
        workloads=cluster.items("deployments,daemonsets", look.namespace),
        pods=pods,
        logs={pod["metadata"]["name"]: log(cluster, pod) for pod in pods if pod_reasons.crashes(pod)},
        priority_classes=[item["metadata"]["name"] for item in cluster.items("priorityclasses")],
        webhooks=[item for item in hooks if item is not None],
        probe=probe,
        refusal=refusal,
        events=_events(cluster, look.namespace),
    )
    # Last, so that the age of what was read is never negative.
    return replace(found, now_s=time.time())


def _unnamed(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pod under a name that the server chooses, so that one of the same name may exist."""
    metadata = {key: value for key, value in pod["metadata"].items() if key != "name"}
    return {**pod, "metadata": {**metadata, "generateName": f"{pod['metadata'].get('name', 'probe')}-"}}


def _events(cluster: Kubectl, namespace: str) -> list[dict[str, Any]]:
    """Return the events of the ConfigMap, oldest first."""
    found = [
        item
        for item in cluster.items("events", namespace)
        if (item.get("involvedObject") or {}).get("kind") == "ConfigMap"
        and item["involvedObject"].get("name") == names.CONFIG_MAP
    ]
    return sorted(found, key=lambda item: str(item.get("lastTimestamp") or item.get("eventTime") or ""))


def log(cluster: Kubectl, pod: Mapping[str, Any]) -> str:
    """Return the end of what a pod's crashed container logged, "" where nothing can be had."""
    metadata = pod["metadata"]
    words = ("logs", metadata["name"], "--namespace", metadata["namespace"], f"--tail={_LOG_LINES}")
    for more in (("--previous",), ()):
        try:
            return cluster.call(*words, *more).stdout
        except KubectlError:
            continue
    return ""


def until_it_works(
    cluster: Kubectl,
    look: Look,
    wanted: Wanted,
    deadline_s: float,
    root: Callable[[], Any] = lambda: None,
) -> tuple[list[Step], Readings]:
    """Climb until every rung holds or the deadline is over; return the rungs as they were then, and what was read.

    ``root`` reads the node's root of best effort, None where this isn't the node. Raises KubectlError.
    """
    last: list[tuple[list[Step], Readings]] = []

    def holds() -> bool:
        readings = replace(read(cluster, look), root=root())
        last[:] = [(climb(readings, wanted), readings)]
        return failing(last[0][0]) is None

    wait(holds, deadline_s)
    return last[0]
