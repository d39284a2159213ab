# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module node_tool: compare by hash, install, take away."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.module_utils.journal import Journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import processes
from ansible_collections.colocation.testbed.plugins.module_utils.node import spec as specs
from ansible_collections.colocation.testbed.plugins.modules import node_tool
from ansible_collections.colocation.testbed.plugins.plugin_utils import node_bundle


@pytest.fixture(scope="module")
def bundle():
    return node_bundle.build(ROOT)


@pytest.fixture
def state(tmp_path):
    return tmp_path / "a" / "state"


@pytest.fixture
def run(capsys, state, bundle, tmp_path):
    def _run(**more):
        arguments = {"state_dir": str(state), "node_python": sys.executable, "sha256": bundle.sha256, **more}
        with patch_module_args(arguments), pytest.raises(SystemExit):
            node_tool.main()
        return json.loads(capsys.readouterr().out)

    return _run


@pytest.fixture
def src(tmp_path, bundle):
    path = tmp_path / "transferred"
    path.write_bytes(bundle.content)
    return str(path)


def test_asks_for_the_transfer_then_installs_then_leaves_alone(run, src, state, bundle):
    first = run()
    assert (first["changed"], first["needs_transfer"], first["sha256"]) == (True, True, None)
    assert not state.exists()
    done = run(src=src)
    assert (done["changed"], done["needs_transfer"], done["sha256"]) == (True, False, bundle.sha256)
    assert done["python"] == sys.version.split()[0]
    assert state.stat().st_mode & 0o777 == 0o755
    again = run()
    assert (again["changed"], again["needs_transfer"]) == (False, False)
    kinds = [(entry.kind, entry.target) for entry in Journal(str(state / "journal.json")).entries()]
    assert kinds == [("directory", str(state.parent)), ("directory", str(state)), ("file", str(state / "node.pyz"))]


def test_check_mode_and_diff(run, state, bundle):
    result = run(_ansible_check_mode=True, _ansible_diff=True)
    assert result["changed"]
    assert result["diff"] == {"before": "absent\n", "after": f"{bundle.sha256}\n"}
    assert not state.exists()


def test_a_new_version_keeps_what_the_journal_says(run, src, state, tmp_path):
    run(src=src)
    other = tmp_path / "other"
    other.write_bytes(Path(src).read_bytes() + b"\n")
    digest = hashlib.sha256(other.read_bytes()).hexdigest()
    assert run(src=str(other), sha256=digest)["sha256"] == digest
    files = [entry for entry in Journal(str(state / "journal.json")).entries() if entry.kind == "file"]
    assert [entry.previous for entry in files] == [None]


def test_absent_removes_all_of_it(run, src, state):
    run(src=src)
    (state / "processes").mkdir()
    (state / "processes" / "a.json").write_text("{}")
    assert run(state="absent", sha256=None)["changed"]
    assert not state.parent.exists()
    assert not run(state="absent", sha256=None)["changed"]


def test_absent_refuses_while_a_process_runs(run, src, state):
    run(src=src)
    (state / "processes").mkdir()
    own = processes.identify(os.getpid())
    content = specs.PidFile("running", own, own, "", "")
    (state / "processes" / "web.pid").write_text(json.dumps(content.to_dict()))
    assert "web still runs under it" in run(state="absent", sha256=None)["msg"]
    assert (state / "node.pyz").exists()


def test_a_directory_that_was_there_before_stays(run, src, state):
    state.mkdir(parents=True)
    (state / "of-the-user").touch()
    run(src=src)
    run(state="absent", sha256=None)
    assert (state / "of-the-user").exists()
    assert not (state / "node.pyz").exists()


def test_a_damaged_transfer_is_refused(run, tmp_path, state):
    path = tmp_path / "damaged"
    path.write_bytes(b"x")
    assert "is not what the controller sent" in run(src=str(path))["msg"]
    assert not (state / "node.pyz").exists()


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"node_python": "/none/python"}, "set node_python to a Python 3.9"),
        ({"cpus": "4000"}, "node_cpus: CPU 4000 asked for"),
        ({"housekeeping_cpus": "x"}, "node_housekeeping_cpus: "),
        ({"cgroup_root": "../x"}, "cgroup name '../x': not allowed"),
    ],
)
def test_settings_that_cannot_work_are_one_sentence(run, src, more, sentence):
    assert sentence in run(src=src, **more)["msg"]


def test_the_manager_fits_the_host(tmp_path):
    for pid in ("1", "self"):
        (tmp_path / "proc" / pid / "ns").mkdir(parents=True)
        (tmp_path / "proc" / pid / "ns" / "net").touch()
    run_root, proc_root = str(tmp_path / "run"), str(tmp_path / "proc")
    assert node_tool.choose_manager("auto", run_root, proc_root) == "supervised"
    (tmp_path / "run" / "systemd" / "system").mkdir(parents=True)
    assert node_tool.choose_manager("auto", run_root, proc_root) == "supervised"
    (tmp_path / "proc" / "self" / "ns" / "net").unlink()
    os.link(tmp_path / "proc" / "1" / "ns" / "net", tmp_path / "proc" / "self" / "ns" / "net")
    assert node_tool.choose_manager("auto", run_root, proc_root) == "systemd"
    assert node_tool.choose_manager("supervised", run_root, proc_root) == "supervised"
