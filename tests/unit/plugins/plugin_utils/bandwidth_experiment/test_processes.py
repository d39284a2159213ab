"""Which processes a case needs where: who receives, who sends, in which group, by which program."""

from __future__ import annotations

from typing import Any

import pytest
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment import processes, scenarios
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.processes import End, Ends, Job
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.scenario_checks import SHAPERS
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Node


class Silent:
    """A host that is never asked."""

    def __init__(self, name: str) -> None:
        self.name = name


def node(name: str) -> Node:
    return Node(Silent(name), f"/state/{name}", f"ct/{name}", "0", "1", "/usr/bin/python3", "supervised")  # type: ignore[arg-type]


ENDS = Ends(
    End(node("tested"), "192.0.2.1", "fe80::1", "ct0"),
    End(node("load"), "192.0.2.2", "fe80::2", "eth7"),
)


def job(name: str, case: str, **given: Any) -> Job:
    found = scenarios.load(ROOT, given, ["*"], SHAPERS)[name]["cases"][case]
    return processes.job(found, 25201, "cubic", 60.0)


def by_name(entries: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in entries}


def test_what_is_sent_leaves_from_the_classes_group_and_is_counted_at_the_other_end() -> None:
    found = job("single_priority", "egress")
    assert processes.receiving(found, ENDS, ENDS.tested) == []
    assert processes.sending(found, ENDS, ENDS.load) == []
    receiving = by_name(processes.receiving(found, ENDS, ENDS.load))
    assert receiving["bw-recv-bulk"]["argv"] == ["iperf3", "-s", "-B", "192.0.2.2", "-p", "25201"]
    assert receiving["bw-counter"]["spec"]["ports"] == {"bulk": [25201]}
    # Groups of a host may not have its housekeeping CPUs.
    assert receiving["bw-counter"]["cpus"] == "1"
    assert "group" not in receiving["bw-counter"]
    (sender,) = processes.sending(found, ENDS, ENDS.tested)
    assert sender["group"] == "bandwidth/bulk"
    argv = " ".join(sender["argv"])
    assert "-c 192.0.2.2 -p 25201 -J -P 4 -l 131072" in argv
    assert argv.endswith("-C cubic")


def test_both_directions_use_both_hosts() -> None:
    found = job("single_priority", "both")
    for host, receives, sends in ((ENDS.load, "bulk", "bulk_in"), (ENDS.tested, "bulk_in", "bulk")):
        assert set(by_name(processes.receiving(found, ENDS, host))) == {f"bw-recv-{receives}", "bw-counter"}
        assert set(by_name(processes.sending(found, ENDS, host))) == {f"bw-send-{sends}"}
    assert by_name(processes.sending(found, ENDS, ENDS.load))["bw-send-bulk_in"]["group"] == "bandwidth/tools"
    assert by_name(processes.receiving(found, ENDS, ENDS.tested))["bw-recv-bulk_in"]["group"] == "bandwidth/bulk_in"


def test_two_hundred_classes_are_sent_by_one_process_that_visits_their_groups() -> None:
    found = job("class_count", "200_classes")
    (sender,) = processes.sending(found, ENDS, ENDS.tested)
    flows = sender["spec"]["flows"]
    assert len(flows) == 200
    assert flows[199]["group"] == "ct/tested/bandwidth/pod_200"
    assert flows[199]["port"] == 25400
    receiving = by_name(processes.receiving(found, ENDS, ENDS.load))
    assert set(receiving) == {"bw-sink", "bw-counter"}
    assert receiving["bw-sink"]["spec"]["ports"] == list(range(25201, 25401))
    assert [entry["name"] for entry in processes.groups(found)] == ["bandwidth", "bandwidth/tools"]


def test_a_service_that_pauses_is_sent_by_our_own_process_and_counted_each_millisecond() -> None:
    found = job("waterline", "dynamic")
    entries = processes.sending(found, ENDS, ENDS.tested)
    assert [entry["name"] for entry in entries] == ["bw-send-bulk", "bw-sender"]
    assert entries[1]["spec"]["flows"][0]["bursts"] == {"on_s": 0.06, "off_s": 0.09}
    assert by_name(processes.receiving(found, ENDS, ENDS.load))["bw-counter"]["spec"]["interval_s"] == 0.001
    assert by_name(processes.receiving(job("waterline", "online_below"), ENDS, ENDS.load))["bw-counter"]["spec"][
        "interval_s"
    ] == pytest.approx(0.1)


