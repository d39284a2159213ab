"""What the parts of the bandwidth benchmark found, as figures with intervals and goals. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import values
from ansible_collections.colocation.testbed.plugins.module_utils.measure import statistics
from ansible_collections.colocation.testbed.plugins.module_utils.measure.statistics import Interval
from tools.bandwidth import cpu_cost, ratios, switching
from tools.bandwidth.accuracy import reached_by
from tools.bench_figures import Figure

NO_GOAL, PEER = "no goal", "peer, no goal"
ONE_CLASS_GOAL_PCT, MANY_CLASSES_GOAL_PCT, INGRESS_GOAL_PCT = 99.9, 99.5, 99.5
SWITCH_GOAL_MS, APPLY_GOAL_MS = 10.0, 50.0
MEMORY_GOAL_BYTES = 2 * 2**20
# Bitrates that differ by more are not equal.
EQUAL_PCT = 1.0
# What is sent, by the end of a figure's name.
LOADS = {
    "": "TCP in packets of 1448 B of payload",
    "_512_b": "TCP in packets of 512 B of payload",
    "_gso": "TCP in pieces of up to 64 KiB",
}
Machine = Mapping[str, Any]
Rows = Sequence[Mapping[str, Any]]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def figure(
    name: str, found: Interval | float | None, unit: str, goal: str, holds: bool, method: str, machine: Machine
) -> Figure:
    """Return a figure; what is infinite or missing has no number there."""
    interval = found if isinstance(found, Interval) else None
    value = found.value if isinstance(found, Interval) else found
    ends = (_finite(interval.low), _finite(interval.high)) if interval else (None, None)
    if machine.get("disturbed"):
        method += "; disturbed: the hypervisor or other work took part of the machine meanwhile"
    numbers = [None if number is None else round(number, 4) for number in (_finite(value), *ends)]
    return Figure(name, numbers[0], numbers[1], numbers[2], unit, goal, holds, method, dict(machine))


def one_class(
    rows: Rows, suffix: str, claimed: bool, method: str, machine: Machine, goal_pct: float = ONE_CLASS_GOAL_PCT
) -> list[Figure]:
    """Return accuracy of one class: of the worst rate, and of each; the goal is judged by the interval's lower end."""
    rates = sorted({row["mbit"] for row in rows})
    each = {
        rate: statistics.mean_interval([row["accuracy_pct"] for row in rows if row["mbit"] == rate]) for rate in rates
    }
    worst = min(each.values(), key=lambda found: found.value)
    goal = f">= {goal_pct:g} at the lower end" if claimed else PEER
    holds = not claimed or worst.low >= goal_pct
    name = f"bandwidth_accuracy_one_class{suffix}"
    whole = figure(f"{name}_pct", worst, "%", goal, holds, f"worst of {len(rates)} rates; {method}", machine)
    errors = {rate: fmean(row["arrived_bit"] for row in rows if row["mbit"] == rate) / 1e6 for rate in rates}
    return [
        whole,
        *(
            figure(
                f"{name}_{rate}_mbit_pct",
                found,
                "%",
                NO_GOAL,
                True,
                f"{errors[rate]:.3f} Mbit/s arrived; {method}",
                machine,
            )
            for rate, found in each.items()
        ),
    ]


def many_classes(rows: Rows, suffix: str, claimed: bool, method: str, machine: Machine) -> list[Figure]:
    """Return what 95 % of the classes reach in each repeat, and how many bits all classes got together."""
    repeats = sorted({row["repeat"] for row in rows})
    reached = [reached_by([row["accuracy_pct"] for row in rows if row["repeat"] == number]) for number in repeats]
    worst = min(row["accuracy_pct"] for row in rows)
    found = statistics.mean_interval(reached)
    goal = f">= {MANY_CLASSES_GOAL_PCT:g} at the lower end" if claimed else PEER
    classes = len(rows) // len(repeats)
    dropped = sum(row["dropped"] for row in rows) / len(rows)
    text = (
        f"95 % of {classes} classes are at least so exact; the worst {worst:.3f} %, {dropped:.1f} drops each; {method}"
    )
    holds = not claimed or found.low >= MANY_CLASSES_GOAL_PCT
    return [figure(f"bandwidth_accuracy_{classes}_classes{suffix}_p95_pct", found, "%", goal, holds, text, machine)]


