"""Substrate pod: what is asked of the cluster and of the node for each mode, and what the guards are given."""

from __future__ import annotations

import copy
import dataclasses

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import (
    bench,
    deployed,
    pod_manifests,
    pod_workloads,
    substrates,
    workloads,
)

POLICY = {
    "colocation-config": {"enable": True},
    "resource-threshold-config": {"clusterStrategy": {"enable": True, "cpuSuppressPolicy": "cfsQuota"}},
}
DEPLOYED = {"colocation-config": {"enable": True, "cpuReclaimThresholdPercent": 70}}
RESTING = {"colocation-config": {"enable": True}}
RUN = "r" * 62 + "-1"
AGGRESSOR = {
    "name": "ffmpeg",
    "argv": ["ffmpeg", "-progress", "{progress}"],
    "work": {"kind": "ffmpeg_progress", "unit": "frames"},
}
KUBERNETES = {
    "api_host": "api",
    "kubectl": ["nsenter", "kubectl"],
    "node_name": "n1",
    "provider": "processes",
    "server_version": "1.34.4",
    "runtime": {"name": "containerd", "version": "2.1.6"},
    "cgroup_driver": "cgroupfs",
}
KOORDINATOR = {
    "version": "1.8.0",
    "method": "manifests",
    "namespace": "koordinator-system",
    "features": "BECPUEvict=false",
    "host": {"cpus": 2},
    "policy_sections": DEPLOYED,
}


class FakePods:
    """Answers as workload_pods, pod_values and koordinator_policy do, and keeps what it was asked."""

    def __init__(self, host) -> None:
        self.host = host
        self.name = "api"
        self.lacks: list[str] = []
        self.late = ""
        self.asked: list[tuple[str, dict]] = []
        host.run = self.run
        self.usual = type(host).run

    def pod(self, key):
        facts = {"node": "n1", "phase": "Running", "reason": "", "restarts": 0, "class": "", "tier": "Burstable"}
        return {**facts, "uid": f"uid-{key}", "container_id": f"c-{key}", "address": "10.88.0.7"}

    def run(self, module, args, check_mode=None):
        if module in ("process", "cgroup", "node_facts"):
            return self.usual(self.host, module, args, check_mode)
        self.asked.append((module, copy.deepcopy(args)))
        if module == "workload_pods":
            keys = [item["key"] for item in args["pods"]]
            return {
                "pods": {key: self.pod(key) for key in keys},
                "lacks": {key: self.lacks if key == "batch" else [] for key in keys},
                "agents": {"koordlet-x": {"uid": "uid-k", "container_id": "c-k"}} if args["agent_namespace"] else {},
                "node": {"ready": True, "batch_cpu_milli": 1500, "batch_memory_bytes": 1 << 30},
            }
        if module == "pod_values":
            named = {**{item["key"]: item["uid"] for item in args["pods"]}, "koordlet-x": "uid-k"}
            return {
                "groups": {
                    key: {"pod": f"kubepods/{uid}", "container": f"kubepods/{uid}/c"} for key, uid in named.items()
                },
                "policy_files": {"batch/cpu.shares": "/sys/b"},
                "policy_values": {"batch/cpu.shares": "2"},
                "moving_files": {"best_effort/quota_us": "/sys/q"} if args["moving"] else {},
                "unsettled": {"batch/cpu.shares": "512"} if args["policy"] else {},
            }
        return {"late": self.late}

    def of(self, module, **chosen):
        return [args for name, args in self.asked if name == module and chosen.items() <= args.items()]


def order(engine="none", policy=None, aggressor=AGGRESSOR):
    return workloads.Order(
        label="1/3",
        mode="m",
        url="http://198.18.0.1:8000/page",
        rate_rps=500.0,
        seed=7,
        groups=(),
        aggressor=aggressor,
        engine=engine,
        policy=policy,
    )


@pytest.fixture
def api(hosts):
    return FakePods(hosts[0])


@pytest.fixture
def cluster(hosts, api):
    hosts[0].variable = {**_facts(hosts[0]), "kubernetes_deployed": KUBERNETES, "koordinator_deployed": KOORDINATOR}.get
    return deployed.cluster(hosts[0], lambda _name: hosts[0])


