# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guards on the hosts: was each host, during the window, in the state that the mode means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable

from ansible_collections.colocation.testbed.plugins.module_utils.measure import limits, series
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import GuardResult
from ansible_collections.colocation.testbed.plugins.module_utils.measure.scene import Host, Scene


def _inside(host: Host) -> tuple[series.Sample, ...]:
    return host.series.inside if host.series else ()


def _around(host: Host) -> tuple[series.Sample, ...]:
    return host.series.around if host.series else ()


def _unsampled(hosts: tuple[Host, ...]) -> str | None:
    """Return why there is no data, or None when every host has at least two samples in the window."""
    if not hosts:
        return "the manifest names no such host"
    missing = [host.name for host in hosts if len(_inside(host)) < 2]
    return f"{', '.join(missing)}: fewer than two samples in the window" if missing else None


def pm_qos_held(scene: Scene) -> GuardResult:
    """Count samples in which a host's PM QoS value was not 0, or a measured CPU entered a deep idle state.

    A host whose kernel shows no idle states can only be asked for the value; the text says so. Its counters are null
    for every measured CPU in every sample; a counter that is null now and then could not be read, which trips.
    """
    why = _unsampled(scene.hosts)
    if why:
        return limits.result("pm_qos_held", scene.limits, None, why)
    deep_limit = limits.limit_of(limits.DEEP_ENTRIES, scene.limits)
    readings = bad = 0
    first, value_only = "", []
    for host in scene.hosts:
        samples = _inside(host)
        cpus = host.cpus if _shows_idle_states(host, samples) else ()
        problems = [_hold_problem(cpus, pair, deep_limit) for pair in zip((None, *samples), samples)]
        readings += len(problems)
        bad += sum(problem is not None for problem in problems)
        first = first or next((f"{host.name}: {problem}" for problem in problems if problem), "")
        if not cpus:
            value_only.append(host.name)
    text = f"not held in {bad} of {readings} samples ({first})" if bad else f"held in all {readings} samples"
    if value_only:
        text += f"; {', '.join(value_only)} show no idle states, only the value could be read"
    return limits.result("pm_qos_held", scene.limits, 100.0 * bad / readings, text)


def _shows_idle_states(host: Host, samples: tuple[series.Sample, ...]) -> bool:
    return any(
        series.reading(sample, "idle", str(cpu), "deep_entries") is not None for sample in samples for cpu in host.cpus
    )


def _hold_problem(
    cpus: tuple[int, ...], pair: tuple[series.Sample | None, series.Sample], deep_limit: float
) -> str | None:
    before, sample = pair
    value = sample.get("pm_qos_us")
    if value is None:
        return "/dev/cpu_dma_latency could not be read"
    if value != 0:
        return f"/dev/cpu_dma_latency is {value} us, not 0"
    if before is None:
        return None
    for cpu in cpus:
        entries = series.rate((before, sample), "idle", str(cpu), "deep_entries")
        if entries is None:
            return f"idle states of CPU {cpu} could not be read"
        if entries > deep_limit:
            return f"CPU {cpu} entered deep idle states {entries:.0f} times a second"
    return None


def processes_alive(scene: Scene) -> GuardResult:
    """Count readings in which the service (or the batch workload, where it should run) was not in its group.

    A process that was alive in one sample and not, or elsewhere, in another counts as well.
    """
    why = _unsampled(scene.tested)
    if why:
        return limits.result("processes_alive", scene.limits, None, why)
    groups = ("service", "batch") if scene.batch else ("service",)
    bad, first, readings = 0, "", 0
    for host in scene.tested:
        ever: dict[str, Any] = {}
        for sample in _inside(host):
            alive = {name: entry["group"] for name, entry in _processes(sample).items() if entry.get("alive") is True}
            problems = [f"no process in group {group}" for group in groups if group not in alive.values()]
            problems += [
                f"{name} is no longer alive in group {group}"
                for name, group in ever.items()
                if alive.get(name) != group and group in alive.values()
            ]
            ever = {**alive, **ever}
            readings += len(groups)
            bad += len(problems)
            first = first or next((f"{host.name}: {problem}" for problem in problems), "")
    text = f"{bad} of {readings} readings differ ({first})" if bad else f"alive in all {readings} readings"
    return limits.result("processes_alive", scene.limits, float(bad), text)


