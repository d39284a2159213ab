# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module host_tuning, run in this process on a made-up host."""

from __future__ import annotations

import errno
import json

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.modules import host_tuning
from tests.support.fake_host import FakeHost

GOVERNOR = {"kind": "governor", "value": "performance", "cpus": "0"}
SWAPPINESS = {"kind": "sysctl", "name": "vm.swappiness", "value": 10, "persist": True}


@pytest.fixture
def host(tmp_path, monkeypatch):
    made = FakeHost(tmp_path)
    monkeypatch.setattr(host_tuning, "ROOTS", made.roots)
    return made


@pytest.fixture
def run(capsys, tmp_path, host):
    """Run the module with arguments, and return its result."""

    def _run(**args):
        with patch_module_args({"state_dir": str(tmp_path / "state"), **args}), pytest.raises(SystemExit):
            host_tuning.main()
        return json.loads(capsys.readouterr().out)

    return _run


def test_predicts_changes_and_puts_back(run, host):
    before = host.everything()
    wanted = {"settings": [GOVERNOR, SWAPPINESS], "_ansible_diff": True}
    predicted = run(**wanted, _ansible_check_mode=True)
    assert host.everything() == before
    done = run(**wanted)
    assert predicted["diff"] == done["diff"]
    assert predicted["settings"] == done["settings"]
    assert [row["result"] for row in done["settings"]] == ["changed", "changed"]
    assert done["settings"][1]["persisted"]["wanted"] == "10"
    assert done["diff"][1]["after"].endswith("vm.swappiness = 10\n")
    again = run(**wanted)
    assert (again["changed"], [row["result"] for row in again["settings"]]) == (False, ["same", "same"])
    assert again["settings"][1]["persisted"]["before"] == "10"
    shown = run(state="absent", _ansible_check_mode=True)
    undone = run(state="absent")
    assert (shown["changed"], shown["undone"]) == (undone["changed"], undone["undone"])
    assert run(state="absent")["changed"] is False
    assert {key: text.strip() for key, text in host.everything().items()} == {
        key: text.strip() for key, text in before.items()
    }


def test_what_is_missing_and_what_is_not_kept_is_warned_about(run, host):
    missing = {"kind": "sysctl", "name": "vm.nothing", "value": 1, "on_missing": "skip"}
    result = run(settings=[missing, {"kind": "rps", "name": "eth0", "value": "1", "persist": True}])
    rows = result["settings"]
    assert [row["result"] for row in rows] == ["missing", "changed", "changed"]
    assert rows[0]["path"] is None
    warnings = " ".join(str(warning) for warning in result["warnings"])
    assert "settings[0] sysctl vm.nothing: skipped, this kernel has no" in warnings
    assert "settings[1] rps eth0: not kept for the next boot" in warnings


def test_all_that_is_wrong_is_told_before_anything_changes(run, host, tmp_path):
    before = host.everything()
    bad = [GOVERNOR, {**SWAPPINESS, "value": True}, {"kind": "turbo", "value": "on"}]
    result = run(settings=bad)
    assert result["failed"] is True
    assert "settings[1] sysctl vm.swappiness: the value is the boolean true" in result["msg"]
    assert "settings[2] turbo: 'on' is not one of" in result["msg"]
    assert host.everything() == before
    assert not (tmp_path / "state").exists()


def test_what_cannot_be_undone_is_told_and_stays(run, tmp_path):
    run(settings=[SWAPPINESS])
    path = tmp_path / "state/journal.json"
    path.write_text(path.read_text().replace('"previous": "60"', '"previous": 60'))
    result = run(state="absent")
    assert "1 of 2 changes could not be undone" in result["msg"]
    assert "its previous value was not recorded" in result["msg"]
    assert "vm/swappiness" in path.read_text()


def test_a_corrupt_journal_stops_everything(run, host, tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state/journal.json").write_text("{")
    before = host.everything()
    assert "is not JSON" in run(settings=[GOVERNOR])["msg"]
    assert "is not JSON" in run(state="absent")["msg"]
    assert host.everything() == before


def test_an_interrupt_that_refuses_does_not_count_as_changed(run, host, monkeypatch):
    real = files.write_kernel

    def write(path, text):
        if path.endswith("irq/25/smp_affinity_list"):
            raise files.FilesError(path) from OSError(errno.EIO, "Input/output error")
        real(path, text)

    monkeypatch.setattr(files, "write_kernel", write)
    wanted = {"settings": [{"kind": "irq_affinity", "name": "virtio*", "value": "0"}]}
    first, second = run(**wanted), run(**wanted)
    assert (first["changed"], second["changed"]) == (True, False)
    assert [row["result"] for row in second["settings"]] == ["same", "refused"]
