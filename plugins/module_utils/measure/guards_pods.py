# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guards on workloads that run as pods: are they what the mode means, and did they stay it during the window.

What the API server said of the pods, before and after the window, is in ``pods`` and ``cluster`` of policy.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import limits, series
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import GuardResult
from ansible_collections.colocation.testbed.plugins.module_utils.measure.scene import Scene, number

Facts = Mapping[str, Any]

#: The kernel hands a quota out anew in each of these periods, and counts those in which a group ran out of it.
PERIODS_PER_S = 10
_MOST_NAMED = 4
#: Offered batch resources of a node: key of policy.json, Koordinator's name, unit.
_RESOURCES = (("batch_cpu_milli", "batch-cpu", "m"), ("batch_memory_bytes", "batch-memory", " bytes"))


def _names(scene: Scene) -> tuple[str, ...]:
    return ("service", "batch") if scene.batch else ("service",)


def _facts(value: Any) -> Facts | None:
    return value if isinstance(value, Mapping) else None


def _pods(scene: Scene) -> dict[str, Facts]:
    """Return what is stored of the pods that the mode has; a pod of which nothing is stored is left out."""
    stored = _facts((scene.policy or {}).get("pods")) or {}
    found = {name: _facts(stored.get(name)) for name in _names(scene)}
    return {name: pod for name, pod in found.items() if pod is not None and _facts(pod.get("expected")) is not None}


def _unknown(scene: Scene, pods: Mapping[str, Facts]) -> str | None:
    missing = [name for name in _names(scene) if name not in pods]
    return f"nothing is stored of the pod of {', '.join(missing)}" if missing else None


def _lacks(pod: Facts) -> tuple[str, ...] | None:
    found = pod.get("lacks")
    return tuple(map(str, found)) if isinstance(found, (list, tuple)) else None


def pods_injected(scene: Scene) -> GuardResult:
    """Count what Koordinator's webhook should have given the pods and did not.

    The webhook lets pods pass unchanged when it fails, so that such a run would compare a mode with itself.
    """
    pods = _pods(scene)
    lacking = {name: _lacks(pod) for name, pod in pods.items()}
    why = _unknown(scene, pods)
    unread = [name for name, found in lacking.items() if found is None]
    if why or unread:
        text = why or f"it is not stored what the pod of {' and '.join(unread)} lacks"
        return limits.result("pods_injected", scene.limits, None, text)
    clauses = [f"{name} lacks {_some(found)}" for name, found in lacking.items() if found]
    figure = float(sum(len(found or ()) for found in lacking.values()))
    if clauses:
        return limits.result("pods_injected", scene.limits, figure, f"pods not injected: {'; '.join(clauses)}")
    classed = [name for name, pod in pods.items() if pod["expected"].get("class")]
    text = f"{' and '.join(classed)} as Koordinator makes them" if classed else "no pod of this mode is Koordinator's"
    return limits.result("pods_injected", scene.limits, figure, text)


def _some(clauses: Sequence[str]) -> str:
    more = f" and {len(clauses) - _MOST_NAMED} more" if len(clauses) > _MOST_NAMED else ""
    return ", ".join(clauses[:_MOST_NAMED]) + more


def pods_steady(scene: Scene) -> GuardResult:
    """Count what differs between the pods before the window, after it, and as they were asked for."""
    pods = _pods(scene)
    why = _unknown(scene, pods)
    ready = _facts((_facts((scene.policy or {}).get("cluster")) or {}).get("node_ready"))
    if why or ready is None:
        return limits.result("pods_steady", scene.limits, None, why or "it is not stored whether the node was ready")
    faults = [fault for name, pod in pods.items() for fault in _pod_faults(name, pod)]
    faults += [
        f"the node was not ready {when} the window" for when in ("before", "after") if ready.get(when) is not True
    ]
    text = _some(faults) if faults else f"{' and '.join(pods)} as asked for, before and after the window"
    return limits.result("pods_steady", scene.limits, float(len(faults)), text)


def _pod_faults(name: str, pod: Facts) -> Iterator[str]:
    before, after = _facts(pod.get("before")), _facts(pod.get("after"))
    if before is None or after is None:
        yield f"the pod of {name} was gone {'before' if before is None else 'after'} the window"
    for when, facts in (("before", before), ("after", after)):
        if facts is not None:
            yield from _differing(name, pod, when, facts)
    if before is not None and after is not None:
        yield from _changed(name, before, after)


