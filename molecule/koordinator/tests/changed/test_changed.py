"""After going back and forth between versions: the pod's control groups, and what is told without the webhook."""

import json
import os
from pathlib import Path

SEEN = json.loads((Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "changed.json").read_text(encoding="utf-8"))
WANTED = {"cpu_shares": 153, "cpu_quota_us": 30000, "memory_max_bytes": 64 * 2**20}


def values(depth):
    """Return the values of groups of a depth that have the pod's memory limit; the sandbox has none."""
    found = [group["values"] for name, group in SEEN["groups"].items() if name.count("/") == depth]
    return [item for item in found if item["memory_max_bytes"] == WANTED["memory_max_bytes"]]


def test_pod_and_container_have_their_batch_resources():
    for depth in (2, 3):
        (found,) = values(depth)
        assert {name: found[name] for name in WANTED} == WANTED


def test_the_root_is_free_while_suppress_is_off():
    assert SEEN["groups"]["kubepods/besteffort"]["values"]["cpu_quota_us"] == -1


def test_without_the_webhook_pods_are_not_injected():
    rungs = {item["step"]: item for item in SEEN["stopped"]}
    assert not rungs["ready"]["ok"]
    assert not rungs["injection"]["ok"]
    assert rungs["injection"]["text"].startswith("pods not injected: a batch pod comes out without label")
