# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a guard looks at: one measurement with its run's manifest, cut to the window and read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.measure import series
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import MeasurementRecord, has_batch
from ansible_collections.colocation.testbed.plugins.module_utils.measure.series import Series


@dataclass(frozen=True)
class Host:
    """A host of the run: its part, the CPUs that are measured, and its samples; None without a window."""

    name: str
    tested: bool
    cpus: tuple[int, ...]
    series: Series | None


@dataclass(frozen=True)
class Scene:
    """One measurement as the guards see it. ``batch`` tells whether the mode runs a batch workload."""

    hosts: tuple[Host, ...]
    load: Mapping[str, Any]
    policy: Mapping[str, Any] | None
    batch: bool
    limits: Mapping[str, Any]

    @property
    def tested(self) -> tuple[Host, ...]:
        """Return the hosts under test."""
        return tuple(host for host in self.hosts if host.tested)

    @property
    def window_s(self) -> float | None:
        """Return the window's length by the load generator's monotonic clock."""
        start_s, end_s = number(self.load, "start_mono_s"), number(self.load, "end_mono_s")
        return None if start_s is None or end_s is None or end_s <= start_s else end_s - start_s


def number(values: Mapping[str, Any], key: str) -> float | None:
    """Return a number, or None when it is missing or something else."""
    value = values.get(key)
    return None if isinstance(value, bool) or not isinstance(value, (int, float)) else float(value)


def scene(
    manifest: Mapping[str, Any],
    record: MeasurementRecord,
    load: Mapping[str, Any],
    samples: Mapping[str, Sequence[series.Sample]],
    policy: Mapping[str, Any] | None,
) -> Scene:
    """Bring a measurement's readings together. Hosts of the manifest without samples stay, empty."""
    return Scene(
        hosts=hosts(manifest, load, samples),
        load=load,
        policy=policy,
        batch=has_batch(manifest["modes"].get(record.mode, {})),
        limits=manifest.get("limits") or {},
    )


def hosts(
    manifest: Mapping[str, Any], load: Mapping[str, Any], samples: Mapping[str, Sequence[series.Sample]]
) -> tuple[Host, ...]:
    """Return the manifest's hosts with their samples cut to the load's window, each on its own clock."""
    entries: Mapping[str, Mapping[str, Any]] = manifest["hosts"]
    offsets = {name: float(entry.get("clock_offset_s", 0.0)) for name, entry in entries.items()}
    load_offset_s = next((offsets[name] for name, entry in entries.items() if entry["role"] == "load"), 0.0)
    known = number(load, "start_wall_s") is not None and number(load, "end_wall_s") is not None
    return tuple(
        Host(
            name=name,
            tested=entry["role"] == "tested",
            cpus=quantity.parse_cpu_list(entry["measured_cpus"]),
            series=series.cut(samples.get(name, ()), series.host_window(load, load_offset_s, offsets[name]))
            if known
            else None,
        )
        for name, entry in sorted(entries.items())
    )
