# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A policy's host applications: processes outside of Kubernetes with a class of service and a group of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import APPLICATION, BE, Workload
from ansible_collections.colocation.testbed.plugins.module_utils.policy.overlay import Strategy

SECTION = "host-application-config"
_BESTEFFORT, _BURSTABLE = "besteffort", "burstable"


def _base(kind: str, kubepods: str) -> str:
    """Return the group that a path starts from; systemd's slices carry the names of those above them."""
    tier = {"KubepodsBurstable": _BURSTABLE, "KubepodsBesteffort": _BESTEFFORT}.get(kind)
    if kind == "CgroupRoot":
        return ""
    if tier is None:
        return kubepods
    stem = kubepods[: -len(".slice")] if kubepods.endswith(".slice") else None
    return f"{kubepods}/{tier}" if stem is None else f"{kubepods}/{stem}-{tier}.slice"


def group(application: Mapping[str, Any], kubepods: str) -> str:
    """Return the path of an application's group below the hierarchy, as Koordinator builds it."""
    path = application.get("cgroupPath")
    if path is None:
        parent = "host-best-effort" if application["qos"] == BE else "host-latency-sensitive"
        return f"{parent}/{application['name']}"
    parts = (_base(path.get("base", "CgroupRoot"), kubepods), path.get("parentDir", ""), path.get("relativePath", ""))
    return "/".join(part.strip("/") for part in parts if part.strip("/"))


def workloads(strategies: Mapping[str, Strategy], kubepods: str) -> Iterator[Workload]:
    """Yield each application as a workload; only who goes first is set for it, as Koordinator does."""
    for item in strategies[SECTION].get("applications") or ():
        yield Workload(group(item, kubepods), item["qos"], APPLICATION)
