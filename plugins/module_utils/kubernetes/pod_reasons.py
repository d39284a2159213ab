# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a pod is not ready, in one clause: from its status, and for Koordinator's agent from what it logged last."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_PULL = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
CRASHING = ("CrashLoopBackOff", "Error", "RunContainerError", "CreateContainerError", "StartError")
# Why an image can't be had, by what the runtime says; the first that is found counts.
_PULL_CAUSES = (
    (re.compile(r"no match for platform|no matching manifest"), "there is none for the node's architecture"),
    (
        re.compile(r"unauthorized|authentication required|access denied|denied:", re.IGNORECASE),
        "credentials are missing",
    ),
    (re.compile(r"manifest unknown|not found"), "the registry does not have it"),
    (
        re.compile(r"connection refused|no such host|timeout|deadline exceeded|unreachable|dial tcp|x509"),
        "the registry can't be reached",
    ),
)
# What the agent logs before it gives up, and what that means; the first that is found counts. Of an agent that runs at
# all, kubelet comes first, as one that can't list pods ends whatever else is wrong.
_AGENT = (
    (
        re.compile(r"exec format error"),
        "its program is for another architecture",
        "bring an image for the node's architecture",
    ),
    (
        re.compile(r"(?:kubelet|/pods|/configz|:10250|:10255).*(?:[Ff]orbidden|Unauthorized|\b40[13]\b)"),
        "kubelet refuses the agent's service account",
        "grant nodes/proxy to it, and let kubelet authenticate by webhook",
    ),
    (
        re.compile(r"(?:kubelet|/pods|/configz|:10250|:10255).*(?:refused|timeout|x509|no such host|EOF)"),
        "the agent does not reach kubelet",
        "compare the port and the certificate with kubelet's configuration (readOnlyPort 0 needs port 10250)",
    ),
    (
        re.compile(
            r"(?:time out|timed out|failed).*(?:sync|synced).*(?:states? ?informer|kubelet|pods)|states informer"
        ),
        "the agent never got kubelet's list of pods",
        "ask kubelet for /pods with the service account's token",
    ),
    (
        re.compile(r"cgroup ?driver|CgroupDriver|kubepods.*(?:not exist|no such file)", re.IGNORECASE),
        "the agent does not find kubelet's control groups",
        "kubelet's cgroupRoot must be /, and its cgroupDriver the one whose directory exists",
    ),
    (
        re.compile(r"[Cc]an't get node|failed to get node|nodes \"[^\"]*\" not found|NodeSLO.*not found"),
        "the agent does not find its node",
        "the node's name in the API must be what the agent has as NODE_NAME",
    ),
    (re.compile(r"address already in use"), "a port of the agent is taken", "free port 9316, or choose another one"),
    (re.compile(r"unrecognized feature gate|unknown feature"), "a feature gate is not known", "correct the features"),
)


def why_agent(log: str) -> str:
    """Return what a log of Koordinator's agent says of its end and what to do, "" where nothing known is in it."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    for pattern, why, advice in _AGENT:
        for line in reversed(lines):
            if pattern.search(line):
                return f"{why} ({line[-160:]}); {advice}"
    return f"it logged last: {lines[-1][-160:]}" if lines else ""


def problem(pod: Mapping[str, Any]) -> str:
    """Return why a pod is not ready, "" where it is."""
    status = pod.get("status") or {}
    if status.get("phase") == "Failed":
        return _failed(str(status.get("reason", "no reason given")), str(status.get("message", "")))
    conditions = {item["type"]: item for item in status.get("conditions") or ()}
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return f"not scheduled: {scheduled.get('message', 'no reason given')}"
    for found in _containers(status):
        return found
    if conditions.get("Ready", {}).get("status") != "True":
        return f"not ready: {conditions.get('Ready', {}).get('message') or status.get('phase', 'no status yet')}"
    return ""


def _failed(reason: str, message: str) -> str:
    if reason == "Evicted":
        return f"was evicted: {message or 'no reason given'}"
    if reason.startswith("OutOf"):
        return f"was refused by kubelet, as the node offered less than it asks for ({reason}); make it again"
    return f"failed: {reason} {message}".strip()


def _why_no_image(reason: str, message: str) -> str:
    cause = next((f": {why}" for pattern, why in _PULL_CAUSES if pattern.search(message)), "")
    return f"{cause} ({message or reason})"


def _containers(status: Mapping[str, Any]) -> Iterator[str]:
    for item in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        waiting = (item.get("state") or {}).get("waiting") or {}
        reason, message = waiting.get("reason", ""), waiting.get("message", "")
        if reason in _PULL:
            yield f"image {item.get('image')} can't be pulled{_why_no_image(reason, message)}"
        elif reason in CRASHING:
            ended = (item.get("lastState") or {}).get("terminated") or {}
            code = f", exit status {ended['exitCode']}" if "exitCode" in ended else ""
            yield f"container {item['name']} crashes ({reason}{code}, {item.get('restartCount', 0)} restarts)"
        elif reason and reason not in ("ContainerCreating", "PodInitializing"):
            yield f"container {item['name']} waits: {reason} {message}".strip()


def node_problem(node: Mapping[str, Any]) -> str:
    """Return why a node is not ready, "" where it is, or where nothing is said of it."""
    conditions = {item["type"]: item for item in (node.get("status") or {}).get("conditions") or ()}
    ready = conditions.get("Ready")
    if ready is None or ready.get("status") == "True":
        return ""
    return str(ready.get("message") or ready.get("reason") or "it has never reported")


def crashes(pod: Mapping[str, Any]) -> bool:
    """Tell whether a container of a pod crashes again and again, or ended badly a moment ago."""
    for item in (pod.get("status") or {}).get("containerStatuses") or ():
        waiting = ((item.get("state") or {}).get("waiting") or {}).get("reason", "")
        ended = (item.get("state") or {}).get("terminated") or {}
        if waiting in CRASHING or ended.get("exitCode"):
            return True
    return False
