# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mounting resctrl with a made-up host: units, fstab, other options, and taking back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.journal import Entry, Journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import resctrl_mount, resctrl_undo
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl import ResctrlError
from tests.support.resctrl_dump import BOOT_ID, Dumped


class Host:
    """A host whose mount, umount and systemctl only change a made-up table of mounts and a set of enabled units."""

    def __init__(self, directory: Path, systemd: bool) -> None:
        self.directory = directory
        self.point = directory / "resctrl"
        self.dumped = Dumped(directory)
        self.dumped.state()
        self.table = self.dumped.proc / "self/mountinfo"
        self.mounted_line = self.table.read_text()
        self.table.write_text("")
        self.units = directory / "units"
        self.units.mkdir()
        (directory / "systemd").mkdir() if systemd else None
        self.enabled: set[str] = set()
        self.calls: list[list[str]] = []
        self.broken = False
        self.fstab = directory / "fstab"
        self.book = Journal(str(directory / "state/journal.json"))
        self.places = resctrl_mount.Places(
            proc_root=str(self.dumped.proc),
            fstab=str(self.fstab),
            unit_directory=str(self.units),
            systemd_running=str(directory / "systemd"),
            run=self.run,
        )

    def run(self, argv: list[str], check: bool = True, **_more: Any) -> commands.Result:
        self.calls.append(argv)
        output = ""
        if argv[0] == "mount":
            if self.broken:
                raise commands.CommandError("mount: ended with status 32: unknown filesystem type 'resctrl'")
            options = [word for word in argv[4].split(",") if word in resctrl_mount.OPTIONS]
            self.table.write_text(self.mounted_line.replace(" rw\n", f" {','.join(['rw', *options])}\n"))
        elif argv[0] == "umount":
            self.table.write_text("")
        elif argv[1] in ("enable", "disable"):
            (self.enabled.add if argv[1] == "enable" else self.enabled.discard)(argv[-1])
        elif argv[1] == "is-enabled":
            output = "enabled\n" if argv[2] in self.enabled else "disabled\n"
        return commands.Result(tuple(argv), 0, output, "")

    def mounter(self, *options: str, point: Path | None = None) -> resctrl_mount.Mounter:
        return resctrl_mount.Mounter(str(point or self.point), options, self.book, "test", self.places)

    def mount(self, *options: str, persist: bool = True) -> list[str]:
        tasks = self.mounter(*options).mounting(persist)
        for task in tasks:
            task.do()
        return [task.text for task in tasks]

    def unmount(self) -> list[str]:
        tasks = self.mounter().unmounting()
        for task in tasks:
            task.do()
        return [task.text for task in tasks]


@pytest.fixture
def plain(tmp_path: Path) -> Host:
    return Host(tmp_path, systemd=False)


@pytest.fixture
def systemd(tmp_path: Path) -> Host:
    return Host(tmp_path, systemd=True)


def test_with_fstab_and_back_to_the_same_bytes(plain: Host) -> None:
    plain.fstab.write_bytes(b"# <file system>\n/dev/a / ext4 defaults 0 1")
    plain.fstab.chmod(0o640)
    assert len(plain.mount("mba_MBps")) == 2
    line = f"resctrl {plain.point} resctrl nosuid,nodev,noexec,nofail,mba_MBps 0 0"
    assert plain.fstab.read_text().splitlines()[1:] == ["/dev/a / ext4 defaults 0 1", line]
    assert plain.calls[0] == [
        "mount",
        "-t",
        "resctrl",
        "-o",
        "nosuid,nodev,noexec,mba_MBps",
        "resctrl",
        str(plain.point),
    ]
    assert plain.mount("mba_MBps") == []
    assert len(plain.unmount()) == 2
    assert plain.fstab.read_bytes() == b"# <file system>\n/dev/a / ext4 defaults 0 1"
    assert plain.fstab.stat().st_mode & 0o777 == 0o640
    assert plain.table.read_text() == ""
    assert [entry.kind for entry in plain.book.entries()] == ["directory"]
    assert plain.unmount() == []


def test_lines_that_others_add_to_fstab_stay(plain: Host) -> None:
    plain.mount()
    plain.fstab.write_text(plain.fstab.read_text() + "tmpfs /mnt tmpfs size=1k 0 0\n")
    plain.unmount()
    assert plain.fstab.read_text() == "tmpfs /mnt tmpfs size=1k 0 0\n"


def test_an_fstab_that_we_made_goes(plain: Host) -> None:
    plain.mount()
    plain.unmount()
    assert not plain.fstab.exists()


def test_fstab_with_other_options_is_named(plain: Host) -> None:
    plain.fstab.write_text(f"none {plain.point} resctrl cdp 0 0\n")
    with pytest.raises(ResctrlError, match="with the options cdp, but no options are asked for"):
        plain.mount()
    assert plain.calls == []
    assert plain.mount("cdp") == [f"mounted on {plain.point} with the options cdp"]


def test_what_fstab_mounts_needs_no_unit(systemd: Host) -> None:
    systemd.fstab.write_text(f"resctrl {systemd.point} resctrl defaults 0 0\n")
    assert systemd.mount() == [f"mounted on {systemd.point} with no options"]
    assert list(systemd.units.iterdir()) == []


