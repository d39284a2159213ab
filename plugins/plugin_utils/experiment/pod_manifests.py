# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pods of the experiment as manifests: pure functions from what is deployed and what a mode says.

The batch workload is an ordinary pod; or one that Koordinator's webhook makes best effort, as its label asks;
or, for engine static, a pod without requests, which Kubernetes itself puts below the root of best effort.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import (
        Cluster,
        PodTemplate,
        Testbed,
    )

SERVICE, BATCH = "latency-service", "batch-workload"
WORKLOAD_LABEL = "colocation.testbed/workload"
ORDINARY, INJECTED, BARE = "ordinary", "injected", "bare"
_LS, _BE = "LS", "BE"
_BATCH_CPU, _BATCH_MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
_GRACE_S = 2
#: The shell removes what the window before left before the program is there, so that no sampler takes it for new.
_FRESH = 'rm -f "$0" && exec "$@"'


def kind(engine: str) -> str:
    """Return what an engine makes of the batch workload's pod."""
    return {"none": ORDINARY, "koordinator": INJECTED}.get(engine, BARE)


def service(testbed: Testbed, cluster: Cluster, template: PodTemplate) -> dict[str, Any]:
    """Return the service's pod: it asks for its requests and has no limits."""
    container = {
        "name": "service",
        "image": template.image,
        "command": list(testbed.service.process["argv"]),
        "resources": {"requests": dict(testbed.service.requests)},
        # Ready is when it answers; from then on nobody asks again, so that nothing disturbs a window.
        "startupProbe": {
            "httpGet": {"path": testbed.service.page, "port": testbed.service.port},
            "periodSeconds": 1,
            "failureThreshold": 120,
        },
    }
    labels = {WORKLOAD_LABEL: "service"} if cluster.koordinator else {}
    return _pod(cluster, template, SERVICE, container, labels, {"restartPolicy": "Always"})


def batch(
    testbed: Testbed, cluster: Cluster, template: PodTemplate, argv: Sequence[str], progress: str, engine: str
) -> dict[str, Any]:
    """Return the batch workload's pod.

    :param argv: the aggressor's arguments, filled in; ``progress`` is the file that it writes its progress to.
    """
    asked = dict(testbed.batch.requests)
    resources = {
        ORDINARY: {"requests": asked},
        INJECTED: {"requests": asked, "limits": asked},
        BARE: {},
    }[kind(engine)]
    container = {
        "name": "batch",
        "image": template.image,
        "command": ["/bin/sh", "-c", _FRESH, progress, *argv],
        "resources": resources,
    }
    labels = {WORKLOAD_LABEL: "batch"} if kind(engine) == INJECTED else {}
    return _pod(cluster, template, BATCH, container, labels, {"restartPolicy": "Never"})


def _pod(
    cluster: Cluster,
    template: PodTemplate,
    name: str,
    container: Mapping[str, Any],
    labels: Mapping[str, str],
    more: Mapping[str, Any],
) -> dict[str, Any]:
    volumes = [
        {"name": f"host-{number}", "hostPath": {"path": path, "type": "Directory"}}
        for number, path in enumerate(template.directories)
    ]
    mounts = [
        {"name": volume["name"], "mountPath": path} for volume, path in zip(volumes, template.directories, strict=True)
    ]
    place: dict[str, Any] = (
        {"nodeSelector": {"kubernetes.io/hostname": cluster.node_name}}
        if template.scheduled
        else {"nodeName": cluster.node_name}
    )
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": cluster.namespace, "labels": {"app": name, **labels}},
        "spec": {
            **place,
            **more,
            "hostNetwork": template.host_network,
            "terminationGracePeriodSeconds": _GRACE_S,
            "enableServiceLinks": False,
            "automountServiceAccountToken": False,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{**container, "volumeMounts": mounts, "imagePullPolicy": "IfNotPresent"}],
            "volumes": volumes,
        },
    }


def expected(testbed: Testbed, cluster: Cluster, workload: str, engine: str, lifts_limits: bool) -> dict[str, Any]:
    """Return what a pod must be on the node, as the guards compare it.

    :param lifts_limits: whether the policy lifts the quotas of pods, so that their own limit throttles nothing.
    """
    if workload == "service":
        return {
            "node": cluster.node_name,
            "class": _LS if cluster.koordinator else "",
            "tier": "Burstable",
            "limited": False,
        }
    made = kind(engine)
    return {
        "node": cluster.node_name,
        "class": _BE if made == INJECTED else "",
        "tier": "Burstable" if made == ORDINARY else "BestEffort",
        # Engine static's quota is the policy's doing.
        "limited": made == BARE or (made == INJECTED and not lifts_limits),
    }


def asked(testbed: Testbed, engine: str) -> dict[str, int]:
    """Return the batch resources that the batch workload's pod asks for, in milli-cores and bytes; {} for none."""
    if kind(engine) != INJECTED:
        return {}
    requests = testbed.batch.requests
    return {
        "batch_cpu_milli": quantity.parse_cpu_milli(requests["cpu"]),
        "batch_memory_bytes": quantity.parse_bytes(requests["memory"]),
    }


def containers(testbed: Testbed, engine: str) -> list[dict[str, Any]]:
    """Return what the batch pod's container asks for, in the words in which policies are applied to groups."""
    requests = testbed.batch.requests
    found = {
        _BATCH_CPU: str(quantity.parse_cpu_milli(requests["cpu"])),
        _BATCH_MEMORY: str(quantity.parse_bytes(requests["memory"])),
    }
    if kind(engine) == INJECTED:
        return [{"requests": found, "limits": found}]
    return [{"requests": {_BATCH_CPU: found[_BATCH_CPU]}}] if kind(engine) == BARE else []
