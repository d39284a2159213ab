"""Each molecule scenario, from nothing to nothing."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tooling import ROOT, checkout_environment, passed_tests, run

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import go_build, go_groups
from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import go_pins

CLUSTER = ("etcd", "kubernetes", "containerd", "crictl")
# Scenarios whose programs are built from pinned Go modules, by the groups of them.
BUILT = {
    "kubernetes": CLUSTER,
    "kubernetes_nodes": CLUSTER,
    "koordinator": (*CLUSTER, "koordinator"),
    "matrix_pods": (*CLUSTER, "koordinator"),
}
# An emulated machine; and a guest whose parts other scenarios and tests/kernel cover but for the start of the host.
LONG = frozenset({"cgroup_qemu", "bandwidth_boot"})
PROGRAMS = Path("~/.cache/colocation-testbed/kubernetes").expanduser()
SCENARIOS = sorted(path.parent for path in (ROOT / "molecule").glob("*/molecule.yml"))


def silent(output: str) -> list[str]:
    """Return what a successful run of a scenario did not do.

    Molecule ends with 0 where a playbook is missing, where a play matches no host and where no test was found:
    its exit code alone proves nothing.
    """
    missing = []
    if not re.search(r"\bconverge\b", output):
        missing.append("the action converge")
    if not re.search(r"^\S+\s+: ok=[1-9]\d*", output, re.MULTILINE):
        missing.append("a task on any host")
    if passed_tests(output) == 0:
        missing.append("a testinfra test that passed")
    return missing


def not_built(scenario: str) -> list[str]:
    """Return the groups of programs that a scenario needs and the cache does not have."""
    store = go_build.Store(str(PROGRAMS))
    groups = go_groups.parse(go_pins.load(BUILT.get(scenario, ())))
    return [group.name for group in groups if not store.has(group)]


def test_there_are_scenarios() -> None:
    assert "default" in {path.name for path in SCENARIOS}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.name)
def test_scenario(scenario: Path) -> None:
    if os.environ.get("COLOCATION_TESTBED_ALL") != "1":
        missing = not_built(scenario.name)
        if missing:
            # Two processors build them for a quarter of an hour, which does not fit beside all other tests.
            pytest.skip(f"programs {', '.join(missing)} are not built yet: COLOCATION_TESTBED_ALL=1 builds them once")
        if scenario.name in LONG:
            pytest.skip("takes up to five minutes, and all tests together an hour: COLOCATION_TESTBED_ALL=1 runs it")
    env = checkout_environment(MOLECULE_GLOB="molecule/*/molecule.yml", PY_COLORS="0", ANSIBLE_NOCOLOR="1")
    # Molecule writes its own configuration, and ANSIBLE_CONFIG would be the checkout's instead.
    env.pop("ANSIBLE_CONFIG")
    output = run(["molecule", "test", "-s", scenario.name], env=env, timeout_s=1800)
    assert silent(output) == [], output[-8_000:]


def test_silence_is_not_success() -> None:
    assert silent("WARNING default > verify: no tests found\n") == [
        "the action converge",
        "a task on any host",
        "a testinfra test that passed",
    ]
    assert silent("INFO default > converge: Executing\na  : ok=3 changed=0\n== 2 passed in 0.1s ==\n") == []
