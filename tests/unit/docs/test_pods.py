"""The variables that docs/pods.md shows are ones that roles have, and make a run that can be brought about."""

from __future__ import annotations

import re
from typing import Any

import yaml
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.plugin_utils import definitions
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import substrates

TEXT = (ROOT / "docs/pods.md").read_text(encoding="utf-8")
EXAMPLES: list[dict[str, Any]] = [yaml.safe_load(body) for body in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)]


def options() -> set[str]:
    """Return the variables of all roles."""
    specs = (yaml.safe_load(path.read_text(encoding="utf-8")) for path in ROOT.glob("roles/*/meta/argument_specs.yml"))
    return {name for spec in specs for name in spec["argument_specs"]["main"]["options"]}


def test_the_examples_use_variables_of_roles() -> None:
    assert len(EXAMPLES) == 3
    known = options()
    own = [name for example in EXAMPLES for name in example if not name.startswith("ansible_")]
    assert [name for name in own if name not in known] == []
    named = set(re.findall(r"`((?:latency_service|batch_workload|node_access)_\w+)`", TEXT))
    assert named
    assert named <= known


def test_the_example_for_a_users_cluster_fits_together() -> None:
    given = EXAMPLES[0]
    found = definitions.load_definitions(ROOT, ["slo_aware"], given["matrix_mode_definitions"])
    chosen = {name: found.modes[name] for name in ("baseline", "colocation", "slo_aware")}
    agent = substrates.OWN if given["koordinator_state"] == "present" else ""
    assert substrates.problems(chosen, found.policies, given["matrix_substrate"], agent) == []
    assert found.modes["slo_aware"]["engine"] == substrates.KOORDINATOR


def test_the_example_for_nodes_without_login_is_what_the_inventory_for_them_has() -> None:
    (given,) = [example for example in EXAMPLES if "ansible_connection" in example]
    shipped = yaml.safe_load((ROOT / "inventories/ack/group_vars/all.yml").read_text(encoding="utf-8"))
    assert given == shipped
    connection = (ROOT / "plugins/connection/node_pod.py").read_text(encoding="utf-8")
    assert given["ansible_connection"] == "colocation.testbed.node_pod"
    assert "- name: ansible_node_pod_optional" in connection


def test_every_inventory_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"-i (\S+)", TEXT))
    assert named == {"inventories/kubernetes_local"}
    assert all((ROOT / name / "hosts.yml").is_file() for name in named)
