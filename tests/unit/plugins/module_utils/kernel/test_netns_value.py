# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that belong to a network namespace: which one, and how to reach it from elsewhere."""

from __future__ import annotations

import os

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands, journal, undo
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import netns_value


@pytest.fixture
def place(tmp_path):
    """Make /proc and /run/netns, in which files of equal inode are one namespace."""
    proc, run = tmp_path / "proc", tmp_path / "netns"
    for name in ("1/ns", "self/ns", "77/ns", "sys/kernel/random"):
        (proc / name).mkdir(parents=True)
    run.mkdir()
    (proc / "1/ns/net").touch()
    os.link(proc / "1/ns/net", proc / "self/ns/net")
    (run / "lab").touch()
    (proc / "77/ns/net").touch()
    (proc / "sys/kernel/random/boot_id").write_text("boot-1\n")
    return tmp_path, str(proc), str(run)


def enter(place, source):
    root, proc, _run = place
    os.unlink(f"{proc}/self/ns/net")
    os.link(root / source, f"{proc}/self/ns/net")


def test_the_machine_itself_is_no_namespace(place):
    _root, proc, run = place
    assert netns_value.current(proc, run) is None
    assert netns_value.current("/no/proc", run) is None


def test_a_named_one_and_one_without_name(place):
    _root, proc, run = place
    enter(place, "netns/lab")
    space = netns_value.current(proc, run)
    assert (space.name, space.boot_id, space.inode) == ("lab", "boot-1", os.stat(f"{run}/lab").st_ino)
    enter(place, "proc/77/ns/net")
    assert netns_value.current(proc, run).name == ""


def test_where_the_namespace_of_process_1_is_not_shown(place):
    _root, proc, run = place
    os.unlink(f"{proc}/1/ns/net")
    assert netns_value.current(proc, run) is None
    enter(place, "netns/lab")
    assert netns_value.current(proc, run).name == "lab"


def test_how_each_is_reached(place):
    root, proc, run = place
    enter(place, "netns/lab")
    lab = netns_value.current(proc, run)
    assert netns_value.entering(lab, proc, run) == ()
    enter(place, "proc/77/ns/net")
    unnamed = netns_value.current(proc, run)
    enter(place, "proc/1/ns/net")
    assert netns_value.entering(lab, proc, run) == ("nsenter", f"--net={run}/lab")
    assert netns_value.entering(unnamed, proc, run) == ("nsenter", f"--net={proc}/77/ns/net")
    os.unlink(f"{run}/lab")
    os.unlink(f"{proc}/77/ns/net")
    assert netns_value.entering(lab, proc, run) is None
    assert netns_value.entering(unnamed, proc, run) is None
    (root / "proc/sys/kernel/random/boot_id").write_text("boot-2\n")
    assert netns_value.entering(netns_value.Space(os.stat(f"{proc}/1/ns/net").st_ino, "boot-1", ""), proc, run) is None


def test_what_is_recorded_is_read_again():
    space = netns_value.Space(7, "boot", "lab")
    assert netns_value.parse(netns_value.recorded("4096", space)) == ("4096", space)
    assert [netns_value.parse(raw) for raw in ("4096", None, {}, {"text": "1"}, {"text": "1", "netns": {}})] == [
        None
    ] * 5


class Namespace:
    """cat and sh in a namespace."""

    def __init__(self, text, deaf=False):
        self.text = text
        self.deaf = deaf
        self.calls = []

    def __call__(self, argv, input_text=None, **_options):
        self.calls.append(argv)
        shown = f"{self.text}\n"
        if input_text is not None:
            self.text = self.text if self.deaf else input_text
            shown += f"{self.text}\n"
        return commands.Result(tuple(argv), 0, shown, "")


def _undone(place, namespace, check=False):
    _root, proc, run = place
    enter(place, "netns/lab")
    previous = netns_value.recorded("128", netns_value.current(proc, run))
    enter(place, "proc/1/ns/net")
    entry = journal.Entry(1, "", "host_tuning", "value", "/proc/sys/net/core/somaxconn", previous, "4096")
    return undo.Undo(proc_root=proc, netns_root=run, run=namespace).handlers()["value"](entry, check)


def test_undo_enters_the_namespace(place):
    namespace = Namespace("4096")
    outcome = _undone(place, namespace)
    assert (outcome.result, namespace.text) == ("undone", "128")
    assert "4096 put back to 128 in network namespace lab" in outcome.text
    assert all(call[0] == "nsenter" for call in namespace.calls)


def test_undo_predicts_and_reports(place):
    namespace = Namespace("4096")
    assert _undone(place, namespace, check=True).result == "undone"
    assert namespace.text == "4096"
    assert _undone(place, Namespace("4096", deaf=True)).text.endswith("wrote 128, read 4096; set it by hand")


def test_undo_of_a_namespace_that_is_gone(place):
    _root, proc, run = place
    previous = netns_value.recorded("128", netns_value.Space(1, "boot-0", "lab"))
    entry = journal.Entry(1, "", "host_tuning", "value", "/proc/sys/net/core/somaxconn", previous, "4096")
    outcome = undo.Undo(proc_root=proc, netns_root=run, run=Namespace("")).handlers()["value"](entry, False)
    assert outcome.text == "/proc/sys/net/core/somaxconn: is gone with its network namespace lab"
