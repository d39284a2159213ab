# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge one measurement: run every guard on it, and decide whether it counts or is measured again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Callable, TypeVar

from ansible_collections.colocation.testbed.plugins.module_utils.measure import (
    guards_host,
    guards_load,
    guards_pods,
    limits,
    records,
)
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import GuardResult, MeasurementRecord
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import BandwidthRecord
from ansible_collections.colocation.testbed.plugins.module_utils.measure.scene import Scene, scene
from ansible_collections.colocation.testbed.plugins.module_utils.measure.series import Sample

RecordT = TypeVar("RecordT", MeasurementRecord, BandwidthRecord)

_GUARDS: Mapping[str, Callable[[Scene], GuardResult]] = {
    "pm_qos_held": guards_host.pm_qos_held,
    "load_rate_kept": guards_load.load_rate_kept,
    "lateness": guards_load.lateness,
    "generator_cpu": guards_load.generator_cpu,
    "no_errors": guards_load.no_errors,
    "processes_alive": guards_host.processes_alive,
    "no_foreign_batch": guards_host.no_foreign_batch,
    "batch_progress": guards_host.batch_progress,
    "policy_in_effect": guards_host.policy_in_effect,
    "pods_injected": guards_pods.pods_injected,
    "pods_steady": guards_pods.pods_steady,
    "pods_unthrottled": guards_pods.pods_unthrottled,
    "batch_resources": guards_pods.batch_resources,
    "steal": guards_host.steal,
    "foreign_cpu": guards_host.foreign_cpu,
    "foreign_burst": guards_host.foreign_burst,
    "clocks_monotonic": guards_host.clocks_monotonic,
    "samples_complete": guards_host.samples_complete,
}
#: A closed loop has no schedule to keep or to be late for.
_OPEN_LOOP_ONLY = ("load_rate_kept", "lateness")
_PODS_ONLY = ("pods_injected", "pods_steady", "pods_unthrottled", "batch_resources")


def applicable(load_kind: str, batch: bool, pods: bool = False) -> tuple[str, ...]:
    """Return the names of the guards that apply to a measurement, in the order of the table.

    :param pods: whether the workloads are pods.
    """
    skipped = {
        *(() if load_kind == "open_loop" else _OPEN_LOOP_ONLY),
        *(("no_foreign_batch",) if batch else ("batch_resources",)),
        *(() if pods else _PODS_ONLY),
    }
    return tuple(guard.name for guard in limits.GUARDS if guard.name in _GUARDS and guard.name not in skipped)


def evaluate(
    manifest: Mapping[str, Any],
    record: MeasurementRecord,
    load: Mapping[str, Any],
    samples: Mapping[str, Sequence[Sample]],
    policy: Mapping[str, Any] | None,
) -> tuple[GuardResult, ...]:
    """Return what every guard that applies finds in a measurement. Missing data trips a guard, it raises nothing.

    :param samples: each host's samples, as ``series.parse_lines`` returns them.
    """
    view = scene(manifest, record, load, samples, policy)
    kind = str(manifest["load"]["kind"])
    return tuple(_GUARDS[name](view) for name in applicable(kind, view.batch, records.on_pods(manifest)))


def tripped(results: Sequence[GuardResult]) -> tuple[GuardResult, ...]:
    """Return the results that are not ok."""
    return tuple(result for result in results if not result.ok)


def judged(record: RecordT, results: Sequence[GuardResult]) -> RecordT:
    """Return the record with its outcome: kept unless a repeatable guard tripped, and all reasons in words.

    A measurement whose only tripped guards are not repeatable counts as measured, so that a run that is invalid by
    its configuration still measures all its cells without burning repeats. Where the mode was not there at all, the
    other guards look at something else than they mean.
    """
    found = tripped(results)
    return replace(
        record,
        kept=limits.foremost(found) is not None or not any(result.repeatable for result in found),
        reasons=tuple(f"{result.guard}: {result.text}" for result in found),
    )
