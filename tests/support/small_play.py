"""Run a few tasks on this machine with the collection of this checkout, without anything of a testbed around them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tooling import checkout_environment


def play(place: Path, tasks: Sequence[Mapping[str, Any]], variables: Mapping[str, Any], *words: str) -> tuple[int, str]:
    """Play tasks on a host node1, which is this machine, and return the exit code and what was printed."""
    given = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, **variables}
    inventory, book = place / "hosts.json", place / "play.yml"
    inventory.write_text(json.dumps({"tested": {"hosts": {"node1": given}}, "load": {}, "lab": {}}))
    book.write_text(json.dumps([{"hosts": "tested", "gather_facts": False, "tasks": list(tasks)}]))
    done = subprocess.run(
        ["ansible-playbook", "-i", str(inventory), str(book), *words],
        env=checkout_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr
