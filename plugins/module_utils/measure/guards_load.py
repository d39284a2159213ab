# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guards on the load: was what was asked for sent, on time, and answered."""

from __future__ import annotations

from ansible_collections.colocation.testbed.plugins.module_utils.measure import histogram, limits
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import GuardResult
from ansible_collections.colocation.testbed.plugins.module_utils.measure.scene import Scene, number

#: Above this share of busy connections a late request waited for a free one, which is the service's doing.
_SATURATED_SHARE = 0.5


def load_rate_kept(scene: Scene) -> GuardResult:
    """Compare the requests of an open loop with its schedule."""
    scheduled, requests = number(scene.load, "scheduled"), number(scene.load, "requests")
    if not scheduled or requests is None:
        return limits.result("load_rate_kept", scene.limits, None, "the load result counts no scheduled requests")
    off_pct = 100.0 * abs(requests - scheduled) / scheduled
    text = f"{requests:.0f} of {scheduled:.0f} scheduled requests were sent"
    return limits.result("load_rate_kept", scene.limits, off_pct, text, collapse=collapsed(scene))


def connections_busy(scene: Scene) -> float | None:
    """Return the mean share of connections with a request under way: rate times latency (Little's law), by connections.

    None when the load result lacks what that needs.
    """
    window_s, connections = scene.window_s, number(scene.load, "connections")
    try:
        latencies = histogram.Histogram.from_pairs(scene.load.get("latency_us"))
        mean_s = latencies.mean() / 1e6
    except histogram.HistogramError:
        return None
    if not window_s or not connections:
        return None
    return latencies.total / window_s * mean_s / connections


def collapsed(scene: Scene) -> bool:
    """Return whether a colocated mode left the service too little to keep up: its connections were mostly busy.

    In a baseline the same means that the load point is beyond the service, which no repeat and no policy can mend.
    """
    busy = connections_busy(scene)
    return scene.batch and busy is not None and busy >= _SATURATED_SHARE


def lateness(scene: Scene) -> GuardResult:
    """Count requests that left more than 1 ms after their time.

    A stall of the load node is noise and worth a repeat. Connections that were all busy are not: the service was too
    slow for the rate, in every window of that mode, and latencies then lack the time spent waiting.
    """
    late, requests = number(scene.load, "late"), number(scene.load, "requests")
    if late is None or not requests:
        return limits.result("lateness", scene.limits, None, "the load result counts no requests")
    share_pct = 100.0 * late / requests
    text = f"{late:.0f} of {requests:.0f} requests left over 1 ms late, at most {number(scene.load, 'late_max_ms')} ms"
    busy = connections_busy(scene)
    if share_pct <= limits.limit_of("lateness", scene.limits) or busy is None or busy < _SATURATED_SHARE:
        return limits.result("lateness", scene.limits, share_pct, text)
    text += f", because {100 * busy:.0f} % of the connections were busy: the service is too slow for this rate"
    return limits.result(
        "lateness", scene.limits, share_pct, text, repeatable=False, noise=False, collapse=collapsed(scene)
    )


def generator_cpu(scene: Scene) -> GuardResult:
    """Compare the generator's CPU time with what its threads could use."""
    used_s, threads, window_s = number(scene.load, "generator_cpu_s"), number(scene.load, "threads"), scene.window_s
    if used_s is None or not threads or not window_s:
        return limits.result("generator_cpu", scene.limits, None, "the load result lacks CPU time, threads or window")
    share_pct = 100.0 * used_s / (threads * window_s)
    return limits.result(
        "generator_cpu", scene.limits, share_pct, f"each of {threads:.0f} threads used {share_pct:.0f} %"
    )


def no_errors(scene: Scene) -> GuardResult:
    """Count requests that failed in any way."""
    errors = scene.load.get("errors")
    counts = {} if not isinstance(errors, dict) else {kind: number(errors, kind) for kind in errors}
    if not counts or None in counts.values() or not number(scene.load, "requests"):
        return limits.result("no_errors", scene.limits, None, "the load result counts no requests or no errors")
    found = {kind: count for kind, count in sorted(counts.items()) if count}
    text = ", ".join(f"{count:.0f} {kind}" for kind, count in found.items()) if found else "none"
    starved = set(found) == {"timeout"} and collapsed(scene)
    total = sum(found[kind] or 0.0 for kind in found)
    return limits.result("no_errors", scene.limits, total, f"errors: {text}", collapse=starved)