def _differing(name: str, pod: Facts, when: str, facts: Facts) -> Iterator[str]:
    """Say in what a pod is other than it was asked for, at one moment."""
    if facts.get("phase") != "Running":
        reason = f" ({facts['reason']})" if facts.get("reason") else ""
        yield f"{name} was {facts.get('phase') or 'in no phase'}{reason} {when} the window"
    expected = pod["expected"]
    wanted = {"node": expected.get("node"), "tier": expected.get("tier"), "class": expected.get("class") or ""}
    if _lacks(pod):
        # What the webhook did not give is said by pods_injected, and would meet every repeat.
        wanted = {"node": wanted["node"]}
    for key, value in wanted.items():
        found = facts.get(key) or ""
        if found != value:
            yield f"{name} had {key} {found or 'none'} {when} the window, expected was {value or 'none'}"


def _changed(name: str, before: Facts, after: Facts) -> Iterator[str]:
    for key, what in (("uid", "another pod"), ("container_id", "another container")):
        if not before.get(key) or before.get(key) != after.get(key):
            yield f"{name} was {what} after the window"
            break
    if before.get("node") != after.get("node"):
        yield f"{name} moved from node {before.get('node')} to {after.get('node')}"
    restarts = number(before, "restarts"), number(after, "restarts")
    if None in restarts:
        yield f"restarts of {name} are not stored"
    elif restarts[1] != restarts[0]:
        yield f"{name} was restarted, {restarts[0]:.0f} times before the window and {restarts[1]:.0f} after it"


def pods_unthrottled(scene: Scene) -> GuardResult:
    """Return the share of periods in which a pod without a CPU limit ran out of a quota that it should not have."""
    pods = _pods(scene)
    why = _unknown(scene, pods)
    if why or not scene.tested:
        return limits.result("pods_unthrottled", scene.limits, None, why or "the manifest names no tested host")
    free = [name for name, pod in pods.items() if pod["expected"].get("limited") is not True]
    worst, text = 0.0, f"{' and '.join(free)} without a CPU limit ran freely"
    for host in scene.tested:
        samples = host.series.around if host.series else ()
        for name in free:
            throttled_per_s = series.rate(samples, "groups", name, "throttled_periods")
            if throttled_per_s is None:
                text = f"{host.name}: throttled periods of {name} could not be read"
                return limits.result("pods_unthrottled", scene.limits, None, text)
            share_pct = 100.0 * throttled_per_s / PERIODS_PER_S
            if share_pct > worst:
                worst, text = share_pct, f"{name} was throttled in {share_pct:.1f} % of periods, and has no CPU limit"
    text = text if free else "every pod has a CPU limit of its own"
    return limits.result("pods_unthrottled", scene.limits, worst, text)


def batch_resources(scene: Scene) -> GuardResult:
    """Return by how much the node offered less batch resources than the batch pod asks for, before or after."""
    cluster = _facts((scene.policy or {}).get("cluster"))
    if cluster is None:
        return limits.result("batch_resources", scene.limits, None, "nothing is stored of the node's batch resources")
    worst, said = 0.0, []
    for key, name, unit in _RESOURCES:
        if key not in cluster:
            continue
        offer = _facts(cluster[key]) or {}
        asked = number(offer, "asked")
        if not asked:
            text = f"it is not stored how much {name} the batch pod asks for"
            return limits.result("batch_resources", scene.limits, None, text)
        # The controller takes the resource out of the node's status: what is not there is not offered.
        before, after = (number(offer, when) or 0.0 for when in ("before", "after"))
        worst = max(worst, 100.0 * (asked - min(before, after)) / asked)
        said.append(f"{name} asked {asked:.0f}{unit}, offered {before:.0f} before and {after:.0f} after the window")
    text = "; ".join(said) or "the batch pod asks for no batch resources"
    if worst > 0:
        text = f"batch resources vanished (the agent was silent for degradeTimeMinutes, or there is no room): {text}"
    return limits.result("batch_resources", scene.limits, worst, text)
