# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd is asked for: a reload of all units writes the values of every control group again."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands, journal
from ansible_collections.colocation.testbed.plugins.module_utils.node import control, unit
from ansible_collections.colocation.testbed.plugins.module_utils.node import spec as specs

NAME = "colocation-testbed-worker.service"


class Systemctl:
    """Takes the place of systemctl: remembers what was asked, and says whether units have changed."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.needs_reload = "no"

    def run(self, argv, **_options):
        self.asked.append(argv[1])
        return commands.Result(tuple(argv), 0, f"{self.needs_reload}\n" if argv[1] == "show" else "", "")


@pytest.fixture
def systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemctl:
    found = Systemctl()
    monkeypatch.setattr(commands, "run", found.run)
    monkeypatch.setattr(unit, "DIRECTORY", str(tmp_path / "units"))
    monkeypatch.setattr(control, "_START_DEADLINE_S", 0.0)
    (tmp_path / "units").mkdir()
    return found


@pytest.mark.parametrize(
    ("needs_reload", "asked"),
    [("no", ["show", "start"]), ("yes", ["show", "daemon-reload", "start"])],
)
def test_units_are_read_again_only_when_one_has_changed(systemctl, tmp_path, needs_reload, asked) -> None:
    systemctl.needs_reload = needs_reload
    manager = control.Manager("systemd", str(tmp_path), "/usr/bin/python3")
    (tmp_path / "node.pyz").write_text("")
    spec = specs.ProcessSpec(name="worker", argv=("sleep", "1"), state_dir=str(tmp_path))
    Path(spec.paths.spec).parent.mkdir()
    with pytest.raises(control.ControlError, match=f"unit {NAME} wrote no pid file"):
        control.start(manager, spec)
    assert systemctl.asked == asked
    assert "ExecStart=" in (tmp_path / "units" / NAME).read_text()


def test_removing_a_unit_does_not_read_the_others_again(systemctl, tmp_path) -> None:
    manager = control.Manager("systemd", str(tmp_path), "/usr/bin/python3")
    (tmp_path / "units" / NAME).write_text("[Service]\n")
    control.stop(manager, specs.Paths(str(tmp_path), "worker"), journal.Journal(str(tmp_path / "journal.json")))
    assert systemctl.asked == ["show"]
    assert not (tmp_path / "units" / NAME).exists()
