# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the readings of one measurement to its figures: latency, utilisation, work done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable

from ansible_collections.colocation.testbed.plugins.module_utils.measure import scene, series
from ansible_collections.colocation.testbed.plugins.module_utils.measure.histogram import Histogram, HistogramError
from ansible_collections.colocation.testbed.plugins.module_utils.measure.scene import Host

QUANTILES: Mapping[str, float] = {"p50_us": 0.5, "p90_us": 0.9, "p99_us": 0.99, "p999_us": 0.999}
#: All figures of a measurement, in the order in which tables show them. Shares of CPU are of the measured CPUs.
METRICS = (
    *QUANTILES,
    "throughput_rps",
    "utilisation_pct",
    "batch_work_per_s",
    "steal_pct",
    "service_cpu_pct",
    "batch_cpu_pct",
    "runqueue_wait_pct",
    "service_cpu_us_per_request",
    "service_wait_us_per_request",
)


def figures(
    manifest: Mapping[str, Any], load: Mapping[str, Any], samples: Mapping[str, Sequence[series.Sample]]
) -> dict[str, float | None]:
    """Return every figure of METRICS; None where readings are missing.

    ``steal_pct`` is that of the measured CPU that lost most; the other figures of several tested hosts are their
    mean, batch work their sum.
    """
    hosts = scene.hosts(manifest, load, samples)
    tested = [host for host in hosts if host.tested]
    found: dict[str, float | None] = dict.fromkeys(METRICS)
    found.update(_latencies(load))
    found["throughput_rps"] = throughput_rps(load)
    found["utilisation_pct"] = _mean(tested, lambda host: series.utilisation_pct(_inside(host), host.cpus))
    found["service_cpu_pct"] = _mean(tested, lambda host: series.group_cpu_pct(_inside(host), "service", host.cpus))
    found["batch_cpu_pct"] = _mean(tested, lambda host: series.group_cpu_pct(_inside(host), "batch", host.cpus))
    found["runqueue_wait_pct"] = _mean(tested, lambda host: series.runqueue_wait_pct(_inside(host)))
    work = [series.work_per_s(_inside(host)) for host in tested]
    found["batch_work_per_s"] = sum(filter(None, work)) if any(value is not None for value in work) else None
    found["steal_pct"] = _worst_steal(hosts)
    for name, counter in (("service_cpu_us_per_request", "cpu_s"), ("service_wait_us_per_request", "wait_s")):
        found[name] = _us_per_request(tested, counter, found["throughput_rps"])
    return found


def _us_per_request(tested: Sequence[Host], counter: str, answered_rps: float | None) -> float | None:
    """Return what a counter of the service's groups grew by for each answered request, in µs."""
    grown = [series.rate(_inside(host), "groups", "service", counter) for host in tested]
    if not answered_rps or not grown or None in grown:
        return None
    return 1e6 * sum(filter(None, grown)) / answered_rps


def throughput_rps(load: Mapping[str, Any]) -> float | None:
    """Return answered requests in each second of the window."""
    requests = scene.number(load, "requests")
    start_s, end_s = scene.number(load, "start_mono_s"), scene.number(load, "end_mono_s")
    if requests is None or start_s is None or end_s is None or end_s <= start_s:
        return None
    return requests / (end_s - start_s)


def _latencies(load: Mapping[str, Any]) -> dict[str, float | None]:
    try:
        latencies = Histogram.from_pairs(load.get("latency_us"))
        return {name: float(latencies.quantile(share)) for name, share in QUANTILES.items()}
    except HistogramError:
        return dict.fromkeys(QUANTILES)


def _inside(host: Host) -> tuple[series.Sample, ...]:
    return host.series.inside if host.series else ()


def _mean(hosts: Sequence[Host], figure: Callable[[Host], float | None]) -> float | None:
    values = [figure(host) for host in hosts]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _worst_steal(hosts: Sequence[Host]) -> float | None:
    shares = [series.steal_pct(host.series.around, cpu) for host in hosts if host.series for cpu in host.cpus]
    known = [share for share in shares if share is not None]
    return max(known) if known and len(known) == len(shares) else None
