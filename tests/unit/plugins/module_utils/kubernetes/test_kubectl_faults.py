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
        (
            "Unable to connect to the server: getting credentials: exec: executable aws not found\n\nIt looks like you "
            "are trying to use a client-go credential plugin that is not installed.\nSee:\n  https://k8s.io/x",
            "is not there for this user (Unable to connect to the server: getting credentials: exec: executable aws n",
            "kubectl config view --minify",
        ),
        (
            "Unable to locate credentials.\nUnable to connect to the server: getting credentials: exec: executable aws "
            "failed with exit code 253",
            "the credentials failed (Unable to locate credentials; Unable to connect to the server: getting creden",
            "kubectl config view --minify",
        ),
        (
            'error: The gcp auth plugin has been removed.\nPlease use the "gke-gcloud-auth-plugin" instead.\nSee x',
            "a kind that kubectl knows no more (error: The gcp auth plugin has been removed)",
            "kubectl config view --minify",
        ),
        (
            "Error in configuration: \n* unable to read client-cert /k/c.crt for a due to open /k/c.crt: no such file\n"
            "* unable to read client-key /k/c.key for a due to open /k/c.key: no such file",
            "names cannot be read (* unable to read client-cert /k/c.crt for a due to",
            "kubectl config view --minify",
        ),
        ("error: open /k/token: no such file or directory", "cannot be read (error: open /k/token:", "config view"),
        (
            "The connection to the server localhost:8080 was refused - did you",
            "found no kubeconfig, or no cluster in it",
            "config v",
        ),
        (
            "Unable to connect to the server: proxyconnect tcp: dial tcp 127.0.0.1:2: connect: connection refused",
            "the proxy to the API server does not answer (Unable to connect to the server: proxyconnect tcp",
            "kubectl config view --minify",
        ),
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
