# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module kernel_args, run in this process on a made-up host with GRUB."""

from __future__ import annotations

import json
import os

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.colocation.testbed.plugins.modules import kernel_args
from tests.support.fake_grub import Machine

ISOLATED = {"name": "isolcpus", "value": "1-3"}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    made = Machine(tmp_path)
    monkeypatch.setattr(kernel_args, "ROOTS", made.roots)
    return made


@pytest.fixture
def run(capsys, machine):
    """Run the module with arguments, and return its result."""

    def _run(**args):
        given = {"state_dir": str(machine.root / "state"), **args}
        with patch_module_args(given), pytest.raises(SystemExit):
            kernel_args.main()
        return json.loads(capsys.readouterr().out)

    return _run


def test_predicts_sets_and_takes_away(run, machine):
    before = machine.tree()
    predicted = run(arguments=[ISOLATED], _ansible_check_mode=True, _ansible_diff=True)
    assert machine.tree() == before
    done = run(arguments=[ISOLATED], _ansible_diff=True)
    assert predicted["diff"] == done["diff"]
    assert (done["changed"], done["reboot_required"]) == (True, True)
    again = run(arguments=[ISOLATED])
    assert (again["changed"], again["reboot_required"]) == (False, True)
    assert again["arguments"][0]["configured"] == ["1-3"]
    machine.boot()
    assert run(arguments=[ISOLATED])["reboot_required"] is False
    predicted = run(state="absent", _ansible_check_mode=True)
    undone = run(state="absent")
    assert (predicted["changed"], predicted["reboot_required"]) == (undone["changed"], undone["reboot_required"])
    assert undone["reboot_required"] is True
    assert machine.tree() == before
    assert run(state="absent")["changed"] is False


def test_an_argument_that_never_ran_needs_no_boot_to_go(run):
    run(arguments=[ISOLATED])
    assert run(state="absent")["reboot_required"] is False


def test_a_host_whose_arguments_come_from_elsewhere(run, machine):
    os.unlink(machine.roots.update)
    result = run(arguments=[ISOLATED])
    assert result["msg"].startswith("kernel arguments isolcpus=1-3: there is no ")
    skipped = run(arguments=[ISOLATED], on_missing="skip")
    assert (skipped["changed"], skipped["reboot_required"]) == (False, False)
    assert [row["reboot_required"] for row in skipped["arguments"]] == [False]
    assert "set the arguments where this host's kernel is started" in skipped["unsupported"]
    assert "kernel arguments isolcpus=1-3" in str(skipped["warnings"])
    (machine.root / "proc/cmdline").write_text("isolcpus=1-3\n")
    assert run(arguments=[ISOLATED])["arguments"][0]["running"] == ["1-3"]


def test_bad_arguments_are_told_at_once(run, machine):
    before = machine.tree()
    result = run(arguments=[{"name": "isolcpus", "value": "0-3"}, {"name": "quiet", "value": False}])
    assert "arguments[0]: isolcpus=0-3: leaves no CPU" in result["msg"]
    assert "arguments[1]: the value False is a bool" in result["msg"]
    assert machine.tree() == before


def test_what_others_add_is_warned_about(run):
    result = run(arguments=[{"name": "quiet", "state": "absent"}])
    assert "comes from elsewhere" in str(result["warnings"])
    assert result["arguments"][0]["reason"]
