# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sampler and the PM QoS hold on the running kernel."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, pm_qos, processes, procfs
from ansible_collections.colocation.testbed.plugins.module_utils.node import spec as specs
from ansible_collections.colocation.testbed.plugins.module_utils.recorded_process import wait
from ansible_collections.colocation.testbed.plugins.plugin_utils import node_bundle

pytestmark = pytest.mark.measures

GROUP_ROOT = f"colocation-testbed-sample-{os.getpid()}"
# A sample shares a core with whatever else the machine does now; the aim of 1 ms is for a quiet one.
CPU_LIMIT_MS = 5.0


class Tool:
    """The node tool, and the processes that a test started with it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.started: list[subprocess.Popen[str]] = []
        (directory / "node.pyz").write_bytes(node_bundle.build(ROOT).content)

    def start(self, command: str, **spec: Any) -> subprocess.Popen[str]:
        path = self.directory / f"{command}.json"
        path.write_text(json.dumps(spec))
        argv = [sys.executable, "-I", "-S", str(self.directory / "node.pyz"), command, "--spec", str(path)]
        self.started.append(subprocess.Popen(argv, stderr=subprocess.PIPE, text=True))
        return self.started[-1]

    def stop(self, process: subprocess.Popen[str]) -> str:
        process.terminate()
        return process.communicate(timeout=20)[1]

    def samples(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.directory / "samples.jsonl").read_text().splitlines()]


@pytest.fixture
def tool(tmp_path: Path) -> Iterator[Tool]:
    made = Tool(tmp_path)
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A group with a process in it that uses a little CPU, and its pid file."""
    places = [place for name in ("", "/batch") for place in cgroup.detect().directories(GROUP_ROOT + name)]
    for place in places:
        Path(place).mkdir()
        for file in ("cpuset.cpus", "cpuset.mems"):
            if (Path(place) / file).exists():
                (Path(place) / file).write_text((Path(place).parent / file).read_text())
    process = subprocess.Popen(["sh", "-c", "while :; do read -r _ < /proc/stat; sleep 0.02; done"])
    cgroup.join(cgroup.detect(), f"{GROUP_ROOT}/batch", process.pid)
    identity = processes.identify(process.pid)
    assert identity is not None
    content = specs.PidFile("running", identity, identity, "", "")
    (tmp_path / "batch.pid").write_text(json.dumps(content.to_dict()))
    yield process
    process.kill()
    process.wait(10)
    for place in reversed(places):
        assert wait(lambda: not cgroup.read_pids(place), 5), place  # noqa: B023
        Path(place).rmdir()


def spec_of(tool: Tool, **more: Any) -> dict[str, Any]:
    shares = Path(cgroup.detect().path("cpu", f"{GROUP_ROOT}/batch"), "cpu.shares")
    return {
        "interval_s": 0.2,
        "output": str(tool.directory / "samples.jsonl"),
        "cgroup_root": GROUP_ROOT,
        "groups": ["batch", "missing"],
        "cpus": "0",
        "policy_files": {"batch/cpu.shares": str(shares), "batch/none": "/none"},
        "work": {"batch": {"kind": "cpu_time", "group": "batch"}},
        "processes": {"batch": {"pid_file": str(tool.directory / "batch.pid"), "group": "batch"}},
        **more,
    }


def test_samples_are_as_documented_and_counters_never_fall(tool: Tool, busy: subprocess.Popen[bytes]) -> None:
    process = tool.start("sample", **spec_of(tool))
    assert wait(lambda: (tool.directory / "samples.jsonl").exists() and len(tool.samples()) > 6, 20)
    assert tool.stop(process) == ""
    assert process.returncode == 0
    samples = tool.samples()
    first, last = samples[0], samples[-1]
    assert set(first["cpus"]["0"]) == set(procfs.CPU_CLASSES)
    assert set(first["groups"]["missing"].values()) == {None}
    assert first["processes"]["batch"] == {"alive": True, "group": "batch"}
    assert first["policy"]["batch/none"] is None
    if cgroup.detect().hierarchy("cpu").version == 1:
        assert first["policy"]["batch/cpu.shares"] == "1024"
    assert first["memory_available_bytes"] > 0
    assert set(first["idle"]["0"]) == {"deep_entries", "deep_s"}
    for before, after in itertools.pairwise(samples):
        for key in ("cpu_s", "run_s", "wait_s"):
            assert after["groups"]["batch"][key] >= before["groups"]["batch"][key]
    assert last["groups"]["batch"]["run_s"] > first["groups"]["batch"]["run_s"]
    assert last["work"]["batch"]["done"] > first["work"]["batch"]["done"]
    # Short-lived sleeps come and go: their share stays in the sum. cpuacct counts the same time, more exactly.
    counted = last["groups"]["batch"]["cpu_s"] - first["groups"]["batch"]["cpu_s"]
    assert 0 < last["groups"]["batch"]["run_s"] - first["groups"]["batch"]["run_s"] <= counted * 1.2 + 0.05


