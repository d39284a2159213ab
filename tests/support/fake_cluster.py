"""A cluster in memory that answers kubectl's command line, as far as the libraries use it.

Applying merges mappings and replaces lists, as far as the server's own rules matter to the tests; what a real server
does is seen where a real one runs.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import Kubectl

RESOURCES = {
    "nodes": "Node",
    "pods": "Pod",
    "events": "Event",
    "services": "Service",
    "serviceaccounts": "ServiceAccount",
    "roles": "Role",
    "rolebindings": "RoleBinding",
    "clusterroles": "ClusterRole",
    "clusterrolebindings": "ClusterRoleBinding",
    "deployments": "Deployment",
    "daemonsets": "DaemonSet",
    "configmaps": "ConfigMap",
    "namespaces": "Namespace",
    "priorityclasses": "PriorityClass",
    "customresourcedefinitions": "CustomResourceDefinition",
    "mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
    "validatingwebhookconfigurations": "ValidatingWebhookConfiguration",
    "nodeslo.slo.koordinator.sh": "NodeSLO",
    "nodemetric.slo.koordinator.sh": "NodeMetric",
}
CUSTOM = ("NodeSLO", "NodeMetric", "ClusterColocationProfile")
Key = tuple[str, str, str]


def merged(lower: Any, upper: Any) -> Any:
    if isinstance(lower, dict) and isinstance(upper, dict):
        return {**lower, **{key: merged(lower.get(key), value) for key, value in upper.items()}}
    return copy.deepcopy(upper)


class FakeCluster:
    """Objects by kind, namespace and name; ``admit`` is what webhooks make of a pod, or raises ValueError to refuse."""

    def __init__(self, objects: Sequence[dict[str, Any]] = (), custom: bool = True) -> None:
        self.objects: dict[Key, dict[str, Any]] = {}
        self.custom = custom
        self.calls: list[list[str]] = []
        self.logs: dict[str, str] = {}
        self.in_pods: dict[str, str] = {}
        self.fail = ""
        self.configz: dict[str, Any] = {}
        self.denied: set[tuple[str, str]] = set()
        self.asked_for_account = 0
        self.version = "v1.34.4"
        self.admit: Callable[[dict[str, Any]], dict[str, Any]] = lambda pod: pod
        self.after: Callable[[], None] = lambda: None
        for item in objects:
            self.put(item)

    def put(self, item: dict[str, Any]) -> None:
        self.objects[self.key(item)] = copy.deepcopy(item)

    def key(self, item: dict[str, Any]) -> Key:
        metadata = item["metadata"]
        return item["kind"], metadata.get("namespace", ""), metadata["name"]

    def get(self, kind: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        return self.objects.get((kind, namespace, name))

    @property
    def kubectl(self) -> Kubectl:
        return Kubectl(("kubectl",), self.run)

    def run(self, argv: Sequence[str], *, input_text: str | None = None, **_kw: Any) -> commands.Result:
        words = [word for word in argv[1:] if not word.startswith("--request-timeout")]
        self.calls.append(words)
        if self.fail:
            return commands.Result(tuple(argv), 1, "", self.fail)
        given = json.loads(input_text) if input_text else {}
        items = given.get("items", [given] if given else [])
        try:
            status, text = 0, getattr(self, f"_{words[0]}")(words, items)
        except (LookupError, ValueError) as exc:
            return commands.Result(tuple(argv), 1, "", str(exc.args[0]))
        self.after()
        return commands.Result(tuple(argv), status, text, "")

    def changes(self) -> list[list[str]]:
        """Return the calls that changed something."""
        verbs = ("apply", "replace", "create", "delete", "patch")
        asking = ["create", "-f", "-", "-o", "json"]
        return [
            call
            for call in self.calls
            if call[0] in verbs and call != asking and not any(word.startswith("--dry-run") for word in call)
        ]

    def _known(self, items: Sequence[dict[str, Any]]) -> None:
        for item in items:
            if item["kind"] in CUSTOM and not self.custom:
                raise LookupError(f'no matches for kind "{item["kind"]}" in version "{item["apiVersion"]}"')

    def _listing(self, found: Sequence[dict[str, Any]]) -> str:
        if len(found) == 1:
            return json.dumps(found[0])
        return json.dumps({"kind": "List", "items": list(found)})

    def _get(self, words: list[str], items: list[dict[str, Any]]) -> str:
        if words[1] == "--raw":
            return json.dumps({"kubeletconfig": self.configz}) if words[2].endswith("/configz") else "ok"
        if words[1] == "-f":
            self._known(items)
            found = [self.objects[self.key(item)] for item in items if self.key(item) in self.objects]
            return self._listing(found) if found else ""
        kinds = []
        for name in words[1].split(","):
            kind = next((RESOURCES[word] for word in (name, f"{name}s", f"{name}es") if word in RESOURCES), None)
            if kind is None or (kind in CUSTOM and not self.custom):
                raise LookupError(f'error: the server doesn\'t have a resource type "{name}"')
            kinds.append(kind)
        place = words[words.index("--namespace") + 1] if "--namespace" in words else None
        if words[1:3] == ["serviceaccount", "default"]:
            # The controller manager makes one in every namespace, a moment later.
            self.asked_for_account += 1
            return json.dumps({"kind": "ServiceAccount", "metadata": {"name": "default"}})
        if len(words) > 2 and not words[2].startswith("-"):
            one = self.get(kinds[0], words[2], place or "")
            return json.dumps(one) if one else ""
        chosen = words[words.index("--selector") + 1] if "--selector" in words else ""
        labels = dict(part.split("=") for part in chosen.split(",") if part)
        found = [
            item
            for (kind, space, _name), item in sorted(self.objects.items())
            if kind in kinds
            and place in (None, space)
            and labels.items() <= (item["metadata"].get("labels") or {}).items()
        ]
        return json.dumps({"kind": "List", "items": found})

    def _apply(self, words: list[str], items: list[dict[str, Any]]) -> str:
        self._known(items)
        found = []
        for item in items:
            live = self.objects.get(self.key(item))
            after = merged(live or {}, item)
            after["metadata"].setdefault("uid", f"uid-{item['metadata']['name']}")
            changed = live is None or live != after
            after["metadata"]["generation"] = (live or {"metadata": {}})["metadata"].get("generation", 0) + int(changed)
            found.append(after)
            if "--dry-run=server" not in words:
                self.objects[self.key(item)] = after
        return self._listing(found)

    def _replace(self, _words: list[str], items: list[dict[str, Any]]) -> str:
        for item in items:
            self.objects[self.key(item)] = copy.deepcopy(item)
        return self._listing(items)

    def _create(self, words: list[str], items: list[dict[str, Any]]) -> str:
        if items[0]["kind"] == "SelfSubjectAccessReview":
            return self._listing([self._reviewed(item["spec"]["resourceAttributes"]) for item in items])
        (item,) = items
        after = self.admit(copy.deepcopy(item)) if item["kind"] == "Pod" else item
        if "--dry-run=server" not in words:
            self.put(after)
        return json.dumps(after)

    def _reviewed(self, asked: dict[str, str]) -> dict[str, Any]:
        resource = f"{asked['resource']}/{asked['subresource']}" if "subresource" in asked else asked["resource"]
        allowed = (asked["verb"], resource) not in self.denied
        return {"kind": "SelfSubjectAccessReview", "metadata": {}, "status": {"allowed": allowed}}

    def _delete(self, _words: list[str], items: list[dict[str, Any]]) -> str:
        for item in items:
            self.objects.pop(self.key(item), None)
            if item["kind"] == "Namespace":
                for key in [key for key in self.objects if key[1] == item["metadata"]["name"]]:
                    del self.objects[key]
        return ""

    def _patch(self, words: list[str], _items: list[dict[str, Any]]) -> str:
        kind = RESOURCES[f"{words[1]}s"]
        place = words[words.index("--namespace") + 1] if "--namespace" in words else ""
        target: Any = self.objects[(kind, place, words[2])]
        for step in json.loads(words[words.index("-p") + 1]):
            *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
            where = target
            for name in parents:
                where = where[name]
            if step["op"] == "remove":
                del where[last]
            else:
                where[last] = step["value"]
        return ""

    def _wait(self, _words: list[str], _items: list[dict[str, Any]]) -> str:
        return ""

    def _version(self, _words: list[str], _items: list[dict[str, Any]]) -> str:
        return json.dumps({"clientVersion": {}, "serverVersion": {"gitVersion": self.version}})

    def _exec(self, words: list[str], _items: list[dict[str, Any]]) -> str:
        """Return what a command in a pod prints, by a word of it; nothing for all others."""
        return next((text for word, text in self.in_pods.items() if word in words[-1]), "")

    def _logs(self, words: list[str], _items: list[dict[str, Any]]) -> str:
        return self.logs[words[1]]
