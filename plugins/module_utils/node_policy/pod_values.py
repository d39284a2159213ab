# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The groups of pods on a node and their values: found by uid, waited for until they are what a policy makes of them.

Values that Koordinator's agent moves all the time (the quota and CPUs of best effort) are told apart: they are sampled,
and compared with nothing.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cgroup,
    cgroup_foreign,
    cgroup_report,
    pod_cgroup,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import Layout
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import KEEP, Group
from ansible_collections.colocation.testbed.plugins.module_utils.node_policy import apply, groups
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import (
    BE,
    CONTAINER,
    POD,
    NodeFacts,
    Requests,
    RequestsError,
    Workload,
    requests_of,
    summed,
)

_POLL_S = 0.5
_QUOTA = {1: "cpu.cfs_quota_us", 2: "cpu.max"}
_CPUS = ("cpuset.cpus", "cpuset.cpus.effective")
TIER = "best_effort"


class PodValuesError(Exception):
    """The groups of pods can't be found, or what is said of them is wrong; the text says which pod and what to do."""


@dataclass(frozen=True)
class Pod:
    """A pod: what it is called here, its uid and container, its class ("" = the policy says nothing), what it asks."""

    key: str
    uid: str
    container_id: str
    qos: str = ""
    requests: Requests = field(default_factory=Requests)


@dataclass(frozen=True)
class Place:
    """Where a pod's groups are below the hierarchies."""

    pod: str
    container: str


@dataclass(frozen=True)
class Reading:
    """What was read: files and contents by sample key, what was not as wanted yet, and files that move."""

    files: Mapping[str, str]
    values: Mapping[str, str | None]
    unsettled: Mapping[str, str]
    moving: Mapping[str, str] = field(default_factory=dict)


def pods_of(raw: Sequence[Mapping[str, Any]]) -> list[Pod]:
    """Return the pods of option ``pods``. Raises PodValuesError with all problems."""
    found, problems = [], []
    for number, item in enumerate(raw):
        where = f"pods[{number}]"
        if pod_cgroup.normal(item["uid"]) is None:
            problems.append(f"{where}.uid: {item['uid']!r} is no uid of a pod; take metadata.uid")
        try:
            asked = [
                requests_of(one, item["qos"], f"{where}.containers[{place}]")
                for place, one in enumerate(item["containers"])
            ]
        except RequestsError as exc:
            problems.append(str(exc))
            continue
        found.append(
            Pod(item["key"], item["uid"], item["container_id"], item["qos"], summed(asked) if asked else Requests())
        )
    if problems:
        raise PodValuesError("; ".join(problems))
    return found


def find(layout: Layout, pods: Sequence[Pod]) -> dict[str, Place]:
    """Return where the pods that are there have their groups. A container that isn't there yet leaves its pod out."""
    mount = layout.hierarchy("cpu").mount
    there = pod_cgroup.scan(mount)
    found: dict[str, Place] = {}
    for pod in pods:
        path = there.get(pod_cgroup.normal(pod.uid) or "")
        names = cgroup.children(f"{mount}/{path}") if path else []
        name = next((one for one in names if pod.container_id and pod.container_id in one), None)
        if path and name:
            found[pod.key] = Place(path, f"{path}/{name}")
    return found


def await_places(layout: Layout, pods: Sequence[Pod], deadline_s: float) -> dict[str, Place]:
    """Wait until all pods have their groups. Raises PodValuesError naming those that have none by the deadline."""
    places: dict[str, Place] = {}

    def all_there() -> bool:
        places.update(find(layout, pods))
        return len(places) == len(pods)

    if not _wait(all_there, deadline_s):
        missing = ", ".join(f"{pod.key} (uid {pod.uid})" for pod in pods if pod.key not in places)
        raise PodValuesError(
            f"{layout.hierarchy('cpu').mount}: no control group of pod {missing} with its container; is this host the "
            "node that it runs on? Look with: kubectl get pods -o wide"
        )
    return places


def _wait(tell: Callable[[], bool], deadline_s: float, clock: Callable[[], float] = time.monotonic) -> bool:
    end = clock() + deadline_s
    while not tell():
        left = end - clock()
        if left <= 0:
            return False
        time.sleep(min(_POLL_S, left))
    return True


