# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happened on one host inside a window: differences of the cumulative counters in its samples.

A figure is None when a reading that it needs is missing or null, or when a counter went backwards.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Sample = Mapping[str, Any]

#: CPU time classes of a sample, in the order of /proc/stat.
CPU_CLASSES = ("user_s", "nice_s", "system_s", "idle_s", "iowait_s", "irq_s", "softirq_s", "steal_s")
_BUSY = ("user_s", "nice_s", "system_s", "irq_s", "softirq_s")
#: Time that the kernel accounts to tasks, and therefore to control groups; interrupts belong to nobody.
_TASKS = ("user_s", "nice_s", "system_s")
#: A sample is used to cover the window's edge when it is at most this far outside.
_EDGE_S = 1.5


class SeriesError(Exception):
    """Sample lines cannot be read; the text says which line and what is allowed."""


@dataclass(frozen=True)
class Window:
    """A window on a host's own wall clock, in seconds."""

    start_s: float
    end_s: float

    @property
    def duration_s(self) -> float:
        """Return its length in seconds."""
        return self.end_s - self.start_s


@dataclass(frozen=True)
class Series:
    """The samples of one host for one window.

    ``inside`` lie within it. ``around`` has one more at each side where there is one, so that it covers every moment
    of the window: what spoils a window (steal, foreign work) is looked for there, what describes it is taken inside.
    """

    window: Window
    inside: tuple[Sample, ...]
    around: tuple[Sample, ...]


@dataclass(frozen=True)
class Second:
    """One interval between two samples: ``t_s`` after the window's start at its end, shares in % of the CPUs."""

    t_s: float
    classes_pct: Mapping[str, float]
    groups_pct: Mapping[str, float | None]
    steal_pct: float


def parse_lines(content: bytes | str) -> tuple[dict[str, Any], ...]:
    """Return the samples in JSON lines; a last line without its end is left out, since the sampler writes whole ones.

    Raises SeriesError for any other line that is no JSON object.
    """
    text = content.decode("utf-8", errors="replace") if isinstance(content, bytes) else content
    complete = text[: text.rfind("\n") + 1]
    samples = []
    # Not splitlines(): that also cuts at characters which JSON allows inside strings.
    for number, line in enumerate(complete.split("\n")[:-1], start=1):
        try:
            value = json.loads(line)
        except ValueError as exc:
            raise SeriesError(f"samples, line {number}: is not JSON ({exc}); sample the host again") from exc
        if not isinstance(value, dict):
            raise SeriesError(f"samples, line {number}: is not an object but {line[:40]!r}; sample the host again")
        samples.append(value)
    return tuple(samples)


def host_window(load: Mapping[str, Any], load_offset_s: float, host_offset_s: float) -> Window:
    """Return the load generator's window on another host's clock.

    Offsets are clock_offset_s of the manifest: the host's clock minus the controller's.
    """
    shift_s = host_offset_s - load_offset_s
    return Window(float(load["start_wall_s"]) + shift_s, float(load["end_wall_s"]) + shift_s)


def cut(samples: Sequence[Sample], window: Window) -> Series:
    """Return those samples that concern a window."""
    usable = [sample for sample in samples if isinstance(sample.get("wall_s"), (int, float))]
    inside = [sample for sample in usable if window.start_s <= sample["wall_s"] <= window.end_s]
    before = [sample for sample in usable if window.start_s - _EDGE_S <= sample["wall_s"] < window.start_s]
    after = [sample for sample in usable if window.end_s < sample["wall_s"] <= window.end_s + _EDGE_S]
    return Series(window, tuple(inside), tuple(before[-1:] + inside + after[:1]))


def reading(sample: Sample, *path: str) -> Any:
    """Return the value at a path of keys, or None when any part of it is missing or null."""
    value: Any = sample
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def readings(samples: Sequence[Sample], *path: str) -> list[float] | None:
    """Return a number from each sample, or None when one of them lacks it."""
    values = [reading(sample, *path) for sample in samples]
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in values):
        return None
    return [float(value) for value in values]


def elapsed_s(samples: Sequence[Sample]) -> float | None:
    """Return the seconds from the first sample to the last by the monotonic clock; None for fewer than two."""
    times = readings(samples, "mono_s") if len(samples) >= 2 else None
    if times is None or times[-1] <= times[0]:
        return None
    return times[-1] - times[0]


def increase(samples: Sequence[Sample], *path: str) -> float | None:
    """Return by how much a counter grew; None for fewer than two samples or when it ever went backwards."""
    values = readings(samples, *path) if len(samples) >= 2 else None
    if values is None or any(later < earlier for earlier, later in zip(values, values[1:])):
        return None
    return values[-1] - values[0]


def rate(samples: Sequence[Sample], *path: str) -> float | None:
    """Return a counter's growth in each second."""
    grown, seconds = increase(samples, *path), elapsed_s(samples)
    return None if grown is None or seconds is None else grown / seconds


