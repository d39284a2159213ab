# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GRUB's drop-in and configuration on a made-up host whose update-grub is a script of a few lines."""

from __future__ import annotations

import os
import subprocess

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import journal, own_changes, undo
from ansible_collections.colocation.testbed.plugins.module_utils.boot import grub, kernel_args
from ansible_collections.colocation.testbed.plugins.module_utils.boot.cmdline import CmdlineError
from ansible_collections.colocation.testbed.plugins.module_utils.boot.grub import GrubError

# What Debian's grub-mkconfig does with the arguments, and nothing else.
UPDATE = """#!/bin/sh
set -e
echo run >> {root}/runs
test ! -e {root}/broken || {{ echo "no space left" >&2; exit 1; }}
GRUB_CMDLINE_LINUX_DEFAULT=quiet
for x in {root}/etc/default/grub.d/*.cfg; do
  if [ -e "$x" ]; then . "$x"; fi
done
test ! -e {root}/deaf || GRUB_CMDLINE_LINUX_DEFAULT=quiet
exec > {root}/boot/grub/grub.cfg
printf 'menuentry x {{\\n\\tlinux\\t/vmlinuz-6.1 root=UUID=1 ro %s\\n}}\\n' "$GRUB_CMDLINE_LINUX_DEFAULT"
"""


class Machine:
    def __init__(self, root):
        self.root = root
        self.roots = grub.Roots(*(str(root / name) for name in ("etc", "usr", "boot", "proc", "sys")))
        for name in ("etc/default", "usr/sbin", "boot/grub", "proc", "sys/devices/system/cpu"):
            os.makedirs(root / name)
        (root / "sys/devices/system/cpu/online").write_text("0-3\n")
        (root / "usr/sbin/grub-mkconfig").write_text("for x in ${sysconfdir}/default/grub.d/*.cfg ; do\n")
        (root / "usr/sbin/update-grub").write_text(UPDATE.format(root=root))
        os.chmod(root / "usr/sbin/update-grub", 0o755)
        subprocess.run([str(root / "usr/sbin/update-grub")], check=True)
        self.boot()
        self.book = journal.Journal(str(root / "state/journal.json"))

    def boot(self):
        line = (self.root / "boot/grub/grub.cfg").read_text().split("\n")[1]
        (self.root / "proc/cmdline").write_text("BOOT_IMAGE=/vmlinuz-6.1 " + line.split(None, 2)[2] + "\n")

    def runs(self):
        return len((self.root / "runs").read_text().split())

    def plan(self, *raw):
        wanted = kernel_args.parse([{"state": "present", **item} for item in raw], self.roots.sys)
        return kernel_args.plan(wanted, self.roots, own_changes.written(self.book))

    def apply(self, *raw):
        made = self.plan(*raw)
        if made.changed:
            kernel_args.apply(made, self.roots, self.book)
        return made

    def undo(self):
        own_changes.undo(self.book, kernel_args.BY, undo.Undo().handlers())

    def tree(self):
        found = {}
        for top in ("etc", "boot", "usr"):
            for folder, below, names in os.walk(self.root / top):
                found.update({os.path.join(folder, name): "" for name in below})
                for name in names:
                    with open(os.path.join(folder, name), encoding="utf-8") as handle:
                        found[os.path.join(folder, name)] = handle.read()
        return found


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
    kernel_args._write(machine.roots, made.text)
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
