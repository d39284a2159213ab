# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GRUB's drop-in and configuration on a made-up host whose update-grub is a script of a few lines."""

from __future__ import annotations

import os

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import own_changes
from ansible_collections.colocation.testbed.plugins.module_utils.boot import grub, kernel_args
from ansible_collections.colocation.testbed.plugins.module_utils.boot.cmdline import CmdlineError
from ansible_collections.colocation.testbed.plugins.module_utils.boot.grub import GrubError
from tests.support.fake_grub import Machine


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


ISOLATED = {"name": "isolcpus", "value": "1-3"}
RDT = {"name": "rdt", "value": "l3cat"}


def test_from_nothing_through_a_boot_and_back(machine):
    before = machine.tree()
    made = machine.apply(ISOLATED, {"name": "threadirqs"})
    assert (made.changed, made.reboot, machine.runs()) == (True, True, 2)
    text = (machine.root / "etc/default/grub.d/90-colocation-testbed.cfg").read_text()
    assert text.endswith('GRUB_CMDLINE_LINUX_DEFAULT="${GRUB_CMDLINE_LINUX_DEFAULT} isolcpus=1-3 threadirqs"\n')
    again = machine.apply(ISOLATED, {"name": "threadirqs"})
    assert (again.changed, again.reboot, machine.runs()) == (False, True, 2)
    machine.boot()
    assert machine.plan(ISOLATED, {"name": "threadirqs"}).reboot is False
    machine.undo()
    assert machine.tree() == before
    assert machine.runs() == 3
    assert machine.plan(ISOLATED).reboot is False  # still running until the next boot
    assert [entry.by for entry in machine.book.entries()] == ["journal"]


def test_arguments_add_up_and_lists_are_merged(machine):
    machine.apply(ISOLATED, RDT)
    machine.apply({"name": "rdt", "value": "mba,!l3cat"}, {"name": "isolcpus", "value": "2"})
    text = (machine.root / "etc/default/grub.d/90-colocation-testbed.cfg").read_text()
    assert text.endswith('isolcpus=2 rdt=!l3cat,mba"\n')


def test_an_argument_that_shall_go(machine):
    machine.apply(ISOLATED, RDT)
    machine.boot()
    made = machine.apply({"name": "isolcpus", "state": "absent"})
    assert (made.reboot, made.rows[0].running) == (True, ("1-3",))
    assert machine.plan({"name": "isolcpus", "state": "absent"}).reboot is True
    machine.boot()
    assert machine.plan({"name": "isolcpus", "state": "absent"}).reboot is False
    machine.apply({"name": "rdt", "state": "absent"})
    assert not os.path.exists(machine.roots.drop_in)


def test_an_argument_of_others_is_said_and_stays(machine):
    made = machine.plan({"name": "quiet", "state": "absent"})
    assert (made.changed, made.reboot) == (False, False)
    assert made.warnings == ("quiet: it comes from elsewhere, which is not edited; remove it there",)


def test_killed_before_the_configuration_was_made(machine):
    made = machine.plan(ISOLATED)
    machine.book.record_many(kernel_args._changes(made, machine.roots), kernel_args.BY)
    own_changes.rewrite(machine.roots.drop_in, made.text)
    resumed = machine.apply(ISOLATED)
    assert (resumed.changed, machine.runs()) == (True, 2)
    assert grub.configured(machine.roots)[-1].value == "1-3"


def test_update_that_fails_is_taken_back(machine):
    before = machine.tree()
    (machine.root / "broken").touch()
    with pytest.raises(GrubError, match=r"update-grub: ended with status 1: no space left; what came before it was"):
        machine.apply(ISOLATED)
    assert machine.tree() == before
    assert [entry.by for entry in machine.book.entries()] == ["journal"]


def test_a_later_file_that_drops_our_arguments(machine):
    before = machine.tree()
    (machine.root / "deaf").touch()
    with pytest.raises(GrubError, match=r"lacks isolcpus=1-3 in its first entry .* look for another file"):
        machine.apply(ISOLATED)
    assert machine.tree() == before


def test_an_edit_by_hand_is_said(machine):
    machine.apply(ISOLATED)
    with open(machine.roots.drop_in, "a", encoding="utf-8") as handle:
        handle.write("GRUB_TIMEOUT=1\n")
    (warning,) = machine.plan(ISOLATED).warnings
    assert "was changed by hand" in warning


def test_hosts_with_other_boot_loaders(machine):
    os.unlink(machine.roots.update)
    assert "set the arguments where this host's kernel is started" in machine.plan(ISOLATED).unsupported
    os.makedirs(machine.root / "boot/loader/entries")
    assert "set the arguments with grubby" in machine.plan(ISOLATED).unsupported
    (machine.root / "proc/cmdline").write_text("isolcpus=1-3\n")
    made = machine.plan(ISOLATED)
    assert (made.changed, made.reboot) == (False, False)


def test_a_grub_that_reads_no_drop_ins(machine):
    (machine.root / "usr/sbin/grub-mkconfig").write_text("nothing of the kind\n")
    assert "Debian's or Ubuntu's GRUB" in machine.plan(ISOLATED).unsupported


def test_undo_where_grub_was_removed_meanwhile(machine):
    machine.apply(ISOLATED)
    os.unlink(machine.roots.update)
    machine.undo()
    assert not os.path.exists(machine.roots.drop_in)


def test_all_refused_arguments_are_told_at_once(machine):
    bad = [{"name": "root", "value": "x"}, {"name": "x", "value": True}, {"name": "rdt", "value": "a"}]
    with pytest.raises(CmdlineError) as caught:
        machine.plan(*bad, {"name": "rdt", "value": "b"})
    assert [str(caught.value).count(f"arguments[{index}]") for index in range(4)] == [1, 1, 0, 1]
