"""The connection through a node's pod: what is run, how files are copied, and the sentences when it can't be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleConnectionFailure, AnsibleFileNotFound
from ansible.playbook.play_context import PlayContext
from ansible.plugins.loader import get_shell_plugin

from ansible_collections.colocation.testbed.plugins.connection import node_pod as plugin

# As kubectl does: what comes after -- runs, and a status other than 0 is said on standard error.
KUBECTL = """#!/bin/sh
printf '%s\\n' "$*" >> {place}/calls
[ "$#" -gt 0 ] || exit 1
case "$*" in
  *" exec "*) [ -e {place}/broken ] && {{ cat {place}/broken >&2; exit 1; }} ;;
  *" get daemonset "*) cat {place}/daemonset; exit 0 ;;
  *) cat {place}/pods; exit 0 ;;
esac
while [ "$1" != -- ]; do shift; done
shift
"$@"
status=$?
[ "$status" = 0 ] || echo "command terminated with exit code $status" >&2
exit "$status"
"""
OURS = {"app.kubernetes.io/managed-by": "colocation-testbed"}
METADATA = {"name": "node-access-n1", "namespace": "x", "labels": OURS, "generation": 1}
MADE = {"kind": "DaemonSet", "metadata": METADATA, "status": {"observedGeneration": 1, "updatedNumberScheduled": 1}}


class Place:
    """A directory with a stand-in for kubectl."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kubectl = path / "kubectl"
        self.kubectl.write_text(KUBECTL.format(place=path))
        self.kubectl.chmod(0o755)
        (path / "config").write_text("")
        self.has([MADE], [])

    def has(self, sets: list[dict[str, Any]], pods: list[dict[str, Any]]) -> None:
        (self.path / "daemonset").write_text("".join(map(json.dumps, sets)))
        (self.path / "pods").write_text(json.dumps({"kind": "List", "items": pods}))

    def calls(self) -> list[str]:
        return (self.path / "calls").read_text().splitlines()

    def connect(self, **variables: Any) -> plugin.Connection:
        """Return the connection of a host with these variables, which its documentation maps to options."""
        usual = {"inventory_hostname": "n1", "kubernetes_kubectl": str(self.kubectl)}
        given = {**usual, "kubernetes_kubeconfig": str(self.path / "config"), **variables}
        documented = yaml.safe_load(plugin.DOCUMENTATION)["options"]
        values = {name: option["default"] for name, option in documented.items()}
        for name, option in documented.items():
            for var in option.get("vars", ()):
                values[name] = given.get(var["name"], values[name])
        connection = plugin.Connection(PlayContext(), shell=get_shell_plugin(shell_type="sh"))
        connection.get_option = values.__getitem__
        return connection


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_command_runs_in_the_pod_of_the_node(place: Place) -> None:
    connection = place.connect(kubernetes_context="lab", node_access_namespace="x", kubernetes_node_name="n1.example")
    assert connection.exec_command("echo hi; echo no >&2") == (0, b"hi\n", b"no\n")
    (call,) = place.calls()
    head = f"--kubeconfig {place.path}/config --context lab exec --namespace x daemonset/node-access-n1.example"
    assert call == f"{head} --container node --pod-running-timeout=10s -- /bin/sh -c echo hi; echo no >&2"


def test_a_status_is_the_commands_own_and_input_gets_there(place: Place) -> None:
    assert place.connect().exec_command("cat; echo bad >&2; exit 7", b"in\0put") == (7, b"in\0put", b"bad\n")
    assert "--stdin" in place.calls()[0]


def test_files_get_there_and_back(place: Place, tmp_path: Path) -> None:
    content = bytes(range(256)) * 1000
    (tmp_path / "here").write_bytes(content)
    there, back = tmp_path / "it's there", tmp_path / "back"
    connection = place.connect()
    connection.put_file(str(tmp_path / "here"), str(there))
    assert there.read_bytes() == content
    connection.fetch_file(str(there), str(back))
    assert back.read_bytes() == content


