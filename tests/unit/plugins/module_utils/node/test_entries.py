# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From module parameters to specifications."""

from __future__ import annotations

import hashlib
import json

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cpu_list
from ansible_collections.colocation.testbed.plugins.module_utils.node import control, entries
from ansible_collections.colocation.testbed.plugins.module_utils.node import spec as specs

DEFAULTS = {
    "state": "started",
    "argv": None,
    "tool": None,
    "spec": None,
    "env": {},
    "directory": "/",
    "group": None,
    "cpus": None,
    "outputs": [],
    "config_files": [],
    "ready": None,
    "ready_timeout_s": 20.0,
    "port_setting": None,
    "stop_signal": "TERM",
    "stop_timeout_s": 10.0,
    "max_duration_s": None,
    "wait": False,
    "timeout_s": 3600.0,
}


@pytest.fixture
def host(tmp_path):
    manager = control.Manager("supervised", str(tmp_path), "/usr/bin/python3")
    return entries.Host(manager, "colocation-testbed", "0")


def build(host, **params):
    return entries.build({**DEFAULTS, "name": "web", **params}, host)


def test_a_program(host):
    entry = build(host, argv=["nginx", "-g", "daemon off;"], group="service", cpus="0", env={"A": 1})
    assert entry.spec.argv == ("nginx", "-g", "daemon off;")
    assert entry.spec.group_path == "colocation-testbed/service"
    assert entry.spec.env == {"A": "1"}
    assert (entry.spec.cpus, entry.spec.supervisor_cpus) == ("0", "0")
    assert entry.tool_spec is None


def test_a_tool_command(host, tmp_path):
    (tmp_path / "node.pyz").write_bytes(b"tool")
    entry = build(host, tool="sample", spec={"output": "/x/samples.jsonl"}, ready={"file": "/x/samples.jsonl"})
    spec_path = str(tmp_path / "processes" / "web.tool.json")
    tool = str(tmp_path / "node.pyz")
    assert entry.spec.argv == ("/usr/bin/python3", "-I", "-S", tool, "sample", "--spec", spec_path)
    assert json.loads(entry.tool_spec) == {"output": "/x/samples.jsonl"}
    assert entry.outputs == ("/x/samples.jsonl",)
    assert build(host, argv=["ffmpeg"], outputs=["/x/progress.txt"]).outputs == ("/x/progress.txt",)
    assert entry.spec.files[tool] == hashlib.sha256(b"tool").hexdigest()
    changed = build(host, tool="sample", spec={"output": "/x/other"})
    assert changed.spec.digest != entry.spec.digest


def test_a_changed_configuration_file_changes_the_digest(host, tmp_path):
    config = tmp_path / "nginx.conf"
    config.write_text("a")
    before = build(host, argv=["nginx"], config_files=[str(config)]).spec.digest
    config.write_text("b")
    assert build(host, argv=["nginx"], config_files=[str(config)]).spec.digest != before


def test_a_missing_configuration_file_is_an_error_except_in_check_mode(host, tmp_path):
    missing = str(tmp_path / "none.conf")
    with pytest.raises(entries.EntryError, match=r"process web: config_files: .*none\.conf"):
        build(host, argv=["nginx"], config_files=[missing])
    checking = entries.Host(host.manager, host.cgroup_root, host.housekeeping_cpus, check_mode=True)
    assert build(checking, argv=["nginx"], config_files=[missing]).spec is not None


def test_stopping_needs_nothing_but_the_name(host):
    for state in ("stopped", "absent", "ended"):
        entry = build(host, state=state)
        assert entry.spec is None
        assert entry.wait == (state == "ended")


@pytest.mark.parametrize(
    ("params", "error", "text"),
    [
        ({}, entries.EntryError, "either argv or tool"),
        ({"argv": ["a"], "tool": "sample", "spec": {"x": 1}}, entries.EntryError, "either argv or tool"),
        ({"tool": "sample"}, entries.EntryError, "needs spec"),
        ({"argv": ["a"], "cpus": "99"}, cpu_list.CpuListError, "process web: cpus: CPU 99"),
        ({"argv": ["a"], "stop_signal": "NO"}, specs.SpecError, "signal 'NO'"),
        ({"argv": ["a"], "name": "../x"}, specs.SpecError, "not allowed"),
    ],
)
def test_what_is_not_allowed_is_one_sentence(host, params, error, text):
    with pytest.raises(error, match=text):
        build(host, **params)
