"""What kubectl says becomes one sentence; labels and names of objects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import api

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}


class Kubectl:
    """Stands in for kubectl with prepared answers, and keeps what it was asked."""

    def __init__(self, *answers: tuple[int, str]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[list[str], str | None]] = []

    def __call__(self, argv: Sequence[str], **options: Any) -> commands.Result:
        self.asked.append((list(argv), options.get("input_text")))
        status, text = self.answers.pop(0)
        return commands.Result(tuple(argv), status, "" if status else text, text if status else "")


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ('error: context "x" does not exist', "kubectl config get-contexts"),
        ("error: You must be logged in to the server (Unauthorized)", "credentials are not accepted"),
        (
            'Error from server (Forbidden): pods is forbidden: User "a" cannot list resource "pods"',
            'cannot list resource "pods": the right is missing',
        ),
        ("The connection to the server 127.0.0.1:1 was refused - did you specify the right host?", "cannot be reached"),
        ("Unable to connect to the server: x509: certificate signed by unknown authority", "is not trusted"),
        ('error: resource mapping not found: no matches for kind "X" in version "y"', "lacks this kind"),
        ("Warning: x\nerror: odd", "error: odd; run it by hand"),
        ("", "kubectl printed nothing"),
    ],
)
def test_what_kubectl_says_is_explained(output: str, text: str) -> None:
    sentence = api.explain(output)
    assert text in sentence
    assert "\n" not in sentence


def test_apply_sends_one_list_and_tells_what_changed() -> None:
    kubectl = Kubectl((0, "namespace/x created\npod/y unchanged\nservice/z configured\n"))
    cluster = api.Api(("kubectl", "--kubeconfig", "k"), run=kubectl)
    assert api.apply(cluster, [NAMESPACE, NAMESPACE], check=True) == ["namespace/x", "service/z"]
    argv, text = kubectl.asked[0]
    assert argv[:3] == ["kubectl", "--kubeconfig", "k"]
    assert "--dry-run=server" in argv
    assert len(json.loads(text or "")["items"]) == 2


def test_delete_tells_what_was_there() -> None:
    kubectl = Kubectl((0, "namespace/x\n"))
    assert api.delete(api.Api(("kubectl",), run=kubectl), [NAMESPACE], check=False) == ["namespace/x"]
    assert "--ignore-not-found" in kubectl.asked[0][0]


def test_a_failure_says_what_was_tried() -> None:
    kubectl = Kubectl((1, "error: You must be logged in to the server (Unauthorized)"))
    with pytest.raises(api.ApiError, match=r"apply Namespace/x: error: You must be logged in"):
        api.apply(api.Api(("kubectl",), run=kubectl), [NAMESPACE], check=False)


def test_an_answer_that_is_not_json() -> None:
    with pytest.raises(api.ApiError, match="list nodes: kubectl's answer is not JSON"):
        api.Api(("kubectl",), run=Kubectl((0, "<html>"))).read(["get", "nodes"], "list nodes")


def test_labels_are_added_and_others_kept() -> None:
    item = api.labelled({**NAMESPACE, "metadata": {"name": "x", "labels": {"a": "b"}}}, "run-1")
    assert item["metadata"]["labels"] == {
        "a": "b",
        "app.kubernetes.io/managed-by": "colocation-testbed",
        "colocation.testbed/run": "run-1",
    }
    assert "colocation.testbed/run" not in api.labelled(NAMESPACE, "")["metadata"]["labels"]


def test_an_object_needs_a_name() -> None:
    with pytest.raises(api.ApiError, match=r"needs apiVersion, kind and metadata.name"):
        api.name_of({"kind": "Pod"})
