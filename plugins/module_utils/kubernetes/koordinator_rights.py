# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one must be allowed in a cluster to install Koordinator, to give it policies, and to remove it again."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import koordinator_names as names
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.attach import Right
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.koordinator_owner import HELM, Installation

_CHANGE = ("create", "patch", "delete")
_OF_THE_CLUSTER = (
    ("customresourcedefinitions", "apiextensions.k8s.io"),
    ("priorityclasses", "scheduling.k8s.io"),
    ("mutatingwebhookconfigurations", "admissionregistration.k8s.io"),
    ("validatingwebhookconfigurations", "admissionregistration.k8s.io"),
    ("clusterroles", "rbac.authorization.k8s.io"),
    ("clusterrolebindings", "rbac.authorization.k8s.io"),
    ("namespaces", ""),
    ("clustercolocationprofiles", "config.koordinator.sh"),
)
_OF_ITS_NAMESPACE = (
    ("deployments", "apps"),
    ("daemonsets", "apps"),
    ("services", ""),
    ("serviceaccounts", ""),
    ("configmaps", ""),
    ("roles", "rbac.authorization.k8s.io"),
    ("rolebindings", "rbac.authorization.k8s.io"),
)
_READ = (("get", "nodes", ""), ("get", "nodeslos", "slo.koordinator.sh"), ("get", "nodemetrics", "slo.koordinator.sh"))
_NODES = (Right("list", "nodes"), Right("patch", "nodes"), Right("patch", "nodes/status"))


def needed(installation: Installation, removal: bool, workload_namespaces: tuple[str, ...] = ()) -> Iterator[Right]:
    """Yield every right that is needed; for a removal those alone that take away."""
    verbs = ("delete",) if removal else _CHANGE
    for resource, group in _OF_THE_CLUSTER:
        yield from (Right(verb, resource, group) for verb in verbs)
    for resource, group in _OF_ITS_NAMESPACE:
        yield from (Right(verb, resource, group, names.NAMESPACE) for verb in verbs)
    yield from _NODES
    if not removal:
        yield from (Right(verb, resource, group) for verb, resource, group in _READ)
        yield Right("get", "pods/log", "", names.NAMESPACE)
        yield from (Right("create", "pods", "", name) for name in workload_namespaces)
    if installation.method == HELM:
        # Helm keeps what it knows of a release there.
        yield from (Right(verb, "secrets", "", installation.release_namespace) for verb in ("list", *verbs))