def _processes(sample: series.Sample) -> Mapping[str, Mapping[str, Any]]:
    entries = sample.get("processes") or {}
    return {str(name): entry for name, entry in entries.items() if isinstance(entry, Mapping) and "group" in entry}


def no_foreign_batch(scene: Scene) -> GuardResult:
    """Count samples with a batch process, or tasks in the batch group, in a mode that has none."""
    why = _unsampled(scene.tested)
    if why:
        return limits.result("no_foreign_batch", scene.limits, None, why)
    bad, first = 0, ""
    for host in scene.tested:
        for sample in _inside(host):
            names = [name for name, entry in _processes(sample).items() if entry["group"] == "batch" and entry["alive"]]
            tasks = series.reading(sample, "groups", "batch", "tasks") or 0
            if names or tasks:
                bad += 1
                first = first or f"{host.name}: {', '.join(names) or f'{tasks} tasks'} in group batch"
    return limits.result("no_foreign_batch", scene.limits, float(bad), first or "no batch process")


def batch_progress(scene: Scene) -> GuardResult:
    """Look at the work that the batch workload did: some in most seconds where it runs, none where it does not.

    Starvation is the policy's doing and meets every repeat; work where there should be none is left over, and a
    repeat comes without.
    """
    why = _unsampled(scene.tested)
    if why:
        return limits.result("batch_progress", scene.limits, None, why)
    if not scene.batch:
        return _no_progress(scene)
    total, intervals, stalled = 0.0, 0, 0
    for host in scene.tested:
        samples = _inside(host)
        steps = [series.increase(pair, "work", "batch", "done") for pair in zip(samples, samples[1:])]
        known = [step for step in steps if step is not None]
        if len(known) < len(steps):
            return limits.result("batch_progress", scene.limits, None, f"{host.name}: work done could not be read")
        total += sum(known)
        intervals += len(known)
        stalled += sum(step == 0 for step in known)
    text = f"{total:.0f} units done; none in {stalled} of {intervals} seconds"
    return limits.result("batch_progress", scene.limits, 100.0 * stalled / intervals, text, ok=total > 0)


def _no_progress(scene: Scene) -> GuardResult:
    for host in scene.tested:
        done = [series.reading(sample, "work", "batch", "done") for sample in _inside(host)]
        if any(value is not None for value in done) and len(set(done)) > 1:
            text = f"{host.name}: batch work advanced in a mode without batch workload"
            return limits.result("batch_progress", scene.limits, 100.0, text, ok=False, repeatable=True)
    return limits.result("batch_progress", scene.limits, 0.0, "none, as it should be in this mode")


def policy_in_effect(scene: Scene) -> GuardResult:
    """Compare every value that was read back after applying with the same value in every sample of the window.

    Ancestors are compared like the groups themselves: a quota above takes effect below. Values that no sample has were
    read once more after the window (``after``).
    """
    why = _unsampled(scene.tested)
    if why or scene.policy is None:
        return limits.result("policy_in_effect", scene.limits, None, why or "no policy values were stored")
    applied, wanted = scene.policy.get("applied") or {}, scene.policy.get("wanted") or {}
    if not applied:
        return limits.result("policy_in_effect", scene.limits, None, "no values were read after applying")
    unread = sorted(key for key in wanted if applied.get(key) is None)
    if unread:
        text = f"{unread[0]} was not read back after applying"
        return limits.result("policy_in_effect", scene.limits, None, text)
    unmet = [key for key in sorted(wanted) if applied[key] != wanted[key]]
    if unmet:
        text = f"{unmet[0]} was {applied[unmet[0]]!r} after applying, wanted was {wanted[unmet[0]]!r}"
        return limits.result("policy_in_effect", scene.limits, float(len(unmet)), text)
    after = scene.policy.get("after") or {}
    late = [key for key in sorted(after) if after[key] != applied.get(key)]
    bad, readings = len(late), len(after)
    first = f"after the window {late[0]} was {after[late[0]]!r}, applied was {applied.get(late[0])!r}" if late else ""
    sampled = [key for key in sorted(applied) if key not in after]
    for host in scene.tested:
        for sample in _inside(host):
            values = sample.get("policy") or {}
            differing = [key for key in sampled if values.get(key) != applied[key]]
            readings += len(sampled)
            bad += len(differing)
            if differing and not first:
                key = differing[0]
                first = f"{host.name}: {key} is {values.get(key)!r}, applied was {applied[key]!r}"
    text = f"{bad} of {readings} readings differ ({first})" if bad else f"all {readings} readings as applied"
    return limits.result("policy_in_effect", scene.limits, float(bad), text)


