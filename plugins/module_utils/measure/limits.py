# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every guard in one table: what it asks, where it trips unless the user says otherwise, why there, what follows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import limits_traffic
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import Guard, GuardResult

__all__ = ["GUARDS", "TRAFFIC", "Guard", "LimitsError", "check", "limit_of", "result", "unit_of"]


class LimitsError(Exception):
    """A limit is not one; the text says which and what is allowed."""


# Not repeatable is what follows from the configuration or from the mode itself: every repeat would meet it again, and
# choosing the windows that look better would bend the result. Such a measurement counts, and the run is invalid.
# Repeatable without being noise is what an accident may cause: a fresh window shows whether it was one.
GUARDS: tuple[Guard, ...] = (
    Guard(
        "pm_qos_held",
        "Idle states off (PM QoS held) on every measured CPU",
        "idle states were not held off (PM QoS) on every measured CPU",
        0.0,
        "% of samples",
        "waking from an idle state costs more than the contention that is looked for, and hides or inverts it",
        repeatable=False,
        noise=False,
    ),
    Guard(
        "load_rate_kept",
        "Load kept its schedule",
        "the load did not keep its schedule",
        1.0,
        "% of requests",
        "a load that gives way to a slow service makes it look quick",
        repeatable=False,
        noise=False,
    ),
    Guard(
        "lateness",
        "Requests left on time",
        "requests left late",
        2.0,
        "% of requests",
        "samplers beside the generator delay 0.3 to 1 % by a few ms; what is late is sent later, not measured worse",
        repeatable=True,
        noise=True,
    ),
    Guard(
        "generator_cpu",
        "Load generator had CPU to spare",
        "the load generator was short of CPU",
        80.0,
        "% of a CPU per thread",
        "beyond that the generator's own queue is measured",
        repeatable=False,
        noise=False,
    ),
    Guard(
        "no_errors",
        "Every request was answered",
        "requests failed",
        0.0,
        "errors",
        "errors are quick, and what failed has no latency",
        repeatable=False,
        noise=False,
    ),
    Guard(
        "processes_alive",
        "Service and batch alive, in their groups",
        "the service or the batch workload was not alive in its group",
        0.0,
        "readings",
        "a dead batch workload disturbs nobody, and one in a wrong group obeys another policy",
        repeatable=True,
        noise=False,
    ),
    Guard(
        "no_foreign_batch",
        "No batch work where the mode has none",
        "a batch workload ran in a mode that has none",
        0.0,
        "samples",
        "a baseline with a forgotten batch workload is none",
        repeatable=True,
        noise=False,
    ),
    Guard(
        "batch_progress",
        "Batch work advanced",
        "batch work did not advance as the mode says",
        75.0,
        "% of seconds without progress",
        "progress of slow work comes in steps of up to three seconds; a policy that starves it stops it for longer",
        repeatable=False,
        noise=False,
    ),
    Guard(
        "policy_in_effect",
        "Policy in effect during the window",
        "the policy was not in effect during the window",
        0.0,
        "readings",
        "kubelet, systemd and runtimes rewrite groups behind one's back",
        repeatable=True,
        noise=False,
    ),
    Guard(
        "pods_injected",
        "Pods are what Koordinator makes of them",
        "pods not injected, or nothing known of it",
        0.0,
        "things missing",
        "the webhook lets pods pass unchanged where it fails: the mode would be default colocation by another name",
        repeatable=False,
        noise=False,
        foremost=True,
    ),
    Guard(
        "pods_steady",
        "Pods and node the same before and after",
        "a pod was gone, replaced or of another class, or its node was not ready",
        0.0,
        "faults",
        "an evicted or restarted pod leaves seconds in which nobody was disturbed",
        repeatable=True,
        noise=False,
    ),
    Guard(
        "pods_unthrottled",
        "Pods without a CPU limit never throttled",
        "a pod without a CPU limit was throttled",
        0.0,
        "% of 100 ms periods",
        "a group without a quota is never throttled, and what a group above loses isn't counted here: one period is"
        " somebody's quota",
        repeatable=False,
        noise=False,
    ),
    Guard(
        "batch_resources",
        "Node offered the batch resources asked for",
        "the node's batch resources vanished",
        0.0,
        "% short",
        "they go where the agent is silent, and with them what tells batch pods from others",
        repeatable=True,
        noise=False,
    ),
    Guard(
        "steal",
        "No steal on measured CPUs",
        "the hypervisor took a measured CPU",
        0.5,
        "% of a CPU",
        "single accounting ticks of 10 ms pass, since hardly a window here is without; stalls of 100 ms decide P99",
        repeatable=True,
        noise=True,
    ),
    Guard(
        "foreign_cpu",
        "Tested CPUs free of foreign work",
        "foreign work used the tested CPUs",
        5.0,
        "% of tested CPUs",
        "samplers and kernel threads stay below 2 % here; more competes with the service",
        repeatable=True,
        noise=True,
    ),
    Guard(
        "foreign_burst",
        "No burst of foreign work on tested CPUs",
        "a burst of foreign work used the tested CPUs",
        15.0,
        "% of tested CPUs in one second",
        "clean windows stay below 9 % here; a second of 25 %, in a mean of 3.5 %, made P99 five times its neighbours'",
        repeatable=True,
        noise=True,
    ),
    Guard(
        "clocks_monotonic",
        "Clocks ran evenly",
        "a clock was set during the window",
        50.0,
        "ms",
        "slewing moves a clock by at most 0.5 ms a second; more is a step, and windows and samples no longer match",
        repeatable=True,
        noise=False,
    ),
    Guard(
        "samples_complete",
        "Samples complete on every host",
        "samples are missing",
        10.0,
        "% of seconds missing",
        "what was not sampled cannot be vouched for",
        repeatable=True,
        noise=True,
    ),
    Guard(
        "baseline_spread",
        "Baseline repeats agree (P90)",
        "the baseline's own repeats disagree",
        10.0,
        "% of their median",
        "repeats that disagree by more leave no room to see 5 %, whatever the policy",
        repeatable=False,
        noise=True,
        scope="run",
    ),
    Guard(
        "too_good",
        "No colocated mode beats the baseline",
        "a colocated mode beats the baseline",
        0.5,
        "% below the baseline",
        "sharing a CPU cannot speed a service up: an interval that ends below this is an artefact, not a success",
        repeatable=False,
        noise=False,
        scope="run",
    ),
)

