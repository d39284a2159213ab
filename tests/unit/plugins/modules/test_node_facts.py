# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module node_facts on this machine."""

from __future__ import annotations

import json

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args

from ansible_collections.colocation.testbed.plugins.modules import node_facts


@pytest.fixture
def run(capsys):
    def _run(**arguments):
        with patch_module_args(arguments), pytest.raises(SystemExit):
            node_facts.main()
        return json.loads(capsys.readouterr().out)

    return _run


def test_every_documented_key_is_returned_and_no_other(run):
    documented = set(yaml.safe_load(node_facts.RETURN))
    found = run(programs={"shell": ["sh", "-c", "echo 1.2"]}, shaping=True, _ansible_check_mode=True)
    # A machine that tests run on may have no route to anywhere.
    assert set(found) - {"changed", "invocation", "warnings"} == documented - {"route_device"}
    assert set(found["shaping"]) == {"bpf_file_system", "cgroup2", "clsact"}
    assert found["changed"] is False
    assert found["programs"]["shell"]["version"] == "1.2"
    assert found["programs"]["node_python"]


def test_what_was_not_asked_for_is_not_told(run):
    assert not {"shaping", "route_device"} & set(run())


def test_a_route_to_this_host_itself_is_no_link(run):
    assert "route to 127.0.0.1: is an address of this host itself" in run(route_to="127.0.0.1")["msg"]


@pytest.mark.parametrize("argv", ["nginx -v", [], None])
def test_a_program_needs_an_argv(run, argv):
    assert "is not an argv; write a list" in run(programs={"nginx": argv})["msg"]
