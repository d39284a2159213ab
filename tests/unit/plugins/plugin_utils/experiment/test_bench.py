"""One measurement: what is asked of which host, in which order, and what is left when a part fails."""

from __future__ import annotations

import dataclasses
import json

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import (
    bench,
    host_workloads,
    link,
    workloads,
)

AGGRESSOR = {
    "argv": ["ffmpeg", "-i", "{clip}", "-threads", "{threads}", "-progress", "{progress}"],
    "work": {"kind": "ffmpeg_progress", "unit": "frames"},
}
NETWORK = {
    "argv": ["iperf3", "-c", "{peer_address}"],
    "work": {"kind": "net_bytes", "unit": "bytes"},
    "peer": {"argv": ["iperf3", "-s"], "ready_tcp_port": 5201},
}


LINK = {
    "pools": [{"name": "link", "total": "1Gbit/s", "low": "1Mbit/s", "high": "2Mbit/s"}],
    "classes": [{"name": "batch", "pool": "link", "role": "offline", "cgroups": ["ct/batch"]}],
}


def order(aggressor=AGGRESSOR, link=None):
    return workloads.Order(
        label="1/3",
        mode="slo_aware",
        url="http://198.18.0.1:8000/page",
        rate_rps=500.0,
        seed=7,
        groups=({"name": "batch", "cpu_idle": True},),
        aggressor=aggressor,
        link=link,
    )


@pytest.fixture
def waits():
    return []


@pytest.fixture
def made(testbed, matrix_settings, waits):
    processes = host_workloads.HostWorkloads(testbed, divides_link=False)
    return bench.Bench(testbed, matrix_settings, lambda seconds, label: waits.append(seconds), processes)


def entries(host, name):
    return [e for module, args in host.calls if module == "process" for e in args["processes"] if e["name"] == name]


def test_the_policy_is_applied_before_anything_starts(made, hosts):
    made.measure(order())
    tested, _load = hosts
    assert [module for module, _args in tested.calls] == ["cgroup", "process", "process"]
    assert tested.started() == ["batch", "sampler"]


def test_nothing_is_asked_of_a_node_while_the_window_runs(made, hosts, waits):
    tested, load = hosts
    before = []
    made._wait = lambda seconds, label: before.append((len(tested.calls), len(load.calls)))
    made.measure(order())
    assert before == [(2, 1)]


def test_everything_started_is_stopped_and_the_results_come_home(made, hosts, waits, load_result):
    tested, load = hosts
    raw = made.measure(order())
    assert waits == [12]
    assert sorted(tested.stopped()) == ["batch", "sampler"]
    assert load.stopped() == ["sampler"]
    assert raw.load == load_result
    assert raw.samples == {"tested": b'{"a": 1}\n', "loader": b'{"b": 1}\n'}
    assert raw.policy["applied"] == {"batch/cpu.idle": "1"}


def test_placeholders_are_filled_and_progress_is_read_where_it_is_written(made, hosts):
    made.measure(order())
    batch = entries(hosts[0], "batch")[0]
    assert batch["argv"] == [
        "ffmpeg",
        "-i",
        "/state/clip.mp4",
        "-threads",
        "1",
        "-progress",
        "/state/batch-progress.txt",
    ]
    assert batch["group"] == "batch"
    sampler = entries(hosts[0], "sampler")[0]["spec"]
    assert sampler["work"]["batch"]["path"] == "/state/batch-progress.txt"
    # What the window before has left there is not taken for this one's.
    assert entries(hosts[0], "batch")[0]["outputs"] == ["/state/batch-progress.txt"]
    assert sampler["processes"]["batch"]["group"] == "batch"
    assert sampler["policy_files"] == {"batch/cpu.idle": "/sys/x"}


def test_a_baseline_starts_no_batch_workload(made, hosts):
    made.measure(order(aggressor=None))
    assert hosts[0].started() == ["sampler"]
    assert "batch" not in hosts[0].stopped()


