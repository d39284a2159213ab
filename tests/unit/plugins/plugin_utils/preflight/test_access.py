"""A node that is reached through a pod: asked where there is one, told what stands in the way of one where not."""

from __future__ import annotations

from typing import Any

import pytest
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.plugin_utils.host_executor import HostExecutorError
from ansible_collections.colocation.testbed.plugins.plugin_utils.preflight import access, survey, variables

GIVEN = {
    "ansible_connection": "colocation.testbed.node_pod",
    "kubernetes_context": "lab",
    "kubernetes_node_name": "n1.example",
    "node_state_dir": "/var/lib/colocation-testbed/node",
}
OPTIONS = variables.role_options(ROOT / "roles")


class Host:
    """A host, or the controller; ``answer`` is what asking it comes to."""

    def __init__(self, name: str, given: dict[str, Any], answer: Any) -> None:
        self.name, self.given, self.answer = name, given, answer
        self.asked: list[tuple[str, Any, Any]] = []

    def variable(self, name: str, default: Any = None) -> Any:
        return self.given.get(name, default)

    def run(self, module: str, args: Any, check_mode: bool | None = None) -> Any:
        self.asked.append((module, args, check_mode))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def look(answer: Any) -> tuple[list[Any], Host, Host]:
    """Return the rows of a node, what was asked of it and of the controller."""
    node = Host("n1", GIVEN, HostExecutorError("n1: no such pod"))
    machine = Host("localhost", {}, answer)
    hosts = {"n1": node, "localhost": machine}
    looking = survey.Survey({"tested": ["n1"], "load": ["n2"]}, OPTIONS, hosts.__getitem__, 500)
    return list(looking.of_host("n1", "tested")), node, machine


def test_a_pod_that_is_to_be_made_stops_nothing_and_the_host_is_not_asked() -> None:
    (row,), node, machine = look({"pod": "", "changed": True})
    assert (row.level, row.found) == ("ok", "to be made, host not asked yet")
    assert node.asked == []
    ((module, args, check_mode),) = machine.asked
    assert (module, check_mode) == ("node_access", True)
    assert (args["node"], args["context"], args["kubectl"]) == ("n1.example", "lab", "kubectl")
    assert args["state_dir"] == "/var/lib/colocation-testbed/node"
    assert args["image"] == OPTIONS["node_access_image"]["default"]


def test_through_a_pod_that_is_ready_the_host_is_asked() -> None:
    found, node, _machine = look({"pod": "node-access-n1-x1", "changed": False})
    assert [(row.what, row.level) for row in found] == [("pod for access", "ok"), ("connection", "missing")]
    assert [module for module, _args, _check in node.asked] == ["node_facts"]


def test_what_stands_in_the_way_is_told_in_its_own_words() -> None:
    (row,), _node, _machine = look(HostExecutorError("localhost: right create pods/exec: is missing; grant it"))
    assert row.level == "missing"
    assert row.consequence == "right create pods/exec: is missing; grant it"


@pytest.mark.parametrize("connection", ["ssh", "local", "colocation.testbed.netns"])
def test_other_hosts_need_no_pod(connection: str) -> None:
    assert not access.is_wanted(Host("n1", {"ansible_connection": connection}, None))
