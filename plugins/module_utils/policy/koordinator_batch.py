# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recompute what Koordinator's manager offers to batch work on a node, from the API's objects, term by term.

CPU in milli-cores, memory in bytes. The formula is policy/batch.py; here its terms are read from objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.policy import batch, overlay

BATCH_CPU, BATCH_MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
EXTENDED = (BATCH_CPU, BATCH_MEMORY, "kubernetes.io/mid-cpu", "kubernetes.io/mid-memory")
"""The resources that the manager writes into a node's status."""
PRIORITY_LABEL = "koordinator.sh/priority-class"
_BANDS: Mapping[str, range] = {
    "koord-prod": range(9000, 10000),
    "koord-mid": range(7000, 8000),
    "koord-batch": range(5000, 6000),
    "koord-free": range(3000, 4000),
}
_BELOW = ("koord-batch", "koord-free")


@dataclass(frozen=True)
class Terms:
    """One resource's terms and what comes out, in milli-cores or bytes."""

    capacity: int
    margin: int
    reserved: int
    system_used: int
    above: batch.Above
    policy: str
    offered: int

    def text(self) -> str:
        """Return the sum as one reads it."""
        used = {batch.USAGE: self.above.used, batch.REQUEST: self.above.requested}.get(self.policy, self.above.larger)
        system = self.reserved if self.policy == batch.REQUEST else max(self.system_used, self.reserved)
        return (
            f"{self.capacity} capacity - {self.margin} margin - {system} system - {used} of pods above batch "
            f"({self.policy}) = {self.offered}"
        )


def priority_class(pod: Mapping[str, Any]) -> str:
    """Return Koordinator's class of a pod ("" for none): its label, its class by name, or the band of its priority."""
    labelled = (pod["metadata"].get("labels") or {}).get(PRIORITY_LABEL)
    named = pod["spec"].get("priorityClassName", "")
    if labelled or named in _BANDS:
        return str(labelled or named)
    priority = pod["spec"].get("priority", 0)
    return next((name for name, band in _BANDS.items() if priority in band), "")


def _figure(value: Any, resource: str) -> int:
    """Return milli-cores or bytes, rounded up: nodes report use in fractions (123456789n)."""
    exact = quantity.parse(str(value or "0")) * (1000 if resource == "cpu" else 1)
    return -(-exact.numerator // exact.denominator)


def _request(pod: Mapping[str, Any], resource: str) -> int:
    """Return what a pod requests: the sum over its containers, as v1.8.0 counts."""
    containers = pod["spec"].get("containers") or ()
    asked = ((item.get("resources") or {}).get("requests") or {} for item in containers)
    return sum(_figure(item.get(resource), resource) for item in asked)


def _used(entry: Mapping[str, Any], resource: str) -> int:
    return _figure(((entry.get("podUsage") or {}).get("resources") or {}).get(resource), resource)


def _above(metric: Mapping[str, Any], pods: Iterable[Mapping[str, Any]], resource: str) -> batch.Above:
    """Return the sums over pods that rank above batch; a pod without a reading counts as using what it requests."""
    status = metric.get("status") or {}
    readings = {(item["namespace"], item["name"]): item for item in status.get("podsMetric") or ()}
    counted: list[tuple[int | None, int]] = []
    for pod in pods:
        if pod["status"].get("phase") not in ("Running", "Pending"):
            continue
        reading = readings.pop((pod["metadata"]["namespace"], pod["metadata"]["name"]), None)
        if priority_class(pod) not in _BELOW:
            counted.append((None if reading is None else _used(reading, resource), _request(pod, resource)))
    # Pods that are gone still count while there are readings of them.
    counted += [(_used(item, resource), 0) for item in readings.values() if item.get("priority", "") not in _BELOW]
    return batch.above(tuple(counted))


def terms(
    node: Mapping[str, Any],
    metric: Mapping[str, Any],
    pods: Iterable[Mapping[str, Any]],
    strategy: overlay.Strategy,
    resource: str,
) -> Terms:
    """Return the terms for ``cpu`` or ``memory``. ``pods`` are those of the node, ``strategy`` its colocation-config.

    Raises QuantityError for figures that are none.
    """
    status, name = node["status"], "CPU" if resource == "cpu" else "Memory"
    capacity = _figure(status["capacity"].get(resource), resource)
    reserved = capacity - _figure(status["allocatable"].get(resource), resource)
    usage = ((metric.get("status") or {}).get("nodeMetric") or {}).get("systemUsage") or {}
    system = _figure((usage.get("resources") or {}).get(resource), resource)
    percent = strategy.get(f"{resource}ReclaimThresholdPercent")
    written = strategy.get(f"{resource}CalculatePolicy")
    policy = batch.USAGE if resource == "cpu" and written == batch.REQUEST else written
    above = _above(metric, pods, resource)
    offered = batch.offered(
        batch.Node(capacity, reserved, system), above, policy, percent, strategy.get(f"batch{name}ThresholdPercent")
    )
    return Terms(capacity, capacity - capacity * percent // 100, reserved, system, above, policy, offered)
