"""Nothing of Koordinator is left: in the cluster, in the node's status, in its control groups."""

import json
import os
from pathlib import Path

PLACE = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"])
BEFORE = json.loads((PLACE / "before.json").read_text(encoding="utf-8"))["items"]
AFTER = json.loads((PLACE / "after.json").read_text(encoding="utf-8"))


def names(items):
    return sorted((item["kind"], item["metadata"]["name"]) for item in items)


def node(items):
    (found,) = [item for item in items if item["kind"] == "Node"]
    return found


def test_the_cluster_has_what_it_had():
    assert names(AFTER["objects"]["items"]) == names(BEFORE)


def test_the_node_has_what_it_had():
    one, other = node(BEFORE), node(AFTER["objects"]["items"])
    assert set(other["status"]["capacity"]) == set(one["status"]["capacity"])
    assert set(other["status"]["allocatable"]) == set(one["status"]["allocatable"])
    assert other["metadata"]["labels"] == one["metadata"]["labels"]
    # Kubernetes' own controllers write some a moment after a node has come.
    added = set(other["metadata"]["annotations"]) - set(one["metadata"]["annotations"])
    assert [name for name in added if "koordinator" in name or "colocation" in name] == []


def test_best_effort_is_free():
    values = AFTER["groups"]["kubepods/besteffort"]["values"]
    assert values["cpu_quota_us"] == -1


def test_a_second_removal_finds_nothing():
    assert AFTER["again"]["changed"] is False
