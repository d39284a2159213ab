# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Get at a node through a pod of ours, where nobody can log in: made, waited for, found again, and taken away.

A DaemonSet for each node, since it comes back by itself after a drain or a reboot. It is also the only record of it
that can be: the node's journal lies behind the pod.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import (
    access_manifests,
    attach,
    kubectl,
    objects,
    pod_reasons,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.access_manifests import Wanted
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import Kubectl

_ENFORCED = "violates PodSecurity"


class AccessError(Exception):
    """A node cannot be got at; one sentence for each reason."""


@dataclass(frozen=True)
class Found:
    """What there is for a node: whether a pod is wanted there, the name of one that is ready, and why none is."""

    wanted: bool
    pod: str
    why: str


def rights(namespace: str) -> list[attach.Right]:
    """Return what the credentials must be allowed."""
    return [
        attach.Right("get", "nodes"),
        attach.Right("create", "daemonsets", "apps", namespace),
        attach.Right("delete", "daemonsets", "apps", namespace),
        attach.Right("list", "pods", namespace=namespace),
        attach.Right("create", "pods", namespace=namespace),
        attach.Right("create", "pods/exec", namespace=namespace),
    ]


def look(cluster: Kubectl, node: str, namespace: str) -> Found:
    """Return what there is for a node. Raises KubectlError."""
    name = access_manifests.name_of(node)
    made = cluster.get("daemonset", name, namespace)
    if made is None or not kubectl.is_ours(made):
        return Found(False, "", f"has no pod of ours in namespace {namespace}; run playbook access, or provision")
    pods = cluster.items("pods", namespace, f"{access_manifests.ACCESS_LABEL}={name}")
    living = [item for item in pods if not item["metadata"].get("deletionTimestamp")]
    reasons = {str(item["metadata"]["name"]): _problem(item) for item in living}
    ready = sorted(pod for pod, why in reasons.items() if not why)
    if ready and _is_rolled_out(made):
        return Found(True, ready[0], "")
    told = "; ".join(f"pod {namespace}/{pod}: {why or 'is to be replaced'}" for pod, why in sorted(reasons.items()))
    return Found(
        True,
        "",
        f"{told or f'DaemonSet {namespace}/{name} has made no pod'}; look with: kubectl -n {namespace} describe "
        f"{'pod' if told else 'daemonset'} {min(reasons) if reasons else name}",
    )


def _is_rolled_out(made: Mapping[str, Any]) -> bool:
    status, generation = made.get("status") or {}, made["metadata"].get("generation", 0)
    return status.get("observedGeneration") == generation and bool(status.get("updatedNumberScheduled"))


def _problem(pod: Mapping[str, Any]) -> str:
    why = pod_reasons.problem(pod)
    if not why:
        return ""
    for item in (pod.get("status") or {}).get("containerStatuses") or ():
        for state in ("state", "lastState"):
            said = str(((item.get(state) or {}).get("terminated") or {}).get("message") or "").strip()
            if said:
                return f"{why}: {said.splitlines()[-1]}"
    return why


def check(cluster: Kubectl, wanted: Wanted) -> None:
    """See whether a node can be got at. Raises AccessError with one sentence a line, and KubectlError."""
    _check_directory(wanted)
    asked = rights(wanted.namespace)
    space = cluster.get("namespace", wanted.namespace)
    if space is None:
        asked.append(attach.Right("create", "namespaces"))
    problems = attach.missing_rights(cluster, asked)
    problems += attach.node_problems(attach.nodes(cluster), [wanted.node])
    if not problems and space is not None:
        problems += _refused(cluster, wanted)
    if problems:
        raise AccessError("\n".join(problems))


def _check_directory(wanted: Wanted) -> None:
    if not wanted.state_dir.startswith(f"{wanted.directory.rstrip('/')}/"):
        raise AccessError(
            f"node_state_dir {wanted.state_dir}: is not below node_access_directory {wanted.directory}, which the node "
            f"shares with the pod; set it to {wanted.directory.rstrip('/')}/node, for example"
        )
    if os.path.dirname(wanted.directory.rstrip("/")) in ("", "/"):
        raise AccessError(
            f"node_access_directory {wanted.directory}: lies at the top of the file system; name one such as "
            "/var/lib/colocation-testbed"
        )


def _refused(cluster: Kubectl, wanted: Wanted) -> list[str]:
    """Return a sentence where a pod as we need it is not admitted. A DaemonSet itself would be, and make none."""
    _made, why = cluster.try_create(objects.labelled(access_manifests.pod(wanted), ""))
    if not why:
        return []
    if _ENFORCED in why:
        return [
            f"namespace {wanted.namespace}: its pod security refuses privileged pods ({why}); allow them: kubectl "
            f"label namespace {wanted.namespace} --overwrite pod-security.kubernetes.io/enforce=privileged"
        ]
    return [
        f"namespace {wanted.namespace}: a privileged pod is refused ({why}); let the cluster's administrator admit it, "
        "or name another namespace in node_access_namespace"
    ]


