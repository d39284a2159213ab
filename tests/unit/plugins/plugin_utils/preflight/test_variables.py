"""Role variables that Ansible itself would ignore or leave as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.preflight import rows, variables

OPTIONS = {
    "matrix_blocks": {"type": "int"},
    "matrix_hold_pm_qos": {"type": "bool"},
    "matrix_modes": {"type": "list"},
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
        ({"matrix_blocks": "many"}, ["'many'", "int"]),
        ({"matrix_modes": "baseline"}, ["'baseline'", "list"]),
        ({"matrix_load_kind": "open"}, ["'open'", "open_loop, closed_loop"]),
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
