"""Role variables that Ansible itself would ignore or leave as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.preflight import rows, values, variables

OPTIONS = {
    "matrix_blocks": {"type": "int", "default": 6},
    "matrix_hold_pm_qos": {"type": "bool"},
    "matrix_modes": {"type": "list", "elements": "str"},
    "matrix_load_kind": {"type": "str", "choices": ["open_loop", "closed_loop"]},
}
ROLES = frozenset({"matrix", "node"})


def look(**given):
    return list(variables.check(given, OPTIONS, ROLES, "tested"))


def test_good_variables_and_others_are_silent():
    assert look(matrix_blocks=3, matrix_hold_pm_qos=False, ansible_user="x", node_deployed={}) == []


def test_numbers_given_on_the_command_line_are_taken():
    assert look(matrix_blocks="3") == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"matrix_block": 3}, ["matrix_block;", "did you mean matrix_blocks?"]),
        ({"matrix_hold_pm_qos": "false"}, ["'false'", "bool", "-e '{\"matrix_hold_pm_qos\": true}'"]),
        ({"matrix_blocks": "many"}, ["'many'", "a whole number is needed"]),
        ({"matrix_modes": "baseline"}, ["'baseline'", "a list is needed"]),
        ({"matrix_load_kind": "open"}, ["'open'", "open_loop, closed_loop"]),
        ({"matrix_blocks": 2.5}, ["matrix_blocks is 2.5, a floating-point number, where a whole number is needed"]),
        ({"matrix_blocks": True}, ["matrix_blocks is True, a bool, where a whole number is needed"]),
        ({"matrix_modes": {"a": 1}}, ["matrix_modes is {'a': 1}, a mapping, where a list is needed"]),
        ({"matrix_modes": [["a"]]}, ["matrix_modes", "each entry is a text"]),
        ({"matrix_blocks": None}, ["matrix_blocks is null: give it a value"]),
    ],
)
def test_bad_ones_are_named_with_the_remedy(given, words):
    found = look(**given)
    assert [row.level for row in found] == ["missing"]
    text = rows.problems(found)[0]
    for word in words:
        assert word in text


def test_foreign_variables_with_a_common_prefix_do_not_stop_the_run():
    found = look(node_exporter_version="1.9")
    assert [row.level for row in found] == ["degraded"]


def test_options_are_read_from_the_roles(tmp_path):
    meta = tmp_path / "demo" / "meta"
    meta.mkdir(parents=True)
    (meta / "argument_specs.yml").write_text("argument_specs: {main: {options: {demo_x: {type: int}}}}\n")
    assert variables.role_options(tmp_path) == {"demo_x": {"type": "int"}}
    real = variables.role_options(Path(__file__).parents[5] / "roles")
    assert "matrix_blocks" in real


def test_the_table_shows_each_row_and_each_consequence():
    text = rows.table(
        [
            rows.Row("root", "tested", "uid 0", "uid 0"),
            rows.Row("PM QoS", "tested", "/dev/cpu_dma_latency", "absent", "degraded", "idle states spoil latencies"),
        ],
        width=100,
    )
    lines = text.splitlines()
    assert lines[1].startswith("ok")
    assert lines[2].startswith("less")
    assert lines[3].strip() == "→ idle states spoil latencies"


REAL = Path(__file__).parents[5] / "roles"
REAL_OPTIONS = variables.role_options(REAL)
REAL_ROLES = frozenset(path.name for path in REAL.iterdir())


def real(**given):
    return list(variables.check(given, REAL_OPTIONS, REAL_ROLES, "tested"))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("matrx_modes", "matrix_modes"),
        ("matrix_block", "matrix_blocks"),
        ("latencyservice_port", "latency_service_port"),
        ("latency_sevice_port", "latency_service_port"),
        ("ndoe_cpus", "node_cpus"),
        ("nod_state_dir", "node_state_dir"),
        ("host_tunning_profile", "host_tuning_profile"),
        ("batchworkload_threads", "batch_workload_threads"),
        ("report_failon", "report_fail_on"),
    ],
)
def test_a_near_miss_names_what_was_meant(name, meant):
    (row,) = real(**{name: 1})
    assert row.level == "missing"
    assert row.consequence == f"no role has a variable {name}; did you mean {meant}?"


@pytest.mark.parametrize(
    "name",
    [
        "mode_state",
        "code_state",
        "nodes_cpus",
        "nginx_port",
        "metric_limits",
        "service_port",
        "lib_install",
        "lb_subnet",
        "alb_subnet",
        "postgres_state_dir",
        "ansible_node_cpus",
        "inventory_hostname",
        "http_port",
        "blocks",
        "bandwidth",
    ],
)
def test_variables_of_others_are_left_alone(name):
    assert real(**{name: "x"}) == []


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("latency_service_port", 99999, "is 99999: allowed are whole numbers from 1 to 65535 (TCP ports)"),
        ("latency_service_port", 0, "from 1 to 65535"),
        ("latency_service_port", None, "is null: give it a value"),
        ("latency_service_page_bytes", -1, "is -1: allowed are whole numbers from 1000 to 100000000"),
        ("latency_service_slow_pages_pct", [5, 0], "entry 0, is 0: allowed are whole numbers from 1 to 1000"),
        ("latency_service_worker_processes", 0, "nginx needs one worker at least"),
        ("node_cgroup_root", "../x", "'../x': not allowed; give a path below the hierarchy"),
        ("lab_cgroup_root", "/abs", "'/abs': not allowed"),
        ("node_state_dir", "foo", "is 'foo': allowed is an absolute path"),
        ("lab_state_dir", "./x", "allowed is an absolute path"),
        ("batch_workload_cpu_request", "half", "'half': is not a quantity"),
        ("batch_workload_cpu_request", "500Mi", "has a binary suffix, which is for memory"),
        ("latency_service_cpu_request", "500Mi", "has a binary suffix"),
        ("batch_workload_memory_request", "lots", "'lots': is not a quantity"),
        ("latency_service_memory_request", "64m", "thousandth of a byte"),
        ("batch_workload_threads", 0, "is 0: allowed are whole numbers from 1 to 1024"),
        ("batch_workload_clip_size", "big", "such as 1280x720"),
        ("batch_workload_codec", "", "allowed is one word"),
        ("batch_workload_peer_port", "70000", "from 1 to 65535"),
        ("load_generator_git_timeout_s", -5, "from 1 to 3600"),
    ],
)
def test_bad_values_are_named_with_what_is_allowed(name, value, words):
    (row,) = real(**{name: value})
    assert row.level == "missing"
    assert row.consequence.startswith(name)
    assert words in row.consequence


def test_every_default_of_every_role_is_good():
    given = {name: option["default"] for name, option in REAL_OPTIONS.items() if option.get("default") is not None}
    assert real(**{name: value for name, value in given.items() if "{{" not in str(value)}) == []


def test_every_rule_is_about_a_variable_that_exists():
    assert set(values.RULES) <= set(REAL_OPTIONS)
