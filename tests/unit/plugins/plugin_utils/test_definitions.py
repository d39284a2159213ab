# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.colocation.testbed.plugins.plugin_utils import definitions
from ansible_collections.colocation.testbed.plugins.plugin_utils.definitions import DefinitionsError, load_definitions

ROOT = Path(__file__).resolve().parents[4]
MODE = {"description": "x", "workloads": ["service", "batch"], "policy": "slo_aware", "engine": "static"}
AGGRESSOR = {
    "description": "x",
    "resource": "cpu",
    "packages": ["stress-ng"],
    "argv": ["stress-ng", "--cpu", "{threads}"],
    "work": {"kind": "cpu_time", "unit": "CPU seconds"},
}


def _problems(**given: Any) -> tuple[str, ...]:
    with pytest.raises(DefinitionsError) as caught:
        load_definitions(ROOT, **given)
    return caught.value.problems


def test_the_built_in_ones_are_valid() -> None:
    found = load_definitions(ROOT, ["baseline", "colocation", "slo_aware"], aggressors=["ffmpeg"])
    assert set(found.modes) >= {"baseline", "colocation", "slo_aware"}
    assert found.modes["baseline"]["batch"] is False
    assert found.modes["slo_aware"]["objectives"] == {
        "p90_added_pct": 5,
        "p99_added_pct": 5,
        "batch_work_kept_pct": 95,
    }
    assert found.modes["colocation"]["policy"] is None
    assert "ffmpeg" in found.aggressors


def test_a_mode_becomes_groups() -> None:
    found = load_definitions(ROOT)
    requests = {"service": {"cpu": "500m", "memory": "64Mi"}, "batch": {"cpu": "1", "memory": "512Mi"}}
    service, batch = found.groups("colocation", requests, 1, 4 * 2**30)
    assert (service["name"], service["cpu_shares"], batch["cpu_shares"]) == ("service", 512, 1024)
    _, batch = found.groups("slo_aware", requests, 1, 4 * 2**30)
    assert (batch["cpu_idle"], batch["cpu_quota_us"], batch["memory_max_bytes"]) == (True, 95_000, 2**29)


def test_a_user_adds_a_mode_a_policy_and_an_aggressor_without_code() -> None:
    policy = {"resource-qos-config": {"clusterStrategy": {"beClass": {"cpuQOS": {"enable": True, "schedIdle": 1}}}}}
    found = load_definitions(
        ROOT,
        ["mine"],
        mode_definitions={"mine": {**MODE, "policy": "idle_only", "service_slowdown_pct": 20}},
        policy_definitions={"idle_only": policy},
        aggressor_definitions={"mine": AGGRESSOR},
        aggressors=["mine"],
    )
    assert found.modes["mine"]["policy"] == "idle_only"
    assert found.modes["mine"]["title"] == "mine"
    assert found.groups("mine", {}, 1, 2**30)[1]["cpu_quota_us"] == -1


def test_an_entry_with_a_built_in_name_changes_only_what_it_gives() -> None:
    found = load_definitions(
        ROOT,
        mode_definitions={"slo_aware": {"objectives": {"p90_added_pct": 2}}},
        policy_definitions={
            "slo_aware": {"resource-threshold-config": {"clusterStrategy": {"cpuSuppressThresholdPercent": 80}}}
        },
    )
    assert found.modes["slo_aware"]["objectives"]["p90_added_pct"] == 2
    assert found.modes["slo_aware"]["objectives"]["p99_added_pct"] == 5
    assert found.groups("slo_aware", {}, 1, 2**32)[1]["cpu_quota_us"] == 80_000


def test_merging_copies() -> None:
    lower = {"a": {"b": [1]}}
    merged = definitions.merge(lower, {"a": {"c": 2}})
    assert merged == {"a": {"b": [1], "c": 2}}
    assert lower == {"a": {"b": [1]}}


@pytest.mark.parametrize(
    ("change", "where", "words"),
    [
        (
            {"engine": "statik"},
            "engine",
            "'statik' is not an engine; allowed: none, static, koordinator (agent comes",
        ),
        ({"engine": "agent"}, "engine", "comes with a role that this version does not have"),
        ({"engine": "none"}, "", "policy slo_aware with engine none would do nothing"),
        ({"policy": "none"}, "", "policy none with engine static would do nothing"),
        ({"policy": "slo_awar"}, "policy", "did you mean slo_aware"),
        ({"workloads": ["batch"]}, "workloads", "allowed: [service] or [service, batch]"),
        ({"workloads": "service"}, "workloads", "is not possible"),
        ({"workloads": ["service"]}, "workloads", "has no batch, which the policy is about"),
        ({"title": ""}, "title", "is not a line of text"),
        ({"description": "a\nb"}, "description", "is not a line of text"),
        ({"objectives": {"p90_aded_pct": 5}}, "objectives.p90_aded_pct", "did you mean p90_added_pct"),
        ({"objectives": {"p90_added_pct": "5"}}, "objectives.p90_added_pct", "is not a number from 0 to 1000"),
        ({"objectives": {"p90_added_pct": float("nan")}}, "objectives.p90_added_pct", "is not a number"),
        ({"objectives": []}, "objectives", "is a list, not a mapping"),
        ({"service_slowdown_pct": -1}, "service_slowdown_pct", "is not a number from 0"),
        ({"service_slowdown_pct": True}, "service_slowdown_pct", "is not a number from 0"),
        ({"polcy": 1}, "polcy", "did you mean policy"),
    ],
)
def test_bad_modes(change: dict[str, Any], where: str, words: str) -> None:
    found = _problems(mode_definitions={"mine": {**MODE, **change}})
    assert len(found) == 1
    dot = "." if where else ""
    assert found[0].startswith(f"matrix_mode_definitions.mine{dot}{where}: ")
    assert words in found[0]