def switch(found: Mapping[str, Any], options: Mapping[str, Any], method: str, machine: Machine) -> dict[str, Any]:
    """Return detection, settling (ms, p95 with intervals) and transitions for each change of one plane."""
    waterline, low = (values.rate(options["rates"][key], key) for key in ("waterline", "low"))
    offline, online = dict(found["offline"]), dict(found["online"])
    bursts = switching.find_bursts(online, waterline)
    events = [(int(ns), str(to)) for ns, to in found["events"]]
    switches = switching.judge(bursts, offline, events, low)
    return {
        "bursts": len(bursts),
        "detected": ratios.upper_quantile([item.detected_ms for item in switches], 0.95),
        "settled": ratios.upper_quantile([item.settled_ms for item in switches], 0.95),
        "mean_settled_ms": fmean(item.settled_ms for item in switches),
        "per_change": found["transitions"] / (2 * len(bursts)),
        "method": f"{len(bursts)} bursts; {method}",
        "machine": machine,
    }


def switches(planes: Mapping[str, Mapping[str, Any]], wanted: int) -> list[Figure]:
    """Return the figures of all planes, the worse one first; a burst that never reached the receiver fails the goal."""
    goal, found = f"upper end <= {SWITCH_GOAL_MS:g}", []
    complete = all(item["bursts"] >= wanted for item in planes.values())
    worst = max(planes.values(), key=lambda item: float(item["settled"].value))
    most = max(planes.values(), key=lambda item: float(item["per_change"]))

    def fast(item: Mapping[str, Any]) -> bool:
        return bool(item["settled"].high <= SWITCH_GOAL_MS)

    found.append(
        figure(
            "waterline_switch_p95_ms", worst["settled"], "ms", goal, complete and fast(worst),
            f"the worse of {len(planes)} planes; {worst['method']}", worst["machine"],
        )
    )  # fmt: skip
    found.append(
        figure(
            "waterline_transitions_per_change", most["per_change"], "transitions", "<= 1",
            complete and most["per_change"] <= 1, f"the worse of {len(planes)} planes; {most['method']}",
            most["machine"],
        )
    )  # fmt: skip
    for plane, item in planes.items():
        text = f"mean {item['mean_settled_ms']:.1f} ms; {item['method']}"
        found.append(
            figure(f"waterline_switch_{plane}_p95_ms", item["settled"], "ms", goal, fast(item), text, item["machine"])
        )
        found.append(
            figure(
                f"waterline_detection_{plane}_p95_ms", item["detected"], "ms", NO_GOAL, True, item["method"],
                item["machine"],
            )
        )  # fmt: skip
    return found


def cpu(rows: Sequence[dict[str, Any]], load: str, suffix: str, method: str, machine: Machine) -> list[Figure]:
    """Return ratios of CPU time, ours to each peer's: beyond no shaper, and whole; and what each variant used."""
    used = cpu_cost.by_variant(list(rows), load)
    arrived = cpu_cost.by_variant(list(rows), load, "arrived_bit")
    pieces = cpu_cost.by_variant(list(rows), load, "piece_bytes")
    wanted = next(row["mbit"] for row in rows if row["load"] == load) * 1e6
    equal = all(abs(fmean(rates) / wanted - 1) * 100 <= EQUAL_PCT for rates in arrived.values())
    text = f"{len(used['ours'])} blocks at {wanted / 1e6:g} Mbit/s, {LOADS[load]}; {method}"
    text += "" if equal else "; bitrates differ by more than 1 %, so the goal cannot hold"
    floor, ours = used["none"], used["ours"]
    added = {name: [a - b for a, b in zip(shares, floor, strict=True)] for name, shares in used.items()}
    found = []
    for peer in ("htb", "tbf"):
        beyond = ratios.ratio_interval(added["ours"], added[peer])
        holds = equal and beyond is not None and beyond.high < 1
        why = "" if beyond else f"no ratio: {peer} itself is not measurably dearer than no shaper; "
        goal = "< 1 at the upper end"
        found.append(figure(f"bandwidth_cpu_ratio_{peer}{suffix}", beyond, "", goal, holds, why + text, machine))
        whole = ratios.geometric_ratio(ours, used[peer])
        name = f"bandwidth_cpu_whole_ratio_{peer}{suffix}"
        found.append(figure(name, whole, "", NO_GOAL, True, f"all CPU time; {text}", machine))
    for name, shares in used.items():
        mean = statistics.mean_interval(shares)
        note = f"busy share of one CPU, {fmean(pieces[name]):.0f} B in one piece; {text}"
        found.append(figure(f"bandwidth_cpu_{name}{suffix}_pct", mean, "%", PEER, True, note, machine))
    return found