BY_NAME: Mapping[str, Guard] = {guard.name: guard for guard in (*GUARDS, *limits_traffic.GUARDS)}
#: The guards of the bandwidth experiment: some of the matrix's, and its own.
TRAFFIC: tuple[Guard, ...] = (*(BY_NAME[name] for name in limits_traffic.SHARED), *limits_traffic.GUARDS)

#: Limits that a guard uses beside its own: name, default, unit, why.
DEEP_ENTRIES = "pm_qos_deep_entries_per_s"
AUXILIARY: Mapping[str, float] = {
    # A CPU that idles without a hold enters a deep state hundreds of times a second, one with a hold never.
    DEEP_ENTRIES: 1.0,
}


def limit_of(name: str, overrides: Mapping[str, Any]) -> float:
    """Return the limit in effect: the manifest's, or else the table's."""
    if name in overrides:
        return float(overrides[name])
    return BY_NAME[name].limit if name in BY_NAME else AUXILIARY[name]


def foremost(results: Iterable[GuardResult]) -> GuardResult | None:
    """Return the first result that leaves nothing to judge: one that tripped with a figure, not for lack of data."""
    for found in results:
        guard = BY_NAME.get(found.guard)
        if guard is not None and guard.foremost and not found.ok and found.figure is not None:
            return found
    return None


def check(overrides: Mapping[str, Any], guards: Sequence[Guard] = GUARDS) -> None:
    """Check limits that a user set. Raises LimitsError naming the first that is unknown or no number from 0 up."""
    known = {*(guard.name for guard in guards), *(AUXILIARY if guards is GUARDS else ())}
    for name, value in overrides.items():
        if name not in known:
            raise LimitsError(f"limits: {name!r} is no guard; known are {', '.join(sorted(known))}")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
            raise LimitsError(f"limits: {name} is {value!r}; must be a number from 0 up in {unit_of(name)}")


def unit_of(name: str) -> str:
    """Return the unit of a limit."""
    return BY_NAME[name].unit if name in BY_NAME else "entries/s"


def result(
    name: str,
    overrides: Mapping[str, Any],
    figure: float | None,
    text: str,
    ok: bool | None = None,
    repeatable: bool | None = None,
    noise: bool | None = None,
    collapse: bool = False,
) -> GuardResult:
    """Return a guard's result: ok when there is a figure and it does not exceed the limit, unless ``ok`` says more.

    ``collapse`` is what a trip means, where it trips: then it is neither noise nor worth a repeat.
    """
    guard = BY_NAME[name]
    limit = limit_of(name, overrides)
    within = figure is not None and figure <= limit
    good = within if ok is None else ok and within
    if collapse and not good:
        repeatable, noise = False, False
    return GuardResult(
        guard=name,
        figure=None if figure is None else round(figure, 4),
        limit=limit,
        unit=guard.unit,
        ok=good,
        text=text,
        repeatable=guard.repeatable if repeatable is None else repeatable,
        noise=guard.noise if noise is None else noise,
        collapse=collapse and not good,
    )