def _facts(host):
    found = {
        name: host.variable(name) for name in ("node_deployed", "latency_service_deployed", "batch_workload_deployed")
    }
    pod = {"directories": ["/state/pages"], "host_network": True, "scheduled": False}
    found["latency_service_deployed"] = {**found["latency_service_deployed"], "pod": {**pod, "image": "r/nginx"}}
    found["batch_workload_deployed"] = {
        **found["batch_workload_deployed"],
        "placeholders": {"directory": "/state/work"},
        "pods": {**pod, "images": {"ffmpeg": "r/ffmpeg"}},
    }
    return found


def made(hosts, cluster, writes_static=False):
    resting = RESTING if cluster.koordinator else {}
    testbed = deployed.read(hosts[0], hosts[1], cluster)
    return pod_workloads.PodWorkloads(testbed, cluster, resting, writes_static, RUN)


@pytest.fixture
def pods(hosts, cluster):
    return pod_workloads.PodWorkloads(
        deployed.read(hosts[0], hosts[1], cluster), cluster, RESTING, writes_static=False, run_id=RUN
    )


def batch_of(api):
    (made,) = [
        item for args in api.of("workload_pods", state="present") for item in args["pods"] if item["key"] == "batch"
    ]
    return made


def test_the_cluster_is_what_the_roles_left(cluster):
    assert (cluster.own, cluster.namespace, cluster.node_name) == (True, "colocation-testbed", "n1")
    assert cluster.description["runtime"] == "containerd 2.1.6"
    assert cluster.description["koordinator"] == {"version": "1.8.0", "method": "manifests"}


def test_an_ordinary_pod_has_requests_and_no_limits_and_koordinator_rests(pods, api):
    prepared = pods.prepare(order(), 40)
    assert api.of("koordinator_policy")[0]["policy"] == RESTING
    assert {args["run_id"] for args in api.of("workload_pods")} == {"r" * 62}
    made = batch_of(api)
    assert made["qos_class"] == ""
    assert made["manifest"]["metadata"]["labels"] == {"app": "batch-workload"}
    spec = made["manifest"]["spec"]
    assert spec["containers"][0]["resources"] == {"requests": {"cpu": "500m", "memory": "64Mi"}}
    assert (spec["nodeName"], spec["hostNetwork"], spec["restartPolicy"]) == ("n1", True, "Never")
    assert 40 < spec["activeDeadlineSeconds"] < 400
    assert "batch_cpu_milli" not in prepared.policy["cluster"]
    assert prepared.policy["pods"]["batch"]["expected"] == {
        "node": "n1",
        "class": "",
        "tier": "Burstable",
        "limited": False,
    }


def test_under_koordinator_the_pod_asks_to_be_injected_and_its_values_are_waited_for(pods, api):
    prepared = pods.prepare(order("koordinator", POLICY), 40)
    assert api.of("koordinator_policy")[0]["policy"] == POLICY
    made = batch_of(api)
    assert made["qos_class"] == "BE"
    assert made["manifest"]["metadata"]["labels"]["colocation.testbed/workload"] == "batch"
    resources = made["manifest"]["spec"]["containers"][0]["resources"]
    assert resources["limits"] == resources["requests"] == {"cpu": "500m", "memory": "64Mi"}
    (values,) = api.of("pod_values")
    asked = {"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": str(64 << 20)}
    entry = next(item for item in values["pods"] if item["key"] == "batch")
    assert entry["containers"] == [{"requests": asked, "limits": asked}]
    assert (entry["qos"], values["policy"]) == ("BE", POLICY)
    # What is not there yet is what is wanted, and the guard sees the difference.
    arrived = {"cluster/NodeSLO": "as the policy"}
    assert prepared.policy["wanted"] == {"batch/cpu.shares": "512", **arrived}
    assert prepared.policy["applied"] == {"batch/cpu.shares": "2", **arrived}
    assert prepared.policy["after"] == arrived
    assert prepared.policy["cluster"]["batch_cpu_milli"] == {"asked": 500, "before": 1500}
    assert prepared.policy["pods"]["batch"]["expected"]["limited"] is False


