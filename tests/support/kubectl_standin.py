"""A stand-in for kubectl: the cluster in memory of fake_cluster, kept in a file between calls. Not a real cluster.

Called as ``kubectl_standin.py STATE WORDS…``. STATE has ``objects``, ``calls`` and ``fail``, what every call is refused
with. A command that is to be run in a pod runs on this machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def write(path: Path, objects: Sequence[dict[str, Any]], fail: str = "", calls: Sequence[list[str]] = ()) -> None:
    """Make the state of a cluster."""
    path.write_text(json.dumps({"objects": list(objects), "calls": list(calls), "fail": fail}))


def main(path: Path, words: list[str]) -> int:
    """Answer one call."""
    sys.path[:0] = [str(Path(__file__).resolve().parents[2] / folder) for folder in ("collections", ".")]
    from tests.support import access_pods
    from tests.support.fake_cluster import FakeCluster

    state = json.loads(path.read_text())
    cluster = FakeCluster(state["objects"])
    cluster.fail = state["fail"]
    while words[:1] and words[0] in ("--context", "--kubeconfig"):
        words = words[2:]
    if words[0] == "exec" and not state["fail"]:
        return _in_pod(words, state["objects"])
    cluster.after = lambda: access_pods.control(cluster)
    text = sys.stdin.read() if "-" in words else ""
    done = cluster.run(["kubectl", *words], input_text=text or None)
    write(path, list(cluster.objects.values()), state["fail"], [*state["calls"], *cluster.calls])
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return done.status


def _in_pod(words: list[str], objects: Sequence[dict[str, Any]]) -> int:
    """Run what comes after --, as kubectl would where there is any DaemonSet."""
    if not any(item["kind"] == "DaemonSet" for item in objects):
        sys.stderr.write("Error from server (NotFound): daemonsets.apps not found\n")
        return 1
    stdin = None if "--stdin" in words else subprocess.DEVNULL
    status = subprocess.run(words[words.index("--") + 1 :], stdin=stdin, check=False).returncode
    if status:
        sys.stderr.write(f"command terminated with exit code {status}\n")
    return status


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
