"""A deployed testbed whose hosts only record what they are asked."""

from __future__ import annotations

import base64
import json
import zlib

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import deployed, settings

from .test_settings import GOOD

FACTS = {
    "node_deployed": {
        "state_dir": "/state",
        "cgroup_root": "ct",
        "cpus": "0",
        "housekeeping_cpus": "1",
        "python": "/usr/bin/python3",
        "manager": "supervised",
    },
    "latency_service_deployed": {
        "process": {"name": "nginx", "argv": ["nginx"], "group": "service"},
        "address": "198.18.0.1",
        "port": 8000,
        "page": "/page",
        "slow_pages": {"5": "/slow-5"},
        "headers": {"accept-encoding": "gzip"},
        "cpu_request": "500m",
        "memory_request": "64Mi",
        "description": {"name": "nginx", "version": "1.22.1"},
    },
    "batch_workload_deployed": {
        "placeholders": {"clip": "/state/clip.mp4", "threads": "1"},
        "cpu_request": "500m",
        "memory_request": "64Mi",
        "description": {"threads": 1},
    },
    "load_generator_wrk": {"path": "/state/wrk", "version": "4.2.0"},
    "ansible_host": "198.18.0.2",
}


class FakeBandwidth:
    """The bandwidth modules of a host, as far as the matrix sees them."""

    def __init__(self) -> None:
        self.state: dict[str, dict] = {"pools": {}, "classes": {}, "devices": {}}
        self.lines: list[str] = []

    def answer(self, module, args, check_mode):
        if module == "bandwidth_info":
            return {"exists": any(self.state.values()), **self.state}
        kind = next(name for name in self.state if name in args)
        assert args["purge"] is True
        found = {item["name"] + ("/egress" if kind == "devices" else ""): dict(item) for item in args[kind]}
        if check_mode:
            return {"changed": bool(self.lines) or found != self.state[kind], "commands": self.lines, kind: found}
        self.state[kind] = found
        return {"changed": True, "commands": [], kind: found}


class FakeHost:
    """Answers as the modules do, and keeps what it was asked."""

    def __init__(self, name: str, files: dict[str, bytes] | None = None) -> None:
        self.name = name
        self.calls: list[tuple[str, dict]] = []
        self.files = files or {}
        self.bandwidth = FakeBandwidth()

    def variable(self, name, default=None):
        return FACTS.get(name, default)

    def run(self, module, args, check_mode=None):
        self.calls.append((module, args))
        if module.startswith("bandwidth_"):
            return self.bandwidth.answer(module, args, check_mode)
        if module == "node_facts":
            return {"route_device": "eth7"}
        if module == "cgroup":
            return {"policy_files": {"batch/cpu.idle": "/sys/x"}, "policy_values": {"batch/cpu.idle": "1"}}
        contents = {path: self.files.get(path) for path in args["results"]}
        return {
            "contents": {
                path: content and {"content_b64_zlib": base64.b64encode(zlib.compress(content)).decode()}
                for path, content in contents.items()
            }
        }

    def started(self) -> list[str]:
        """Return the names of all processes that were started, in order."""
        entries = [entry for module, args in self.calls if module == "process" for entry in args["processes"]]
        return [entry["name"] for entry in entries if entry["state"] == "started"]

    def stopped(self) -> list[str]:
        """Return the names of all processes that were stopped, in order."""
        entries = [entry for module, args in self.calls if module == "process" for entry in args["processes"]]
        return [entry["name"] for entry in entries if entry["state"] == "stopped"]


@pytest.fixture
def load_result():
    """Return a load result as the node writes it."""
    return {"requests": 5000, "start_mono_s": 10.0, "end_mono_s": 14.0, "latency_us": [[800, 5000]]}


@pytest.fixture
def hosts(load_result):
    """Return the tested and the load node."""
    tested = FakeHost("tested", {"/state/samples.jsonl": b'{"a": 1}\n'})
    load = FakeHost(
        "loader", {"/state/samples.jsonl": b'{"b": 1}\n', "/state/load.json": json.dumps(load_result).encode()}
    )
    return tested, load


@pytest.fixture
def testbed(hosts):
    """Return the testbed that the facts of both hosts describe."""
    return deployed.read(*hosts)


@pytest.fixture
def matrix_settings():
    """Return settings that are in range."""
    return settings.from_arguments(GOOD)
