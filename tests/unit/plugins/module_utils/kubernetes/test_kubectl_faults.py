"""What can be wrong between us and a cluster: one sentence each, with the command to look with."""

from __future__ import annotations

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import kubectl
from tests.support.fake_cluster import FakeCluster

DENIED = (
    'Error from server (Forbidden): daemonsets.apps is forbidden: User "ann" cannot create resource "daemonsets" '
    'in API group "apps" in the namespace "koordinator-system"'
)


@pytest.mark.parametrize(
    ("printed", "why", "look"),
    [
        ('error: context "x" does not exist', "has no such context", "kubectl config get-contexts"),
        ("error: You must be logged in to the server (Unauthorized)", "are expired or refused", "kubectl version"),
        (
            "x509: certificate has expired or is not yet valid",
            "the credentials are expired or refused",
            "kubectl version",
        ),
        ("x509: certificate signed by unknown authority", "certificate is not trusted", "kubectl config view"),
        ("Unable to connect to the server: dial tcp: i/o timeout", "the API server does not answer", "cluster-info"),
        ("The connection to the server h:6443 was refused", "the API server does not answer", "cluster-info"),
        (DENIED, "user ann may not create daemonsets in API group", "kubectl auth can-i create daemonsets"),
        ('error: the server doesn\'t have a resource type "nodeslo"', "a resource type", "kubectl api-resources"),
        ("error: something new", "something new", "kubectl get nodes"),
        ("", "it printed no error", "kubectl get nodes"),
    ],
)
def test_a_refusal_is_one_sentence(printed: str, why: str, look: str) -> None:
    text = str(kubectl.Kubectl(("kubectl",)).error(("get", "nodes", "-o", "json"), printed))
    assert why in text
    assert look in text.partition("look with: ")[2]
    assert "\n" not in text


def test_nothing_is_asked_twice_of_a_cluster_that_refuses() -> None:
    cluster = FakeCluster()
    cluster.fail = DENIED
    with pytest.raises(kubectl.KubectlError, match="may not create daemonsets"):
        cluster.kubectl.apply([{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "koordlet"}}])
    assert len(cluster.calls) == 1