@pytest.mark.parametrize(
    ("change", "where", "words"),
    [
        ({"resource": "gpu"}, "resource", "allowed: cpu, cache"),
        ({"argv": "stress-ng --cpu 1"}, "argv", "is not a list of texts"),
        ({"argv": []}, "argv", "is empty"),
        ({"argv": ["a", 1]}, "argv", "numbers in quotes"),
        ({"argv": ["a", "{thread}"]}, "argv", "did you mean threads"),
        ({"argv": ["a", "\0"]}, "argv", "zero byte"),
        ({"packages": ["stress-ng=1"]}, "packages", "is not the name of a package"),
        ({"work": {"kind": "frames", "unit": "x"}}, "work.kind", "allowed: ffmpeg_progress"),
        ({"work": {"kind": "cpu_time"}}, "work.unit", "is missing"),
        ({"work": {"kind": "ffmpeg_progress", "unit": "frames"}}, "argv", "lacks {progress}"),
        ({"peer": {"argv": ["x"], "packages": [], "ready_tcp_port": 0}}, "peer.ready_tcp_port", "is not a port"),
        ({"peer": {"argv": ["{x}"], "packages": []}}, "peer.argv", "is not a placeholder"),
        ({"peer": []}, "peer", "is a list, not a mapping"),
    ],
)
def test_bad_aggressors(change: dict[str, Any], where: str, words: str) -> None:
    found = _problems(aggressor_definitions={"mine": {**AGGRESSOR, **change}})
    assert found[0].startswith(f"matrix_aggressor_definitions.mine.{where}: ")
    assert words in found[0]


def test_a_bad_policy_is_named_by_the_users_variable() -> None:
    change = {"resource-threshold-config": {"clusterStrategy": {"cpuSuppressThresholdPercent": 130}}}
    found = _problems(policy_definitions={"slo_aware": change}, where="calibration_")
    path = "resource-threshold-config.clusterStrategy.cpuSuppressThresholdPercent"
    assert found == (
        f"calibration_policy_definitions.slo_aware.{path}: 130 is above 100; write a number from 0 to 100",
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"modes": ["slo"]}, "matrix_modes: 'slo' is not a defined mode; "),
        ({"aggressors": ["ffmpg"]}, "matrix_aggressors: 'ffmpg' is not a defined aggressor; did you mean ffmpeg?"),
        ({"mode_definitions": {"A-b": MODE}}, "matrix_mode_definitions.A-b: is not a name"),
        ({"mode_definitions": {1: MODE}}, "matrix_mode_definitions.1: is not a name"),
        ({"mode_definitions": {"x": None}}, "matrix_mode_definitions.x: is nothing, not a mapping"),
        ({"mode_definitions": [1]}, "matrix_mode_definitions: is a list, not a mapping"),
    ],
)
def test_bad_selections_and_names(given: dict[str, Any], words: str) -> None:
    assert any(line.startswith(words) for line in _problems(**given))


def test_all_problems_are_told_at_once() -> None:
    found = _problems(modes=["slo"], mode_definitions={"a": {}}, aggressor_definitions={"b": {}})
    assert len(found) == 4 + 5 + 1
    assert all("\n" not in line for line in found)


def test_a_damaged_file_of_the_collection_is_named(tmp_path: Path) -> None:
    for folder in definitions.KINDS.values():
        (tmp_path / "files" / folder).mkdir(parents=True)
    (tmp_path / "files/modes/x.yml").write_text("a: [")
    with pytest.raises(
        DefinitionsError, match=r"files/modes/x\.yml: cannot be read.*files/policies: holds no definitions"
    ):
        load_definitions(tmp_path)


def test_definitions_are_json(tmp_path: Path) -> None:
    found = load_definitions(ROOT)
    for value in (found.modes, found.policies, found.aggressors):
        assert yaml.safe_load(yaml.safe_dump(dict(value))) == value


def test_a_null_takes_an_objective_away():
    given = {
        "slo_aware": {"policy": "koordinator", "engine": "koordinator", "objectives": {"batch_work_kept_pct": None}}
    }
    found = definitions.load_definitions(ROOT, ["slo_aware"], given).modes["slo_aware"]
    assert found["objectives"] == {"p90_added_pct": 5, "p99_added_pct": 5}
    assert found["engine"] == "koordinator"