def test_the_probe_runs_in_the_services_group_and_needs_no_other_traffic() -> None:
    found = job("latency", "offline_saturates")
    sending = by_name(processes.sending(found, ENDS, ENDS.tested))
    assert set(sending) == {"bw-probe-online", "bw-send-bulk"}
    assert sending["bw-probe-online"]["group"] == "bandwidth/online"
    assert sending["bw-probe-online"]["spec"]["port"] == 25201 + processes.PROBE_PORT_ABOVE
    receiving = by_name(processes.receiving(found, ENDS, ENDS.load))
    assert set(receiving) == {"bw-echo-online", "bw-recv-bulk", "bw-counter"}
    assert receiving["bw-counter"]["spec"]["ports"] == {"bulk": [25202]}


def test_what_is_fetched_is_what_was_started() -> None:
    found = job("waterline", "dynamic")
    assert processes.results(found, ENDS, ENDS.load) == ["/state/load/samples.jsonl", "/state/load/bw-counter.json"]
    assert processes.results(found, ENDS, ENDS.tested) == [
        "/state/tested/samples.jsonl", "/state/tested/bw-sender.json", "/state/tested/processes/bw-send-bulk.log",
    ]  # fmt: skip


def test_an_offered_rate_is_divided_between_the_connections_of_iperf3() -> None:
    argv = by_name(processes.sending(job("multi_priority", "limits"), ENDS, ENDS.tested))["bw-send-online"]["argv"]
    assert argv[argv.index("-b") + 1] == "150000000"
    assert argv[argv.index("--fq-rate") + 1] == "157500000"
    assert argv[argv.index("-l") + 1] == "8192"


def test_several_received_classes_are_received_in_groups_of_their_own_and_one_alone_by_the_address() -> None:
    found = job("multi_priority", "received")
    assert found.by_group("ingress")
    receiving = by_name(processes.receiving(found, ENDS, ENDS.tested))
    assert {receiving[f"bw-recv-{name}"]["group"] for name in ("online", "middle", "low")} == {
        "bandwidth/online", "bandwidth/middle", "bandwidth/low"
    }  # fmt: skip
    assert not job("single_priority", "ingress").by_group("ingress")


def test_datagrams_are_sent_and_taken_by_our_own_processes_and_counted_where_they_are_taken() -> None:
    found = job("single_priority", "udp")
    receiving = by_name(processes.receiving(found, ENDS, ENDS.load))
    sink, counter = receiving["bw-sink"]["spec"], receiving["bw-counter"]["spec"]
    assert (sink["ports"], sink["datagram_ports"], sink["groups"]) == ([], [25201], {})
    assert (counter["ports"], counter["datagram_ports"]) == ({}, {"bulk": [25201]})
    assert counter["tally"] == sink["tally"] == "/state/load/bw-datagrams.bin"
    assert counter["tally_ports"] == sink["datagram_ports"]
    (sender,) = processes.sending(found, ENDS, ENDS.tested)
    (flow,) = sender["spec"]["flows"]
    assert (flow["protocol"], flow["message_bytes"], flow["group"]) == ("udp", 1448, "ct/tested/bandwidth/bulk")


def test_datagrams_of_several_received_classes_are_taken_by_sockets_of_their_groups() -> None:
    classes = {"a": {"protocol": "udp", "limit": "5Mbit/s"}, "b": {"protocol": "udp", "limit": "5Mbit/s"}}
    mine = {"title": "T", "description": "D", "direction": "ingress", "shapers": ["ebpf"]}
    found = job("mine", "two", mine={**mine, "cases": {"two": {"classes": classes}}})
    sink = by_name(processes.receiving(found, ENDS, ENDS.tested))["bw-sink"]["spec"]
    assert sink["groups"] == {"25201": "ct/tested/bandwidth/a", "25202": "ct/tested/bandwidth/b"}


def test_an_address_of_the_link_names_the_device_of_whoever_writes_it() -> None:
    found = job("single_priority", "ipv6")
    receiving = by_name(processes.receiving(found, ENDS, ENDS.load))
    assert receiving["bw-recv-bulk"]["argv"][3] == "fe80::2%eth7"
    assert receiving["bw-counter"]["spec"]["family"] == "ipv6"
    (sender,) = processes.sending(found, ENDS, ENDS.tested)
    assert sender["argv"][2] == "fe80::2%ct0"
    everywhere = End(node("tested"), "192.0.2.1", "2001:db8::1", "ct0")
    assert everywhere.seen_from(ENDS.load_end, "ipv6") == "2001:db8::1"
