"""What a host must have, and what is said when it lacks it."""

from __future__ import annotations

import copy
import dataclasses

import pytest
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.plugin_utils.host_executor import HostExecutorError
from ansible_collections.colocation.testbed.plugins.plugin_utils.preflight import (
    controller,
    hosts,
    rows,
    survey,
    variables,
)

FACTS = {
    "kernel": "6.1.0-28-amd64",
    "online_cpus": "0-3",
    "cpu_count": 4,
    "emulated_files": [],
    "process_descriptors": True,
    "cgroup": "v2",
    "cgroup_problem": None,
    "container_cpus": None,
    "cgroup_controllers": {
        name: {"mount": "/sys/fs/cgroup", "version": 2, "writable": True} for name in ("cpu", "cpuset", "memory")
    },
    "pm_qos": {"device": True, "writable": True, "effective_us": 2_000_000_000},
    "psi": True,
    "load_average": [0.1, 0.2, 0.3],
    "is_root": True,
    "apt": True,
    "listening_ports": [22],
    "supervised": [],
    "programs": {"node_python": {"path": "/usr/bin/python3", "version": "3.11.2"}, "nginx": None},
    "disk_free_bytes": 4 << 30,
    "wall_s": 0.0,
}
NEEDS = hosts.Needs(
    name="node1",
    cpus="0-1",
    housekeeping_cpus="3",
    min_free_mib=500,
    ports={8000: "latency_service_port"},
    programs={"nginx": ("latency_service_install", True)},
)


def look(change=None, needs=NEEDS, clock_offset_s=0.0):
    facts = copy.deepcopy(FACTS)
    if change:
        change(facts)
    return list(hosts.check(facts, needs, clock_offset_s))


def test_a_good_host_lacks_nothing():
    assert {row.level for row in look()} == {"ok"}


def put(*path, value):
    def change(facts):
        place = facts
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("is_root", value=False), ["privileges", "ansible_become: true"]),
        (lambda facts: facts.update(cgroup=None, cgroup_problem="no cpu; delegate it"), ["no cpu; delegate it"]),
        (put("process_descriptors", value=False), ["process descriptors", "Linux 5.3"]),
        (put("emulated_files", value=["/proc/stat"]), ["CPU figures", "/proc/stat come from lxcfs", "umount"]),
        (put("cgroup_controllers", "memory", "writable", value=False), ["cgroup memory", "/sys/fs/cgroup", "writable"]),
        (put("cgroup_controllers", "cpuset", value=None), ["cgroup cpuset", "delegate"]),
        (put("online_cpus", value="0"), ["node_cpus", "CPU 1", "online are 0", "inventory"]),
        (put("container_cpus", value="1-2"), ["CPUs of the container", "may use CPU 1-2 only", "set node_cpus"]),
        (put("listening_ports", value=[8000]), ["TCP port 8000", "latency_service_port"]),
        (put("apt", value=False), ["nginx", "no apt", "install it yourself"]),
        (put("disk_free_bytes", value=1 << 20), ["free space", "node_state_dir"]),
        (put("programs", "node_python", value={"path": "/x", "version": "3.7.1"}), ["is 3.7.1", "set node_python"]),
        (put("programs", "node_python", value=None), ["/usr/bin/python3 is missing on this host", "set node_python"]),
        (put("disk_free_bytes", value=None), ["free space", "choose another node_state_dir"]),
    ],
)
def test_what_is_missing_is_named_with_the_remedy(change, words):
    text = "\n".join(rows.problems(look(change)))
    assert text.startswith("node1: ")
    for word in words:
        assert word in text


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (put("kernel", value="5.10.0-33-amd64"), "kernel"),
        (put("pm_qos", value={"device": False, "writable": False, "effective_us": None}), "PM QoS"),
        (put("psi", value=False), "pressure figures"),
        (put("load_average", value=[3.5, 1, 1]), "load average"),
    ],
)
def test_what_only_costs_something_does_not_stop_the_run(change, what):
    found = look(change)
    assert rows.problems(found) == []
    assert [row.what for row in found if row.level == "degraded"] == [what]
    assert all(row.consequence for row in found if row.level != "ok")


def test_a_clock_that_is_off_is_told():
    assert [row.what for row in look(clock_offset_s=-3.0) if row.level == "degraded"] == ["clock"]


def test_a_program_that_may_not_be_installed_is_missing():
    needs = hosts.Needs("node1", "", "", 500, {}, {"nginx": ("latency_service_install", False)})
    assert "latency_service_install is false" in rows.problems(look(needs=needs))[0]


def test_a_service_that_a_killed_run_left_does_not_take_its_own_port():
    def change(facts):
        facts["listening_ports"] = [8000]
        facts["supervised"] = ["nginx"]

    assert rows.problems(look(change)) == []