def test_a_network_aggressor_gets_its_peer_on_the_load_node(made, hosts):
    made.measure(order(NETWORK))
    tested, load = hosts
    assert load.started() == ["batch-peer", "sampler", "load"]
    assert load.stopped() == ["sampler", "batch-peer"]
    assert entries(tested, "batch")[0]["argv"] == ["iperf3", "-c", "198.18.0.2"]
    assert entries(tested, "batch")[0]["outputs"] == []


def test_detached_processes_end_by_themselves_when_the_controller_dies(made, hosts):
    made.measure(order())
    for host, name in ((hosts[0], "batch"), (hosts[1], "load")):
        assert 12 < entries(host, name)[0]["max_duration_s"] < 300
    assert 12 < entries(hosts[0], "sampler")[0]["spec"]["max_duration_s"] < 300


def test_a_failed_generator_is_told_and_the_batch_workload_stopped(made, hosts):
    hosts[1].files["/state/load.json"] = json.dumps({"error": "connection refused"}).encode()
    with pytest.raises(bench.BenchError, match="loader: the load generator failed: connection refused"):
        made.measure(order())
    assert "batch" in hosts[0].stopped()


def test_a_missing_result_names_the_log(made, hosts):
    del hosts[1].files["/state/load.json"]
    with pytest.raises(bench.BenchError, match=r"/state/load.json was not written; look at .*processes/load.log"):
        made.measure(order())


def test_the_batch_workload_is_stopped_even_when_a_module_fails(made, hosts):
    def broken(module, args, check_mode=None):
        raise bench.BenchError("loader: unreachable")

    hosts[1].run = broken
    with pytest.raises(bench.BenchError):
        made.measure(order())
    assert "batch" in hosts[0].stopped()


def test_the_peak_is_what_a_closed_loop_gets(made, hosts):
    assert made.peak_rps("http://x/page", 4, "peak") == 1250.0
    spec = entries(hosts[1], "load")[0]["spec"]
    assert (spec["kind"], spec["rate_rps"]) == ("closed_loop", None)


def test_stopping_all_names_everything_on_both_hosts(made, hosts):
    made.stop_all()
    assert sorted(hosts[0].stopped()) == ["batch", "nginx", "pm-qos", "sampler"]
    assert sorted(hosts[1].stopped()) == ["batch-peer", "load", "pm-qos", "sampler"]


@pytest.fixture
def dividing(testbed, matrix_settings):
    processes = host_workloads.HostWorkloads(testbed, divides_link=True)
    return bench.Bench(testbed, matrix_settings, lambda seconds, label: None, processes)


def modules(host):
    return [module for module, _args in host.calls]


def test_a_run_without_limits_for_packets_never_touches_the_link(made, hosts):
    made.measure(order())
    made.stop_all()
    assert not [name for name in modules(hosts[0]) if name.startswith("bandwidth_")]
    assert "cgroup2" not in hosts[0].calls[0][1]


def test_the_link_is_divided_before_anything_starts_and_looked_at_after_the_window(dividing, hosts):
    tested, _load = hosts
    raw = dividing.measure(order(link=LINK))
    assert modules(tested) == [
        *("cgroup", "bandwidth_pool", "bandwidth_class", "node_facts", "bandwidth_device", "bandwidth_info"),
        *("process", "process", "bandwidth_device", "bandwidth_info"),
    ]
    assert tested.calls[0][1]["cgroup2"] is True
    assert tested.bandwidth.state["devices"] == {"eth7/egress": {"name": "eth7", "pool": "link"}}
    assert raw.policy["wanted"]["link/pools/link/low"] == "1Mbit/s"
    assert raw.policy["applied"] == raw.policy["wanted"]
    assert raw.policy["after"] == {key: v for key, v in raw.policy["applied"].items() if key.startswith("link/")}
    assert raw.policy["applied"]["batch/cpu.idle"] == "1"