@dataclass(frozen=True)
class Outcome:
    """What was, or would be, done to the cluster, and the pod that is ready (empty in a prediction)."""

    planned: tuple[objects.Planned, ...]
    pod: str

    @property
    def changed(self) -> bool:
        """Tell whether anything was done."""
        return any(item.action in (objects.CREATE, objects.CHANGE) for item in self.planned)


def ensure(cluster: Kubectl, wanted: Wanted, run_id: str, deadline_s: float, predict: bool) -> Outcome:
    """Bring the pod about and wait until it is ready. Raises AccessError, ObjectsError, KubectlError."""
    check(cluster, wanted)
    space = objects.labelled(access_manifests.namespace(wanted), run_id)
    made = objects.labelled(access_manifests.daemon_set(wanted), run_id)
    # A namespace that somebody has made for us stays theirs.
    spaces = objects.plan(cluster, [space], "skip")
    planned = (*spaces, *objects.plan(cluster, [made], "fail"))
    if predict:
        return Outcome(planned, "")
    if any(item.action in (objects.CREATE, objects.CHANGE) for item in spaces):
        objects.carry_out(cluster, spaces)
        problems = _refused(cluster, wanted)
        if problems:
            raise AccessError("\n".join(problems))
    objects.carry_out(cluster, planned[len(spaces) :])
    return Outcome(planned, wait(cluster, wanted.node, wanted.namespace, deadline_s))


def wait(cluster: Kubectl, node: str, namespace: str, deadline_s: float) -> str:
    """Return the name of a node's pod once it is ready. Raises AccessError, KubectlError."""
    last: list[Found] = []

    def is_ready() -> bool:
        last[:] = [look(cluster, node, namespace)]
        return bool(last[0].pod)

    if not kubectl.wait(is_ready, deadline_s):
        raise AccessError(f"node {node}: {last[0].why} (waited {deadline_s:g} s)")
    return last[0].pod


def remove(
    cluster: Kubectl, node: str, namespace: str, deadline_s: float, force: bool, predict: bool
) -> Sequence[Mapping[str, Any]]:
    """Take a node's pod away, with what the node has made for it; return the objects that were, or would be, deleted.

    The namespace goes with the last of them. Raises AccessError where the node's journal still has entries.
    """
    name = access_manifests.name_of(node)
    made = cluster.get("daemonset", name, namespace)
    doomed = [made] if made is not None and kubectl.is_ours(made) else []
    found = look(cluster, node, namespace)
    if doomed and not force:
        _check_undone(cluster, node, namespace, found)
    if doomed and not predict:
        if found.pod:
            # Empty by now, or it stays.
            _in_pod(cluster, namespace, found.pod, access_manifests.TIDY)
        objects.remove(cluster, doomed, deadline_s)
    return [*doomed, *_empty_space(cluster, namespace, name, deadline_s, predict)]


def _check_undone(cluster: Kubectl, node: str, namespace: str, found: Found) -> None:
    if not found.pod:
        raise AccessError(
            f"node {node}: {found.why}. Whether there are changes to undo can't be seen: repair the pod and run "
            "playbook reset, or, where nothing was done on the node or it is gone for good, set node_access_force"
        )
    done = _in_pod(cluster, namespace, found.pod, access_manifests.JOURNAL)
    if done.status != 0:
        raise AccessError(
            f"node {node}: pod {namespace}/{found.pod} can't say whether there are changes to undo "
            f"({done.stderr.strip()}); run playbook reset again, or set node_access_force"
        )
    if done.stdout.strip():
        raise AccessError(
            f"node {node}: {done.stdout.split()[0]} says that there are changes to undo; run playbook reset, which "
            "takes the pod away afterwards, or set node_access_force"
        )


def _in_pod(cluster: Kubectl, namespace: str, pod: str, script: str) -> Any:
    words = ("exec", "--namespace", namespace, pod, "--container", access_manifests.CONTAINER, "--")
    return cluster.call(*words, "/bin/sh", "-c", script, check=False)


def _empty_space(cluster: Kubectl, namespace: str, name: str, deadline_s: float, predict: bool) -> list[dict[str, Any]]:
    """Delete the namespace where it is ours and nothing of ours is left in it; return it as a list."""
    space = cluster.get("namespace", namespace)
    if space is None or not kubectl.is_ours(space):
        return []
    others = cluster.items("daemonsets", namespace, f"{kubectl.OWNER_LABEL}={kubectl.OWNER}")
    staying = [item for item in others if not item["metadata"].get("deletionTimestamp")]
    if any(item["metadata"]["name"] != name for item in staying):
        return []
    if not predict:
        objects.remove(cluster, [space], deadline_s)
    return [space]
