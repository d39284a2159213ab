# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The quota of all best-effort pods over a measurement, beside what the service used: does suppress follow the load.

Koordinator's agent moves the quota of the root of best effort each second. Samples begin before the load does, so that
an idle node's quota stands beside a busy one's. A quota of None means that there is no limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import scene, series

#: Keys of a sample's policy.
QUOTA_KEY = "best_effort/quota_us"
CPUS_KEY = "best_effort/cpus"
#: cpu.cfs_quota_us says nothing of its period; kubelet and Koordinator leave it as the kernel has it.
DEFAULT_PERIOD_US = 100_000


@dataclass(frozen=True)
class Quota:
    """CPU time that a group may use in each period; ``quota_us`` None is no limit."""

    quota_us: int | None
    period_us: int

    @property
    def cpus(self) -> float | None:
        """Return how many CPUs that is; None without a limit."""
        return None if self.quota_us is None else self.quota_us / self.period_us


@dataclass(frozen=True)
class Moment:
    """One sample: ``t_s`` after the window's start; CPUs in use are those of the second before."""

    t_s: float
    quota: Quota
    cpus: str
    service_cpus: float | None


@dataclass(frozen=True)
class BestEffort:
    """A measurement's moments; the load began at ``load_s``, the window reaches from 0 to ``window_s``."""

    moments: tuple[Moment, ...]
    load_s: float
    window_s: float

    @property
    def before_load(self) -> tuple[Moment, ...]:
        """Return what was sampled before the load began."""
        return tuple(moment for moment in self.moments if moment.t_s < self.load_s)

    @property
    def inside(self) -> tuple[Moment, ...]:
        """Return what was sampled in the window."""
        return tuple(moment for moment in self.moments if 0.0 <= moment.t_s <= self.window_s)

    @property
    def limited(self) -> bool:
        """Return whether there was ever a limit."""
        return any(moment.quota.quota_us is not None for moment in self.moments)


def parse_quota(text: object) -> Quota | None:
    """Return the quota in cpu.max ("max 100000", "12000 100000") or cpu.cfs_quota_us ("-1"); None for anything else."""
    words = text.split() if isinstance(text, str) else []
    period = words[1] if len(words) == 2 else str(DEFAULT_PERIOD_US)
    if len(words) not in (1, 2) or not _is_count(period) or int(period) == 0:
        return None
    if words[0] in ("max", "-1"):
        return Quota(None, int(period))
    return Quota(int(words[0]), int(period)) if _is_count(words[0]) else None


def _is_count(word: str) -> bool:
    return word.isascii() and word.isdecimal()


def of(
    manifest: Mapping[str, Any], load: Mapping[str, Any], samples: Mapping[str, Sequence[series.Sample]]
) -> BestEffort | None:
    """Return what was sampled on the tested host; None where the quota was never read, or without a window."""
    for host in scene.hosts(manifest, load, samples):
        if host.tested and host.series is not None:
            window = host.series.window
            moments = _moments(samples.get(host.name, ()), window.start_s)
            if moments:
                return BestEffort(moments, -(scene.number(load, "warmup_s") or 0.0), window.duration_s)
    return None


def _moments(samples: Sequence[series.Sample], start_s: float) -> tuple[Moment, ...]:
    found = []
    for index, sample in enumerate(samples):
        wall_s = scene.number(sample, "wall_s")
        quota = parse_quota(series.reading(sample, "policy", QUOTA_KEY))
        if wall_s is None or quota is None:
            continue
        used = series.rate(samples[index - 1 : index + 1], "groups", "service", "cpu_s") if index else None
        cpus = series.reading(sample, "policy", CPUS_KEY)
        found.append(Moment(wall_s - start_s, quota, str(cpus or ""), used))
    return tuple(found)


def spread(moments: Iterable[Moment]) -> dict[str, int | float | None] | None:
    """Return least, median and greatest quota, how many samples, and how many of them had no limit; None without any.

    No limit is more than every limit: what that makes of a figure is None.
    """
    sizes = sorted(math.inf if item.quota.quota_us is None else item.quota.quota_us for item in moments)
    if not sizes:
        return None
    named = {"least_us": sizes[0], "median_us": median(sizes), "greatest_us": sizes[-1]}
    found: dict[str, int | float | None] = {
        name: round(size, 1) if math.isfinite(size) else None for name, size in named.items()
    }
    return {**found, "samples": len(sizes), "without_limit": sum(math.isinf(size) for size in sizes)}


def service_cpus(moments: Iterable[Moment]) -> float | None:
    """Return how many CPUs the service used in the median second; None where that was not read."""
    known = [item.service_cpus for item in moments if item.service_cpus is not None]
    return round(median(known), 4) if known else None


def pooled(found: Sequence[BestEffort]) -> dict[str, Any] | None:
    """Return the figures of several measurements of one cell together; None where the quota was never read."""
    phases = {
        "before_load": [moment for item in found for moment in item.before_load],
        "window": [moment for item in found for moment in item.inside],
    }
    if not any(phases.values()):
        return None
    period_us = next(moment.quota.period_us for moments in phases.values() for moment in moments)
    return {
        "period_us": period_us,
        "quota": {name: spread(moments) for name, moments in phases.items()},
        "service_cpus": {name: service_cpus(moments) for name, moments in phases.items()},
    }