def test_with_systemd(systemd: Host) -> None:
    assert len(systemd.mount("cdp")) == 3
    (unit,) = systemd.units.iterdir()
    assert unit.name == f"{str(systemd.point).strip('/').replace('-', chr(92) + 'x2d').replace('/', '-')}.mount"
    text = unit.read_text()
    assert f"Where={systemd.point}\n" in text
    assert "Options=nosuid,nodev,noexec,cdp\n" in text
    assert systemd.enabled == {unit.name}
    assert ["systemctl", "daemon-reload"] not in systemd.calls, "it would write the values of slices anew"
    assert not systemd.fstab.exists()
    assert systemd.mount("cdp") == []
    systemd.unmount()
    assert list(systemd.units.iterdir()) == []
    assert systemd.enabled == set()
    assert systemd.table.read_text() == ""


def test_the_usual_units_name(plain: Host) -> None:
    assert plain.mounter(point=Path("/sys/fs/resctrl")).unit_name() == "sys-fs-resctrl.mount"
    assert plain.mounter(point=Path("/mnt/a b")).unit_name() == "mnt-a\\x20b.mount"


def test_mounted_by_others_stays(plain: Host) -> None:
    plain.table.write_text(plain.mounted_line)
    assert plain.mount(persist=False) == []
    assert plain.unmount() == []
    assert plain.table.read_text() == plain.mounted_line


def test_mounted_with_other_options_is_an_error_that_says_both(plain: Host) -> None:
    plain.table.write_text(plain.mounted_line.replace(" rw\n", " rw,mba_MBps\n"))
    with pytest.raises(ResctrlError, match="mounted with the options mba_MBps, but the options cdp are asked for"):
        plain.mount("cdp")


def test_a_mount_with_groups_of_others_is_not_unmounted(plain: Host) -> None:
    plain.mount(persist=False)
    plain.dumped.tree.mkdir("/theirs")
    plain.dumped.state()
    with pytest.raises(ResctrlError, match="group theirs in it, made by others"):
        plain.unmount()
    assert plain.table.read_text() != ""


def test_a_mount_that_fails_is_not_in_the_journal(plain: Host) -> None:
    plain.broken = True
    with pytest.raises(ResctrlError, match="unknown filesystem type 'resctrl'; look at what resctrl_info says"):
        plain.mount()
    assert [entry.kind for entry in plain.book.entries()] == ["directory"]


def test_no_directory_to_mount_on(plain: Host) -> None:
    with pytest.raises(ResctrlError, match="there is no such directory"):
        plain.mounter(point=plain.directory / "none").mounting(persist=True)


def entry(kind: str, target: str, previous: Any) -> Entry:
    return Entry(1, "", "test", kind, target, previous, "")


def test_undoing_what_is_not_there_or_not_ours(plain: Host) -> None:
    proc = str(plain.dumped.proc)
    point = str(plain.point)
    outcomes = [
        resctrl_undo.undo_mount(entry("mount", point, {"fs_type": "resctrl"}), False, proc),
        resctrl_undo.undo_mount(entry("mount", "fstab:x", {"path": str(plain.fstab), "appended": "x\n"}), False, proc),
        resctrl_undo.undo_resctrl(entry("resctrl", f"{point}/a", {"boot_id": "earlier", "made": True}), False, proc),
        resctrl_undo.undo_resctrl(entry("resctrl", f"{point}/a", {"boot_id": BOOT_ID, "made": True}), False, proc),
        resctrl_undo.undo_resctrl(entry("resctrl", point, {"boot_id": BOOT_ID, "made": True}), False, proc),
        resctrl_undo.undo_resctrl(
            entry("resctrl", f"{point}/tasks:7:9", {"boot_id": BOOT_ID, "group": point}), False, proc
        ),
    ]
    assert [item.result for item in outcomes] == ["undone"] * 6
    words = ["not mounted", "not there any more", "restarted", "not there", "not mounted any more", "has ended"]
    for outcome, word in zip(outcomes, words, strict=True):
        assert word in outcome.text


@pytest.mark.parametrize(
    ("target", "previous"),
    [
        ("resctrl", None),
        ("resctrl", {"lines": {}}),
        ("resctrl/tasks:x:1", {"boot_id": BOOT_ID, "group": "x"}),
        ("resctrl/tasks:1:1", {"boot_id": BOOT_ID}),
    ],
)
def test_damaged_entries_are_failures(plain: Host, target: str, previous: Any) -> None:
    plain.table.write_text(plain.mounted_line)
    made = entry("resctrl", str(plain.directory / target), previous)
    assert resctrl_undo.undo_resctrl(made, False, str(plain.dumped.proc)).result == "failed"


def test_another_file_system_in_its_place_is_not_unmounted(plain: Host) -> None:
    plain.table.write_text(plain.mounted_line)
    made = entry("mount", str(plain.point), {"fs_type": "tmpfs"})
    assert resctrl_undo.undo_mount(made, False, str(plain.dumped.proc)).result == "failed"
    made = entry("mount", "fstab:x", {"path": 1})
    assert resctrl_undo.undo_mount(made, False, str(plain.dumped.proc)).result == "failed"
