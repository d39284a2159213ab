"""Every rung of the ladder: when it holds, and what it says when it does not."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import (
    koordinator_ladder,
    koordinator_names,
    koordinator_read,
    pod_reasons,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.koordinator_ladder import (
    Readings,
    Root,
    Wanted,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy import koordinator
from tests.support.fake_cluster import FakeCluster

POLICY: dict[str, Any] = {
    "colocation-config": {"enable": True, "metricReportIntervalSeconds": 10},
    "resource-threshold-config": {"clusterStrategy": {"enable": True, "cpuSuppressPolicy": "cfsQuota"}},
}
NOW = "2026-12-01T07:00:00Z"
SPACE = koordinator_names.NAMESPACE


def deployment(name: str, kind: str = "Deployment", ready: int = 1) -> dict[str, Any]:
    status = {"observedGeneration": 1, "readyReplicas": ready, "updatedReplicas": 1}
    daemons = {"numberReady": ready, "updatedNumberScheduled": 1, "desiredNumberScheduled": 1}
    return {
        "kind": kind,
        "metadata": {"name": name, "namespace": SPACE, "generation": 1},
        "spec": {"replicas": 1},
        "status": {**status, **daemons},
    }


def pod(app: str, ready: str = "True", **status: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": f"{app}-1", "namespace": SPACE, "labels": {"koord-app": app}},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}], **status},
    }


def webhook(kind: str, name: str, ca: str = "TFM=") -> dict[str, Any]:
    return {
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": [{"name": "mpod-create.koordinator.sh", "clientConfig": {"caBundle": ca}}],
    }


PROBE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "probe", "namespace": "w", "labels": {"colocation.testbed/workload": "batch"}},
    "spec": {"containers": [{"name": "ffmpeg", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]},
}


def injected(item: dict[str, Any]) -> dict[str, Any]:
    item["metadata"]["labels"][koordinator_names.QOS_LABEL] = "BE"
    item["metadata"]["annotations"] = {koordinator_names.EXTENDED_SPEC: "{}"}
    item["spec"]["priorityClassName"] = "koord-batch"
    batch = {"kubernetes.io/batch-cpu": "1k", "kubernetes.io/batch-memory": "1Gi"}
    item["spec"]["containers"][0]["resources"]["requests"] = batch
    return item


def node(**offered: str) -> dict[str, Any]:
    batch = {"kubernetes.io/batch-cpu": "1500", "kubernetes.io/batch-memory": "1073741824"}
    return {"kind": "Node", "metadata": {"name": "n1", "labels": {}}, "status": {"allocatable": {**batch, **offered}}}


GOOD = Readings(
    node=node(),
    node_slo={"spec": koordinator.node_slo(POLICY, {})},
    node_metric={
        "spec": {"metricCollectPolicy": {"aggregateDurationSeconds": 300, "reportIntervalSeconds": 10}},
        "status": {"updateTime": NOW},
    },
    config_map={"metadata": {}, "data": koordinator.render(POLICY)},
    workloads=[deployment("koord-manager"), deployment("koordlet", "DaemonSet")],
    pods=[pod("koord-manager"), pod("koordlet")],
    priority_classes=list(koordinator_names.PRIORITY_CLASSES),
    webhooks=[
        webhook("MutatingWebhookConfiguration", koordinator_names.MUTATING),
        webhook("ValidatingWebhookConfiguration", koordinator_names.VALIDATING),
    ],
    probe=injected(copy.deepcopy(PROBE)),
    root=Root("kubepods/besteffort", 48500, "0-1", "0-1"),
    now_s=koordinator_ladder.seconds(NOW) or 0.0,
)
WANTED = Wanted("n1", POLICY, ["Deployment/koord-manager", "DaemonSet/koordlet"])


def test_every_rung_holds() -> None:
    steps = koordinator_ladder.climb(GOOD, WANTED)
    assert [item.step for item in steps if not item.ok] == []
    assert [item.step for item in steps] == [
        "ready",
        "priority_classes",
        "webhooks",
        "injection",
        "config",
        "node_slo",
        "node_metric",
        "batch_resources",
        "best_effort_root",
    ]
    assert koordinator_ladder.failing(steps) is None
    assert koordinator_ladder.components(GOOD, WANTED) == {"Deployment/koord-manager": True, "DaemonSet/koordlet": True}


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    state = {"state": {"waiting": {"reason": reason, "message": message}}}
    return {"containerStatuses": [{"name": "koordlet", "image": "r/koordlet:v1", "restartCount": 4, **state, **more}]}


CRASH = waiting("CrashLoopBackOff", lastState={"terminated": {"exitCode": 255}})
KUBELET = "E1 x] sync failed: Get https://10.0.0.1:10250/pods/: 403 Forbidden\nF1 time out waiting for sync informers"
NOT_READY = [{"type": "Ready", "status": "Unknown", "message": "kubelet stopped posting node status"}]
EVENT = {"reason": "SLOCfgUnmarshalFailed", "message": "invalid character", "lastTimestamp": NOW}


@pytest.mark.parametrize(
    ("change", "step", "words", "command"),
    [
        ({"workloads": []}, "ready", "Deployment/koord-manager, DaemonSet/koordlet is not there", "get pods"),
        (
            {"pods": [pod("koordlet", "False", **waiting("ImagePullBackOff", "manifest unknown"))]},
            "ready",
            "image r/koordlet:v1 can't be pulled: the registry does not have it (manifest unknown)",
            "describe pod koordlet-1",
        ),
        (
            {"pods": [pod("koordlet", "False", **CRASH)], "logs": {"koordlet-1": KUBELET}},
            "ready",
            "crashes (CrashLoopBackOff, exit status 255, 4 restarts); kubelet refuses the agent's service account",
            "logs koordlet-1 --previous",
        ),
        (
            {"workloads": [deployment("koord-manager", ready=0), deployment("koordlet", "DaemonSet")]},
            "ready",
            "Deployment/koord-manager has 0 of 1 pods ready",
            "get pods",
        ),
        ({"priority_classes": []}, "priority_classes", "no pod can be injected", "get priorityclasses"),
        ({"webhooks": []}, "webhooks", "is not there or has no webhook", "get mutatingwebhookconfigurations"),
        (
            {"webhooks": [webhook("MutatingWebhookConfiguration", koordinator_names.MUTATING, "Cg==")]},
            "webhooks",
            "mpod-create.koordinator.sh has no certificate",
            "get mutatingwebhookconfigurations",
        ),
        ({"probe": PROBE}, "injection", "pods not injected: a batch pod comes out without label", "koord-manager"),
        (
            {"probe": None, "refusal": "admission webhook denied"},
            "injection",
            "is refused: admission webhook denied",
            "koord-manager",
        ),
        ({"config_map": None}, "config", "so defaults count", "describe configmap"),
        ({"events": [EVENT]}, "config", "the manager can't read it: invalid character", "describe configmap"),
        (
            {"config_map": {"metadata": {}, "data": {"colocation-config": '{"enable": true}'}}},
            "config",
            "colocation-config, resource-threshold-config is not as the policy has it",
            "describe configmap",
        ),
        ({"node": None}, "node_slo", "the cluster has no node n1", "get nodes"),
        ({"node_slo": None}, "node_slo", "has made no NodeSLO for n1", "get nodeslo n1"),
        (
            {"node_slo": {"spec": {}}},
            "node_slo",
            'cpuSuppressPolicy is "cpuset", wanted "cfsQuota"',
            "get nodeslo n1",
        ),
        ({"node_metric": None}, "node_metric", "has made no NodeMetric", "get nodemetric n1"),
        (
            {"node_metric": {"spec": {"metricCollectPolicy": {}}}},
            "node_metric",
            "aggregateDurationSeconds is not set, wanted 300",
            "get nodemetric n1",
        ),
        (
            {"node_metric": {"spec": GOOD.node_metric["spec"]}} if GOOD.node_metric else {},
            "node_metric",
            "has not reported on n1 yet",
            "get nodemetric n1",
        ),
        ({"now_s": GOOD.now_s + 21}, "node_metric", "is 21 s old, more than 20 s", "get nodemetric n1"),
        (
            {"node": {**node(), "status": {"allocatable": {}}}},
            "batch_resources",
            "batch-cpu is not offered: the manager has not reckoned it yet",
            "get node n1",
        ),
        (
            {"node": node(**{"kubernetes.io/batch-cpu": "0"})},
            "batch_resources",
            "batch-cpu 0 and kubernetes.io/batch-memory 1073741824 are offered, fewer than",
            "get node n1",
        ),
        (
            {"node": {**node(), "status": {"allocatable": {}}}, "now_s": GOOD.now_s + 901},
            "batch_resources",
            "was taken back by the manager, as the agent has not reported for 901 s, more than degradeTimeMinutes",
            "get node n1",
        ),
        (
            {"node": {**node(), "status": {"conditions": NOT_READY}}},
            "ready",
            "node n1 is not ready (kubelet stopped posting node status), so its agent can't work",
            "describe node n1",
        ),
        (
            {"probe": None, "refusal": "failed calling webhook: connect: connection refused"},
            "injection",
            "is refused: failed calling webhook: connect: connection refused",
            "koord-manager",
        ),
        (
            {"pods": [pod("koordlet", "False", phase="Failed", reason="Evicted", message="node was low on memory")]},
            "ready",
            "pod koordlet-1: was evicted: node was low on memory",
            "describe pod koordlet-1",
        ),
        (
            {"root": Root("kubepods/besteffort", None, None, None, problem="kubelet's cgroupRoot is not /")},
            "best_effort_root",
            "cgroupRoot is not /",
            "cat ",
        ),
        (
            {"root": Root("kubepods/besteffort", -1, "0-1", "0-1", writable=False)},
            "best_effort_root",
            "can't be written",
            "cat ",
        ),
        (
            {"root": Root("kubepods/besteffort", -1, "0", "0-1")},
            "best_effort_root",
            "has CPUs 0 of 0-1 although suppress by cpuset is off: left over",
            "cat ",
        ),
    ],
)
def test_a_rung_that_does_not_hold_says_why(change: dict[str, Any], step: str, words: str, command: str) -> None:
    steps = koordinator_ladder.climb(replace(GOOD, **change), WANTED)
    (found,) = [item for item in steps if item.step == step]
    assert not found.ok
    assert words in found.text
    assert command in found.command
    assert "\n" not in found.text


def test_what_an_earlier_installation_left_is_seen() -> None:
    off = replace(WANTED, policy={})
    readings = replace(
        GOOD,
        node_slo={"spec": {}},
        config_map={"metadata": {}, "data": {}},
        root=Root("kubepods/besteffort", 2000, "0-1", "0-1"),
    )
    steps = {item.step: item for item in koordinator_ladder.climb(readings, off)}
    assert steps["best_effort_root"].text.startswith("kubepods/besteffort is limited to 2000 µs although suppress")
    assert steps["batch_resources"].text.endswith("is still offered although colocation is off for the node")
    assert steps["node_metric"].ok
    assert steps["config"].ok


def test_events_from_before_the_last_write_do_not_count() -> None:
    written = {"metadata": {"managedFields": [{"time": "2026-12-01T07:00:01Z"}]}, "data": koordinator.render(POLICY)}
    steps = koordinator_ladder.climb(replace(GOOD, events=[EVENT], config_map=written), WANTED)
    assert koordinator_ladder.failing(steps) is None


def test_agents_of_other_nodes_do_not_count() -> None:
    other = pod("koordlet", "False", **CRASH)
    other["spec"]["nodeName"] = "n2"
    steps = koordinator_ladder.climb(replace(GOOD, pods=[*GOOD.pods, other]), WANTED)
    assert koordinator_ladder.failing(steps) is None


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (KUBELET, "kubelet refuses the agent's service account"),
        ("F x] Get https://n:10250/pods: dial tcp: connection refused", "does not reach kubelet"),
        ("panic: timed out: states informer never synced", "never got kubelet's list of pods"),
        ("F x] can't get node n1", "does not find its node"),
        ("F x] listen tcp :9316: bind: address already in use", "a port of the agent is taken"),
        ("Error: unrecognized feature gate: X", "a feature gate is not known"),
        ("exec /koordlet: exec format error", "its program is for another architecture"),
        ("F open /host-cgroup/cpu/kubepods.slice: no such file or directory", "does not find kubelet's control groups"),
        ("something else", "it logged last: something else"),
        ("", ""),
    ],
)
def test_why_an_agent_ends_kubelet_first(log: str, words: str) -> None:
    assert words in pod_reasons.why_agent(log)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("no match for platform in manifest: not found", "there is none for the node's architecture"),
        ("dial tcp 10.0.0.1:5000: connect: connection refused", "the registry can't be reached"),
        ("lookup registry.example.org: no such host", "the registry can't be reached"),
        ("manifest unknown", "the registry does not have it"),
        ("pull access denied, repository does not exist", "credentials are missing"),
    ],
)
def test_why_an_image_cannot_be_had(message: str, why: str) -> None:
    found = pod_reasons.problem(pod("koordlet", "False", **waiting("ErrImagePull", message)))
    assert found == f"image r/koordlet:v1 can't be pulled: {why} ({message})"
    assert pod_reasons.problem(pod("x", "False", **waiting("ImagePullBackOff"))).endswith(
        "can't be pulled (ImagePullBackOff)"
    )


def test_a_pod_that_ended_says_why() -> None:
    refused = pod(
        "x", "False", phase="Failed", reason="OutOfkubernetes.io/batch-cpu", message="Node didn't have enough"
    )
    assert "as the node offered less than it asks for (OutOfkubernetes.io/batch-cpu)" in pod_reasons.problem(refused)
    assert pod_reasons.problem(pod("x", "False", phase="Failed", reason="Error")) == "failed: Error"


def cluster() -> FakeCluster:
    found = FakeCluster()
    for item in (*GOOD.workloads, *GOOD.pods, *GOOD.webhooks, GOOD.node):
        found.put(json.loads(json.dumps(item)))
    for name in koordinator_names.PRIORITY_CLASSES:
        found.put({"kind": "PriorityClass", "metadata": {"name": name}})
    for kind, item in (("NodeSLO", GOOD.node_slo), ("NodeMetric", GOOD.node_metric)):
        found.put({**(item or {}), "kind": kind, "metadata": {"name": "n1"}})
    found.put(
        {
            "kind": "ConfigMap",
            "metadata": {"name": koordinator_names.CONFIG_MAP, "namespace": SPACE},
            "data": koordinator.render(POLICY),
        }
    )
    found.admit = injected
    return found


def test_readings_come_from_the_cluster_and_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(koordinator_read.time, "time", lambda: GOOD.now_s)
    found = cluster()
    look = koordinator_read.Look("n1", probe=PROBE)
    steps, readings = koordinator_read.until_it_works(found.kubectl, look, WANTED, 0, lambda: GOOD.root)
    assert [item.text for item in steps if not item.ok] == []
    assert readings.probe is not None
    assert found.changes() == []
    assert found.get("Pod", "probe", "w") is None


def test_waiting_ends_as_soon_as_all_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(koordinator_read.time, "time", lambda: GOOD.now_s)
    found = cluster()
    slo = found.objects.pop(("NodeSLO", "", "n1"))
    asked = []

    def later() -> None:
        asked.append(1)
        if len(asked) > 12:
            found.objects[("NodeSLO", "", "n1")] = slo

    found.after = later
    steps, _readings = koordinator_read.until_it_works(
        found.kubectl, koordinator_read.Look("n1", probe=PROBE), WANTED, 30
    )
    assert koordinator_ladder.failing(steps) is None


def test_a_webhook_that_is_down_leaves_pods_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(koordinator_read.time, "time", lambda: GOOD.now_s)
    found = cluster()
    found.admit = lambda item: item
    steps, _readings = koordinator_read.until_it_works(
        found.kubectl, koordinator_read.Look("n1", probe=PROBE), WANTED, 0
    )
    bad = koordinator_ladder.failing(steps)
    assert bad is not None
    assert bad.text.startswith("pods not injected: ")