def test_a_cpu_list_that_is_none_is_named():
    needs = hosts.Needs("node1", "0..3", "", 500, {}, {})
    assert "node_cpus" in rows.problems(look(needs=needs))[0]


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({"tested": ["a"], "load": []}, ["group load", "exactly one host"]),
        ({"tested": ["a", "b"], "load": ["c"]}, ["group tested", "exactly one host", "(there: a, b)"]),
        ({"load": ["c"]}, ["group tested", "put exactly one host into the group 'tested'"]),
        ({"tested": ["a"], "load": ["a"]}, ["a is in both groups"]),
        ({"tested": ["2001:db8::1"], "load": ["c"]}, ["host '2001:db8::1'", "ansible_host"]),
        ({"tested": ["a"], "load": ["root@c/1"]}, ["host 'root@c/1'", "letters, digits, dots"]),
    ],
)
def test_groups_that_cannot_be_used_are_named(groups, words):
    text = "\n".join(rows.problems(list(controller.groups(groups))))
    for word in words:
        assert word in text


class Host:
    name = "node1"

    def __init__(self, given=None, memory_bytes=8 << 30):
        self.given, self.memory_bytes = given or {}, memory_bytes

    def variable(self, name, default=None):
        return self.given.get(name, default)

    def variables(self, wanted):
        return {name: value for name, value in self.given.items() if wanted(name)}

    def run(self, module, args, check_mode=None):
        if module == "packages":
            assert check_mode is True
            raise HostExecutorError(f"packages: {', '.join(args['names'])}: not in this host's package sources")
        return {**copy.deepcopy(FACTS), "memory_bytes": self.memory_bytes}


OPTIONS = {
    "node_state_dir": {"default": "/var/lib/x"},
    "node_python": {"default": "/usr/bin/python3"},
    "latency_service_port": {"default": 22},
}


def test_a_host_that_does_not_answer_is_one_row():
    def reach(name):
        raise HostExecutorError(f"{name}: connection refused")

    looking = survey.Survey({"tested": ["node1"], "load": ["node2"]}, OPTIONS, reach, 500)
    found = list(looking.of_host("node1", "tested"))
    assert [(row.what, row.level) for row in found] == [("connection", "missing")]
    assert "connection refused" in found[0].consequence


@pytest.mark.parametrize(("lab", "taken"), [([], True), (["node1"], False)])
def test_a_lab_host_has_ports_of_its_own(lab, taken):
    groups = {"tested": ["node1"], "load": ["node2"], "lab": lab}
    found = list(survey.Survey(groups, OPTIONS, lambda name: Host(), 500).of_host("node1", "tested"))
    assert any(row.what == "TCP port 22" and row.level == "missing" for row in found) is taken


def test_a_guest_that_is_not_made_yet_stops_nothing():
    def reach(name):
        raise HostExecutorError(f"{name}: connection refused")

    groups = {"tested": ["node1"], "load": ["node2"], "lab": ["node1"]}
    found = list(survey.Survey(groups, OPTIONS, reach, 500).of_host("node1", "tested"))
    assert [(row.found, row.level) for row in found] == [("to be made", "ok")]


def test_a_host_with_one_cpu_needs_no_cpuset():
    def change(facts):
        facts["online_cpus"] = "0"
        del facts["cgroup_controllers"]["cpuset"]

    needs = hosts.Needs("node1", "0", "", 500, {}, {})
    assert [row.what for row in look(change, needs) if row.level != "ok"] == ["cgroup cpuset"]
    assert rows.problems(look(change, needs)) == []


@pytest.mark.parametrize(
    ("driver", "modules"),
    [("netns", ["lab_netns"]), ("uml", ["lab_image", "lab_guests"]), ("qemu", ["lab_image", "lab_guests"])],
    ids=["netns", "uml", "qemu"],
)
def test_the_labs_own_modules_say_whether_it_can_be_made(driver, modules):
    asked = {}

    class Machine:
        name = "localhost"

        def variable(self, name, default=None):
            return {"lab_driver": driver}.get(name, default)

        def run(self, module, args, check_mode=None):
            assert check_mode is True
            asked[module] = args
            return {"path": "/cache/0123.img"}

    options = variables.role_options(ROOT / "roles")
    looking = survey.Survey({"tested": ["a"], "load": ["b"], "lab": ["a", "b"]}, options, lambda name: Machine(), 500)
    (row,) = looking.of_lab({"a": {"ansible_host": "198.18.0.1"}, "b": {"ansible_host": "198.18.0.2"}})
    assert (row.found, row.level) == ("can be made", "ok")
    assert list(asked) == modules
    given = [(asked[name].get("driver"), asked[name].get("image")) for name in modules]
    assert given == ([(None, None)] if driver == "netns" else [(driver, None), (driver, "/cache/0123.img")])


SHAPING = {"bpf_file_system": True, "cgroup2": "/sys/fs/cgroup", "clsact": True}


def shaping(**changes):
    needs = dataclasses.replace(NEEDS, shaping=True)
    found = look(lambda facts: facts.update(shaping={**SHAPING, **changes}), needs)
    return {row.what: row for row in found if row.level != "ok"}