def test_a_group_is_found_by_its_path_and_lives_while_it_has_a_task(tool: Tool, busy: subprocess.Popen[bytes]) -> None:
    place = f"{GROUP_ROOT}/batch"
    spec = spec_of(
        tool,
        groups=[],
        group_paths={"pod": place},
        work={"batch": {"kind": "cpu_time", "group": "pod"}},
        processes={"container": {"group_path": place, "group": "batch"}},
    )
    process = tool.start("sample", **spec)
    assert wait(lambda: (tool.directory / "samples.jsonl").exists() and len(tool.samples()) > 3, 20)
    busy.kill()
    busy.wait(10)
    dead = {"alive": False, "group": None}
    assert wait(lambda: tool.samples()[-1]["processes"]["container"] == dead, 10)
    assert tool.stop(process) == ""
    first, last = tool.samples()[0], tool.samples()[-1]
    assert first["processes"]["container"] == {"alive": True, "group": "batch"}
    assert list(first["groups"]) == ["pod"]
    assert last["work"]["batch"]["done"] > first["work"]["batch"]["done"]


def test_the_clock_does_not_drift(tool: Tool, busy: subprocess.Popen[bytes]) -> None:
    process = tool.start("sample", **spec_of(tool, interval_s=0.1))
    assert wait(lambda: (tool.directory / "samples.jsonl").exists() and len(tool.samples()) > 25, 20)
    tool.stop(process)
    times = [sample["mono_s"] for sample in tool.samples()[:-1]]
    offsets = sorted((time_s - times[0]) % 0.1 for time_s in times[1:])
    assert offsets[len(offsets) // 2] < 0.03


def test_a_sample_costs_little(tool: Tool, busy: subprocess.Popen[bytes]) -> None:
    process = tool.start("sample", **spec_of(tool, interval_s=0.05))
    path = Path(f"/proc/{process.pid}/schedstat")
    assert wait(lambda: (tool.directory / "samples.jsonl").exists() and len(tool.samples()) > 5, 20)
    begin, before = len(tool.samples()), procfs.parse_schedstat(path.read_text()).run_s
    assert wait(lambda: len(tool.samples()) > begin + 40, 20)
    after, end = procfs.parse_schedstat(path.read_text()).run_s, len(tool.samples())
    assert (after - before) / (end - begin) * 1e3 < CPU_LIMIT_MS


def test_an_ended_process_is_not_alive(tool: Tool, busy: subprocess.Popen[bytes]) -> None:
    process = tool.start("sample", **spec_of(tool, interval_s=0.1))
    assert wait(lambda: (tool.directory / "samples.jsonl").exists() and len(tool.samples()) > 1, 20)
    busy.kill()
    assert wait(lambda: not tool.samples()[-1]["processes"]["batch"]["alive"], 10)
    busy.wait(10)
    assert wait(lambda: tool.samples()[-1]["groups"]["batch"]["tasks"] == 0, 10)
    tool.stop(process)


def test_the_longest_duration_ends_it(tool: Tool) -> None:
    spec = spec_of(tool, work={}, processes={}, max_duration_s=0.5)
    assert tool.start("sample", **spec).wait(20) == 0
    samples = tool.samples()
    assert 0.5 <= samples[-1]["mono_s"] - samples[0]["mono_s"] < 5


def test_pm_qos_is_held_as_long_as_the_process_lives(tool: Tool) -> None:
    if not os.access(pm_qos.DEVICE, os.W_OK):
        pytest.skip(f"{pm_qos.DEVICE} is not there or not writable")
    state = tool.directory / "pm-qos.json"
    process = tool.start("hold-pm-qos", output=str(state))
    assert wait(state.exists, 20)
    assert pm_qos.read_effective_us() == 0
    found = json.loads(state.read_text())
    assert (found["latency_us"], found["effective_us"], found["pid"]) == (0, 0, process.pid)
    sampler = tool.start("sample", **spec_of(tool, work={}, processes={}, max_duration_s=0.2))
    assert sampler.wait(20) == 0
    assert tool.samples()[0]["pm_qos_us"] == 0
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0


def test_a_hold_that_is_impossible_is_one_sentence(tool: Tool) -> None:
    process = tool.start("hold-pm-qos", device=str(tool.directory / "none"))
    assert process.communicate(timeout=20)[1].startswith("hold-pm-qos: ")
    assert process.returncode == 1
