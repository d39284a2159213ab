"""The host after converge: tool, journal, and a sampler that runs under its supervisor."""

from __future__ import annotations

import json
import os
import sys

STATE = os.environ["MOLECULE_EPHEMERAL_DIRECTORY"] + "/state"


def test_the_tool_runs(host):
    done = host.run(f"{sys.executable} -I -S {STATE}/node.pyz check")
    assert (done.rc, done.stderr) == (0, "")


def test_the_state_directory_and_what_is_in_it(host):
    assert host.file(STATE).mode == 0o755
    assert host.file(f"{STATE}/journal.json").mode == 0o600
    kinds = {entry["kind"] for entry in json.loads(host.file(f"{STATE}/journal.json").content_string)["entries"]}
    assert kinds == {"directory", "file", "process"}


def test_the_sampler_runs_and_was_not_started_again(host):
    pid_file = json.loads(host.file(f"{STATE}/processes/sampler.pid").content_string)
    assert pid_file["state"] == "running"
    assert host.process.get(pid=pid_file["pid"]).ppid == pid_file["supervisor_pid"]
    assert not host.file(f"{STATE}/processes/sampler.log.1").exists
    lines = host.file(f"{STATE}/samples.jsonl").content_string.splitlines()
    assert {"wall_s", "mono_s", "cpus", "psi", "pm_qos_us"} <= set(json.loads(lines[0]))
