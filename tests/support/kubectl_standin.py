"""A stand-in for kubectl: the cluster in memory of fake_cluster, kept in a file between calls. Not a real cluster.

Called as ``kubectl_standin.py STATE WORDS…``. STATE has ``objects``, ``calls`` and ``fail``, what every call is refused
with.
"""

from __future__ import annotations

import json
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
    from tests.support.fake_cluster import FakeCluster

    state = json.loads(path.read_text())
    cluster = FakeCluster(state["objects"])
    cluster.fail = state["fail"]
    while words[:1] and words[0] in ("--context", "--kubeconfig"):
        words = words[2:]
    text = sys.stdin.read() if "-" in words else ""
    done = cluster.run(["kubectl", *words], input_text=text or None)
    write(path, list(cluster.objects.values()), state["fail"], [*state["calls"], *cluster.calls])
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return done.status


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
