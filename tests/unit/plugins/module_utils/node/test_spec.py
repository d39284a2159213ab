# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Specifications and pid files."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.kernel.processes import Identity
from ansible_collections.colocation.testbed.plugins.module_utils.node import spec as specs

TEXT = st.text(max_size=20)


@given(st.lists(TEXT, min_size=1, max_size=4), st.dictionaries(TEXT, TEXT, max_size=3), st.none() | st.floats(0, 1e6))
def test_a_specification_survives_the_disk(argv, env, limit_s):
    spec = specs.ProcessSpec("web", tuple(argv), "/state", env=env, max_duration_s=limit_s)
    again = specs.from_dict(json.loads(spec.to_json()), "web.json")
    assert again == spec
    assert again.digest == spec.digest


def test_every_change_changes_the_digest():
    base = specs.ProcessSpec("web", ("a",), "/state")
    others = [
        specs.ProcessSpec("web", ("b",), "/state"),
        specs.ProcessSpec("web", ("a",), "/state", cpus="0"),
        specs.ProcessSpec("web", ("a",), "/state", group="service"),
        specs.ProcessSpec("web", ("a",), "/state", files={"/etc/x": "1"}),
    ]
    assert len({base.digest, *(other.digest for other in others)}) == 5


def test_group_path():
    assert specs.ProcessSpec("a", ("x",), "/s", group="service", cgroup_root="r/h").group_path == "r/h/service"
    assert specs.ProcessSpec("a", ("x",), "/s", group="service").group_path == "service"
    assert specs.ProcessSpec("a", ("x",), "/s", cgroup_root="r").group_path == ""


@pytest.mark.parametrize("name", ["", "../x", "a/b", "-x", "Nginx", "a b", "a" * 65, "x\n"])
def test_names_that_are_not_safe_are_refused(name):
    with pytest.raises(specs.SpecError, match="not allowed"):
        specs.check_name(name)


def test_signals():
    assert specs.signal_number("QUIT") == specs.signal_number("sigquit") == 3
    with pytest.raises(specs.SpecError, match="unknown"):
        specs.signal_number("SIGNOTHING")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "not a process specification"),
        ({"name": "a"}, "argv"),
        ({"name": "a", "argv": [], "state_dir": "/s"}, "argv is empty"),
        ({"name": "a", "argv": ["x"], "state_dir": "/s", "colour": 1}, "colour"),
        ({"name": "a", "argv": ["x"], "state_dir": "/s", "stop_signal": "NO"}, "signal 'NO'"),
    ],
)
def test_damaged_specifications_are_named(value, text):
    with pytest.raises(specs.SpecError, match=text):
        specs.from_dict(value, "/s/a.json")


def test_pid_file_survives_the_disk_and_damage_is_none(tmp_path):
    path = tmp_path / "a.pid"
    assert specs.read_pid_file(str(path)) is None
    for child in (Identity(1, 2, "boot"), None):
        content = specs.PidFile("running", child, Identity(3, 4, "boot"), "digest", "")
        path.write_text(json.dumps(content.to_dict()))
        assert specs.read_pid_file(str(path)) == content
    for damaged in ("", "{}", '{"pid": 1}', '"x"'):
        path.write_text(damaged)
        assert specs.read_pid_file(str(path)) is None