def steal(scene: Scene) -> GuardResult:
    """Return the highest steal of a measured CPU over the window and its edges."""
    why = _unsampled(scene.hosts)
    if why:
        return limits.result("steal", scene.limits, None, why)
    worst, where, second = -1.0, "", 0.0
    for host in scene.hosts:
        for cpu in host.cpus:
            share = series.steal_pct(_around(host), cpu)
            in_second = series.worst_second_steal_pct(_around(host), cpu)
            if share is None or in_second is None:
                return limits.result("steal", scene.limits, None, f"{host.name}: CPU {cpu} is not in the samples")
            if share > worst:
                worst, where, second = share, f"{host.name}, CPU {cpu}", in_second
    text = f"highest on {where}: {worst:.2f} %, in its worst second {second:.1f} %"
    return limits.result("steal", scene.limits, max(worst, 0.0), text)


def foreign_cpu(scene: Scene) -> GuardResult:
    """Return the highest share of a tested host's measured CPUs that went to work of neither group."""
    return _foreign(scene, "foreign_cpu", series.foreign_cpu_pct, "highest on")


def foreign_burst(scene: Scene) -> GuardResult:
    """Return the same for the worst second: what the mean of a window hides decides its P99."""
    return _foreign(scene, "foreign_burst", series.worst_second_foreign_cpu_pct, "worst second, on")


def _foreign(
    scene: Scene, guard: str, share_pct: Callable[[Sequence[series.Sample], Sequence[int]], float | None], words: str
) -> GuardResult:
    why = _unsampled(scene.tested)
    if why:
        return limits.result(guard, scene.limits, None, why)
    shares = {host.name: share_pct(_around(host), host.cpus) for host in scene.tested}
    known = {name: share for name, share in shares.items() if share is not None}
    if len(known) < len(shares):
        text = f"{', '.join(sorted(set(shares) - set(known)))}: CPU or group times could not be read"
        return limits.result(guard, scene.limits, None, text)
    name = max(known, key=lambda host: known[host])
    return limits.result(guard, scene.limits, known[name], f"{words} {name}: {known[name]:.1f} %")


def clocks_monotonic(scene: Scene) -> GuardResult:
    """Return by how much a host's wall clock and monotonic clock disagreed at most between two samples."""
    why = _unsampled(scene.hosts)
    if why:
        return limits.result("clocks_monotonic", scene.limits, None, why)
    worst_ms, where = 0.0, ""
    for host in scene.hosts:
        samples = _around(host)
        wall, mono = series.readings(samples, "wall_s"), series.readings(samples, "mono_s")
        if wall is None or mono is None:
            return limits.result("clocks_monotonic", scene.limits, None, f"{host.name}: a sample lacks a clock")
        if any(later <= earlier for earlier, later in zip(mono, mono[1:])):
            text = f"{host.name}: the monotonic clock went backwards"
            return limits.result("clocks_monotonic", scene.limits, None, text)
        apart = [w - m for w, m in zip(wall, mono)]
        step_ms = max(1e3 * abs(later - earlier) for earlier, later in zip(apart, apart[1:]))
        if step_ms > worst_ms:
            worst_ms, where = step_ms, f" on {host.name}"
    return limits.result("clocks_monotonic", scene.limits, worst_ms, f"largest step {worst_ms:.1f} ms{where}")


def samples_complete(scene: Scene) -> GuardResult:
    """Compare the number of samples in the window with its whole seconds, on every host.

    One less is complete too: of samples a second apart the sampler's jitter may move one across an edge.
    """
    if not scene.hosts or any(host.series is None for host in scene.hosts):
        return limits.result("samples_complete", scene.limits, None, "the load result names no window")
    worst_pct, text = 0.0, "every second was sampled on every host"
    for host in scene.hosts:
        if host.series is None:
            continue
        expected = max(1, int(host.series.window.duration_s) - 1)
        missing_pct = 100.0 * max(0, expected - len(_inside(host))) / expected
        if missing_pct > worst_pct:
            worst_pct, text = missing_pct, f"{host.name}: {len(_inside(host))} samples of at least {expected}"
    return limits.result("samples_complete", scene.limits, worst_pct, text)
