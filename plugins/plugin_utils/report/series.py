# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sort a window's CPU time into the classes that the report draws, second by second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansible_collections.colocation.testbed.plugins.module_utils.measure import series
from ansible_collections.colocation.testbed.plugins.module_utils.measure.scene import Host

Floats = NDArray[np.float64]

CLASSES = ("service", "batch", "other", "steal", "idle")
_IDLE = ("idle", "iowait")


@dataclass(frozen=True)
class CpuSeries:
    """CPU time by class in % of the measured CPUs, and run-queue wait of the service in ms each second.

    Entry i covers the time from ``edges_s[i]`` to ``edges_s[i + 1]`` after the window's start.
    """

    edges_s: Floats
    share_pct: Mapping[str, Floats]
    wait_ms_per_s: Floats

    def __len__(self) -> int:
        """Count the intervals."""
        return len(self.wait_ms_per_s)


def cpu_series(host: Host) -> CpuSeries:
    """Compute the classes between the samples of a window; intervals with missing readings are left out.

    ``other`` is what the CPUs did for neither the service nor the batch workload: interrupts, samplers,
    foreign processes. Groups are charged to the nanosecond and CPUs in ticks of 10 ms, so it is cut off at zero.
    """
    edges: list[float] = []
    rows: list[dict[str, float]] = []
    waits: list[float] = []
    found = host.series
    for pair in zip(found.around, found.around[1:], strict=False) if found else ():
        shares = _shares(pair, host)
        if found is None or shares is None:
            continue
        edges = edges or [float(pair[0]["wall_s"]) - found.window.start_s]
        edges.append(float(pair[1]["wall_s"]) - found.window.start_s)
        rows.append(shares)
        waits.append(10.0 * (series.runqueue_wait_pct(pair) or 0.0))
    columns = {name: np.array([row[name] for row in rows]) for name in CLASSES}
    return CpuSeries(np.array(edges), columns, np.array(waits))


def _shares(pair: tuple[series.Sample, series.Sample], host: Host) -> dict[str, float] | None:
    classes = series.class_shares_pct(pair, host.cpus)
    service, batch = (series.group_cpu_pct(pair, group, host.cpus) for group in ("service", "batch"))
    if classes is None or service is None:
        return None
    idle = sum(classes[name] for name in _IDLE)
    busy = 100.0 - idle - classes["steal"]
    used = service + (batch or 0.0)
    scale = 1.0 if used <= busy else busy / used
    return {
        "service": service * scale,
        "batch": (batch or 0.0) * scale,
        "other": max(busy - used, 0.0),
        "steal": classes["steal"],
        "idle": idle,
    }
