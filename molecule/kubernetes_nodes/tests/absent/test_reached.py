"""The run on nodes that were reached through pods: measured as on any host, and nothing is left of it."""

import json
import os
from pathlib import Path

import pytest

RUN = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "results/reached"


def document(name):
    return json.loads((RUN / name).read_text(encoding="utf-8"))


def measurement(mode):
    found = [path for path in (RUN / "measurements").iterdir() if mode in path.name]
    return found[0]


def guards(path):
    return {item["guard"]: item for item in json.loads((path / "validity.json").read_text(encoding="utf-8"))}


def test_both_modes_were_measured_on_pods():
    manifest = document("manifest.json")
    assert manifest["substrate"] == "pod"
    assert manifest["finished"]
    assert {host["role"] for host in manifest["hosts"].values()} == {"tested", "load"}


@pytest.mark.parametrize("mode", ["baseline", "slo_aware"])
@pytest.mark.parametrize("guard", ["no_errors", "pods_steady", "policy_in_effect"])
def test_guards_have_data_and_hold(mode, guard):
    found = guards(measurement(mode))
    assert found[guard]["ok"], found[guard]["text"]


@pytest.mark.parametrize("mode", ["baseline", "slo_aware"])
@pytest.mark.parametrize("host", ["tested-node", "load-node"])
def test_every_second_was_sampled_on_both_nodes(mode, host):
    lines = (measurement(mode) / "nodes" / f"{host}.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) >= 4


def test_our_modules_held_best_effort_back_through_the_pod():
    path = measurement("slo_aware")
    found = json.loads((path / "policy.json").read_text(encoding="utf-8"))
    assert found["applied"]["batch/cpu.idle"] == "1"
    samples = (path / "nodes/tested-node.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(samples[-1])["work"]["batch"]["done"]


@pytest.mark.parametrize("mode", ["baseline", "slo_aware"])
def test_requests_were_answered(mode):
    load = json.loads((measurement(mode) / "load.json").read_text(encoding="utf-8"))
    assert load["requests"] > 0
    assert sum(count for _value, count in load["latency_us"]) == load["requests"]


@pytest.mark.parametrize("name", ["tested-node", "load-node"])
def test_nothing_is_left_on_the_node(name):
    assert not Path(f"/var/lib/colocation-testbed-reached-{name}").exists()
    assert not list(Path("/sys/fs/cgroup").glob("*/colocation-testbed-reached"))
    assert not Path("/run/colocation-testbed-above").exists()
