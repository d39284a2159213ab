"""What a run on pods has beside one of processes: cluster, pods as the API says, the quota of best effort.

A mode whose engine is koordinator has injected pods; where its policy is ``koordinator``, the agent moves the quota of
the root of best effort against the service's load.
"""

from __future__ import annotations

from typing import Any

from tests.support.synthetic_readings import (
    SERVICE_CPU_S_PER_REQUEST,
    Behaviour,
    Options,
    Window,
    group_reading,
    tested_sample,
)

CPUS = 1
PERIOD_US = 100_000
#: The share of the node that the agent leaves to service and best effort together.
SUPPRESS_SHARE = 0.98
WARMUP_S = 2.0
#: Samples of before the load.
BEFORE_LOAD_S = 4

POD_MODES = {
    "baseline": Behaviour(batch=False, definition={"title": "Service alone"}),
    "colocation": Behaviour(latency_factor=2.1, service_cpu_factor=1.06, definition={"title": "Default colocation"}),
    "slo_aware": Behaviour(
        latency_factor=1.012,
        frames_per_s=84.0,
        service_cpu_factor=1.045,
        definition={
            "title": "SLO-aware colocation",
            "policy": "koordinator",
            "engine": "koordinator",
            "objectives": {"p90_added_pct": 5, "p99_added_pct": 5},
        },
    ),
}

#: fault: what it does to a window of pods
POD_FAULTS = (
    "not_injected", "evicted", "restarted", "replaced", "other_class", "node_not_ready", "pod_gone", "throttled",
    "resources_gone",
)  # fmt: skip
#: What every window has of the pods' groups.
VALUES = {"service/cpu.shares": "512"}


def cluster(options: Options) -> dict[str, Any]:
    """Return the manifest's entry for the cluster."""
    return {
        "server_version": "v1.34.2",
        "node_name": "tested-node",
        "runtime": "containerd 2.1.6",
        "cgroup_driver": "cgroupfs",
        "provider": "processes",
        "koordinator": {"version": "1.8.0", "method": "manifests"},
        "shares_machine": options.shares_machine,
    }


def injected(window: Window) -> bool:
    return window.behaviour.definition.get("engine") == "koordinator"


def suppressed(window: Window) -> bool:
    return window.behaviour.definition.get("policy") == "koordinator"


def policy_readings(window: Window) -> dict[str, Any]:
    """Return policy.json."""
    names = ("service", "batch") if window.behaviour.batch else ("service",)
    ready = window.fault != "node_not_ready"
    found: dict[str, Any] = {"node_ready": {"before": True, "after": ready}}
    if window.behaviour.batch and injected(window) and window.fault != "not_injected":
        gone = window.fault == "resources_gone"
        found["batch_cpu_milli"] = {"asked": 800, "before": 900, "after": 0 if gone else 850}
        found["batch_memory_bytes"] = {"asked": 1 << 30, "before": 2 << 30, "after": 0 if gone else 2 << 30}
    pods = {name: pod(window, name) for name in names}
    return {"wanted": dict(VALUES), "applied": dict(VALUES), "after": {}, "pods": pods, "cluster": found}


def pod(window: Window, name: str) -> dict[str, Any]:
    """Return what is stored of one pod; a fault is the batch pod's, the service's where there is none."""
    concerned = window.fault if name == ("batch" if window.behaviour.batch else "service") else None
    wanted = {"service": "LS", "batch": "BE"}[name] if injected(window) else ""
    missing = concerned == "not_injected"
    before = {
        "uid": f"uid-{name}",
        "node": "tested-node",
        "phase": "Running",
        "reason": "",
        "container_id": f"containerd://{name}",
        "restarts": 0,
        "class": "" if missing else wanted,
        "tier": {"service": "Burstable", "batch": "BestEffort"}[name],
    }
    changes: dict[str, dict[str, Any]] = {
        "evicted": {"phase": "Failed", "reason": "Evicted"},
        "restarted": {"restarts": 1, "container_id": "containerd://again"},
        "replaced": {"uid": "uid-again"},
        "other_class": {"class": "LSR"},
    }
    return {
        "expected": {"node": "tested-node", "class": wanted, "tier": before["tier"], "limited": False},
        "lacks": [f"label koordinator.sh/qosClass={wanted}", "priority class koord-batch"] if missing else [],
        "before": before,
        "after": None if concerned == "pod_gone" else {**before, **changes.get(concerned or "", {})},
    }


def adapt(window: Window, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tested node's samples as those of pods, with some of the seconds before the load."""
    idle = [_idle_sample(window, -WARMUP_S - second - 0.6) for second in range(BEFORE_LOAD_S)]
    found = [*reversed(idle), *lines]
    for number, sample in enumerate(found):
        groups = sample["groups"]
        elapsed_s = sample["wall_s"] - window.start_wall_s - window.options.clock_offset_s
        groups["cluster"] = group_reading(elapsed_s + 10, 0.001, 0.0, 40)
        groups["agent/koordlet-x2x1"] = group_reading(elapsed_s + 10, 0.0005, 0.0, 9)
        if window.fault == "throttled":
            groups["service"]["throttled_periods"] = max(0, int(3 * (elapsed_s + WARMUP_S)))
        used = window.offered_rps() * SERVICE_CPU_S_PER_REQUEST if elapsed_s > -WARMUP_S else 0.0
        # The agent's figure trembles with what it reads.
        quota_us = int(PERIOD_US * (CPUS * SUPPRESS_SHARE - used)) + 100 * (number % 3)
        quota = str(max(quota_us, 2000)) if suppressed(window) else "-1"
        sample["policy"] = {**VALUES, "best_effort/quota_us": quota, "best_effort/cpus": "0"}
    return found


def _idle_sample(window: Window, elapsed_s: float) -> dict[str, Any]:
    """Return a sample of before the load: every counter as it is when that begins, but the service's, which rests."""
    sample = tested_sample(window, -WARMUP_S)
    apart_s = elapsed_s + WARMUP_S
    sample["wall_s"] += apart_s
    sample["mono_s"] += apart_s
    sample["groups"]["service"]["cpu_s"] += 0.001 * apart_s
    return sample