def per_packet(rows: Rows, method: str, machine: Machine) -> list[Figure]:
    """Return ns for a packet of each load."""
    found = []
    for load in dict.fromkeys(row["load"] for row in rows):
        chosen = [row for row in rows if row["load"] == load]
        packets = fmean(row["packets"] for row in chosen)
        mean = statistics.mean_interval([row["ns"] for row in chosen])
        text = f"{len(chosen)} windows of {packets:.0f} packets, {LOADS[load]}; {method}"
        found.append(figure(f"bandwidth_program_ns_per_packet{load}", mean, "ns", NO_GOAL, True, text, machine))
    return found


def memory(found: Mapping[str, Any], method: str, machine: Machine) -> list[Figure]:
    """Return what all maps hold."""
    maps, programs = sum(found["maps"].values()), sum(found["programs"].values())
    text = f"{len(found['maps'])} maps, {method}; programs hold {programs} more"
    goal = f"< {MEMORY_GOAL_BYTES}"
    return [figure("bandwidth_map_memory_bytes", maps, "B", goal, maps < MEMORY_GOAL_BYTES, text, machine)]


def resident(found: Mapping[str, Any], method: str, machine: Machine) -> list[Figure]:
    """Return how many processes are left while devices are shaped."""
    left = found["left"]
    text = method + (f"; left: {', '.join(left)}" if left else "") + ("" if found["attached"] else "; not attached")
    holds = not left and found["attached"]
    return [figure("bandwidth_resident_processes", len(left), "processes", "0", holds, text, machine)]


def applying(rows: Rows, planes: Sequence[str], method: str, machine: Machine) -> list[Figure]:
    """Return the time inside the module for each plane, the first plane's as the figure that has a goal."""
    found = []
    for plane in planes:
        chosen = [row for row in rows if row["plane"] == plane]
        right = all(row["changed"] == [True, False] for row in chosen)
        first = statistics.mean_interval([row["first_ms"] for row in chosen])
        again = statistics.mean_interval([row["again_ms"] for row in chosen])
        judged = plane == planes[0]
        suffix = "" if judged else f"_{plane}"
        goal = f"upper end <= {APPLY_GOAL_MS:g}, nothing changed again" if judged else NO_GOAL
        holds = right and first.high <= APPLY_GOAL_MS if judged else True
        text = f"{len(chosen)} rounds, plane {plane}, second run {'changed nothing' if right else 'CHANGED'}; {method}"
        found.append(figure(f"bandwidth_200_classes{suffix}_ms", first, "ms", goal, holds, text, machine))
        found.append(figure(f"bandwidth_200_classes{suffix}_again_ms", again, "ms", NO_GOAL, True, text, machine))
    return found


def two_cpus(found: Mapping[str, Mapping[str, float]], method: str, machine: Machine) -> list[Figure]:
    """Return what was lost, the worst of bytes and time of all variants."""
    lost = max(abs(item[key]) for item in found.values() for key in ("bytes_lost_pct", "time_lost_pct"))
    cpus = int(min(item["cpus"] for item in found.values()))
    text = f"{cpus} CPUs at once, objects {' and '.join(found)}; {method}"
    return [figure("bandwidth_two_cpus_lost_pct", lost, "%", "0", lost == 0 and cpus >= 2, text, machine)]
