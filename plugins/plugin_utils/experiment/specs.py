# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments for the modules that a measurement needs: pure functions from what is deployed to module arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Node, Testbed
    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.settings import MatrixSettings
    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.workloads import Watch

SAMPLES = "samples.jsonl"
LOAD = "load.json"
HOLDER = "pm-qos"
SAMPLER = "sampler"
GENERATOR = "load"
BATCH = "batch"
PEER = "batch-peer"

#: Slack added to what a detached process may live, so that none outlives a controller that died.
GRACE_S = 60


def root_group(node: Node) -> list[dict[str, Any]]:
    """Return the entry that keeps everything on a node's CPUs; none where the node has all of the machine's."""
    return [{"name": "", "cpuset_cpus": node.cpus}] if node.cpus else []


def process_arguments(
    node: Node, processes: Sequence[Mapping[str, Any]], results: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the arguments of module ``process`` for a host."""
    return {
        "state_dir": node.state_dir,
        "cgroup_root": node.cgroup_root,
        "node_python": node.python,
        "manager": node.manager,
        "instance": node.name,
        "housekeeping_cpus": node.housekeeping_cpus,
        "processes": [dict(process) for process in processes],
        "results": list(results),
    }


def run(node: Node, processes: Sequence[Mapping[str, Any]], results: Sequence[str] = ()) -> dict[str, Any]:
    """Start, stop or wait for processes on a host, and bring files along."""
    return node.host.run("process", process_arguments(node, processes, results))


def make_groups(node: Node, groups: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """Make groups below a host's root, with their values."""
    given = {"state_dir": node.state_dir, "root": node.cgroup_root, "groups": [dict(group) for group in groups]}
    return node.host.run("cgroup", {**given, **more})


def tool(node: Node, name: str, command: str, spec: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return a process entry that runs a command of the node tool with a specification."""
    return {
        "name": name,
        "tool": command,
        "spec": dict(spec),
        "cpus": node.housekeeping_cpus,
        "state": "started",
        **more,
    }


def stopped(*names: str) -> list[dict[str, Any]]:
    """Return process entries that stop what runs under these names."""
    return [{"name": name, "state": "stopped"} for name in names]


def pm_qos(node: Node) -> dict[str, Any]:
    """Return the process entry that keeps idle states off on a host."""
    spec = {"device": "/dev/cpu_dma_latency", "latency_us": 0, "output": node.path("pm-qos.json")}
    return tool(node, HOLDER, "hold-pm-qos", spec, ready={"file": node.path("pm-qos.json")}, ready_timeout_s=10)


def in_group(node: Node, name: str, group: str) -> dict[str, str]:
    """Return how the sampler tells whether a supervised process lives in its group."""
    return {"pid_file": node.path("processes", f"{name}.pid"), "group": group}


def sampler(node: Node, watch: Watch, max_duration_s: float) -> dict[str, Any]:
    """Return the process entry that samples a host once a second."""
    spec = {
        "interval_s": 1,
        "output": node.path(SAMPLES),
        "cgroup_root": node.cgroup_root,
        "groups": list(watch.groups),
        "cpus": node.cpus,
        "policy_files": dict(watch.files),
        "work": {group: dict(how) for group, how in watch.work.items()},
        "processes": {name: dict(how) for name, how in watch.processes.items()},
        "max_duration_s": max_duration_s,
    }
    if watch.group_paths:
        spec["group_paths"] = dict(watch.group_paths)
    return tool(node, SAMPLER, "sample", spec, ready={"file": node.path(SAMPLES)}, ready_timeout_s=10)


def load(
    testbed: Testbed, settings: MatrixSettings, url: str, rate_rps: float | None, seed: int, duration_s: float
) -> dict[str, Any]:
    """Return the process entry that sends load; ``rate_rps`` None means a closed loop at full speed."""
    node = testbed.load
    spec = {
        "kind": "closed_loop" if rate_rps is None else "open_loop",
        "wrk": testbed.wrk.path,
        "url": url,
        "threads": settings.load_threads,
        "connections": settings.load_connections,
        "rate_rps": rate_rps,
        "seed": seed,
        "warmup_s": settings.warmup_s,
        "duration_s": duration_s,
        "timeout_s": max(10.0, float(duration_s)),
        "headers": testbed.service.headers,
        "output": node.path(LOAD),
    }
    lifetime_s = settings.warmup_s + duration_s + GRACE_S
    return tool(node, GENERATOR, "load", spec, group="load", cpus=node.cpus, max_duration_s=lifetime_s)


def waited(entry: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
    """Return the entry that waits until a process has ended by itself."""
    return {"name": entry["name"], "state": "ended", "timeout_s": timeout_s}


def batch(
    node: Node, aggressor: Mapping[str, Any], placeholders: Mapping[str, str], lifetime_s: float
) -> dict[str, Any]:
    """Return the process entry of a batch workload, in the group ``batch``."""
    follows = aggressor["work"]["kind"] == "ffmpeg_progress"
    return {
        "name": BATCH,
        "argv": [fill(word, placeholders) for word in aggressor["argv"]],
        "group": "batch",
        "cpus": node.cpus,
        "max_duration_s": lifetime_s,
        # Else the sampler would read what the window before has left, until the program writes for the first time.
        "outputs": [placeholders["progress"]] if follows else [],
        "state": "started",
    }


def peer(
    node: Node, aggressor: Mapping[str, Any], placeholders: Mapping[str, str], lifetime_s: float
) -> dict[str, Any]:
    """Return the process entry of what a batch workload talks to, on the load node."""
    definition = aggressor["peer"]
    entry: dict[str, Any] = {
        "name": PEER,
        "argv": [fill(word, placeholders) for word in definition["argv"]],
        "group": "load",
        "cpus": node.cpus,
        "max_duration_s": lifetime_s,
        "state": "started",
    }
    if definition.get("ready_tcp_port"):
        entry["ready"] = {"tcp_port": int(fill(str(definition["ready_tcp_port"]), placeholders))}
    return entry


def fill(word: str, placeholders: Mapping[str, str]) -> str:
    """Replace ``{name}`` in a word of an argument vector; names were validated when the definition was read."""
    for name, value in placeholders.items():
        word = word.replace("{" + name + "}", value)
    return word


def work(aggressor: Mapping[str, Any], placeholders: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return how the sampler reads the work that an aggressor has done."""
    how = {str(key): str(value) for key, value in aggressor["work"].items()}
    if how["kind"] == "ffmpeg_progress":
        how["path"] = placeholders["progress"]
    else:
        how["group"] = "batch"
    return {"batch": how}
