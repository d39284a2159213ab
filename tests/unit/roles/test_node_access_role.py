"""Role node_access and its connection on a stand-in for a cluster: the pod is this machine, the rest is real."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tooling import ROOT

from tests.support import kubectl_standin, small_play
from tests.unit.plugins.module_utils.kubernetes.test_node_access import node

ROLE = {"ansible.builtin.include_role": {"name": "colocation.testbed.node_access"}}
NAMESPACE = "colocation-testbed-access"


class Site:
    """An inventory of one node that is reached through a pod, and the cluster."""

    def __init__(self, place: Path) -> None:
        self.place, self.cluster = place, place / "cluster.json"
        kubectl_standin.write(self.cluster, [node("node1")])
        program, config = place / "kubectl", place / "config"
        program.write_text(
            f'#!/bin/sh\nexec {sys.executable} {ROOT}/tests/support/kubectl_standin.py {self.cluster} "$@"\n'
        )
        program.chmod(0o755)
        config.write_text("")
        self.variables = {
            "ansible_connection": "colocation.testbed.node_pod",
            "kubernetes_kubectl": str(program),
            "kubernetes_kubeconfig": str(config),
            "node_access_directory": str(place / "shared"),
            "node_state_dir": str(place / "shared/node"),
            "node_access_deadline_s": 2,
        }

    def play(self, *words: str, tasks: Any = (), **variables: Any) -> tuple[int, str]:
        return small_play.play(self.place, [ROLE, *tasks], {**self.variables, **variables}, *words)

    def objects(self) -> set[tuple[str, str]]:
        known = json.loads(self.cluster.read_text())["objects"]
        return {(item["kind"], item["metadata"]["name"]) for item in known}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_node_is_reached_and_given_up_again(site: Site) -> None:
    status, text = site.play("--check", "--diff")
    assert status == 0, text
    assert "DaemonSet colocation-testbed-access/node-access-node1" in text
    assert site.objects() == {("Node", "node1")}
    seen = site.place / "seen"
    # As root already, so that nobody asks for sudo.
    asked = {"ansible.builtin.copy": {"content": "through\n", "dest": str(seen)}, "become": True}
    status, text = site.play(tasks=[asked])
    assert status == 0, text
    assert seen.read_text() == "through\n"
    status, text = site.play(tasks=[asked])
    assert (status, "changed=0" in text) == (0, True), text
    assert ("DaemonSet", "node-access-node1") in site.objects()
    status, text = site.play(node_access_state="absent")
    assert status == 0, text
    assert site.objects() == {("Node", "node1")}


def test_a_node_without_its_pod_says_so(site: Site) -> None:
    status, text = site.play(tasks=[{"ansible.builtin.command": "true"}], node_access_state="read")
    assert status != 0
    told = f"node node1: has no pod of ours in namespace {NAMESPACE}; run playbook access, or provision"
    assert told in " ".join(text.split())


def test_other_hosts_are_left_alone(site: Site) -> None:
    status, text = site.play(ansible_connection="local")
    assert status == 0, text
    assert site.objects() == {("Node", "node1")}
