"""Nothing is left of cluster, Koordinator and experiment: the machine's picture is what it was before."""

import json
import os
from pathlib import Path

PLACE = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"])


def test_the_machine_is_as_it_was():
    assert json.loads((PLACE / "differences.json").read_text(encoding="utf-8")) == []


def test_no_pods_are_left():
    assert not list(Path("/sys/fs/cgroup").glob("**/kubepods"))
