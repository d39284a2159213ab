# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring objects of a cluster about, or take them away: compare by what the server would make of them, then act.

Equality is the server's: an object is the same when applying it, tried on the server, changes nothing. What others own
is never touched.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import kubectl
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import (
    OWNER,
    OWNER_LABEL,
    RUN_LABEL,
    Kubectl,
    identity,
    shown,
)

CREATE, CHANGE, SAME, FOREIGN = "create", "change", "same", "foreign"
_FIRST = ("Namespace", "CustomResourceDefinition")
# Their controllers write into them, and keep what they were made from in an annotation: only a replacement drops that.
_REPLACED = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
# Admission rewrites them and most of them can't be changed: they are the same when they were made from the same text.
_FIXED = ("Pod", "Job")
MADE_FROM = "colocation.testbed/made-from"
# Admission is switched off first, so that nothing that is being removed can be refused by what is removed with it.
_GONE_FIRST = (*_REPLACED, "DaemonSet", "Deployment", "Pod", "Job")
_GONE_LAST = ("CustomResourceDefinition", "PriorityClass", "Namespace")
_VOLATILE = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink")
PART_LABEL = "app.kubernetes.io/part-of"
# Kinds that are looked through for parts of something that isn't wanted any more.
_KINDS = (
    "daemonsets,deployments,services,configmaps,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,"
    "mutatingwebhookconfigurations,validatingwebhookconfigurations,customresourcedefinitions,priorityclasses,namespaces"
)
_ESTABLISHED_S = 60
_GONE_S = 120.0
# How often an object is looked at again that changes meanwhile, as while its controller starts.
_ROUNDS = 5


class ObjectsError(Exception):
    """Objects cannot be brought about; the text says which, why, and what to do."""


@dataclass(frozen=True)
class Planned:
    """One object: what is wanted, what is there, what is done, and what comes out."""

    wanted: Mapping[str, Any]
    action: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None

    def row(self) -> dict[str, str]:
        """Return what a result shows."""
        kind, namespace, name = identity(self.wanted)
        return {"kind": kind, "namespace": namespace, "name": name, "action": self.action}


def labelled(item: Mapping[str, Any], run: str) -> dict[str, Any]:
    """Return an object with our label and the run's id. Raises ObjectsError for what is no object."""
    metadata = item.get("metadata")
    if not (item.get("apiVersion") and item.get("kind") and isinstance(metadata, Mapping) and metadata.get("name")):
        text = json.dumps(item, default=str)[:80]
        raise ObjectsError(f"objects: {text} lacks apiVersion, kind or metadata.name; write all three")
    found: dict[str, Any] = copy.deepcopy(dict(item))
    ours = {OWNER_LABEL: OWNER, **({RUN_LABEL: run} if run else {})}
    found["metadata"]["labels"] = {**(found["metadata"].get("labels") or {}), **ours}
    if item["kind"] in _FIXED:
        text = json.dumps(found, sort_keys=True)
        made = {MADE_FROM: hashlib.sha256(text.encode()).hexdigest()}
        found["metadata"]["annotations"] = {**(found["metadata"].get("annotations") or {}), **made}
    return found


