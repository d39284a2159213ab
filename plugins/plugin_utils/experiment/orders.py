# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a cell of the matrix to what is to be done, and from what came of it to a judged record: pure functions."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.measure import guards, series
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import Cell, MeasurementRecord
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import specs
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.bench import Raw
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.workloads import Order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import GuardResult
    from ansible_collections.colocation.testbed.plugins.plugin_utils.definitions import Definitions
    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Testbed
    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.settings import MatrixSettings

#: Measurements of a peak that lie within this share of each other agree.
PEAK_AGREEMENT = 0.03

#: Guards that trip when the batch workload does not run.
ALIVE_GUARDS = ("processes_alive", "batch_progress")


def used_definitions(settings: MatrixSettings, definitions: Definitions) -> dict[str, dict[str, Any]]:
    """Return the definitions that a run uses, for its manifest."""
    modes = {name: definitions.modes[name] for name in settings.modes}
    policies = {mode["policy"] for mode in modes.values() if mode["policy"] is not None}
    return {
        "modes": modes,
        "policies": {name: definitions.policies[name] for name in sorted(policies)},
        "aggressors": {name: definitions.aggressors[name] for name in settings.aggressors},
    }


def groups(mode: str, definitions: Definitions, testbed: Testbed, hosts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the groups of module ``cgroup`` that bring a mode about on the tested node; pods have groups already."""
    if testbed.cluster is not None:
        return []
    node = testbed.tested
    host = hosts[node.name]
    cpus = len(quantity.parse_cpu_list(host["measured_cpus"]))
    requests = {"service": testbed.service.requests, "batch": testbed.batch.requests}
    return specs.root_group(node) + definitions.groups(mode, requests, cpus, int(host["memory_bytes"]))


def divides_link(modes: Sequence[str], definitions: Definitions) -> bool:
    """Return whether any mode's policy limits packets."""
    return any(definitions.link(mode, "") is not None for mode in modes)


def peak_found(rates_rps: Sequence[float]) -> bool:
    """Return whether a peak is believed: the best two of its measurements agree.

    Noise only takes from a peak, so the best are the truest, and one alone could still be short of it.
    """
    best = sorted(rates_rps)[-2:]
    return len(best) == 2 and best[0] >= best[1] * (1 - PEAK_AGREEMENT)


def rounded_rps(peak_rps: float) -> float:
    """Return a rate to three digits, so that runs on one machine offer the same load more often."""
    return float(f"{peak_rps:.3g}")


def resolve(
    cell: Cell,
    label: str,
    manifest: Mapping[str, Any],
    definitions: Definitions,
    testbed: Testbed,
    hosts: Mapping[str, Any],
) -> Order:
    """Return what one cell asks for, with nothing left to look up."""
    mode = manifest["modes"][cell.mode]
    open_loop = manifest["load"]["kind"] == "open_loop"
    return Order(
        label=label,
        mode=cell.mode,
        url=testbed.service.url(float(mode["service_slowdown_pct"])),
        rate_rps=round(cell.load_point * float(manifest["load"]["peak_rps"]), 3) if open_loop else None,
        seed=cell.seed,
        groups=tuple(groups(cell.mode, definitions, testbed, hosts)),
        link=None if testbed.cluster else definitions.link(cell.mode, testbed.tested.cgroup_root),
        aggressor=None
        if cell.aggressor is None
        else {**manifest["aggressors"][cell.aggressor], "name": cell.aggressor},
        engine=str(mode["engine"]),
        policy=None if mode["policy"] is None else manifest["policies"][mode["policy"]],
    )


def judge(
    manifest: Mapping[str, Any], cell: Cell, order: Order, raw: Raw
) -> tuple[MeasurementRecord, Sequence[GuardResult]]:
    """Run the guards over what a measurement brought home, and return its record with the outcome."""
    record = MeasurementRecord.of(cell, order.rate_rps)
    samples = {host: series.parse_lines(content) for host, content in raw.samples.items()}
    found = [_told(result, raw) for result in guards.evaluate(manifest, record, raw.load, samples, raw.policy)]
    return guards.judged(record, found), found


def _told(result: GuardResult, raw: Raw) -> GuardResult:
    """Return a guard's finding with the reason that a process itself gave for not being alive."""
    if result.ok or result.guard not in ALIVE_GUARDS or not raw.ended:
        return result
    return dataclasses.replace(result, text=f"{result.text}; {'; '.join(raw.ended)}")