def test_files_that_can_not_be_copied_are_said(place: Place, tmp_path: Path) -> None:
    connection = place.connect()
    with pytest.raises(AnsibleFileNotFound, match="none: can't be read"):
        connection.put_file(str(tmp_path / "none"), "/x")
    (tmp_path / "here").write_text("x")
    with pytest.raises(AnsibleConnectionFailure, match=r"node n1: /nowhere/x could not be written: .*nonexistent"):
        connection.put_file(str(tmp_path / "here"), "/nowhere/x")
    with pytest.raises(AnsibleConnectionFailure, match="node n1: /nowhere/x could not be read"):
        connection.fetch_file("/nowhere/x", str(tmp_path / "back"))


@pytest.mark.parametrize(("verb", "said"), [("put", "2"), ("fetch", "2\\nx")])
def test_a_stream_that_was_cut_short_is_no_copy(place: Place, tmp_path: Path, verb: str, said: str) -> None:
    text = place.kubectl.read_text().replace('"$@"\n', f"cat > /dev/null; printf '{said}'\n")
    place.kubectl.write_text(text)
    (tmp_path / "here").write_text("abc")
    with pytest.raises(AnsibleConnectionFailure, match=r"[12] of [23] bytes arrived"):
        getattr(place.connect(), f"{verb}_file")(str(tmp_path / "here"), str(tmp_path / "there"))


@pytest.mark.parametrize(
    ("sets", "pods", "printed", "words"),
    [
        ([], [], "not found", "has no pod of ours in namespace colocation-testbed-access; run playbook access"),
        ([MADE], [], "timed out", "DaemonSet colocation-testbed-access/node-access-n1 has made no pod; look with"),
        (
            [MADE],
            [{"metadata": {"name": "p"}, "status": {"phase": "Failed", "reason": "Evicted", "message": "disk"}}],
            "x",
            "pod colocation-testbed-access/p: was evicted: disk; look with: kubectl -n colocation-testbed-access",
        ),
        (
            [MADE],
            [{"metadata": {"name": "p"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}],
            'pods "p" is forbidden: User "me" cannot create resource "pods/exec" in API group "" in the namespace "x"',
            "kubectl exec: user me may not create pods/exec",
        ),
    ],
)
def test_what_stands_in_the_way_is_one_sentence(
    place: Place, sets: list[Any], pods: list[Any], printed: str, words: str
) -> None:
    place.has(sets, pods)
    (place.path / "broken").write_text(f"Error from server: {printed}\n")
    with pytest.raises(AnsibleConnectionFailure) as caught:
        place.connect().exec_command("true")
    assert str(caught.value).startswith("node n1: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_prediction_runs_here_where_there_is_no_pod_yet(place: Place) -> None:
    place.has([], [])
    assert place.connect(ansible_node_pod_optional=True).exec_command("echo hi") == (0, b"hi\n", b"")
    assert not any(" exec " in call for call in place.calls())
    place.has([MADE], [])
    place.connect(ansible_node_pod_optional=True).exec_command("echo hi")
    assert " exec " in place.calls()[-1]


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"kubernetes_kubectl": "/nowhere/kubectl"}, "node n1: /nowhere/kubectl could not be started"),
        ({"kubernetes_kubeconfig": "/none"}, "node n1: kubeconfig /none: is not there; correct kubernetes_kubeconfig"),
    ],
)
def test_a_controller_without_the_means_says_which(place: Place, variables: dict[str, str], words: str) -> None:
    with pytest.raises(AnsibleConnectionFailure, match=words):
        place.connect(**variables).exec_command("true")


def test_pipelining_is_on_and_nobody_becomes_root_who_is_it_already() -> None:
    assert plugin.Connection.has_pipelining is True
    options = yaml.safe_load(plugin.DOCUMENTATION)["options"]
    assert (options["pipelining"]["default"], options["remote_user"]["default"]) == (True, "root")
