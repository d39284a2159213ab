"""A cluster that somebody else runs, as prepared answers of kubectl."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import attach, kubectl


def cluster(**answers: Any) -> kubectl.Kubectl:
    """Return an API whose answers are chosen by a word of the question."""

    def run(argv: Sequence[str], **_options: Any) -> commands.Result:
        for word, answer in answers.items():
            if any(word in part for part in argv):
                if isinstance(answer, str) and answer.startswith("error"):
                    return commands.Result(tuple(argv), 1, "", answer)
                return commands.Result(tuple(argv), 0, answer if isinstance(answer, str) else json.dumps(answer), "")
        raise AssertionError(f"nothing prepared for {argv}")

    return kubectl.Kubectl(("kubectl", "--kubeconfig", "/k"), run=run)


def node(name: str, runtime: str = "containerd://2.1.6", ready: str = "True") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"role": "tested"}},
        "status": {
            "nodeInfo": {
                "kubeletVersion": "v1.34.4",
                "containerRuntimeVersion": runtime,
                "kernelVersion": "6.1",
                "architecture": "amd64",
            },
            "conditions": [{"type": "Ready", "status": ready}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    }


def test_a_kubeconfig_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(attach.AttachError, match="correct kubernetes_kubeconfig"):
        attach.prefix("kubectl", str(tmp_path / "none"), "")
    (tmp_path / "config").touch()
    assert attach.prefix("kubectl", str(tmp_path / "config"), "c")[-2:] == ("--context", "c")


def test_several_kubeconfigs_are_put_together_as_kubectl_does_it(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    several = f"{tmp_path}/one:{tmp_path}/none"
    found = attach.prefix("kubectl", several, "c")
    assert found == ("env", f"KUBECONFIG={several}", "kubectl", "--context", "c")
    assert attach.prefix("kubectl", f"{tmp_path}/one:", "") == ("kubectl", "--kubeconfig", f"{tmp_path}/one")
    with pytest.raises(attach.AttachError, match=r"none:.*/nothing: is not there"):
        attach.prefix("kubectl", f"{tmp_path}/none:{tmp_path}/nothing", "")
    asked = kubectl.Kubectl(found, cluster(**{"get-contexts": "a\nb\n"}).run)
    with pytest.raises(attach.AttachError, match=f"context c: is not in {several}, which has a, b"):
        attach.current_context(asked, "c")


def test_contexts() -> None:
    asked = cluster(**{"get-contexts": "a\nb\n", "view": "b"})
    assert attach.current_context(asked, "a") == "a"
    assert attach.current_context(asked, "") == "b"
    with pytest.raises(attach.AttachError, match="context c: is not in /k, which has a, b"):
        attach.current_context(asked, "c")
    with pytest.raises(attach.AttachError, match="has no current context"):
        attach.current_context(cluster(**{"get-contexts": "a\n", "view": "\n"}), "")


def test_every_missing_right_is_named_with_verb_and_resource() -> None:
    rights = [
        attach.Right("get", "nodes"),
        attach.Right("create", "pods", namespace="lab"),
        attach.Right("patch", "deployments/scale", "apps"),
    ]
    answers = [{"status": {"allowed": allowed}} for allowed in (True, False, False)]
    for text in (json.dumps({"kind": "List", "items": answers}), "\n".join(map(json.dumps, answers))):
        found = attach.missing_rights(cluster(create=text), rights)
        advice = "is missing; let the cluster's administrator grant it to these credentials"
        assert found == [
            f"right create pods in namespace lab: {advice}",
            f"right patch deployments/scale.apps in all namespaces: {advice}",
        ]
    with pytest.raises(attach.AttachError, match="2 answers about 3 rights"):
        attach.missing_rights(cluster(create="\n".join(map(json.dumps, answers[:2]))), rights)


def test_a_subresource_is_asked_for_as_such() -> None:
    attributes = attach.Right("get", "pods/log").review()["spec"]["resourceAttributes"]
    assert (attributes["resource"], attributes["subresource"]) == ("pods", "log")


def test_nodes_that_are_missing_or_not_ready() -> None:
    found = attach.nodes(cluster(nodes={"kind": "List", "items": [node("a"), node("b", ready="False")]}))
    assert attach.node_problems(found, ["a"]) == []
    problems = attach.node_problems(found, ["b", "c"])
    assert problems[0].startswith("node b: is not Ready; look with kubectl describe node b")
    assert problems[1] == "node c: is not in the cluster, which has a, b; set kubernetes_node_name"


@pytest.mark.parametrize(
    ("runtime", "nri"), [("containerd://2.0.1", True), ("containerd://1.7.27", False), ("cri-o://1.30.0", False)]
)
def test_whether_a_runtime_has_nri(runtime: str, nri: bool) -> None:
    assert attach.node_of(node("a", runtime)).nri is nri


def test_what_the_kubelet_says() -> None:
    config = {"kubeletconfig": {"cgroupDriver": "systemd", "containerRuntimeEndpoint": "unix:///run/x.sock"}}
    asked = cluster(configz=config, metrics="# HELP x\nkubelet_cgroup_version 2\n")
    found, note = attach.with_kubelet(asked, attach.node_of(node("a")))
    assert (found.cgroup_driver, found.cgroup_root, found.cgroup_version) == ("systemd", "/kubepods.slice", 2)
    assert (found.runtime_socket, note) == ("/run/x.sock", "")


def test_a_kubelet_that_may_not_be_asked_is_a_note() -> None:
    asked = cluster(configz='error from server (Forbidden): nodes "a" is forbidden')
    found, note = attach.with_kubelet(asked, attach.node_of(node("a")))
    assert found.cgroup_driver == ""
    assert "is forbidden" in note
    assert note.endswith("so the cgroup driver of a is not known")


def test_an_api_server_that_does_not_answer() -> None:
    asked = cluster(version="error: dial tcp 10.0.0.1:6443: connect: connection refused")
    with pytest.raises(kubectl.KubectlError, match=r"kubectl version: the API server does not answer .*cluster-info"):
        attach.server_version(asked)


def test_of_two_addresses_of_a_kind_the_first_counts() -> None:
    """A node of two families, as the API lists it: its primary address first."""
    found = node("a")
    found["status"]["addresses"].append({"type": "InternalIP", "address": "fd00::1"})
    assert attach.node_of(found).addresses == {"InternalIP": "10.0.0.1"}
