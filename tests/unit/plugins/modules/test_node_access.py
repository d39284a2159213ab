"""Module node_access, run in this process with a stand-in for a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import Kubectl
from ansible_collections.colocation.testbed.plugins.modules import node_access
from tests.unit.plugins.module_utils.kubernetes.test_node_access import Cluster

Run = Callable[..., dict[str, Any]]
MADE = [("Namespace", "create"), ("DaemonSet", "create")]
GONE = [("DaemonSet", "delete"), ("Namespace", "delete")]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def run(cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    (tmp_path / "config").write_text("")
    monkeypatch.setattr(node_access, "Kubectl", lambda argv: Kubectl(("kubectl",), cluster.run))

    def _run(**arguments: Any) -> dict[str, Any]:
        given = {"node": "n1", "kubeconfig": str(tmp_path / "config"), "deadline_s": 1, **arguments}
        with patch_module_args(given), pytest.raises(SystemExit):
            node_access.main()
        return json.loads(capsys.readouterr().out)

    return _run


def actions(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [(item["kind"], item["action"]) for item in result["objects"]]


def test_made_found_and_taken_away(run: Run, cluster: Cluster) -> None:
    predicted = run(_ansible_check_mode=True, _ansible_diff=True)
    assert (predicted["changed"], predicted["pod"], actions(predicted)) == (True, "", MADE)
    assert "DaemonSet colocation-testbed-access/node-access-n1" in predicted["diff"]["after"]
    assert run(state="read")["there"] is False
    assert cluster.changes() == []
    made = run()
    assert (made["changed"], made["pod"], actions(made)) == (True, "node-access-n1-x1", MADE)
    again = run(_ansible_check_mode=True)
    assert (again["changed"], again["pod"]) == (False, "node-access-n1-x1")
    assert run(state="read") == {**run(state="read"), "there": True, "pod": "node-access-n1-x1", "changed": False}
    foreseen = run(state="absent", _ansible_check_mode=True)
    gone = run(state="absent")
    assert actions(foreseen) == actions(gone) == GONE
    assert (gone["changed"], gone["there"]) == (True, False)
    assert run(state="absent")["changed"] is False


def test_another_image_makes_another_pod(run: Run) -> None:
    run()
    assert actions(run(image="registry.example/python:3")) == [("Namespace", "same"), ("DaemonSet", "change")]


def test_what_is_wrong_is_said(run: Run, cluster: Cluster) -> None:
    assert run(kubeconfig="/none")["msg"] == "kubeconfig /none: is not there; correct kubernetes_kubeconfig"
    cluster.denied = {("create", "pods/exec")}
    assert run()["msg"].startswith("right create pods/exec in namespace colocation-testbed-access: is missing")