def test_the_same_limits_again_cost_only_the_device(dividing, hosts):
    tested, _load = hosts
    dividing.measure(order(link=LINK))
    dividing.measure(order())
    assert tested.bandwidth.state["devices"] == {}
    assert tested.bandwidth.state["pools"], "the programs stay loaded"
    before = len(tested.calls)
    dividing.measure(order())
    dividing.measure(order(link=LINK))
    again = [name for name in modules(tested)[before:] if name.startswith("bandwidth_")]
    assert again == ["bandwidth_device", "bandwidth_info", "bandwidth_device", "bandwidth_info"]
    other = {**LINK, "pools": [{**LINK["pools"][0], "low": "3Mbit/s"}]}
    before = len(tested.calls)
    assert dividing.measure(order(link=other)).policy["applied"]["link/pools/link/low"] == "3Mbit/s"
    assert next(args for module, args in tested.calls[before:] if module == "bandwidth_class")["classes"] == []


def test_a_mode_without_limits_has_no_values_of_the_link(dividing):
    policy = dividing.measure(order()).policy
    assert "after" not in policy
    assert policy["applied"] == {"batch/cpu.idle": "1"}


def test_what_changed_during_the_window_is_told(dividing, hosts):
    tested, _load = hosts

    def somebody(seconds, label):
        tested.bandwidth.lines = ["filter replace dev eth7 egress"]
        tested.bandwidth.state["pools"]["link"]["low"] = "9Mbit/s"

    dividing._wait = somebody
    policy = dividing.measure(order(link=LINK)).policy
    assert policy["applied"]["link/kernel"] == "as applied"
    assert policy["after"]["link/kernel"] == "filter replace dev eth7 egress"
    assert policy["after"]["link/pools/link/low"] == "9Mbit/s"


def test_everything_of_the_link_is_taken_back_even_when_stopping_fails(dividing, hosts):
    tested, load = hosts
    dividing.measure(order(link=LINK))

    def broken(module, args, check_mode=None):
        raise bench.BenchError("loader: unreachable")

    load.run = broken
    with pytest.raises(bench.BenchError):
        dividing.stop_all()
    assert tested.bandwidth.state == {"pools": {}, "classes": {}, "devices": {}}


def test_what_a_killed_run_has_left_on_the_link_is_removed_first(made, hosts):
    tested, _load = hosts
    tested.bandwidth.state["pools"] = {"link": {"name": "link"}}
    made.start_service([])
    assert modules(tested)[:4] == ["bandwidth_info", "bandwidth_device", "bandwidth_class", "bandwidth_pool"]
    assert tested.bandwidth.state == {"pools": {}, "classes": {}, "devices": {}}


@pytest.mark.parametrize(
    ("name", "instance"),
    [("tested-node", "matrix-tested-node"), ("a b/c", "matrix-a-b-c"), ("n" * 99, "matrix-" + "n" * 56)],
)
def test_the_instance_is_called_after_the_node(testbed, name, instance):
    node = dataclasses.replace(testbed.tested, host=type("Host", (), {"name": name})())
    assert link.instance(node) == instance


def ended(name, **more):
    log = "starting\n[h999] Unknown encoder\nError opening output file -.\n"
    return {"name": name, "changed": False, "exit": {"status": 8, "signal": None}, "log_tail": log, **more}


@pytest.mark.parametrize(
    ("entry", "clauses"),
    [
        (
            ended("batch"),
            (
                "batch ended by itself with status 8, its log ends with: starting; [h999] Unknown encoder; "
                "Error opening output file -.",
            ),
        ),
        (ended("batch", exit={"status": None, "signal": "SEGV"}, log_tail=""), ("with signal SEGV",)),
        (ended("batch", changed=True), ()),
        (ended("batch", exit=None), ()),
        (ended("sampler"), ()),
    ],
)
def test_a_batch_workload_that_ended_by_itself_is_told_in_its_own_words(made, hosts, entry, clauses):
    plain = hosts[0].run

    def run(module, args, check_mode=None):
        return {**plain(module, args, check_mode), "processes": [entry]}

    hosts[0].run = run
    found = made.measure(order()).ended
    assert len(found) == len(clauses)
    assert all(words in clause for words, clause in zip(clauses, found, strict=True))
