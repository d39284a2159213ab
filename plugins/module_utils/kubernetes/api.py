# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask and change a cluster through kubectl, whose argv prefix says on which host and in which namespaces it runs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable

from ansible_collections.colocation.testbed.plugins.module_utils import commands

MANAGED_BY = {"app.kubernetes.io/managed-by": "colocation-testbed"}
RUN_LABEL = "colocation.testbed/run"
_FIELD_MANAGER = "colocation-testbed"
_TIMEOUT_S = 120.0
# What kubectl says, what it means, and what the user can do. The first that is found counts.
_REASONS = (
    (
        r"context \"?([^\" ]+)\"? does not exist|context was not found",
        "the kubeconfig has no such context; choose one that kubectl config get-contexts shows",
    ),
    (
        r"Unauthorized|must be logged in|certificate has expired|token has expired|getting credentials",
        "the credentials are not accepted, or have expired; renew them, kubectl auth whoami shows whose they are",
    ),
    (r"[Ff]orbidden", "the right is missing; let the cluster's administrator grant it"),
    (r"x509: ", "the API server's certificate is not trusted; correct the kubeconfig's certificate-authority"),
    (
        r"dial tcp|connection refused|no such host|i/o timeout|Unable to connect|EOF$|was refused",
        "the API server cannot be reached; look with kubectl get --raw /readyz, and check its address and the network",
    ),
    (
        r"no matches for kind|the server doesn't have a resource type",
        "the cluster lacks this kind; is what brings it installed?",
    ),
)
_CHANGED = re.compile(r"^(\S+) (created|configured|serverside-applied|deleted|unchanged)", re.MULTILINE)

Run = Callable[..., commands.Result]


class ApiError(Exception):
    """The cluster did not do what was asked; one sentence: what, why, what to do."""


@dataclass(frozen=True)
class Api:
    """A cluster as it is reached by kubectl: argv prefix, longest time for one call in seconds."""

    kubectl: tuple[str, ...]
    timeout_s: float = _TIMEOUT_S
    run: Run = commands.run

    def call(self, arguments: Sequence[str], what: str, input_text: str | None = None) -> str:
        """Run kubectl and return what it printed. Raises ApiError in which `what` says what was tried."""
        request = f"--request-timeout={self.timeout_s:g}s"
        try:
            done = self.run(
                [*self.kubectl, *arguments, request], check=False, timeout_s=self.timeout_s + 10, input_text=input_text
            )
        except commands.CommandError as exc:
            raise ApiError(f"{what}: {exc}") from exc
        if done.status != 0:
            raise ApiError(f"{what}: {explain(done.stderr or done.stdout)}")
        return done.stdout

    def read(self, arguments: Sequence[str], what: str) -> Any:
        """Return the JSON that `kubectl get` and the like answer. Raises ApiError."""
        text = self.call([*arguments, "-o", "json"], what)
        try:
            return json.loads(text)
        except ValueError as exc:
            raise ApiError(f"{what}: kubectl's answer is not JSON ({exc}); run it by hand") from exc

    def raw(self, path: str, what: str) -> str:
        """Return what the API server answers to a GET of a path. Raises ApiError."""
        return self.call(["get", "--raw", path], what)


def explain(output: str) -> str:
    """Return the line in which kubectl says what is wrong, with what to do about it."""
    lines = [
        line.strip() for line in output.splitlines() if line.strip() and not line.startswith(("Warning:", "E0", "E1"))
    ]
    for pattern, remedy in _REASONS:
        for line in reversed(lines):
            if re.search(pattern, line):
                return f"{line.rstrip('.')}: {remedy}"
    return f"{lines[-1] if lines else 'kubectl printed nothing'}; run it by hand with -v=6"


def labelled(item: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    """Return an object with the labels that everything of ours carries."""
    metadata = dict(item.get("metadata") or {})
    own = {**MANAGED_BY, **({RUN_LABEL: run_id} if run_id else {})}
    metadata["labels"] = {**(metadata.get("labels") or {}), **own}
    return {**item, "metadata": metadata}


def name_of(item: Mapping[str, Any]) -> str:
    """Return kind, namespace and name of an object as messages show it. Raises ApiError where one is missing."""
    metadata = item.get("metadata") or {}
    if not item.get("apiVersion") or not item.get("kind") or not metadata.get("name"):
        raise ApiError(f"object {json.dumps(item)[:120]}: needs apiVersion, kind and metadata.name")
    return "/".join(part for part in (item["kind"], metadata.get("namespace"), metadata["name"]) if part)


def changed_objects(output: str) -> list[str]:
    """Return the objects that kubectl says it changed."""
    return [name for name, verb in _CHANGED.findall(output) if verb != "unchanged"]


def apply(api: Api, items: Sequence[Mapping[str, Any]], check: bool) -> list[str]:
    """Bring objects about and return those that changed; with `check` only asks the server. Raises ApiError."""
    names = ", ".join(name_of(item) for item in items)
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})
    dry = ["--dry-run=server"] if check else []
    output = api.call(["apply", "-f", "-", f"--field-manager={_FIELD_MANAGER}", *dry], f"apply {names}", text)
    return changed_objects(output)


def delete(api: Api, items: Sequence[Mapping[str, Any]], check: bool) -> list[str]:
    """Delete objects, wait until they are gone, and return those that were there. Raises ApiError."""
    names = ", ".join(name_of(item) for item in items)
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})
    dry = ["--dry-run=server"] if check else []
    output = api.call(["delete", "--ignore-not-found", "-o", "name", *dry, "-f", "-"], f"delete {names}", text)
    return output.split()
