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
# What the agent logs before it gives up, and what that means; the first that is found counts. Kubelet comes first, as
# an agent that can't list pods ends whatever else is wrong.
_AGENT = (
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
        return f"failed: {status.get('reason', 'no reason given')} {status.get('message', '')}".strip()
    conditions = {item["type"]: item for item in status.get("conditions") or ()}
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return f"not scheduled: {scheduled.get('message', 'no reason given')}"
    for found in _containers(status):
        return found
    if conditions.get("Ready", {}).get("status") != "True":
        return f"not ready: {conditions.get('Ready', {}).get('message') or status.get('phase', 'no status yet')}"
    return ""


def _containers(status: Mapping[str, Any]) -> Iterator[str]:
    for item in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        waiting = (item.get("state") or {}).get("waiting") or {}
        reason, message = waiting.get("reason", ""), waiting.get("message", "")
        if reason in _PULL:
            yield f"image {item.get('image')} can't be pulled ({message or reason})"
        elif reason in CRASHING:
            ended = (item.get("lastState") or {}).get("terminated") or {}
            code = f", exit status {ended['exitCode']}" if "exitCode" in ended else ""
            yield f"container {item['name']} crashes ({reason}{code}, {item.get('restartCount', 0)} restarts)"
        elif reason and reason not in ("ContainerCreating", "PodInitializing"):
            yield f"container {item['name']} waits: {reason} {message}".strip()


def crashes(pod: Mapping[str, Any]) -> bool:
    """Tell whether a container of a pod crashes again and again, or ended badly a moment ago."""
    for item in (pod.get("status") or {}).get("containerStatuses") or ():
        waiting = ((item.get("state") or {}).get("waiting") or {}).get("reason", "")
        ended = (item.get("state") or {}).get("terminated") or {}
        if waiting in CRASHING or ended.get("exitCode"):
            return True
    return False