def comparable(item: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return an object without what the server writes by itself."""
    if item is None:
        return {}
    found = {key: value for key, value in item.items() if key != "status"}
    found["metadata"] = {key: value for key, value in item["metadata"].items() if key not in _VOLATILE}
    return found


def _live(cluster: Kubectl, objects: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return what exists of some objects, by identity; kinds that the cluster doesn't know have none."""
    try:
        return {identity(item): item for item in cluster.present(objects)} if objects else {}
    except kubectl.UnknownKindError:
        if len(objects) == 1:
            return {}
        kinds = {(item["apiVersion"], item["kind"]) for item in objects}
        groups = [[item for item in objects if (item["apiVersion"], item["kind"]) == kind] for kind in sorted(kinds)]
        if len(groups) == 1:
            return {}
        return {key: item for group in groups for key, item in _live(cluster, group).items()}


def plan(cluster: Kubectl, objects: Sequence[Mapping[str, Any]], foreign: str) -> list[Planned]:
    """Return what must be done for each object. Changes nothing.

    ``foreign`` says what happens to one that exists without our label: ``fail``, ``skip`` (it stays as it is) or
    ``adopt``. Raises ObjectsError naming all of them, and KubectlError.
    """
    planned = _plan(cluster, objects, foreign)
    for _round in range(_ROUNDS):
        moved = [item.wanted for item in planned if item.action == CHANGE and _moved(item)]
        if not moved:
            break
        again = {identity(item.wanted): item for item in _plan(cluster, moved, foreign)}
        planned = [again.get(identity(item.wanted), item) for item in planned]
    return planned


def _moved(item: Planned) -> bool:
    """Tell whether somebody else changed an object between our reading it and our trying it."""
    versions = [(one or item.wanted)["metadata"].get("resourceVersion") for one in (item.before, item.after)]
    return item.wanted["kind"] not in _FIXED and versions[0] != versions[1]


def _plan(cluster: Kubectl, objects: Sequence[Mapping[str, Any]], foreign: str) -> list[Planned]:
    live = _live(cluster, objects)
    strange = [item for item in objects if identity(item) in live and not kubectl.is_ours(live[identity(item)])]
    if strange and foreign == "fail":
        names = ", ".join(shown(item) for item in strange)
        raise ObjectsError(
            f"{names}: exists and is not ours (no label {OWNER_LABEL}={OWNER}); remove it, leave it out, or let it be "
            "adopted"
        )
    skipped = {identity(item) for item in strange} if foreign == "skip" else set()
    asked = [
        item
        for item in objects
        if identity(item) in live and identity(item) not in skipped and item["kind"] not in _FIXED
    ]
    tried = {identity(item): item for item in cluster.apply(asked, dry_run=True)} if asked else {}
    return [
        Planned(item, FOREIGN, live[identity(item)], live[identity(item)])
        if identity(item) in skipped
        else _planned(item, live.get(identity(item)), tried.get(identity(item), item))
        for item in objects
    ]


def _planned(item: Mapping[str, Any], before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> Planned:
    if before is None:
        return Planned(item, CREATE, None, item)
    if item["kind"] in _FIXED:
        texts = [(one["metadata"].get("annotations") or {}).get(MADE_FROM) for one in (before, item)]
        same = texts[0] == texts[1]
    else:
        same = comparable(before) == comparable(after)
    return Planned(item, SAME if same else CHANGE, before, before if same else after)


def carry_out(cluster: Kubectl, planned: Sequence[Planned]) -> None:
    """Bring about what was planned: namespaces and definitions first, which others need. Raises KubectlError."""
    todo = [item for item in planned if item.action in (CREATE, CHANGE)]
    first = [item.wanted for item in todo if item.wanted["kind"] in _FIRST]
    if first:
        cluster.apply(first)
        definitions = [item for item in first if item["kind"] == "CustomResourceDefinition"]
        if definitions:
            words = ("wait", "-f", "-", "--for=condition=Established", f"--timeout={_ESTABLISHED_S}s")
            cluster.call(*words, input_text=kubectl.listing(definitions), timeout_s=2.0 * _ESTABLISHED_S)
    renewed = [item.wanted for item in todo if item.action == CHANGE and item.wanted["kind"] in _FIXED]
    if renewed:
        remove(cluster, renewed, _GONE_S)
    replaced = [item.wanted for item in todo if item.action == CHANGE and item.wanted["kind"] in _REPLACED]
    if replaced:
        cluster.replace(replaced)
    rest = [item.wanted for item in todo if item.wanted["kind"] not in _FIRST]
    _wait_for_accounts(cluster, {identity(item)[1] for item in rest if item["kind"] in _FIXED})
    if rest:
        cluster.apply(rest)


def _wait_for_accounts(cluster: Kubectl, namespaces: Iterable[str]) -> None:
    """Wait until namespaces have the account that pods get by default: without it a new namespace refuses them."""
    missing = sorted(namespaces)

    def is_there() -> bool:
        missing[:] = [name for name in missing if cluster.get("serviceaccount", "default", name) is None]
        return not missing

    if not kubectl.wait(is_there, _GONE_S):
        raise ObjectsError(
            f"namespace {', '.join(missing)}: has no service account default after {_GONE_S:g} s; look whether the "
            "controller manager runs"
        )


def read_back(cluster: Kubectl, planned: Sequence[Planned]) -> list[str]:
    """Return the objects that are missing, or that applying would still change, after all was brought about."""
    wanted = [item.wanted for item in planned if item.action in (CREATE, CHANGE)]
    if not wanted:
        return []
    return [shown(item.wanted) for item in plan(cluster, wanted, "adopt") if item.action != SAME]


def parts(cluster: Kubectl, part_of: str, keep: Iterable[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
    """Return what we made that is labelled as a part of something, but for what is kept. Raises KubectlError."""
    kept = {identity(item) for item in keep}
    found = cluster.items(_KINDS, selector=f"{OWNER_LABEL}={OWNER},{PART_LABEL}={part_of}")
    return sorted((item for item in found if identity(item) not in kept), key=_order)


def doomed(cluster: Kubectl, objects: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return those of some objects that exist and are ours, in the order in which they can go."""
    ours = [item for item in _live(cluster, objects).values() if kubectl.is_ours(item)]
    return sorted(ours, key=_order)


def _order(item: Mapping[str, Any]) -> int:
    kind = item["kind"]
    if kind in _GONE_LAST:
        return len(_GONE_FIRST) + 2 + _GONE_LAST.index(kind)
    return _GONE_FIRST.index(kind) if kind in _GONE_FIRST else len(_GONE_FIRST) + 1


def remove(cluster: Kubectl, objects: Iterable[Mapping[str, Any]], deadline_s: float) -> None:
    """Delete objects kind by kind, in order, and wait for each kind to be gone. Raises KubectlError."""
    batches: dict[int, list[Mapping[str, Any]]] = {}
    for item in objects:
        batches.setdefault(_order(item), []).append(item)
    for order in sorted(batches):
        cluster.delete([_named(item) for item in batches[order]], deadline_s)


def _named(item: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: item["metadata"][key] for key in ("name", "namespace") if key in item["metadata"]}
    return {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": metadata}


def diff(planned: Iterable[Planned]) -> dict[str, str]:
    """Return the texts that Ansible compares, of what changes."""
    changing = [item for item in planned if item.action in (CREATE, CHANGE)]

    def text(item: Mapping[str, Any] | None, name: str) -> str:
        body = json.dumps(comparable(item), indent=2, sort_keys=True) if item is not None else "(not there)"
        return f"--- {name}\n{body}\n"

    return {
        "before": "".join(text(item.before, shown(item.wanted)) for item in changing),
        "after": "".join(text(item.after, shown(item.wanted)) for item in changing),
    }