def test_without_suppress_by_quota_the_pods_own_limit_stands(pods):
    policy = {"resource-threshold-config": {"clusterStrategy": {"enable": True, "cpuSuppressPolicy": "cpuset"}}}
    prepared = pods.prepare(order("koordinator", policy), 40)
    assert prepared.policy["pods"]["batch"]["expected"]["limited"] is True


def test_what_was_not_injected_reaches_the_guards(pods, api):
    api.lacks = ["label koordinator.sh/qosClass=BE"]
    prepared = pods.prepare(order("koordinator", POLICY), 40)
    assert prepared.policy["pods"]["batch"]["lacks"] == ["label koordinator.sh/qosClass=BE"]
    assert prepared.policy["pods"]["service"]["lacks"] == []


def test_a_policy_that_does_not_arrive_is_kept_as_the_reason_and_not_waited_for_long_again(pods, api):
    api.late = "NodeSLO n1: …; after 60 s the policy has not arrived"
    prepared = pods.prepare(order("koordinator", POLICY), 40)
    assert prepared.policy["wanted"]["cluster/NodeSLO"] != prepared.policy["applied"]["cluster/NodeSLO"]
    pods.prepare(order("koordinator", POLICY), 40)
    first, second = api.of("koordinator_policy")
    assert (first["on_late"], first["deadline_s"] > second["deadline_s"]) == ("report", True)


def test_the_sampler_sees_containers_agents_and_what_the_cluster_itself_uses(pods):
    watch = pods.prepare(order("koordinator", POLICY), 40).watch
    assert watch.group_paths == {
        "service": "kubepods/uid-service/c",
        "batch": "kubepods/uid-batch/c",
        "agent/koordlet-x": "kubepods/uid-k/c",
        "cluster": "ct/cluster",
    }
    assert watch.files["best_effort/quota_us"] == "/sys/q"
    assert watch.work["batch"]["path"] == "/state/work/batch-progress.txt"
    assert watch.processes["batch"] == {"group_path": "kubepods/uid-batch/c", "group": "batch"}


def test_the_policy_is_given_only_when_it_changes(pods, api):
    pods.prepare(order(), 40)
    pods.prepare(order(aggressor=None), 40)
    pods.prepare(order("koordinator", POLICY), 40)
    pods.prepare(order(), 40)
    assert [args["policy"] for args in api.of("koordinator_policy")] == [RESTING, POLICY, RESTING]


def test_static_writes_itself_and_takes_back_before_the_pod_goes(pods, api, cluster, hosts):
    alone = dataclasses.replace(cluster, koordinator=None)
    found = pod_workloads.PodWorkloads(
        deployed.read(hosts[0], hosts[1], alone), alone, {}, writes_static=True, run_id=RUN
    )
    prepared = found.prepare(order("static", POLICY), 40)
    assert api.of("koordinator_policy") == []
    (written,) = [args for args in api.of("cgroup_policy") if "policy" in args]
    assert [(item["level"], item["qos"]) for item in written["groups"]] == [
        ("pod", "LS"),
        ("tier", "BE"),
        ("pod", "BE"),
        ("container", "BE"),
    ]
    assert batch_of(api)["manifest"]["spec"]["containers"][0]["resources"] == {}
    assert prepared.policy["pods"]["batch"]["expected"]["tier"] == "BestEffort"
    found.release(order("static", POLICY))
    last = [name if name != "workload_pods" else args["state"] for name, args in api.asked][-2:]
    assert last == ["cgroup_policy", "absent"]


def test_an_aggressor_without_an_image_is_told(pods):
    with pytest.raises(pod_workloads.PodWorkloadsError, match=r"aggressor stress: has no image.*batch_workload_images"):
        pods.prepare(order(aggressor={**AGGRESSOR, "name": "stress"}), 40)


def test_at_the_end_the_pods_go_and_the_deployed_policy_is_back(pods, api):
    pods.start_service([])
    pods.stop_all()
    assert api.of("koordinator_policy")[-1]["policy"] == DEPLOYED
    assert [item["key"] for item in api.of("workload_pods")[-1]["pods"]] == ["batch", "service"]
    assert api.of("workload_pods")[-1]["state"] == "absent"


