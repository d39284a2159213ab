# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Talk to a cluster through kubectl and JSON, with one sentence for each thing that can be wrong.

kubectl is what every host with a cluster has; what reaches it (a namespace, a kubeconfig) is part of the argv.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable

from ansible_collections.colocation.testbed.plugins.module_utils import commands

OWNER_LABEL, OWNER = "app.kubernetes.io/managed-by", "colocation-testbed"
RUN_LABEL = "colocation.testbed/run"
FIELD_MANAGER = "colocation-testbed"
_REQUEST_TIMEOUT_S = 30
_CALL_TIMEOUT_S = 60.0
_POLL_S = 1.0
_FORBIDDEN = re.compile(r'User "(?P<user>[^"]*)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]*)"(?P<rest>[^\n]*)')
_UNKNOWN_KIND = re.compile(r"doesn't have a resource type|no matches for kind|could not find the requested resource")
# What stands before the line that kubectl fails with is the words of the program that gives the credentials.
_PROGRAM_FAILED = re.compile(r"executable \S+ failed with exit code \d+")
_CAUSES = (
    (
        re.compile(r"exec: executable \S+ not found"),
        "the program that gives the credentials is not there for this user",
        "config view --minify",
    ),
    (_PROGRAM_FAILED, "the program that gives the credentials failed", "config view --minify"),
    (
        re.compile(r"auth plugin has been removed|[Nn]o Auth Provider found"),
        "the kubeconfig has credentials of a kind that kubectl knows no more",
        "config view --minify",
    ),
    (
        re.compile(r"unable to read (?:client-cert|client-key|certificate-authority)|error: open \S+: "),
        "a file that the kubeconfig names cannot be read",
        "config view --minify",
    ),
    (
        re.compile(r"server localhost:8080 was refused"),
        "kubectl has found no kubeconfig, or no cluster in it",
        "config view --minify",
    ),
    (re.compile(r"proxyconnect"), "the proxy to the API server does not answer", "config view --minify"),
    (
        re.compile(r"context \"?([^\" ]+)\"? does not exist|context was not found"),
        "has no such context",
        "config get-contexts",
    ),
    (
        re.compile(r"must be logged in|Unauthorized|certificate has expired"),
        "the credentials are expired or refused",
        "version",
    ),
    (re.compile(r"x509|certificate signed by unknown"), "the API server's certificate is not trusted", "config view"),
    (
        re.compile(r"connection refused|was refused|Unable to connect|no route to host|i/o timeout|deadline exceeded"),
        "the API server does not answer",
        "cluster-info",
    ),
)


class KubectlError(Exception):
    """The cluster could not be asked, or refused; the text says what, why, and the command to look with."""


class UnknownKindError(KubectlError):
    """The cluster does not serve such a kind of object (yet): its definition is not installed."""


