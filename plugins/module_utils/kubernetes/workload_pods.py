# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of an experiment: made, waited for until they run, read, and taken away again; only ours.

A pod that the node refuses for want of batch resources is made again: they come and go with Koordinator's reports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import (
    koordinator_ladder,
    koordinator_names,
    kubectl,
    objects,
    pod_reasons,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import Kubectl
from ansible_collections.colocation.testbed.plugins.module_utils.policy.koordinator_batch import (
    BATCH_CPU,
    BATCH_MEMORY,
)

# What kubelet says of a pod that it does not admit: a later report of the agent may make room.
_NO_ROOM = "OutOf"
_GONE_S = 60.0
BEST_EFFORT = "BE"


class PodsError(Exception):
    """Pods cannot be brought about; the text says which, why, and the command to look with."""


@dataclass(frozen=True)
class Facts:
    """A pod as the cluster has it. ``qos_class`` is Koordinator's label, ``tier`` is Kubernetes' own class."""

    uid: str
    node: str
    phase: str
    reason: str
    container_id: str
    restarts: int
    qos_class: str
    tier: str
    address: str

    def to_dict(self) -> dict[str, Any]:
        """Return what a measurement keeps."""
        return {**vars(self), "class": self.qos_class}


def facts(pod: Mapping[str, Any]) -> Facts:
    """Return what counts of a pod with one container."""
    status, metadata = pod.get("status") or {}, pod["metadata"]
    container: Mapping[str, Any] = next(iter(status.get("containerStatuses") or ()), {})
    return Facts(
        uid=str(metadata.get("uid") or ""),
        node=str(pod["spec"].get("nodeName") or ""),
        phase=str(status.get("phase") or ""),
        reason=" ".join(str(status[key]) for key in ("reason", "message") if status.get(key)),
        container_id=str(container.get("containerID") or "").rpartition("//")[2],
        restarts=int(container.get("restartCount") or 0),
        qos_class=str((metadata.get("labels") or {}).get(koordinator_names.QOS_LABEL) or ""),
        tier=str(status.get("qosClass") or ""),
        address=str(status.get("podIP") or ""),
    )


def lacks(pod: Mapping[str, Any], qos_class: str) -> list[str]:
    """Return what a pod lacks that Koordinator's webhook should have given it, as clauses; "" expects nothing."""
    if qos_class == BEST_EFFORT:
        return list(koordinator_ladder.not_injected(pod))
    label = (pod["metadata"].get("labels") or {}).get(koordinator_names.QOS_LABEL, "")
    return [f"label {koordinator_names.QOS_LABEL}={qos_class}"] if qos_class and label != qos_class else []


def batch_resources(node: Mapping[str, Any] | None) -> dict[str, int]:
    """Return what a node offers to batch work, in milli-cores and bytes."""
    offered = ((node or {}).get("status") or {}).get("allocatable") or {}
    return {
        "batch_cpu_milli": quantity.parse_batch_cpu_milli(str(offered.get(BATCH_CPU, "0"))),
        "batch_memory_bytes": quantity.parse_bytes(str(offered.get(BATCH_MEMORY, "0"))),
    }


def is_ready(node: Mapping[str, Any] | None) -> bool:
    """Tell whether a node says that it is ready."""
    conditions = ((node or {}).get("status") or {}).get("conditions") or ()
    return any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)


def ensure_namespaces(cluster: Kubectl, wanted: Sequence[Mapping[str, Any]], run: str) -> bool:
    """Make namespaces that are missing; one that is there stays as it is. Return whether any was made."""
    names = sorted({str(item["metadata"]["namespace"]) for item in wanted})
    missing = [name for name in names if cluster.get("namespace", name) is None]
    made = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in missing]
    if made:
        objects.carry_out(cluster, objects.plan(cluster, [objects.labelled(item, run) for item in made], "fail"))
    return bool(made)


def start(cluster: Kubectl, wanted: Sequence[Mapping[str, Any]], deadline_s: float) -> dict[str, dict[str, Any]]:
    """Make pods (labelled already) that are missing or other, and wait until all are ready; {name: pod}.

    :raises PodsError: for those that are not by the deadline, with the reason that the cluster gives.
    """
    # One that ended belongs to an earlier run; made again it may do better.
    found = {name: item for name, item in read(cluster, wanted).items() if _ended(item) or _refused(item)}
    why: dict[str, str] = {}
    names = [item["metadata"]["name"] for item in wanted]

    def all_run() -> bool:
        again = [item for name, item in found.items() if not why or _refused(item)]
        if again:
            objects.remove(cluster, again, _GONE_S)
        if again or not why:
            objects.carry_out(cluster, objects.plan(cluster, wanted, "fail"))
        found.clear()
        found.update(read(cluster, wanted))
        why.update({name: pod_reasons.problem(found[name]) if name in found else "is gone" for name in names})
        hopeless = [name for name in names if name in found and _ended(found[name])]
        if hopeless:
            raise PodsError(_sentence(wanted, {name: why[name] for name in hopeless}))
        return not any(why.values())

    if not kubectl.wait(all_run, deadline_s):
        late = {name: text for name, text in why.items() if text}
        raise PodsError(f"{_sentence(wanted, late)} (waited {deadline_s:g} s)")
    return found


def _refused(pod: Mapping[str, Any] | None) -> bool:
    return pod is not None and str((pod.get("status") or {}).get("reason") or "").startswith(_NO_ROOM)


def _ended(pod: Mapping[str, Any]) -> bool:
    """Tell whether a pod ended for good; one that was refused for want of room is tried again."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Failed", "Succeeded") and not _refused(pod)


def _sentence(wanted: Sequence[Mapping[str, Any]], why: Mapping[str, str]) -> str:
    namespaces = {item["metadata"]["name"]: item["metadata"]["namespace"] for item in wanted}
    told = "; ".join(f"pod {namespaces[name]}/{name}: {text}" for name, text in sorted(why.items()))
    name = min(why)
    return f"{told}; look with: kubectl -n {namespaces[name]} describe pod {name}"


def read(cluster: Kubectl, wanted: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return those of some pods that exist, by name."""
    return {item["metadata"]["name"]: item for item in cluster.present(wanted)} if wanted else {}


def stop(cluster: Kubectl, wanted: Sequence[Mapping[str, Any]], deadline_s: float, check: bool) -> bool:
    """Delete those of some pods that are there and ours, wait until they are gone; return whether there were any.

    :raises PodsError: for one that is somebody else's.
    """
    there = read(cluster, wanted)
    strange = [name for name, item in there.items() if not kubectl.is_ours(item)]
    if strange:
        raise PodsError(f"pod {strange[0]}: is there and is not ours; rename it, or choose another namespace")
    if there and not check:
        objects.remove(cluster, list(there.values()), deadline_s)
    return bool(there)
