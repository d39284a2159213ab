"""What pods need before anything is deployed: engines that fit, a cluster, an image for every aggressor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils import definitions
from ansible_collections.colocation.testbed.plugins.plugin_utils.preflight import demands

ROOT = Path(__file__).resolve().parents[5]
KOORDINATED = {"slo_aware": {"policy": "koordinator", "engine": "koordinator"}}
CLUSTER = {"kubernetes_provider": "existing"}


class Host:
    name = "node-1"

    def __init__(self, **variables: Any) -> None:
        self.given = variables

    def variable(self, name: str, default: Any = None) -> Any:
        return self.given.get(name, default)


def rows(substrate: str, given: dict[str, Any] | None = None, **variables: Any) -> list[str]:
    found = definitions.load_definitions(ROOT, ["baseline", "slo_aware"], given)
    return [
        row.consequence for row in demands.substrate(Host(**variables), substrate, ["baseline", "slo_aware"], found)
    ]


@pytest.mark.parametrize(
    ("given", "variables", "words"),
    [
        (None, {**CLUSTER, "koordinator_state": "present"}, ["engine static and Koordinator's agent"]),
        (KOORDINATED, CLUSTER, ["engine koordinator needs Koordinator in the cluster"]),
        (None, {}, ["no cluster is named; set kubernetes_provider"]),
        (None, {**CLUSTER, "matrix_aggressors": ["ffmpeg", "iperf3"]}, ["aggressor iperf3: runs as a pod"]),
        (None, {**CLUSTER, "matrix_aggressors": ["iperf3"], "batch_workload_images": {"iperf3": "x"}}, []),
        (KOORDINATED, {**CLUSTER, "koordinator_state": "present"}, []),
        (None, CLUSTER, []),
    ],
)
def test_pods_need_what_they_need(given: Any, variables: dict[str, Any], words: list[str]) -> None:
    found = rows("pod", given, **variables)
    assert len(found) == len(words)
    assert all(word in text for word, text in zip(words, found, strict=True))


def test_processes_need_nothing_of_a_cluster() -> None:
    assert rows("process") == []
    assert "set matrix_substrate to pod" in rows("process", KOORDINATED)[0]
