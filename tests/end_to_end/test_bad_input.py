"""Bad input gets a sentence that names the thing, the place and what is allowed, before anything is changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.end_to_end.bench_lab import STATE_DIR, Lab

CASES = {
    "unknown mode": ({"matrix_modes": ["baseline", "slo_awre"]}, ["matrix_modes", "'slo_awre'", "slo_aware"]),
    "unknown aggressor": ({"matrix_aggressors": ["fmpeg"]}, ["matrix_aggressors", "'fmpeg'", "ffmpeg"]),
    "unknown policy key": (
        {"matrix_policy_definitions": {"mine": {"resource-threshold-confg": {}}}},
        ["matrix_policy_definitions.mine", "resource-threshold-confg", "resource-threshold-config"],
    ),
    "percent above 100": (
        {
            "matrix_policy_definitions": {
                "slo_aware": {"resource-threshold-config": {"clusterStrategy": {"cpuSuppressThresholdPercent": 130}}}
            }
        },
        ["cpuSuppressThresholdPercent", "130", "100"],
    ),
    "unknown engine": (
        {"matrix_mode_definitions": {"slo_aware": {"engine": "statik"}}},
        ["matrix_mode_definitions.slo_aware.engine", "'statik'", "static"],
    ),
    "misspelled variable": ({"matrix_block": 3}, ["matrix_block", "did you mean matrix_blocks?"]),
    "load point": ({"matrix_load_points": [1.5]}, ["matrix_load_points", "1.5", "below 1"]),
    "unknown guard": ({"matrix_limits": {"stael": 1}}, ["'stael'", "steal"]),
    "connections": ({"matrix_load_threads": 3}, ["matrix_load_connections", "40", "3"]),
    "more CPUs than exist": ({"node_cpus": "0-4095"}, ["node_cpus", "online", "inventory"]),
}


@pytest.mark.parametrize("name", CASES)
def test_preflight_says_it(lab: Lab, name):
    given, words = CASES[name]
    done = lab.play("playbooks/preflight.yml", **given)
    assert done.status != 0
    for word in words:
        assert word in done.output, done.output[-3000:]


def test_a_text_for_a_boolean_is_told_how_to_write_it(lab: Lab):
    done = lab.play("playbooks/preflight.yml", "-e", "matrix_hold_pm_qos=false")
    assert done.status != 0
    assert "matrix_hold_pm_qos is 'false', a text, where " in " ".join(done.output.split())


def test_all_problems_are_told_at_once(lab: Lab):
    done = lab.play("playbooks/preflight.yml", matrix_modes=["nope"], matrix_aggressors=["neither"])
    assert "'nope'" in done.output
    assert "'neither'" in done.output


@pytest.mark.parametrize(("group", "words"), [("tested", "group tested"), ("load", "group load")])
def test_an_empty_group_is_named(lab: Lab, tmp_path: Path, group, words):
    hosts = {"tested": {"a": {}}, "load": {"b": {}}}
    hosts[group] = {}
    path = tmp_path / "hosts.json"
    path.write_text(json.dumps({"all": {"children": {name: {"hosts": found} for name, found in hosts.items()}}}))
    done = lab.play("playbooks/preflight.yml", "-i", str(path), "--limit", "localhost")
    assert done.status != 0
    assert words in done.output


def test_nothing_was_changed_by_any_of_them(lab: Lab):
    assert not Path(STATE_DIR, "hosts").exists()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda run: None, ["manifest.json"]),
        (
            lambda run: (run / "manifest.json").write_text('{"schema": "colocation.testbed/manifest/9"}'),
            ["manifest/9", "manifest/1"],
        ),
        (lambda run: (run / "manifest.json").write_text('{"schema": '), ["manifest.json", "JSON"]),
    ],
    ids=["no run", "another schema version", "corrupt"],
)
def test_a_run_directory_that_is_none_is_named(lab: Lab, tmp_path: Path, damage, words):
    damage(tmp_path)
    done = lab.play("playbooks/report.yml", report_run_dir=str(tmp_path))
    assert done.status != 0
    assert "Traceback" not in done.output
    for word in [*words, str(tmp_path)]:
        assert word in done.output.replace("\n", " "), done.output[-3000:]
