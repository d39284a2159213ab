# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A policy's part for the link: a pool and classes in the words of modules bandwidth_pool and bandwidth_class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import values
from ansible_collections.colocation.testbed.plugins.module_utils.policy import overlay, vocabulary_bandwidth
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import BE, Workload
from ansible_collections.colocation.testbed.plugins.module_utils.policy.overlay import Strategy
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary import SECTIONS
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary_bandwidth import BATCH, SERVICE

SECTION = vocabulary_bandwidth.SECTION
POOL = "link"
_ROLES = {BATCH: "offline", SERVICE: "online"}
_SHARING = ("request", "priority")


def _without_none(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if value is not None}


def pools(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the pool that the section's values ask for; none where it is not enabled."""
    if settings.get("enable") is not True:
        return []
    own = {key: value for key, value in settings.items() if key not in ("enable", BATCH, SERVICE)}
    return [_without_none({"name": POOL, **own})]


def classes(settings: Mapping[str, Any], workloads: Sequence[Workload]) -> list[dict[str, Any]]:
    """Return a class of all groups of class BE, which is offline, and one of all others; none without groups."""
    if settings.get("enable") is not True:
        return []
    members: dict[str, list[str]] = {BATCH: [], SERVICE: []}
    for workload in workloads:
        members[BATCH if workload.qos == BE else SERVICE].append(workload.group)
    return [
        _without_none(
            {"name": name, "pool": POOL, "role": role, **(settings.get(name) or {}), "cgroups": members[name]}
        )
        for name, role in _ROLES.items()
        if members[name]
    ]


def wanted(strategy: Strategy, workloads: Sequence[Workload]) -> dict[str, list[dict[str, Any]]]:
    """Return ``{"pools": […], "classes": […]}``, both empty where the section is not enabled."""
    return {"pools": pools(strategy.values), "classes": classes(strategy.values, workloads)}


def problems(policy: Mapping[str, Any], where: str) -> Iterator[str]:
    """Yield one sentence for each combination of values that the modules would refuse, or that would do nothing.

    Expects single values to be good. A node's entry counts together with the values that it is laid over.
    """
    section = policy.get(SECTION)
    if not isinstance(section, Mapping):
        return
    entries = section.get(SECTIONS[SECTION].entries)
    cluster = {key: value for key, value in section.items() if key != SECTIONS[SECTION].entries}
    base = overlay.merge(overlay.defaults(SECTIONS[SECTION].strategy), cluster)
    yield from _problems(base, f"{where}.{SECTION}")
    for number, entry in enumerate(entries if isinstance(entries, (list, tuple)) else ()):
        own = {key: value for key, value in entry.items() if key in SECTIONS[SECTION].strategy}
        yield from _problems(overlay.merge(base, own), f"{where}.{SECTION}.{SECTIONS[SECTION].entries}[{number}]")


def _problems(settings: Mapping[str, Any], path: str) -> Iterator[str]:
    if settings["enable"] is not True:
        return
    groups = [Workload(BATCH, BE), Workload(SERVICE, "LS")]
    raw_pools, raw_classes = pools(settings), classes(settings, groups)
    try:
        found = {POOL: values.pool(raw_pools[0])}
        values.check(values.Policy(found, {raw["name"]: values.traffic_class(raw) for raw in raw_classes}))
    except values.BandwidthError as exc:
        yield f"{path}: {exc}"
        return
    if settings["shares"] == "none":
        for name in _ROLES:
            for key in _SHARING:
                if settings.get(name, {}).get(key):
                    yield f"{path}.{name}.{key}: has no effect without shares; write shares: weights, or leave it out"
    if not settings.get("high") and not any(settings.get(name, {}).get("limit") for name in _ROLES):
        yield f"{path}: limits nothing; give low and high, or a limit in {BATCH}"