def test_a_pod_with_a_network_of_its_own_is_reached_at_its_address(pods, hosts, cluster):
    pods.start_service([])
    assert pods.url("http://198.18.0.1:8000/page") == "http://198.18.0.1:8000/page"
    testbed = deployed.read(hosts[0], hosts[1], cluster)
    template = dataclasses.replace(testbed.service.pod, host_network=False)
    own = dataclasses.replace(testbed, service=dataclasses.replace(testbed.service, pod=template))
    apart = pod_workloads.PodWorkloads(own, cluster, RESTING, writes_static=False, run_id=RUN)
    apart.start_service([])
    assert apart.url("http://198.18.0.1:8000/page") == "http://10.88.0.7:8000/page"


def test_what_is_seen_after_the_window_joins_what_was_before(pods, api, hosts, cluster, matrix_settings):
    testbed = deployed.read(hosts[0], hosts[1], cluster)
    made = bench.Bench(testbed, matrix_settings, lambda seconds, label: None, pods)
    raw = made.measure(order("koordinator", POLICY))
    told = raw.policy["pods"]["batch"]
    assert told["before"] == told["after"]
    assert told["after"]["uid"] == "uid-batch"
    assert raw.policy["cluster"]["batch_memory_bytes"] == {"asked": 64 << 20, "before": 1 << 30, "after": 1 << 30}
    assert api.of("workload_pods")[-1]["state"] == "absent"
    # The sampler has stopped before anything else is asked of the node.
    names = [module for module, _args in hosts[0].calls]
    assert names.count("process") == 2


def test_a_scheduled_pod_is_chosen_by_label_and_not_bound(pods, cluster, hosts):
    testbed = deployed.read(hosts[0], hosts[1], cluster)
    template = dataclasses.replace(testbed.service.pod, scheduled=True)
    spec = pod_manifests.service(testbed, cluster, template)["spec"]
    assert "nodeName" not in spec
    assert spec["nodeSelector"] == {"kubernetes.io/hostname": "n1"}


MODES = {
    "baseline": {"engine": "none", "policy": None},
    "static": {"engine": "static", "policy": "p"},
    "koordinator": {"engine": "koordinator", "policy": "p"},
}


@pytest.mark.parametrize(
    ("chosen", "substrate", "has", "words"),
    [
        (["baseline", "static"], "process", "", []),
        (["baseline", "koordinator"], "process", "own", ["mode koordinator", "matrix_substrate to pod"]),
        (["koordinator"], "pod", "", ["koordinator_state to present"]),
        (["static"], "pod", "own", ["write the same control groups", "koordinator_state to absent"]),
        (["baseline", "koordinator"], "pod", "own", []),
        (["koordinator"], "pod", "platform", ["platform's own agent", "engine none"]),
        (["static"], "pod", "platform", ["write the same control groups"]),
        (["static"], "pod", "", []),
    ],
)
def test_engines_that_do_not_fit_are_told_before_anything(chosen, substrate, has, words):
    found = substrates.problems({name: MODES[name] for name in chosen}, {"p": {}}, substrate, has)
    assert bool(found) == bool(words)
    assert all(word in found[0] for word in words)


def test_a_link_is_not_divided_for_pods():
    found = substrates.problems({"m": MODES["koordinator"]}, {"p": {"bandwidth": {}}}, "pod", "own")
    assert "section bandwidth" in found[0]


def test_what_rests_is_the_offer_of_batch_resources_alone():
    modes = list(MODES.values())
    assert pod_workloads.resting_policy(modes, {"p": POLICY}) == RESTING
    assert pod_workloads.resting_policy(modes[:2], {"p": POLICY}) == {}
    assert pod_workloads.resting_policy(modes, {"p": {"resource-qos-config": {}}}) == {}


def test_a_run_without_engine_static_never_touches_what_others_have_set(pods, api, cluster, hosts):
    alone = dataclasses.replace(cluster, koordinator=None)
    found = pod_workloads.PodWorkloads(
        deployed.read(hosts[0], hosts[1], alone), alone, {}, writes_static=False, run_id=RUN
    )
    found.start_service([])
    found.prepare(order(), 40)
    found.release(order())
    found.stop_all()
    assert api.of("cgroup_policy") == []