def wanted(
    layout: Layout, policy: Mapping[str, Any], node: NodeFacts, pods: Sequence[Pod], places: Mapping[str, Place]
) -> tuple[Group, ...]:
    """Return the groups with the values that a policy gives them; none for pods without a class."""
    classed = [pod for pod in pods if pod.qos]
    workloads = [Workload(places[pod.key].pod, pod.qos, POD, pod.requests) for pod in classed]
    workloads += [Workload(places[pod.key].container, pod.qos, CONTAINER, pod.requests) for pod in classed]
    task = apply.prepare(layout, policy, node, groups.Found(tuple(workloads), ()))
    ours = {workload.group for workload in workloads}
    return tuple(group for group in task.groups if group.name in ours and group.values)


@dataclass(frozen=True)
class Watched:
    """What is looked at: pods with their places, the groups with the values that they should have.

    ``moving``: somebody writes the quota and CPUs of best effort as a whole all the time.
    """

    layout: Layout
    pods: Sequence[Pod]
    places: Mapping[str, Place]
    want: Sequence[Group] = ()
    moving: bool = True


def settle(watched: Watched, quiet_s: float, most_s: float) -> Reading:
    """Read until all values are as wanted and none has changed for a while, at most ``most_s``; the last reading."""
    last = read(watched)
    since_s = time.monotonic()

    def settled() -> bool:
        nonlocal last, since_s
        now = read(watched)
        if now.values != last.values or now.unsettled:
            since_s = time.monotonic()
        last = now
        return time.monotonic() - since_s >= quiet_s

    _wait(settled, most_s)
    return last


def read(watched: Watched) -> Reading:
    """Return what the groups and all their ancestors have now."""
    layout, pods, places, want = watched.layout, watched.pods, watched.places, watched.want
    names = [name for pod in pods for name in (places[pod.key].pod, places[pod.key].container)]
    found = cgroup_report.policy_files(layout, "", names)
    tier = _tier(pods, places) if watched.moving else ""
    moving = _moving(layout, tier)
    steady = {_key(name, pods, places): path for name, path in found.items() if not _moves(path, tier, moving.values())}
    plan = cgroup_foreign.plan(layout, list(want)) if want else None
    late = {step.path: step.text for step in plan.steps if step.kind != KEEP} if plan else {}
    return Reading(
        files=steady,
        values=cgroup_report.policy_values(steady),
        unsettled={key: late[path] for key, path in steady.items() if path in late},
        moving=moving,
    )


def _tier(pods: Sequence[Pod], places: Mapping[str, Place]) -> str:
    """Return the root of best effort, "" where no pod is in it."""
    effort = [places[pod.key].pod for pod in pods if pod.qos == BE]
    return effort[0].rpartition("/")[0] if effort else ""


def _moving(layout: Layout, tier: str) -> dict[str, str]:
    """Return the files that the agent writes again and again: quota and CPUs of the root of best effort."""
    if not tier:
        return {}
    cpu, cpuset = layout.hierarchy("cpu"), layout.find("cpuset")
    found = {f"{TIER}/quota_us": f"{cgroup.join_path(cpu.mount, tier)}/{_QUOTA[cpu.version]}"}
    if cpuset:
        found[f"{TIER}/cpus"] = f"{cgroup.join_path(cpuset.mount, tier)}/cpuset.cpus"
    return found


def _moves(path: str, tier: str, moving: Collection[str]) -> bool:
    """Tell whether a file is one that moves: those, and the CPUs of everything below the root of best effort."""
    below = bool(tier) and f"/{tier}/" in path
    return path in moving or (below and path.rpartition("/")[2] in _CPUS)


def _key(name: str, pods: Sequence[Pod], places: Mapping[str, Place]) -> str:
    """Return a sample's key: a pod's path is what it is called here, so that keys are the same in every window."""
    group, _slash, file = name.rpartition("/")
    for pod in pods:
        place = places[pod.key]
        if group == place.container:
            return f"{pod.key}/container/{file}"
        if group == place.pod:
            return f"{pod.key}/{file}"
    return f"node/{name.lstrip('/')}"