def cpu_seconds(samples: Sequence[Sample], cpus: Sequence[int]) -> dict[str, float] | None:
    """Return seconds spent in each class, summed over CPUs; None when a CPU is missing.

    Single classes may fall by rounding (idle and iowait do, see the kernel's proc documentation): that counts as 0.
    """
    if len(samples) < 2 or not cpus:
        return None
    total = dict.fromkeys(CPU_CLASSES, 0.0)
    for cpu in cpus:
        for name in CPU_CLASSES:
            ends = readings((samples[0], samples[-1]), "cpus", str(cpu), name)
            if ends is None:
                return None
            total[name] += max(0.0, ends[1] - ends[0])
    return total if sum(total.values()) > 0 else None


def class_shares_pct(samples: Sequence[Sample], cpus: Sequence[int]) -> dict[str, float] | None:
    """Return the share of each class (named without unit) in the time of the CPUs, in %."""
    seconds = cpu_seconds(samples, cpus)
    if seconds is None:
        return None
    total = sum(seconds.values())
    return {name[:-2]: 100.0 * value / total for name, value in seconds.items()}


def utilisation_pct(samples: Sequence[Sample], cpus: Sequence[int]) -> float | None:
    """Return the share of the CPUs' time that was neither idle nor stolen, in %."""
    shares = class_shares_pct(samples, cpus)
    return None if shares is None else sum(shares[name[:-2]] for name in _BUSY)


def steal_pct(samples: Sequence[Sample], cpu: int) -> float | None:
    """Return the share of one CPU's time that the hypervisor took, in %."""
    shares = class_shares_pct(samples, [cpu])
    return None if shares is None else shares["steal"]


def worst_second_steal_pct(samples: Sequence[Sample], cpu: int) -> float | None:
    """Return the highest steal of one CPU between two neighbouring samples, in %."""
    shares = [steal_pct(pair, cpu) for pair in zip(samples, samples[1:])]
    known = [share for share in shares if share is not None]
    return max(known) if known and len(known) == len(shares) else None


def group_cpu_pct(samples: Sequence[Sample], group: str, cpus: Sequence[int]) -> float | None:
    """Return a group's CPU time in % of the time of the CPUs."""
    grown = rate(samples, "groups", group, "cpu_s")
    return None if grown is None or not cpus else 100.0 * grown / len(cpus)


def runqueue_wait_pct(samples: Sequence[Sample], group: str = "service") -> float | None:
    """Return the time that a group's tasks were runnable and waited for a CPU, in % of the time that passed."""
    grown = rate(samples, "groups", group, "wait_s")
    return None if grown is None else 100.0 * grown


def psi_pct(samples: Sequence[Sample], resource: str, kind: str = "some") -> float | None:
    """Return pressure stall time (kernel's psi.rst) of a resource in % of the time that passed."""
    grown = rate(samples, "psi", resource, f"{kind}_us")
    return None if grown is None else grown / 1e4


def net_bytes_per_s(samples: Sequence[Sample]) -> dict[str, float] | None:
    """Return received and sent bytes in each second."""
    received, sent = rate(samples, "net", "rx_bytes"), rate(samples, "net", "tx_bytes")
    return None if received is None or sent is None else {"rx": received, "tx": sent}


def work_per_s(samples: Sequence[Sample], group: str = "batch") -> float | None:
    """Return the work that a group did in each second, in the unit of its samples."""
    return rate(samples, "work", group, "done")


def worst_second_foreign_cpu_pct(samples: Sequence[Sample], cpus: Sequence[int]) -> float | None:
    """Return the highest foreign_cpu_pct between two neighbouring samples, in %."""
    shares = [foreign_cpu_pct(pair, cpus) for pair in zip(samples, samples[1:])]
    known = [share for share in shares if share is not None]
    return max(known) if known and len(known) == len(shares) else None


def foreign_cpu_pct(samples: Sequence[Sample], cpus: Sequence[int]) -> float | None:
    """Return the share of the CPUs that went to tasks of neither group, in %.

    Interrupt time belongs to no group and is left out, so that network work for the service does not look foreign.
    Ticks and groups are accounted by different clocks: a small negative difference is 0. A group without any reading
    does not exist, and used nothing.
    """
    seconds = cpu_seconds(samples, cpus)
    if seconds is None:
        return None
    names = sorted({str(name) for sample in samples for name in (sample.get("groups") or {})})
    ours = 0.0
    for name in names:
        if all(reading(sample, "groups", name, "cpu_s") is None for sample in samples):
            continue
        used = increase(samples, "groups", name, "cpu_s")
        if used is None:
            return None
        ours += used
    foreign = sum(seconds[name] for name in _TASKS) - ours
    return max(0.0, 100.0 * foreign / sum(seconds.values()))


def seconds_of(series: Series, cpus: Sequence[int], groups: Sequence[str] = ("service", "batch")) -> tuple[Second, ...]:
    """Return a window as a time series, one entry for each interval between samples whose readings are whole."""
    found = []
    for pair in zip(series.around, series.around[1:]):
        shares = class_shares_pct(pair, cpus)
        if shares is None:
            continue
        found.append(
            Second(
                t_s=float(pair[1]["wall_s"]) - series.window.start_s,
                classes_pct=shares,
                groups_pct={group: group_cpu_pct(pair, group, cpus) for group in groups},
                steal_pct=shares["steal"],
            )
        )
    return tuple(found)
