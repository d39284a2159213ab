"""The modules of Koordinator and of a cluster's objects, run in this process against a cluster in memory."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import best_effort_root, koordinator_ladder
from ansible_collections.colocation.testbed.plugins.module_utils.policy import koordinator
from ansible_collections.colocation.testbed.plugins.modules import (
    cluster_record,
    koordinator_leftovers,
    koordinator_node,
    koordinator_policy,
    koordinator_preflight,
    koordinator_source,
    koordinator_status,
    kubernetes_objects,
)
from tests.support.fake_cluster import FakeCluster

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "w"}}
POLICY = {"resource-threshold-config": {"clusterStrategy": {"enable": True, "cpuSuppressPolicy": "cfsQuota"}}}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "annotations": {"node.koordinator.sh/x": "1"}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}], "capacity": {"kubernetes.io/batch-cpu": "1"}},
}


HIERARCHIES = "1 1 0:1 / {root}/cpu rw - cgroup cgroup rw,cpu\n2 1 0:2 / {root}/cpuset rw - cgroup cgroup rw,cpuset\n"


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster([NODE])


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster) -> Any:
    """Run a module with arguments, and return its result."""

    def _run(module: Any, **args: Any) -> dict[str, Any]:
        monkeypatch.setattr(module, "Kubectl", lambda _argv: cluster.kubectl, raising=False)
        with patch_module_args(args), pytest.raises(SystemExit):
            module.main()
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        return result

    return _run


def test_objects_are_made_once_and_removed_once(run: Any, cluster: FakeCluster) -> None:
    predicted = run(kubernetes_objects, objects=[NAMESPACE], _ansible_check_mode=True, _ansible_diff=True)
    assert predicted["changed"] is True
    assert cluster.changes() == []
    made = run(kubernetes_objects, objects=[NAMESPACE], run_id="r", _ansible_diff=True)
    assert made["objects"] == [{"kind": "Namespace", "namespace": "", "name": "w", "action": "create"}]
    assert "(not there)" in made["diff"]["before"]
    assert run(kubernetes_objects, objects=[NAMESPACE], run_id="r")["changed"] is False
    assert run(kubernetes_objects, objects=[NAMESPACE], state="absent", _ansible_check_mode=True)["changed"] is True
    assert run(kubernetes_objects, objects=[NAMESPACE], state="absent", _ansible_diff=True)["changed"] is True
    assert run(kubernetes_objects, objects=[NAMESPACE], state="absent")["changed"] is False


def test_others_objects_fail_before_anything_changes(run: Any, cluster: FakeCluster) -> None:
    cluster.put(NAMESPACE)
    result = run(kubernetes_objects, objects=[NAMESPACE])
    assert result["failed"] is True
    assert "Namespace w: exists and is not ours" in result["msg"]
    assert run(kubernetes_objects, objects=[NAMESPACE], skip_foreign=True)["changed"] is False
    assert run(kubernetes_objects, objects=[NAMESPACE], adopt=True)["changed"] is True


def test_parts_that_are_not_wanted_any_more_go(run: Any, cluster: FakeCluster) -> None:
    labels = {"app.kubernetes.io/part-of": "x"}
    one, other = ({**NAMESPACE, "metadata": {"name": name, "labels": labels}} for name in ("a", "b"))
    run(kubernetes_objects, objects=[one, other], part_of="x")
    predicted = run(kubernetes_objects, objects=[one], part_of="x", _ansible_check_mode=True, _ansible_diff=True)
    assert predicted["diff"]["before"] == "--- Namespace b\n"
    assert cluster.get("Namespace", "b")
    assert run(kubernetes_objects, objects=[one])["changed"] is False
    done = run(kubernetes_objects, objects=[one], part_of="x")
    assert done["objects"] == predicted["objects"]
    assert [item["action"] for item in done["objects"]] == ["same", "delete"]
    assert cluster.get("Namespace", "b") is None
    assert run(kubernetes_objects, objects=[one], part_of="x")["changed"] is False


def test_what_does_not_stay_applied_is_told(run: Any, cluster: FakeCluster) -> None:
    def interfere() -> None:
        live = cluster.get("Namespace", "w")
        if live:
            live["metadata"]["labels"]["colocation.testbed/run"] = "other"

    cluster.after = interfere
    result = run(kubernetes_objects, objects=[NAMESPACE], run_id="r")
    assert "Namespace w: was applied, and is not as it was asked for" in result["msg"]


def manage(cluster: FakeCluster) -> None:
    def reconcile() -> None:
        held = cluster.get("ConfigMap", "slo-controller-config", "koordinator-system") or {}
        spec = koordinator.node_slo(koordinator.parse(held.get("data") or {}), {})
        cluster.put({"apiVersion": "x", "kind": "NodeSLO", "metadata": {"name": "n1"}, "spec": spec})

    cluster.after = reconcile


def test_a_policy_is_written_once(run: Any, cluster: FakeCluster) -> None:
    manage(cluster)
    args = {"policy": POLICY, "nodes": ["n1"], "deadline_s": 1}
    predicted = run(koordinator_policy, **args, _ansible_check_mode=True, _ansible_diff=True)
    assert predicted["changed"] is True
    assert cluster.changes() == []
    written = run(koordinator_policy, **args, _ansible_diff=True)
    assert written["diff"] == predicted["diff"]
    assert list(written["data"]) == ["resource-threshold-config"]
    assert run(koordinator_policy, **args)["changed"] is False


def test_a_policy_that_is_wrong_or_does_nothing_changes_nothing(run: Any, cluster: FakeCluster) -> None:
    wrong = {"resource-threshold-config": {"nodeConfigs": []}, "cpu-burst-config": {"clusterStrategy": {"policy": "x"}}}
    assert len(run(koordinator_policy, policy=wrong)["problems"]) == 2
    idle = {"resource-threshold-config": {"clusterStrategy": {"enable": True}}}
    assert "it would do nothing" in run(koordinator_policy, policy=idle, host={"cpus": 2})["msg"]
    assert "no feature gate" in run(koordinator_policy, policy=POLICY, features="X=true")["msg"]
    assert "node n2: is not in the cluster" in run(koordinator_policy, policy=POLICY, nodes=["n2"])["msg"]
    assert cluster.changes() == []


def test_the_ladder_fails_with_its_first_rung_or_reports(run: Any, cluster: FakeCluster) -> None:
    args = {"node": "n1", "probe": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}}
    result = run(koordinator_status, **args, read_node=False, deadline_s=0)
    assert result["msg"].startswith("ready: Deployment/koord-manager, DaemonSet/koordlet is not there; install")
    assert result["msg"].endswith("(at once); look with: kubectl -n koordinator-system get pods -o wide")
    report = run(koordinator_status, **args, read_node=False, deadline_s=0, on_failure="report")
    assert (report["ok"], report["changed"]) == (False, False)
    assert report["components"] == {"Deployment/koord-manager": False, "DaemonSet/koordlet": False}
    bad = run(koordinator_status, **args, policy={"resource-qos": {}}, deadline_s=0)
    assert "is not a key of Koordinator" in bad["msg"]
    assert cluster.changes() == []


def test_leftovers_go_once_and_never_beside_a_running_agent(run: Any, cluster: FakeCluster) -> None:
    agent = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "koordlet", "namespace": "koordinator-system"},
    }
    cluster.put(agent)
    assert "still runs and would write everything again" in run(koordinator_leftovers, deadline_s=0)["msg"]
    assert cluster.changes() == []
    predicted = run(koordinator_leftovers, deadline_s=0, _ansible_check_mode=True, _ansible_diff=True)
    del cluster.objects[cluster.key(agent)]
    done = run(koordinator_leftovers, deadline_s=5, _ansible_diff=True)
    assert done["removed"] == predicted["removed"]
    assert done["removed"] == [
        "node n1: annotation node.koordinator.sh/x removed",
        "node n1: capacity kubernetes.io/batch-cpu removed",
    ]
    assert run(koordinator_leftovers)["changed"] is False


def test_an_installation_by_manifests_goes_by_its_labels(run: Any, cluster: FakeCluster) -> None:
    labels = {"app.kubernetes.io/managed-by": "colocation-testbed", "app.kubernetes.io/part-of": "koordinator"}
    for kind, name in (("DaemonSet", "koordlet"), ("Service", "koordinator-webhook-service")):
        place = {"name": name, "namespace": "koordinator-system", "labels": labels}
        cluster.put({"apiVersion": "x/v1", "kind": kind, "metadata": place})
    cluster.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "koordinator-system", "labels": labels}})
    cluster.put(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "w", "labels": dict([*labels.items()][:1])}}
    )
    predicted = run(koordinator_leftovers, method="manifests", _ansible_check_mode=True)
    assert cluster.changes() == []
    done = run(koordinator_leftovers, method="manifests", deadline_s=5)
    assert done["removed"] == predicted["removed"]
    assert done["removed"][0] == "DaemonSet koordinator-system/koordlet: deleted"
    assert sorted(cluster.objects) == [("Namespace", "", "w"), ("Node", "", "n1")]
    assert run(koordinator_leftovers, method="manifests")["changed"] is False


def test_leftovers_of_others_stay_and_are_named(run: Any, cluster: FakeCluster) -> None:
    definition = {
        "apiVersion": "x/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "nodeslos.slo.koordinator.sh"},
    }
    release = {"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "s"}
    cluster.put({**definition, "metadata": {**definition["metadata"], "annotations": release}})
    text = "CustomResourceDefinition nodeslos.slo.koordinator.sh"
    done = run(koordinator_leftovers, method="manifests", deadline_s=5)
    assert done["left"] == [f"{text}: left, as it is of Helm release s/r"]
    assert run(koordinator_leftovers, method="helm", release="other", release_namespace="s")["changed"] is False
    gone = run(koordinator_leftovers, method="helm", release="r", release_namespace="s", deadline_s=5)
    assert (gone["removed"], gone["left"]) == ([f"{text}: deleted"], [])


def test_preflight_tells_everything(run: Any, cluster: FakeCluster) -> None:
    assert run(koordinator_preflight, method="manifests", nodes=["n1"])["owner"] == ""
    cluster.put({**NAMESPACE, "metadata": {"name": "koordinator-system"}})
    result = run(koordinator_preflight, method="helm", nodes=["n2"])
    assert len(result["problems"]) == 2
    assert run(koordinator_preflight, method="helm", removal=True)["changed"] is False
    cluster.denied = {("create", "clusterroles"), ("patch", "nodes/status")}
    said = run(koordinator_preflight, method="manifests", nodes=["n1"])["msg"]
    assert said.startswith("right create clusterroles.rbac.authorization.k8s.io in all namespaces: is missing; ")
    assert "right patch nodes/status in all namespaces: is missing" in said
    assert cluster.changes() == []
    cluster.denied = {("create", "clusterroles")}
    assert run(koordinator_preflight, method="helm", removal=True)["changed"] is False
    cluster.fail = "error: You must be logged in to the server (Unauthorized)"
    assert "credentials are expired" in run(koordinator_preflight, method="helm")["msg"]


def test_a_host_without_kubelet_is_told(run: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpu").mkdir()
    text = HIERARCHIES.format(root=tmp_path)
    layout = cgroup.parse_layout(text)
    monkeypatch.setattr(cgroup, "detect", lambda: layout)
    result = run(koordinator_node, state_dir=str(tmp_path / "state"))
    assert "kubelet does not run here, or its cgroupRoot is not /" in result["msg"]
    assert not (tmp_path / "state").exists()
    assert run(koordinator_node, state="absent", state_dir=str(tmp_path / "state"))["changed"] is False


def test_a_node_is_recorded(run: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    group = tmp_path / "cpu/kubepods/besteffort"
    sets = tmp_path / "cpuset/kubepods/besteffort"
    for place in (group, sets):
        place.mkdir(parents=True)
    (group / "cpu.cfs_quota_us").write_text("2000\n")
    for place in (sets, sets.parent):
        (place / "cpuset.cpus").write_text("0-1\n")
    text = HIERARCHIES.format(root=tmp_path)
    layout = cgroup.parse_layout(text)
    monkeypatch.setattr(cgroup, "detect", lambda: layout)
    args = {"state_dir": str(tmp_path / "state"), "directories": [str(tmp_path / "agent")]}
    assert run(koordinator_node, **args, _ansible_check_mode=True, _ansible_diff=True)["changed"] is True
    assert best_effort_root.read(layout).quota_us == 2000
    result = run(koordinator_node, **args, lift=False)
    assert result["root"]["quota_us"] == 2000
    assert result["host"]["cgroup_v2"] is False
    assert run(koordinator_node, **args)["restored"] != []
    assert run(koordinator_node, **args)["changed"] is False
    (group / "cpu.cfs_quota_us").write_text("5000\n")
    assert run(koordinator_node, state="absent", state_dir=args["state_dir"])["changed"] is True
    assert isinstance(best_effort_root.read(layout), koordinator_ladder.Root)
    assert best_effort_root.read(layout).quota_us == -1


def test_sources_that_cannot_be_had_are_told(run: Any) -> None:
    assert "/nowhere/go is not there" in run(koordinator_source, go="/nowhere/go")["msg"]


def test_what_is_in_a_cluster_is_noted_once_and_forgotten_once(run: Any, tmp_path: Any) -> None:
    where = {"state_dir": str(tmp_path / "state"), "part": "koordinator", "kubectl": ["kubectl", "--context", "lab"]}
    first = {**where, "settings": {"method": "helm"}}
    assert run(cluster_record, **first, _ansible_check_mode=True, _ansible_diff=True)["changed"] is True
    assert run(cluster_record, **where, state="read")["records"] == []
    assert run(cluster_record, **first)["changed"] is True
    assert run(cluster_record, **{**first, "settings": {"method": "other"}})["changed"] is False
    (noted,) = run(cluster_record, state="read", state_dir=where["state_dir"])["records"]
    assert (noted["settings"], noted["goes_with_its_cluster"]) == ({"method": "helm"}, False)
    assert run(cluster_record, **{**where, "kubectl": ["kubectl"]}, state="read")["records"] == []
    assert run(cluster_record, **where, state="absent")["changed"] is True
    assert run(cluster_record, **where, state="absent")["changed"] is False
    assert "say what goes into which cluster" in run(cluster_record, state_dir=where["state_dir"])["msg"]
