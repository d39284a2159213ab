# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turn cumulative samples of a node into what happened in each second: pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_BUSY = ("user_s", "nice_s", "system_s", "irq_s", "softirq_s")
_IDLE = ("idle_s", "iowait_s")


@dataclass(frozen=True)
class CpuSeries:
    """CPU time by class in % of the measured CPUs, and run-queue wait of the service in ms each second."""

    time_s: Floats
    share_pct: Mapping[str, Floats]
    wait_ms_per_s: Floats


def cpu_series(samples: Sequence[Mapping[str, Any]], cpus: Sequence[int], start_s: float, end_s: float) -> CpuSeries:
    """Compute the classes for the samples between two wall-clock times, in seconds.

    ``other`` is what the CPUs did for neither the service nor the batch workload: kernel work
    that no group is charged for, samplers, foreign processes. Groups are charged to the nanosecond and
    the CPU counters in ticks of 10 ms, so the difference of the two is cut off at zero.
    """
    inside = [item for item in samples if start_s - 1.0 <= float(item["wall_s"]) <= end_s + 1.0]
    names = [str(cpu) for cpu in cpus] or sorted({name for item in inside for name in item["cpus"]})
    if len(inside) < 2 or not names:
        empty = np.zeros(0)
        return CpuSeries(empty, dict.fromkeys(("service", "batch", "other", "steal", "idle"), empty), empty)
    wall = _column(inside, lambda item: item["wall_s"])
    busy, idle, steal = (_cpu_rate(inside, names, keys) for keys in (_BUSY, _IDLE, ("steal_s",)))
    total = np.maximum(busy + idle + steal, 1e-9)
    service, batch = _group_rate(inside, "service", "cpu_s"), _group_rate(inside, "batch", "cpu_s")
    other = np.maximum(busy - service - batch, 0.0)
    scale = 100.0 / np.maximum(total, service + batch + other + steal)
    shares = {"service": service, "batch": batch, "other": other, "steal": steal}
    share_pct = {name: values * scale for name, values in shares.items()}
    share_pct["idle"] = np.maximum(100.0 - sum(share_pct.values(), np.zeros(len(wall) - 1)), 0.0)
    wait = _group_rate(inside, "service", "wait_s") / np.maximum(np.diff(wall), 1e-9)
    return CpuSeries(wall[1:] - start_s, share_pct, wait * 1000.0)


def _column(samples: Sequence[Mapping[str, Any]], read: Any) -> Floats:
    return np.array([float(read(item) or 0.0) for item in samples])


def _cpu_rate(samples: Sequence[Mapping[str, Any]], cpus: Sequence[str], keys: Sequence[str]) -> Floats:
    column = _column(
        samples,
        lambda item: sum(float((item["cpus"].get(cpu) or {}).get(key) or 0.0) for cpu in cpus for key in keys),
    )
    return np.maximum(np.diff(column), 0.0)


def _group_rate(samples: Sequence[Mapping[str, Any]], group: str, key: str) -> Floats:
    column = _column(samples, lambda item: ((item.get("groups") or {}).get(group) or {}).get(key))
    return np.maximum(np.diff(column), 0.0)
