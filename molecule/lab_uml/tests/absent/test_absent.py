"""Nothing is left after the role has taken the guests away; the image stays in its cache."""

import json
import subprocess
from pathlib import Path

STATE = Path("/var/lib/colocation-testbed-lab_uml")


def test_no_process():
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert [command for command in commands if f"{STATE}/".encode() in command] == []


def test_no_namespace():
    shown = subprocess.run(["ip", "netns"], check=True, capture_output=True, text=True, timeout=20).stdout
    assert "lab_uml-" not in shown


def test_only_the_names_of_installed_packages_are_left():
    journals = {path: json.loads(path.read_text())["entries"] for path in STATE.glob("**/journal.json")}
    kinds = {entry["kind"] for entries in journals.values() for entry in entries if entry["by"] != "journal"}
    assert kinds <= {"package"}
    files = {path for path in STATE.glob("**/*") if path.is_file()}
    assert files <= {*journals, *(path.with_name("journal.json.lock") for path in journals)}
