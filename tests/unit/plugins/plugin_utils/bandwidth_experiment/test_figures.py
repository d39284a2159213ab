"""From what was brought home to traffic.json: windows on two clocks, switches, events, CPU, latencies, schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.plugin_utils import schemas
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment import (
    counts,
    expectations,
    figures,
    processes,
    scenarios,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.scenario_checks import SHAPERS

WIRE = 1448 / 1514
WALL_S = 1_700_000_000.0
#: What the load node's wall clock is ahead of the tested node's.
AHEAD_S = 5.0
BOOTED_S = {"tested": 100.0, "load": 4000.0}


def sample(host: str, second: float, busy: float) -> dict[str, Any]:
    """Return a sample of one CPU that is busy for a share of the time since second 0."""
    used = busy * second
    cpu = dict.fromkeys(("user_s", "nice_s", "iowait_s", "irq_s", "steal_s"), 0.0)
    return {
        "wall_s": WALL_S + second + (AHEAD_S if host == "load" else 0.0),
        "mono_s": BOOTED_S[host] + second,
        "cpus": {"0": {**cpu, "system_s": 0.75 * used, "softirq_s": 0.25 * used, "idle_s": second - used}},
    }


def lines(host: str, busy: float) -> bytes:
    return "".join(json.dumps(sample(host, number / 2, busy)) + "\n" for number in range(20)).encode()


def counter(rates: dict[str, list[float]], step_s: float, connections: dict[str, int]) -> bytes:
    """Return what the load node counted: a rate in bits a second between each two readings from second 0 on."""
    readings = 1 + len(next(iter(rates.values())))
    cumulative = {name: [0] for name in rates}
    for name, found in rates.items():
        for rate in found:
            cumulative[name].append(cumulative[name][-1] + round(rate * step_s / 8))
    raw = {
        "mono_s": [BOOTED_S["load"] + step_s * number for number in range(readings)],
        "wall_minus_mono_s": WALL_S + AHEAD_S - BOOTED_S["load"],
        "stack_drops": 2,
        "bytes": cumulative,
        "flows": {name: [[0, count]] for name, count in connections.items()},
    }
    return json.dumps(raw).encode()


def report(**more: Any) -> dict[str, Any]:
    counted = {"pools": {}, "classes": {}, "programs": {}, "drops": 3, "ecn_marks": 4}
    return {"apply_ms": 12.5, "stack_drops": 10, "counted": counted, **more}


def scene(name: str, case: str, window_s: float = 3.0, shaper: str = "ebpf") -> figures.Scene:
    found = scenarios.load(ROOT, {}, ["*"], SHAPERS)[name]["cases"][case]
    return figures.Scene(
        case=found,
        job=processes.job(found, 25201, "cubic", 60.0),
        shaper=shaper,
        tested="tested",
        load="load",
        measured_cpus={"tested": "0", "load": "0"},
        clocks=figures.Clocks({"tested": 0.0, "load": AHEAD_S}, "load"),
        counting=expectations.Counting("wire", {"egress": "htb", "ingress": "htb"}, 1500),
        window_s=window_s,
        warmup_s=1.0,
    )


def raw(load: dict[str, bytes], tested: dict[str, bytes] | None = None, **after: Any) -> figures.Raw:
    files = {
        "load": {"samples.jsonl": lines("load", 0.25), **load},
        "tested": {"samples.jsonl": lines("tested", 0.5), **(tested or {})},
    }
    later = {"pools": {}, "classes": {}, "programs": {}, "drops": 6, "ecn_marks": 8}
    return figures.Raw(files, report(), report(**{"stack_drops": 11, "counted": later, **after}))


def one_class(rate_bps: float = 478e6, seconds: int = 9) -> figures.Raw:
    client = {"end": {"sum_sent": {"bytes": 99, "retransmits": 7}}}
    return raw(
        {"bw-counter.json": counter({"bulk": [0.0, *[rate_bps] * (10 * seconds)]}, 0.1, {"bulk": 5})},
        {"processes/bw-send-bulk.log": json.dumps(client).encode()},
    )


def test_a_window_begins_after_the_warm_up_on_the_load_nodes_clock() -> None:
    found = figures.traffic(scene("single_priority", "egress"), one_class())
    # The first reading with bytes is at 0.2 s, one second of warm-up follows.
    assert found["start_wall_s"] == pytest.approx(WALL_S + AHEAD_S + 1.2)
    assert found["start_mono_s"] == pytest.approx(BOOTED_S["tested"] + 1.2)
    assert found["end_wall_s"] - found["start_wall_s"] == pytest.approx(3.0)
    schemas.check("traffic", found)


def test_a_class_has_what_its_receiver_counted_in_the_window_only() -> None:
    bulk = figures.traffic(scene("single_priority", "egress"), one_class())["classes"]["bulk"]
    assert bulk["received_bps"] == pytest.approx(478e6)
    assert bulk["received_bytes"] == pytest.approx(478e6 * 3 / 8)
    assert bulk["expected_bps"] == pytest.approx(500e6 * WIRE)
    assert len(bulk["intervals_bps"]) == 30
    assert (bulk["sent_bytes"], bulk["retransmits"], bulk["steady"]) == (99, 7, True)


def test_without_a_shaper_nothing_is_expected() -> None:
    found = figures.traffic(scene("single_priority", "egress", shaper="none"), one_class())
    assert found["classes"]["bulk"]["expected_bps"] is None


def test_cpu_time_is_that_of_the_window_on_each_hosts_own_clock() -> None:
    cpu = figures.traffic(scene("single_priority", "egress"), one_class())["cpu"]
    assert cpu["tested"] == {
        "busy_s": pytest.approx(1.5), "used_s": pytest.approx(1.5),
        "system_s": pytest.approx(1.125), "softirq_s": pytest.approx(0.375),
        "steal_s": 0.0, "window_s": 3.0,
    }  # fmt: skip
    assert cpu["load"]["busy_s"] == pytest.approx(0.75)


def test_drops_of_the_stack_are_those_of_both_hosts_since_the_shaper_was_put_on() -> None:
    found = figures.traffic(scene("single_priority", "egress"), one_class())
    assert (found["foreign_drops"], found["drops"], found["ecn_marks"]) == (1 + 2, 3, 4)


def test_counting_that_ended_too_early_is_an_error() -> None:
    with pytest.raises(counts.CountsError, match=r"load: counting ended .* before the window did"):
        figures.traffic(scene("single_priority", "egress"), one_class(seconds=3))


def test_round_trips_of_the_window_become_a_histogram_without_the_lost_ones() -> None:
    trips = {
        "rate_hz": 1000.0,
        "start_mono_s": BOOTED_S["tested"],
        "wall_minus_mono_s": WALL_S - BOOTED_S["tested"],
        "sent_us": [1000 * number for number in range(6000)],
        "took_us": [50 if number % 2 else 70 for number in range(6000)],
    }
    trips["took_us"][2000] = -1
    home = raw(
        {"bw-counter.json": counter({"bulk": [0.0, *[478e6] * 90]}, 0.1, {"bulk": 9})},
        {"bw-probe-online.json": json.dumps(trips).encode()},
    )
    found = figures.traffic(scene("latency", "offline_saturates"), home)["rr_latency_us"]
    assert found == {"online": [[50, 1500], [70, 1499]]}


def test_switches_are_timed_where_bytes_arrive_and_events_are_the_kernels() -> None:
    low, high = 160e6 * WIRE, 800e6 * WIRE
    # The service sends for 60 ms every 150 ms from 0.5 s on; offline work follows 5 ms later, and 45 ms after a pause.
    begins = [0.5 + 0.15 * number for number in range(40)]
    turns = [{"class": "online", "on": on, "mono_s": BOOTED_S["tested"] + at + (0.0 if on else 0.06)}
             for at in begins for on in (True, False)]  # fmt: skip

    def offline(second: float) -> float:
        since = (second - 0.5) % 0.15
        return low if second > 0.5 and 0.005 <= since < 0.105 else high

    rates = {"bulk": [offline(number / 1000) for number in range(6000)], "online": [1e6] * 6000}
    sender = {"wall_minus_mono_s": WALL_S - BOOTED_S["tested"], "switches": turns, "sent_bytes": {"online": 5}}
    events = [{"time_ns": round(1e9 * (BOOTED_S["tested"] + at + 0.004)), "to": "low", "reason": "budget"}
              for at in begins]  # fmt: skip
    home = raw(
        {"bw-counter.json": counter(rates, 0.001, {"bulk": 5, "online": 1})},
        {"bw-sender.json": json.dumps(sender).encode()},
        counted={**report()["counted"], "pools": {"experiment-egress": {"events": events}}},
    )
    found = figures.traffic(scene("waterline", "dynamic"), home)
    down = [item["settled_ms"] for item in found["switches"] if item["direction"] == "down"]
    up = [item["settled_ms"] for item in found["switches"] if item["direction"] == "up"]
    assert len(down) >= 19
    assert all(4 <= took <= 6 for took in down)
    assert all(40 <= took <= 46 for took in up)
    bounds = {item["direction"]: item["bound_bps"] for item in found["switches"]}
    assert bounds == {"down": pytest.approx(low), "up": pytest.approx(high)}
    assert all(event["throttled"] for event in found["events"])
    assert all(found["start_mono_s"] <= event["mono_ns"] / 1e9 < found["end_mono_s"] for event in found["events"])
    assert found["classes"]["online"]["sent_bytes"] == 5
    schemas.check("traffic", found)


def test_programs_have_what_they_ran_while_the_shaper_was_on() -> None:
    before, after = one_class().before, one_class().after
    before["counted"]["programs"] = {"shape": {"run_ns": 100, "runs": 1}, "police": {"run_ns": 0, "runs": 0}}
    after["counted"]["programs"] = {"shape": {"run_ns": 5100, "runs": 51}, "police": {"run_ns": 0, "runs": 0}}
    found = figures.traffic(scene("single_priority", "egress"), figures.Raw(one_class().files, before, after))
    assert found["programs"] == {"shape": {"run_ns": 5000, "runs": 50}}
