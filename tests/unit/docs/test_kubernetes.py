"""The examples in docs/kubernetes.md and docs/koordinator.md work as written, as far as they need no cluster."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from tooling import IMPORT_PREFIX, ROOT, checkout_environment, run

from ansible_collections.colocation.testbed.plugins.filter.koordinator_policy import koordinator_policy
from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import components
from tests.support import kubectl_standin

PAGES = {name: (ROOT / f"docs/{name}.md").read_text(encoding="utf-8") for name in ("kubernetes", "koordinator")}
COLLECTION = "colocation.testbed."


def blocks(kind: str) -> list[tuple[str, str]]:
    """Return (page, text) of every example of a kind."""
    return [
        (page, body) for page, text in PAGES.items() for body in re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)
    ]


YAML: list[tuple[str, Any]] = [(page, yaml.safe_load(body)) for page, body in blocks("yaml")]
COMMANDS = sorted({line for _page, body in blocks("sh") for line in body.replace("\\\n", " ").splitlines()})
PLAYBOOKS = [line.partition("#")[0].strip() for line in COMMANDS if line.startswith("ansible-playbook")]
VARIABLES = [body for _page, body in YAML if isinstance(body, dict) and "plugin" not in body]
PLAYS = [body for _page, body in YAML if isinstance(body, list) and "hosts" in body[0]]
TASKS = [task for _page, body in YAML if isinstance(body, list) and "hosts" not in body[0] for task in body]


def role_options(name: str) -> dict[str, Any]:
    specs = yaml.safe_load((ROOT / f"roles/{name}/meta/argument_specs.yml").read_text(encoding="utf-8"))
    options: dict[str, Any] = specs["argument_specs"]["main"]["options"]
    return options


def problems(options: dict[str, Any], given: dict[str, Any]) -> list[str]:
    """Return what Ansible has against values; a template stands for itself where a text may stand."""
    given = {key: value for key, value in given.items() if "{{" not in str(value)}
    needed = {key: {k: v for k, v in value.items() if k != "required"} for key, value in options.items()}
    found: list[str] = ArgumentSpecValidator(needed).validate(given).error_messages
    return found


def test_there_are_examples_of_each_kind() -> None:
    assert (len(PLAYBOOKS), len(VARIABLES), len(PLAYS), len(TASKS)) == (3, 6, 1, 1)


@pytest.mark.parametrize("example", VARIABLES, ids=lambda item: next(iter(item)))
def test_variables_are_those_of_the_role(example: dict[str, Any]) -> None:
    role = next(iter(example)).partition("_")[0]
    assert problems(role_options(role), example) == []


def test_a_policy_of_ones_own_is_one() -> None:
    policy = next(item["koordinator_policy"] for item in VARIABLES if "koordinator_policy" in item)
    threshold = koordinator_policy(policy)["resource-threshold-config"]["clusterStrategy"]
    assert threshold == {"enable": True, "cpuSuppressThresholdPercent": 65}


def test_changed_components_are_ones_that_the_roles_have() -> None:
    example = next(item for item in VARIABLES if "kubernetes_node_components" in item)
    for role, variable, defaults in (
        ("control_plane", "kubernetes_control_plane_components", "__control_plane_defaults"),
        ("kubernetes", "kubernetes_node_components", "__kubernetes_node_defaults"),
    ):
        known = yaml.safe_load((ROOT / f"roles/{role}/vars/main.yml").read_text(encoding="utf-8"))[defaults]
        assert set(example[variable]) <= set(known)
        made = components.processes(known, "/b", changes=example[variable])
        assert len(made) == len(known) - sum(value is None for value in example[variable].values())


@pytest.mark.parametrize("play", [item for body in PLAYS for item in body], ids=lambda item: item["name"])
def test_a_play_is_one_and_its_roles_know_its_variables(play: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    run(["ansible-playbook", "-i", "inventories/kubernetes_local", "--syntax-check", tmp_path / "play.yml"])
    for role in play["roles"]:
        assert problems(role_options(role["role"].removeprefix(COLLECTION)), role["vars"]) == []
        assert (ROOT / "files/policies" / f"{role['vars']['koordinator_policy']}.yml").is_file()


@pytest.mark.parametrize("task", TASKS, ids=lambda item: item["name"])
def test_a_task_has_arguments_that_its_module_knows(task: dict[str, Any]) -> None:
    (name,) = [key for key in task if key.startswith(COLLECTION)]
    module = importlib.import_module(f"{IMPORT_PREFIX}plugins.modules.{name.removeprefix(COLLECTION)}")
    assert problems(yaml.safe_load(module.DOCUMENTATION)["options"], task[name]) == []


@pytest.mark.parametrize("command", PLAYBOOKS)
def test_a_command_finds_its_playbook_and_inventory(command: str) -> None:
    run([*shlex.split(command), "--syntax-check"])


def test_the_way_into_the_node_is_the_roles() -> None:
    (command,) = [line for line in COMMANDS if line.startswith("nsenter")]
    state_dir = yaml.safe_load((ROOT / "inventories/kubernetes_local/group_vars/lab.yml").read_text(encoding="utf-8"))
    place = state_dir["node_state_dir"].replace("{{ inventory_hostname }}", "tested-node")
    assert f"--mount={place}/kubernetes/ns/mnt" in command


def test_the_inventory_makes_hosts_of_labelled_nodes(tmp_path: Path) -> None:
    (example,) = [body for _page, body in YAML if isinstance(body, dict) and "plugin" in body]
    (label,) = [line for line in COMMANDS if line.startswith("kubectl label")]
    key, _equals, value = label.split()[-1].partition("=")
    nodes = [_node(label.split()[3], {key: value}), _node("node2", {"colocation.testbed/role": "load"})]
    kubectl_standin.write(tmp_path / "cluster.json", nodes)
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    argv = shlex.join([sys.executable, str(ROOT / "tests/support/kubectl_standin.py"), str(tmp_path / "cluster.json")])
    program.write_text(f'#!/bin/sh\nexec {argv} "$@"\n')
    program.chmod(0o755)
    (tmp_path / "lab.kubernetes_nodes.yml").write_text(yaml.safe_dump(example))
    (command,) = [line for line in COMMANDS if line.startswith("ansible-inventory")]
    path = os.pathsep.join([str(program.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    listing = json.loads(run(shlex.split(command), cwd=tmp_path, env={**checkout_environment(), "PATH": path}))
    assert listing["tested"]["hosts"] == ["node1"]
    assert listing["load"]["hosts"] == ["node2"]
    # What a cluster says is no template, and is marked so.
    assert listing["_meta"]["hostvars"]["node1"]["ansible_host"] == {"__ansible_unsafe": "10.0.0.1"}


def _node(name: str, labels: dict[str, str]) -> dict[str, Any]:
    info = {"kubeletVersion": "v1.34.4", "containerRuntimeVersion": "containerd://2.1.6", "kernelVersion": "6.1"}
    more = {"operatingSystem": "linux", "osImage": "Debian", "architecture": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "nodeInfo": {**info, **more},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "conditions": [{"type": "Ready", "status": "True"}],
            "capacity": {"cpu": "2", "memory": "1Gi"},
        },
    }