def test_a_policy_for_the_link_asks_for_what_it_needs():
    assert shaping() == {}
    row = shaping(cgroup2=None)["cgroup2"]
    assert (row.level, row.found) == ("missing", "missing")
    assert "mount it" in row.consequence
    assert "sch_ingress" in shaping(clsact=False)["programs at devices"].consequence
    assert "CONFIG_BPF_SYSCALL" in shaping(bpf_file_system=False)["BPF file system"].consequence


def survey_of(host, groups=None):
    options = variables.role_options(ROOT / "roles")
    return survey.Survey(groups or {"tested": ["node1"], "load": ["node2"]}, options, lambda name: host, 500)


def test_a_lab_host_without_address_is_a_row():
    looking = survey_of(Host(), {"tested": ["a"], "load": ["b"], "lab": ["a"]})
    (row,) = looking.of_lab({"a": {}})
    assert (row.what, row.level) == ("lab", "missing")
    assert "lab host a has no address: give it ansible_host" in row.consequence
    assert list(survey_of(Host()).of_lab({})) == []


def test_variables_of_a_group_are_looked_at_without_asking_the_host():
    given = {"latency_service_prot": 80, "batch_workload_threads": 0, "node_exporter_port": 9100, "ansible_user": "x"}
    found = list(survey_of(Host(given)).of_inventory())
    assert [row.what for row in found] == ["batch_workload_threads", "latency_service_prot"]
    assert "did you mean latency_service_port?" in found[1].consequence


def test_what_hosts_share_is_told_once():
    looking = survey_of(Host({"matrx_modes": []}))
    assert len([row for row in looking.of_controller({"matrx_modes": []}) if row.what == "matrx_modes"]) == 1
    assert list(looking.of_inventory()) == []


def test_all_that_is_wrong_with_variables_and_matrix_is_in_one_table():
    given = {"latency_service_port": 0, "matrix_blocks": 2.5, "matrix_modes": ["slo"], "matrix_results_dir": "/proc/x"}
    found = survey_of(Host()).of_controller(given)
    assert [row.what for row in found if row.level == "missing"] == [
        "latency_service_port",
        "matrix_blocks",
        "results directory",
        "matrix",
    ]


def bad_rows(given, of_matrix=None, role="tested"):
    looking = survey_of(Host({"node_cpus": "0", **given}))
    assert not rows.problems(looking.of_controller(of_matrix or {}))
    return [row for row in looking.of_host("node1", role) if row.level == "missing"]


MINE = {
    "mine": {
        "description": "x",
        "resource": "cpu",
        "packages": ["nosuchpkg-xyz"],
        "argv": ["x"],
        "work": {"kind": "cpu_time", "unit": "s"},
        "peer": {"argv": ["y"], "packages": ["nosuchpeer-xyz"]},
    }
}


@pytest.mark.parametrize(("role", "package"), [("tested", "nosuchpkg-xyz"), ("load", "nosuchpeer-xyz")])
def test_a_package_that_a_host_cannot_get_is_found_before_anything_is_installed(role, package):
    given = {"matrix_aggressors": ["mine"], "matrix_aggressor_definitions": MINE}
    (row,) = bad_rows(given, role=role)
    assert (row.what, row.found) == ("packages", package)
    assert f"{package}: not in this host's package sources" in row.consequence
    refused = bad_rows({**given, "batch_workload_install": False}, role=role)
    assert "packages" not in [row.what for row in refused]
    assert bad_rows({"matrix_aggressors": ["ffmpeg", "iperf3"]}, role=role) == []


def test_the_services_packages_are_asked_for_too():
    assert [row.found for row in bad_rows({"latency_service_packages": ["nginx", "nosuch-nginx"]})] == ["nosuch-nginx"]


def test_an_aggressor_that_is_not_defined_is_named():
    (row,) = bad_rows({"batch_workload_aggressors": ["ffmpg"]})
    assert row.consequence.startswith("batch_workload_aggressors: 'ffmpg' is not a defined aggressor; did you mean")


def test_a_request_that_a_mode_has_no_room_for_names_its_variable():
    (row,) = bad_rows({"batch_workload_memory_request": "500Gi"})
    assert row.what == "modes"
    assert row.consequence.startswith("batch_workload_memory_request: 536870912000 bytes are more than")


def test_a_slowdown_without_its_page_is_found():
    slow = {"description": "x", "workloads": ["service"], "policy": "none", "engine": "none", "service_slowdown_pct": 7}
    (row,) = bad_rows({}, {"matrix_modes": ["baseline", "slow_7"], "matrix_mode_definitions": {"slow_7": slow}})
    assert row.consequence == (
        "mode slow_7 wants service_slowdown_pct 7: add it to latency_service_slow_pages_pct (5, 20)"
    )


@pytest.mark.parametrize("place", ["/proc/x", "/proc", "/sys/kernel/x"])
def test_a_results_directory_on_a_file_system_of_the_kernel_is_refused(place):
    row = controller.results(place)
    assert row.level == "missing"
    assert f"matrix_results_dir is '{place}'" in row.consequence


def test_trying_a_results_directory_leaves_nothing(tmp_path):
    assert controller.results(str(tmp_path / "a/b")).level == "ok"
    assert list(tmp_path.iterdir()) == []
