# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Koordinator's own kustomize tree (``config/`` of its sources) as objects, named and set as its Helm chart does.

The tree's own names and settings don't fit what the programs look for (webhooks, service and ConfigMap by name, all
experimental features on), so they are brought to those of the chart. Its ConfigMap is left out: its content would
switch suppress on before anybody has said so.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import koordinator_names as names
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import objects
from ansible_collections.colocation.testbed.plugins.module_utils.policy import koordinator_versions
from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import koordinator_pods as pods
from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import koordinator_values as chart

FOLDERS = ("crd/bases", "rbac", "manager", "webhook")
# What the tree keeps for other ways of installing it.
_LEFT_OUT = ("kustomization.yaml", "kustomizeconfig.yaml", "slo-controller-config.yaml", "koord-device-daemon.yaml")
_PATCHES = "patch_manifests.yaml"
_OPTIONAL = ("auth_proxy_", "nodemetric_editor_role.yaml", "nodemetric_viewer_role.yaml")
_RENAMED = {
    "mutating-webhook-configuration": "koordinator-mutating-webhook-configuration",
    "validating-webhook-configuration": "koordinator-validating-webhook-configuration",
    "webhook-service": "koordinator-webhook-service",
    "system": chart.NAMESPACE,
}
_CLUSTER = (
    *("Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "PriorityClass"),
    *("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
)
_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
# Path of a webhook to the manager's feature gate that serves it, and whether that is on by default.
_GATES: Mapping[str, tuple[str, bool, str]] = {
    "/mutate-pod": ("PodMutatingWebhook", True, "pods"),
    "/validate-pod": ("PodValidatingWebhook", True, "pods"),
    "/mutate-scheduling-sigs-k8s-io-v1alpha1-elasticquota": ("ElasticMutatingWebhook", True, "elasticquotas"),
    "/validate-scheduling-sigs-k8s-io-v1alpha1-elasticquota": ("ElasticValidatingWebhook", True, "elasticquotas"),
    "/mutate-node-status": ("NodeMutatingWebhook", False, "nodeStatus"),
    "/validate-node": ("NodeValidatingWebhook", False, "nodes"),
    "/mutate-reservation": ("ReservationMutatingWebhook", False, "reservations"),
    "/validate-configmap": ("ConfigMapValidatingWebhook", False, ""),
}
_FAILURE_POLICY, _TIMEOUT_S = "Ignore", 30
# Version to a definition's file that it has, and a key in there that no older version's has ("": the file itself).
_SINCE: Mapping[str, tuple[str, str]] = {
    "1.7.0": ("scheduling.koordinator.sh_clusternetworktopologies.yaml", ""),
    "1.8.0": ("slo.koordinator.sh_nodeslos.yaml", "cpuAllocatableEvictThresholdPercent"),
}


class ManifestsError(Exception):
    """A tree of manifests cannot be used; the text says which file, what is wrong, and what to do."""


def _bases(root: Path) -> Path:
    found = root / "config" / "crd" / "bases"
    if not found.is_dir():
        raise ManifestsError(f"{root}: has no config/crd/bases; give the directory of Koordinator's sources")
    return found


def load(root: Path) -> list[dict[str, Any]]:
    """Return the objects of a tree, in the order of its folders; webhooks with the tree's patches laid over them.

    ``root`` has ``config/``. Raises ManifestsError.
    """
    config = _bases(root).parents[1]
    found: list[dict[str, Any]] = []
    for folder in FOLDERS:
        for path in sorted((config / folder).glob("*.yaml")):
            if path.name not in (*_LEFT_OUT, _PATCHES) and not path.name.startswith(_OPTIONAL):
                found += _documents(path)
    patches = _documents(config / "webhook" / _PATCHES) if (config / "webhook" / _PATCHES).is_file() else []
    return [_patched(item, patches) for item in found]


def _documents(path: Path) -> list[dict[str, Any]]:
    try:
        documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as exc:
        shown = " ".join(str(exc).split())
        raise ManifestsError(f"{path}: cannot be read: {shown}; fetch the sources again") from exc
    return [item for item in documents if isinstance(item, dict)]


def _patched(item: dict[str, Any], patches: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a webhook configuration with the selectors that the tree keeps beside it, by name of webhook."""
    more = {
        hook["name"]: hook
        for patch in patches
        if (patch["kind"], patch["metadata"]["name"]) == (item["kind"], item["metadata"]["name"])
        for hook in patch["webhooks"]
    }
    if not more:
        return item
    return {**item, "webhooks": [{**hook, **more.get(hook["name"], {})} for hook in item["webhooks"]]}


def check_version(root: Path, version: str) -> None:
    """Raise ManifestsError for the sources of another version: its definitions drop keys, its programs stop."""
    for since, (name, key) in _SINCE.items():
        path = _bases(root) / name
        is_there = path.is_file() and key in path.read_text(encoding="utf-8", errors="replace")
        if is_there != koordinator_versions.is_there(since, version):
            age = "older than" if not is_there else "newer than"
            raise ManifestsError(
                f"koordinator_source {root}: is {age} koordinator_version {version} by {path.name}; give the sources "
                "of that version, or set koordinator_version"
            )


def named(name: str) -> str:
    """Return the name that the programs and the chart have for a name in the tree."""
    if name in _RENAMED:
        return _RENAMED[name]
    return name if name.startswith(("koord", "system:")) or "." in name else f"koord-{name}"


def render(root: Path, values: Mapping[str, Any], pull_policy: str) -> list[dict[str, Any]]:
    """Return the objects of an installation with the chart's values. Raises ManifestsError."""
    if pull_policy not in chart.PULL_POLICIES:
        allowed = ", ".join(chart.PULL_POLICIES)
        raise ManifestsError(f"koordinator_image_pull_policy: {pull_policy!r} is not known; allowed: {allowed}")
    unwanted = [name for name in (chart.SCHEDULER, chart.DESCHEDULER) if not values[name]["replicas"]]
    crds = values.get("crds") or {}
    found = []
    for item in load(root):
        if _is_wanted(item, crds, unwanted):
            found.append(_without_nulls(_placed(_set(copy.deepcopy(item), values, pull_policy))))
    return found


def _is_wanted(item: Mapping[str, Any], crds: Mapping[str, Any], unwanted: list[str]) -> bool:
    name = item["metadata"]["name"]
    if item["kind"] == "CustomResourceDefinition":
        return bool(crds.get("managed", True) and crds.get(name.partition(".")[0], True))
    return not any(name.removeprefix("koord-").startswith(component) for component in unwanted)


def _set(item: dict[str, Any], values: Mapping[str, Any], pull_policy: str) -> dict[str, Any]:
    kind, name = item["kind"], item["metadata"]["name"]
    if kind in _WEBHOOKS:
        item["webhooks"] = list(_webhooks(item["webhooks"], values))
    elif kind in ("Deployment", "DaemonSet"):
        pods.settle(item, name.removeprefix("koord-"), values, pull_policy)
    elif kind == "ConfigMap" and name == "scheduler-config":
        pods.load_thresholds(item, values.get("loadThresholds") or {})
    elif kind == "Service":
        item["spec"]["ports"][0]["targetPort"] = (values["manager"].get("webhook") or {}).get(
            "port", chart.WEBHOOK_PORT
        )
    if kind in ("ClusterRoleBinding", "RoleBinding"):
        item["roleRef"]["name"] = named(item["roleRef"]["name"])
        for subject in item["subjects"]:
            subject.update(name=named(subject["name"]), namespace=chart.NAMESPACE)
    return item


def _webhooks(hooks: list[dict[str, Any]], values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the webhooks that the manager serves with its gates, calling it where it is, open when it is down."""
    gates = dict(part.split("=", 1) for part in (values.get("featureGates") or "").split(",") if "=" in part)
    given = values.get("webhookConfiguration") or {}
    for hook in hooks:
        service = hook["clientConfig"]["service"]
        gate, is_on, resource = _GATES.get(service["path"], ("", False, ""))
        if gates.get(gate, str(is_on).lower()) != "true":
            continue
        service.update(name=named(service["name"]), namespace=chart.NAMESPACE)
        if resource:
            hook["failurePolicy"] = (given.get("failurePolicy") or {}).get(resource, _FAILURE_POLICY)
        hook["timeoutSeconds"] = given.get("timeoutSeconds", _TIMEOUT_S)
        yield hook


def _placed(item: dict[str, Any]) -> dict[str, Any]:
    """Return an object under its name and, where it has one, in the namespace."""
    metadata = item["metadata"]
    if item["kind"] != "CustomResourceDefinition":
        metadata["name"] = named(metadata["name"])
    metadata.pop("namespace", None)
    # What belongs together is removed by this label, without the sources.
    metadata["labels"] = {**(metadata.get("labels") or {}), objects.PART_LABEL: names.PART}
    if item["kind"] not in _CLUSTER:
        metadata["namespace"] = chart.NAMESPACE
    item.pop("status", None)
    return item


def _without_nulls(value: Any) -> Any:
    """Return a value without keys that say nothing, such as creationTimestamp: null, which generated files have."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
