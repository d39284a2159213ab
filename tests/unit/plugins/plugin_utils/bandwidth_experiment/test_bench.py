"""One measurement against hosts that only record: the order of things, and that nothing is left running."""

from __future__ import annotations

from typing import Any

import pytest
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment import processes, scenarios
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.bench import Order, TrafficBench
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.processes import End, Ends
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.scenario_checks import SHAPERS
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Node

from .test_settings import made


class Recorder:
    """A host that remembers what it was asked, in the order of all hosts."""

    def __init__(self, name: str, calls: list[tuple[str, str, dict[str, Any], Any]], broken: str = "") -> None:
        self.name, self.calls, self.broken = name, calls, broken

    def run(self, module: str, args: dict[str, Any], check_mode: Any = None) -> dict[str, Any]:
        self.calls.append((self.name, module, args, check_mode))
        started = [item["name"] for item in args.get("processes", ()) if item["state"] != "stopped"]
        if self.broken and self.broken in started:
            raise RuntimeError("it broke")
        planes = {"egress": "htb", "ingress": "police"} if args.get("kind") == "ebpf" else {}
        return {"contents": {}, "planes": planes, "mtu_bytes": 1500, "link_bps": None}


def bench(broken: str = "") -> tuple[TrafficBench, list[Any], list[str]]:
    calls: list[Any] = []
    waits: list[str] = []
    nodes = [
        Node(Recorder(name, calls, broken), f"/state/{name}", f"ct/{name}", cpus, "1", "/usr/bin/python3", "supervised")  # type: ignore[arg-type]
        for name, cpus in (("tested", "0"), ("load", "1"))
    ]
    ends = Ends(
        End(nodes[0], "192.0.2.1", "fe80::1", "ct0"), End(nodes[1], "192.0.2.2", "2001:db8::2", "eth7")
    )  # fmt: skip
    return TrafficBench(ends, made(), lambda _seconds, label: waits.append(label)), calls, waits


def order(name: str = "single_priority", case: str = "egress", shaper: str = "ebpf") -> Order:
    found = scenarios.load(ROOT, {}, ["*"], SHAPERS)[name]["cases"][case]
    return Order("1/1", found, shaper, 3.0, 1.0, 0.5)


def steps(calls: list[Any]) -> list[str]:
    found = []
    for host, module, args, check in calls:
        if module == "process":
            verb = "stop" if all(item["state"] == "stopped" for item in args["processes"]) else "start"
            found.append(f"{host} {verb} {' '.join(item['name'] for item in args['processes'])}")
        else:
            found.append(f"{host} {module}{' check' if check else ''}")
    return found


def test_the_shaper_comes_first_receivers_before_senders_and_is_asked_again_at_the_end() -> None:
    made_bench, calls, waits = bench()
    made_bench.measure(order())
    assert steps(calls) == [
        "tested cgroup",
        "tested bandwidth_shaper",
        "load start sampler bw-recv-bulk bw-counter",
        "tested start sampler",
        "tested start bw-send-bulk",
        "tested stop bw-send-bulk sampler",
        "load stop bw-counter bw-recv-bulk sampler",
        "tested bandwidth_shaper check",
    ]
    assert waits == ["1/1"]


def test_every_call_says_whether_it_is_a_check_as_executors_keep_it() -> None:
    made_bench, calls, _waits = bench()
    made_bench.measure(order())
    made_bench.measure(order())
    assert all(check is (number in (7, 15)) for number, (_host, _module, _args, check) in enumerate(calls))


def test_what_was_started_is_stopped_when_a_sender_cannot_be() -> None:
    made_bench, calls, waits = bench("bw-send-bulk")
    with pytest.raises(RuntimeError):
        made_bench.measure(order())
    assert waits == []
    assert [step for step in steps(calls) if " stop " in step] == [
        "tested stop bw-send-bulk sampler",
        "load stop bw-counter bw-recv-bulk sampler",
    ]


def test_the_same_classes_are_described_to_every_shaper() -> None:
    described = []
    for shaper in SHAPERS:
        made_bench, calls, _waits = bench()
        made_bench.measure(order(shaper=shaper))
        (asked,) = [args for _host, module, args, check in calls if module == "bandwidth_shaper" and not check]
        assert asked["kind"] == shaper
        described.append(
            {key: asked[key] for key in ("classes", "pool", "to", "instance", "accounting") if key in asked}
        )
    assert all(item == described[0] for item in described)
    assert described[0]["instance"] == "experiment-tested"
    (bulk,) = described[0]["classes"]
    assert (bulk["limit"], bulk["group"], bulk["ports"]) == ("500000000bit/s", "ct/tested/bandwidth/bulk", [25201])


def test_preparing_ends_what_a_killed_run_left_and_tells_the_planes() -> None:
    made_bench, calls, _waits = bench()
    names = processes.names(scenarios.load(ROOT, {}, ["latency"], SHAPERS))
    found = made_bench.prepare(names)
    assert found["planes"] == {"egress": "htb", "ingress": "police"}
    assert {"bw-send-bulk", "bw-probe-online", "bw-sender", "sampler"} <= set(names)
    stops = [step for step in steps(calls) if " stop " in step]
    assert [step.split()[0] for step in stops] == ["tested", "load"]
    calls.clear()
    made_bench.stop_all()
    assert steps(calls)[-1] == "tested bandwidth_shaper"
    assert calls[-1][2]["state"] == "absent"


def test_two_hundred_classes_have_names_of_processes_only_where_each_has_one() -> None:
    names = processes.names(scenarios.load(ROOT, {}, ["class_count"], SHAPERS))
    assert "bw-send-pod_010" in names
    assert "bw-send-pod_050" not in names


@pytest.mark.parametrize(
    ("name", "case", "to", "known"),
    [
        ("single_priority", "ingress", "192.0.2.2", [(None, "192.0.2.1")]),
        ("single_priority", "ipv6", "2001:db8::2", [("ct/tested/bandwidth/bulk", None)]),
        (
            "multi_priority", "received", "192.0.2.2",
            [(f"ct/tested/bandwidth/{name}", None) for name in ("online", "middle", "low")],
        ),
    ],
)  # fmt: skip
def test_what_is_received_is_known_by_address_if_it_is_one_class_else_by_groups(
    name: str, case: str, to: str, known: list[tuple[Any, Any]]
) -> None:
    made_bench, calls, _waits = bench()
    made_bench.measure(order(name, case))
    shaped = next(args for _host, module, args, _check in calls if module == "bandwidth_shaper")
    assert shaped["to"] == to
    assert [(item["group"], item["address"]) for item in shaped["classes"]] == known