@dataclass(frozen=True)
class Kubectl:
    """How a cluster is reached: argv up to and including kubectl with its kubeconfig; the runner is injected."""

    argv: tuple[str, ...]
    run: Callable[..., commands.Result] = commands.run

    def call(
        self, *words: str, input_text: str | None = None, timeout_s: float = _CALL_TIMEOUT_S, check: bool = True
    ) -> commands.Result:
        """Run kubectl with words and return its result.

        Raises KubectlError when it can't be run, takes too long, or, with ``check``, ends badly.
        """
        # A request that waits on purpose must not be cut short.
        request_s = _REQUEST_TIMEOUT_S if timeout_s <= _CALL_TIMEOUT_S else int(timeout_s)
        argv = [*self.argv, f"--request-timeout={request_s}s", *words]
        try:
            done = self.run(argv, timeout_s=timeout_s, check=False, input_text=input_text)
        except commands.CommandError as exc:
            raise KubectlError(str(exc)) from exc
        if check and done.status != 0:
            raise self.error(words, done.stderr or done.stdout)
        return done

    def error(self, words: Sequence[str], printed: str) -> KubectlError:
        """Return what kubectl printed as one sentence, with the command to look with."""
        shown = " ".join(["kubectl", *words[: words.index("-o") if "-o" in words[:3] else 3]])
        denied = _FORBIDDEN.search(printed)
        if denied:
            verb, resource = denied["verb"], denied["resource"]
            return KubectlError(
                f"{shown}: user {denied['user']} may not {verb} {resource}{denied['rest']}; grant it, and look with: "
                f"kubectl auth can-i {verb} {resource}"
            )
        if _UNKNOWN_KIND.search(printed):
            return UnknownKindError(f"{shown}: {_last(printed)}; look with: kubectl api-resources")
        for pattern, why, look in _CAUSES:
            found = pattern.search(printed)
            if found:
                said = _line(printed, found.start(), pattern is _PROGRAM_FAILED)
                return KubectlError(f"{shown}: {why} ({said}); look with: kubectl {look}")
        return KubectlError(f"{shown}: {_last(printed)}; look with: {shown}")

    def get(self, resource: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        """Return one object, None where there is none or the cluster doesn't know the kind. Raises KubectlError."""
        found = self._objects("get", resource, name, *_place(namespace), "--ignore-not-found")
        return found[0] if found else None

    def items(self, resource: str, namespace: str = "", selector: str = "") -> list[dict[str, Any]]:
        """Return objects of a namespace (all of them without one); [] where the kind is not known."""
        place = _place(namespace) or ("--all-namespaces",)
        chosen = ("--selector", selector) if selector else ()
        return self._objects("get", resource, *place, *chosen)

    def raw(self, path: str) -> str:
        """Return what the API server answers to a GET of a path. Raises KubectlError."""
        return self.call("get", "--raw", path).stdout

    def _objects(self, *words: str) -> list[dict[str, Any]]:
        try:
            return parse(self.call(*words, "-o", "json").stdout)
        except UnknownKindError:
            return []

    def present(self, objects: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return those of some objects that exist, as they are; raises UnknownKindError for an unknown kind."""
        return parse(
            self.call("get", "-f", "-", "-o", "json", "--ignore-not-found", input_text=listing(objects)).stdout
        )

    def apply(self, objects: Iterable[Mapping[str, Any]], dry_run: bool = False) -> list[dict[str, Any]]:
        """Apply objects on the server's side and return them as the server has them; ``dry_run`` changes nothing."""
        words = [
            "apply",
            "--server-side",
            "--force-conflicts",
            f"--field-manager={FIELD_MANAGER}",
            "-f",
            "-",
            "-o",
            "json",
        ]
        if dry_run:
            words.append("--dry-run=server")
        return parse(self.call(*words, input_text=listing(objects), timeout_s=180.0).stdout)

    def replace(self, objects: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Replace objects as a whole, with all that others wrote into them."""
        words = ("replace", f"--field-manager={FIELD_MANAGER}", "-f", "-", "-o", "json")
        return parse(self.call(*words, input_text=listing(objects)).stdout)

    def try_create(self, wanted: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str]:
        """Ask the server what would become of an object; return that, or None and why it was refused."""
        words = ("create", "--dry-run=server", "-f", "-", "-o", "json")
        done = self.call(*words, input_text=json.dumps(wanted), check=False)
        if done.status == 0:
            return parse(done.stdout)[0], ""
        return None, _last(done.stderr)

    def delete(self, objects: Iterable[Mapping[str, Any]], deadline_s: float) -> None:
        """Delete objects and wait until they are gone. Raises KubectlError when they are not by the deadline."""
        # In the foreground, so that the pods of a workload are gone with it.
        words = ("delete", "-f", "-", "--ignore-not-found", "--cascade=foreground", f"--timeout={int(deadline_s)}s")
        self.call(*words, input_text=listing(objects), timeout_s=deadline_s + _REQUEST_TIMEOUT_S)

    def patch(self, resource: str, name: str, patch: Sequence[Mapping[str, Any]], subresource: str = "") -> None:
        """Apply a JSON patch to an object of the cluster, or to its subresource."""
        below = (f"--subresource={subresource}",) if subresource else ()
        self.call("patch", resource, name, "--type=json", *below, "-p", json.dumps(list(patch)))


def _place(namespace: str) -> tuple[str, ...]:
    return ("--namespace", namespace) if namespace else ()


def _last(printed: str) -> str:
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else "it printed no error"


def _line(printed: str, place: int, with_words_before: bool) -> str:
    """Return the line of a place in what was printed, on demand with the line before it."""
    begin = printed.rfind("\n", 0, place) + 1
    line = printed[begin:].partition("\n")[0].strip().rstrip(".")
    before = _last(printed[:begin]) if with_words_before and printed[:begin].strip() else ""
    return f"{before}; {line}" if before else line


def listing(objects: Iterable[Mapping[str, Any]]) -> str:
    """Return objects as one JSON list that kubectl reads."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def parse(text: str) -> list[dict[str, Any]]:
    """Return the objects in kubectl's JSON output: one, a list, several one after the other, or none.

    Raises KubectlError for anything else.
    """
    found: list[dict[str, Any]] = []
    decoder, rest = json.JSONDecoder(), text.strip()
    while rest:
        try:
            value, end = decoder.raw_decode(rest)
        except ValueError as exc:
            raise KubectlError(f"kubectl printed no JSON ({exc}): {rest[:60]!r}; look with: kubectl version") from exc
        is_list = isinstance(value, dict) and str(value.get("kind", "")).endswith("List") and "items" in value
        found += value["items"] if is_list else [value]
        rest = rest[end:].strip()
    return found


def wait(tell: Callable[[], bool], deadline_s: float, clock: Callable[[], float] = time.monotonic) -> bool:
    """Ask until something is so, at least once, at most until the deadline; return whether it is."""
    end = clock() + deadline_s
    while True:
        if tell():
            return True
        left = end - clock()
        if left <= 0:
            return False
        time.sleep(min(_POLL_S, left))


def identity(item: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return (kind, namespace, name) of an object."""
    metadata = item["metadata"]
    return str(item["kind"]), str(metadata.get("namespace", "")), str(metadata["name"])


def shown(item: Mapping[str, Any]) -> str:
    """Return an object's kind and name for a sentence."""
    kind, namespace, name = identity(item)
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def is_ours(item: Mapping[str, Any]) -> bool:
    """Tell whether an object carries our label."""
    return (item["metadata"].get("labels") or {}).get(OWNER_LABEL) == OWNER
