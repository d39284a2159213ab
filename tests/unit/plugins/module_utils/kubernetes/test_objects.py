"""Objects of a cluster: what is made, changed, left alone and removed, and what kubectl's errors mean."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import kubectl, objects
from tests.support.fake_cluster import FakeCluster

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
CONFIG: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "c", "namespace": "n"},
    "data": {"a": "1"},
}
PROFILE = {
    "apiVersion": "config.koordinator.sh/v1alpha1",
    "kind": "ClusterColocationProfile",
    "metadata": {"name": "p"},
    "spec": {"qosClass": "BE"},
}
HOOK = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingWebhookConfiguration",
    "metadata": {"name": "h"},
    "webhooks": [{"name": "a", "timeoutSeconds": 30}],
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "n"},
    "spec": {"containers": [{"name": "x", "image": "i"}]},
}


def wanted(*items: dict[str, Any], run: str = "r1") -> list[dict[str, Any]]:
    return [objects.labelled(item, run) for item in items]


def bring(cluster: FakeCluster, *items: dict[str, Any], foreign: str = "fail") -> list[str]:
    planned = objects.plan(cluster.kubectl, wanted(*items), foreign)
    objects.carry_out(cluster.kubectl, planned)
    assert objects.read_back(cluster.kubectl, planned) == []
    return [item.action for item in planned]


def test_what_is_made_is_labelled_and_the_second_time_the_same() -> None:
    cluster = FakeCluster()
    assert bring(cluster, NAMESPACE, CONFIG, PROFILE, POD) == ["create"] * 4
    made = cluster.get("ConfigMap", "c", "n")
    assert made is not None
    assert made["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "colocation-testbed",
        "colocation.testbed/run": "r1",
    }
    changes = len(cluster.changes())
    assert bring(cluster, NAMESPACE, CONFIG, PROFILE, POD) == ["same"] * 4
    assert len(cluster.changes()) == changes


def test_pods_wait_for_the_account_of_their_namespace() -> None:
    cluster = FakeCluster()
    bring(cluster, NAMESPACE, CONFIG)
    assert cluster.asked_for_account == 0
    bring(cluster, POD)
    assert cluster.asked_for_account == 1


def test_planning_changes_nothing_even_where_kinds_are_not_known_yet() -> None:
    cluster = FakeCluster(custom=False)
    planned = objects.plan(cluster.kubectl, wanted(NAMESPACE, PROFILE), "fail")
    assert [item.action for item in planned] == ["create", "create"]
    assert cluster.changes() == []


def test_a_change_shows_in_the_diff_without_what_the_server_writes() -> None:
    cluster = FakeCluster()
    bring(cluster, NAMESPACE, CONFIG)
    planned = objects.plan(cluster.kubectl, wanted({**CONFIG, "data": {"a": "2"}}), "fail")
    assert [item.action for item in planned] == ["change"]
    shown = objects.diff(planned)
    assert '"a": "1"' in shown["before"]
    assert '"a": "2"' in shown["after"]
    assert "uid" not in shown["after"]


def test_namespaces_and_definitions_come_first_and_are_waited_for() -> None:
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "d.x"}}
    cluster = FakeCluster()
    bring(cluster, CONFIG, crd, NAMESPACE)
    verbs = [call[0] for call in cluster.calls]
    assert verbs.index("wait") < len(verbs) - 1 - verbs[::-1].index("apply")
    assert [call[0] for call in cluster.changes()] == ["apply", "apply"]


def test_others_objects_are_refused_skipped_or_adopted() -> None:
    cluster = FakeCluster([CONFIG, NAMESPACE])
    with pytest.raises(objects.ObjectsError, match=r"ConfigMap n/c, Namespace n: exists and is not ours"):
        objects.plan(cluster.kubectl, wanted(CONFIG, NAMESPACE), "fail")
    assert bring(cluster, CONFIG, NAMESPACE, foreign="skip") == ["foreign", "foreign"]
    assert cluster.changes() == []
    assert bring(cluster, CONFIG, foreign="adopt") == ["change"]
    assert bring(cluster, CONFIG) == ["same"]


def test_webhooks_that_change_are_replaced_so_that_their_template_goes() -> None:
    cluster = FakeCluster()
    bring(cluster, HOOK)
    live = cluster.get("MutatingWebhookConfiguration", "h")
    assert live is not None
    live["metadata"]["annotations"] = {"template": "old"}
    bring(cluster, {**HOOK, "webhooks": [{"name": "a", "timeoutSeconds": 5}]})
    after = cluster.get("MutatingWebhookConfiguration", "h")
    assert after is not None
    assert "template" not in (after["metadata"].get("annotations") or {})


def test_pods_that_differ_are_made_anew_whatever_admission_made_of_them() -> None:
    cluster = FakeCluster()
    bring(cluster, POD)
    live = cluster.get("Pod", "p", "n")
    assert live is not None
    live["spec"]["containers"][0]["image"] = "rewritten by a webhook"
    assert bring(cluster, POD) == ["same"]
    other = copy.deepcopy(POD)
    other["spec"]["containers"][0]["image"] = "j"
    assert bring(cluster, other) == ["change"]
    assert [call[0] for call in cluster.changes()][-2:] == ["delete", "apply"]


def test_what_changes_while_it_is_looked_at_is_looked_at_again() -> None:
    cluster = FakeCluster()
    bring(cluster, HOOK)
    versions = iter(range(1, 100))
    busy = [True]

    def controller() -> None:
        live = cluster.get("MutatingWebhookConfiguration", "h")
        if live and busy[0]:
            version = next(versions)
            live["metadata"]["annotations"] = {"template": str(version)}
            live["metadata"]["resourceVersion"] = str(version)
            busy[0] = version < 3

    cluster.after = controller
    assert [item.action for item in objects.plan(cluster.kubectl, wanted(HOOK), "fail")] == ["same"]
    assert not busy[0]


def test_only_ours_is_removed_webhooks_first_and_the_namespace_last() -> None:
    cluster = FakeCluster()
    bring(cluster, NAMESPACE, CONFIG, HOOK, PROFILE)
    cluster.put({**CONFIG, "metadata": {"name": "theirs", "namespace": "n"}})
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": "n"}}
    doomed = objects.doomed(cluster.kubectl, wanted(CONFIG, NAMESPACE, theirs, HOOK, PROFILE))
    assert [item["kind"] for item in doomed] == [
        "MutatingWebhookConfiguration",
        "ConfigMap",
        "ClusterColocationProfile",
        "Namespace",
    ]
    objects.remove(cluster.kubectl, doomed[:-1], 5)
    assert [key[2] for key in cluster.objects] == ["n", "theirs"]
    assert objects.doomed(cluster.kubectl, wanted(HOOK)) == []


@pytest.mark.parametrize("item", [{}, {"kind": "Pod"}, {"apiVersion": "v1", "kind": "Pod", "metadata": {}}])
def test_what_is_no_object_is_refused(item: dict[str, Any]) -> None:
    with pytest.raises(objects.ObjectsError, match=r"lacks apiVersion, kind or metadata\.name"):
        objects.labelled(item, "")


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        (
            'Error from server (Forbidden): nodes is forbidden: User "joe" cannot list resource "nodes" '
            'in API group "" at the cluster scope',
            "user joe may not list nodes in API group",
        ),
        ('error: context "x" does not exist', "has no such context"),
        ("error: You must be logged in to the server (Unauthorized)", "the credentials are expired or refused"),
        (
            "The connection to the server localhost:8080 was refused - did you specify the right host or port?",
            "kubectl has found no kubeconfig, or no cluster in it",
        ),
        ("Unable to connect to the server: x509: certificate signed by unknown authority", "is not trusted"),
        ("Error from server: etcdserver: leader changed", "etcdserver: leader changed; look with: kubectl get"),
    ],
)
def test_errors_are_one_sentence_with_the_next_command(printed: str, words: str) -> None:
    cluster = FakeCluster()
    cluster.fail = printed
    with pytest.raises(kubectl.KubectlError) as caught:
        cluster.kubectl.items("nodes")
    assert words in str(caught.value)
    assert "look with: kubectl " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_program_is_told() -> None:
    with pytest.raises(kubectl.KubectlError, match="is not there; install it or correct the path"):
        kubectl.Kubectl(("/nowhere/kubectl",)).items("nodes")


def test_an_unknown_kind_has_no_objects() -> None:
    cluster = FakeCluster(custom=False)
    assert cluster.kubectl.get("nodeslo.slo.koordinator.sh", "n1") is None
    with pytest.raises(kubectl.UnknownKindError):
        cluster.kubectl.present([PROFILE])


def test_output_that_is_no_json_is_told() -> None:
    with pytest.raises(kubectl.KubectlError, match="printed no JSON"):
        kubectl.parse("Warning: x")
    assert kubectl.parse("") == []


@given(st.lists(st.dictionaries(st.text(max_size=3), st.integers(), max_size=2), max_size=4))
def test_objects_printed_one_after_the_other_or_as_list_are_the_same(items: list[dict[str, int]]) -> None:
    one = "\n".join(json.dumps(item) for item in items)
    assert kubectl.parse(one) == items
    assert kubectl.parse(kubectl.listing(items)) == items


def test_waiting_asks_at_least_once_and_ends_at_the_deadline() -> None:
    asked: list[int] = []
    assert not kubectl.wait(lambda: bool(asked.append(1)), 0)
    assert len(asked) == 1
    answers = iter([False, True])
    assert kubectl.wait(lambda: next(answers), 5)
