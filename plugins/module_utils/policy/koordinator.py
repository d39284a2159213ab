# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A policy as Koordinator keeps it: the data of its ConfigMap, and what its manager makes of that for one node.

The manager lays the cluster's values over its defaults and the first matching node entry's over both, and writes the
outcome into the node's NodeSLO; its agent lays that over the same defaults. So a key that a NodeSLO lacks has its
default.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.policy import kernel_values, overlay, validation
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import (
    BE,
    CONTAINER,
    POD,
    NodeFacts,
    Option,
    Workload,
    requests_of,
    summed,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary import SECTIONS

ENGINE = "koordinator"
NODE_SLO_FIELDS: Mapping[str, str] = {
    "resource-threshold-config": "resourceUsedThresholdWithBE",
    "resource-qos-config": "resourceQOSStrategy",
    "cpu-burst-config": "cpuBurstStrategy",
    "system-config": "systemStrategy",
}
"""Section of the ConfigMap to the field of NodeSLO.spec that the manager writes it into."""
APPLICATIONS = "host-application-config"
COLLECT_FIELDS: Mapping[str, str] = {
    "metricAggregateDurationSeconds": "aggregateDurationSeconds",
    "metricReportIntervalSeconds": "reportIntervalSeconds",
}
"""Key of ``colocation-config`` to the field of NodeMetric.spec.metricCollectPolicy."""
MIN_REPORT_INTERVALS = 2
# What the agent's hook for batch resources writes; quality of service beyond them is the business of other hooks.
_BATCH_OPTIONS = ("cpu_shares", "cpu_quota_us", "memory_max_bytes")


class KoordinatorError(Exception):
    """The data of a ConfigMap cannot be understood; the text says which key, and what is wrong."""


@dataclass(frozen=True)
class Difference:
    """A value that is not in effect: where it was read, what is there, what is wanted, and which key wants it."""

    path: str
    found: Any
    wanted: Any
    key: str

    def text(self) -> str:
        """Return one sentence."""
        return f"{self.path} is {_shown(self.found)}, wanted {_shown(self.wanted)} (by {self.key})"


def render(policy: Mapping[str, Any], where: str = "policy") -> dict[str, str]:
    """Return the ConfigMap's data for a policy: JSON for each section, the same text for equal policies.

    The policy is checked first: Koordinator ignores what it doesn't know, and keeps the old value of what it can't
    read. Raises PolicyError.
    """
    validation.check(policy, where, ENGINE)
    return {
        name: json.dumps(value, indent=2, sort_keys=True)
        for name, value in policy.items()
        if name != validation.DESCRIPTION
    }


def parse(data: Mapping[str, str], where: str = "data") -> dict[str, Any]:
    """Return the policy in a ConfigMap's data. Raises KoordinatorError for text that isn't a JSON object.

    Keys that are no sections are left out: the manager does not look at them.
    """
    found: dict[str, Any] = {}
    for name in SECTIONS:
        if name not in data:
            continue
        try:
            value = json.loads(data[name])
        except ValueError as exc:
            raise KoordinatorError(
                f"{where}.{name}: is not JSON ({exc}), and Koordinator keeps its old values; correct the text"
            ) from exc
        if not isinstance(value, dict):
            raise KoordinatorError(f"{where}.{name}: is no JSON object; write keys and values in braces")
        found[name] = value
    return found


def node_slo(policy: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """Return what NodeSLO.spec must say for a node with these labels, defaults included. Expects a checked policy."""
    found: dict[str, Any] = {
        field: dict(overlay.strategy(policy, section, labels, presets=False).values)
        for section, field in NODE_SLO_FIELDS.items()
    }
    applications = overlay.strategy(policy, APPLICATIONS, labels).get("applications")
    found["hostApplications"] = list(applications or ())
    return found


def slo_differences(
    spec: Mapping[str, Any], policy: Mapping[str, Any], labels: Mapping[str, str]
) -> tuple[Difference, ...]:
    """Return the values of a NodeSLO's spec that are not what a policy wants for a node with these labels."""
    found: list[Difference] = []
    for section, field in NODE_SLO_FIELDS.items():
        wanted = overlay.strategy(policy, section, labels, presets=False)
        read = overlay.merge(overlay.defaults(SECTIONS[section].strategy), spec.get(field) or {})
        found += _differences(read, wanted.values, (), f"spec.{field}", wanted)
    applications = overlay.strategy(policy, APPLICATIONS, labels)
    wanted_list = list(applications.get("applications") or ())
    read_list = list(spec.get("hostApplications") or ())
    if not _same(read_list, wanted_list):
        key = applications.path("applications")
        found.append(Difference("spec.hostApplications", read_list, wanted_list, key))
    return tuple(found)


def _differences(
    read: Mapping[str, Any], wanted: Mapping[str, Any], names: tuple[str, ...], where: str, strategy: overlay.Strategy
) -> Iterator[Difference]:
    for name in sorted({*read, *wanted}):
        path, below = f"{where}.{name}", (*names, name)
        one, other = read.get(name), wanted.get(name)
        if isinstance(one, Mapping) or isinstance(other, Mapping):
            yield from _differences(_mapping(one), _mapping(other), below, path, strategy)
        elif not _same(one, other):
            yield Difference(path, one, other, strategy.path(*below))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _same(one: Any, other: Any) -> bool:
    """Tell whether two values mean the same; the API server writes quantities in a form of its own."""
    if isinstance(one, list) or isinstance(other, list):
        return bool(_bare(one) == _bare(other))
    if one == other:
        return type(one) is type(other) or not (isinstance(one, bool) or isinstance(other, bool))
    if isinstance(one, str) and isinstance(other, str):
        try:
            return quantity.parse(one) == quantity.parse(other)
        except quantity.QuantityError:
            return False
    return False


def _bare(value: Any) -> Any:
    """Return a value without what the manager leaves out or writes as empty: texts, lists and mappings that are."""
    if isinstance(value, Mapping):
        below = {name: _bare(item) for name, item in value.items()}
        return {name: item for name, item in below.items() if item is not None} or None
    if isinstance(value, (list, tuple)):
        return [_bare(item) for item in value] or None
    return None if value == "" else value


def collect_differences(
    spec: Mapping[str, Any], policy: Mapping[str, Any], labels: Mapping[str, str]
) -> tuple[Difference, ...]:
    """Return the values of a NodeMetric's spec that are not what a policy wants (how often the agent reports)."""
    wanted = overlay.strategy(policy, "colocation-config", labels)
    collect = spec.get("metricCollectPolicy") or {}
    return tuple(
        Difference(f"spec.metricCollectPolicy.{field}", collect.get(field), wanted.get(key), wanted.path(key))
        for key, field in COLLECT_FIELDS.items()
        if collect.get(field) != wanted.get(key)
    )


def report_age_limit_s(policy: Mapping[str, Any], labels: Mapping[str, str]) -> int:
    """Return the age in seconds beyond which a NodeMetric is stale: two of its report intervals."""
    interval_s: int = overlay.strategy(policy, "colocation-config", labels).get("metricReportIntervalSeconds")
    return MIN_REPORT_INTERVALS * interval_s


def best_effort_pod(
    policy: Mapping[str, Any], node: NodeFacts, containers: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Option]]:
    """Return the cgroup options that a BE pod must have: of the pod under "", of each container under its name.

    ``containers``: {name: {"requests": …, "limits": …}} with batch resources in Kubernetes' words. The options are
    those of module ``cgroup``: shares = milli·1024/1000, quota = milli·100 µs, sums for the pod, and no quota where the
    root of best effort is limited by quota. Raises RequestsError.
    """
    asked = {name: requests_of(item, BE, f"containers.{name}.resources") for name, item in containers.items()}
    workloads = [
        Workload("", BE, POD, summed(asked.values())),
        *(Workload(name, BE, CONTAINER, item) for name, item in asked.items()),
    ]
    return {
        item["group"]: {name: value for name, value in item["options"].items() if name in _BATCH_OPTIONS}
        for item in kernel_values.wanted(policy, node, workloads).cgroups
        if item["group"] in ("", *asked)
    }


def names_of(differences: Sequence[Difference], at_most: int = 3) -> str:
    """Return some differences as one clause."""
    shown = "; ".join(item.text() for item in differences[:at_most])
    more = len(differences) - at_most
    return f"{shown}; and {more} more" if more > 0 else shown


def _shown(value: Any) -> str:
    return "not set" if value is None else json.dumps(value, sort_keys=True, default=str)
