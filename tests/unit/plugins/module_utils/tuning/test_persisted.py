# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values for the next boot: our drop-in files, and what others say about the same values."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils import own_changes, undo
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import netns_value
from ansible_collections.colocation.testbed.plugins.module_utils.tuning import apply, persisted, plan, report, settings
from ansible_collections.colocation.testbed.plugins.module_utils.tuning.settings import TuningError
from ansible_collections.colocation.testbed.plugins.module_utils.tuning.targets import SYSCTL, TMPFILES

SWAPPINESS = {"kind": "sysctl", "name": "vm.swappiness", "value": 10}
THP = {"kind": "thp", "name": "enabled", "value": "never"}


def planned(tools, *raw, persist=True):
    parsed, problems = settings.parse(list(raw), persist, "fail")
    return plan.plan(parsed, problems, tools.roots, own_changes.written(tools.book))


def tune(tools, *raw, persist=True):
    wanted = planned(tools, *raw, persist=persist)
    if wanted.changed:
        apply.apply(wanted, tools)
    return wanted


def text(host, keeper):
    path = f"{host.roots.etc}/{keeper}/90-colocation-testbed.conf"
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as handle:
        return handle.read().partition("\n")[2]


def test_both_files_are_written_once_and_go_with_undo(host, tools):
    before = host.everything()
    rmem = {"kind": "sysctl", "name": "net.ipv4.tcp_rmem", "value": "4096\t131072 6291456"}
    wanted = tune(tools, SWAPPINESS, THP, rmem)
    assert text(host, SYSCTL) == "net.ipv4.tcp_rmem = 4096 131072 6291456\nvm.swappiness = 10\n"
    thp = f"{host.roots.sys}/kernel/mm/transparent_hugepage/enabled"
    assert text(host, TMPFILES) == f"w {thp} - - - - never\n"
    assert wanted.warnings == ()
    assert not planned(tools, SWAPPINESS, THP, rmem).changed
    own_changes.undo(tools.book, apply.BY, undo.Undo(proc_root=host.roots.proc).handlers())
    host.put(thp, before[thp])
    assert host.everything().keys() == before.keys()


def test_live_and_kept_are_compared_separately(host, tools):
    tune(tools, SWAPPINESS)
    host.put(f"{host.roots.proc}/sys/vm/swappiness", "60\n")
    (row,) = (wanted := planned(tools, SWAPPINESS)).rows
    assert (row.state, row.kept.before, row.kept.wanted, wanted.files) == ("change", "10", "10", ())
    host.put(f"{host.roots.proc}/sys/vm/swappiness", "10\n")
    os.unlink(f"{host.roots.etc}/sysctl.d/90-colocation-testbed.conf")
    (row,) = (wanted := planned(tools, SWAPPINESS)).rows
    assert (row.state, row.kept.before, len(wanted.files)) == ("same", None, 1)


def test_a_value_that_shall_not_be_kept_any_more_leaves_the_file(host, tools):
    tune(tools, SWAPPINESS, {"kind": "numa_balancing", "value": 0})
    tune(tools, {**SWAPPINESS, "persist": False})
    assert text(host, SYSCTL) == "kernel.numa_balancing = 0\n"
    tune(tools, {"kind": "numa_balancing", "value": 0}, persist=False)
    assert text(host, SYSCTL) is None


def test_directories_are_made_and_removed(host, tools):
    os.rmdir(f"{host.roots.etc}/sysctl.d")
    tune(tools, SWAPPINESS)
    assert text(host, SYSCTL) == "vm.swappiness = 10\n"
    own_changes.undo(tools.book, apply.BY, undo.Undo(proc_root=host.roots.proc).handlers())
    assert not os.path.exists(f"{host.roots.etc}/sysctl.d")


def test_an_edit_by_hand_is_said_and_kept_as_values(host, tools):
    tune(tools, SWAPPINESS)
    path = f"{host.roots.etc}/sysctl.d/90-colocation-testbed.conf"
    with open(path, "a", encoding="utf-8") as handle:
        handle.write("vm.min_free_kbytes=70000\n")
    wanted = tune(tools, {**SWAPPINESS, "value": 20})
    assert wanted.warnings == (f"{path} was changed by hand since it was written; put such values elsewhere",)
    assert text(host, SYSCTL) == "vm.min_free_kbytes = 70000\nvm.swappiness = 20\n"
    assert planned(tools, {**SWAPPINESS, "value": 20}).warnings == ()


def test_a_later_file_that_says_something_else_is_named(host, tools):
    host.put(f"{host.roots.etc}/sysctl.d/10-early.conf", "vm.swappiness = 1\n")
    host.put(f"{host.roots.usr}/lib/sysctl.d/99-late.conf", "# a comment\n-vm/swappiness=80\nkernel.x=1\n")
    host.put(f"{host.roots.etc}/sysctl.d/95-same.conf", "vm.swappiness = 10\n")
    (warning,) = planned(tools, SWAPPINESS).warnings
    assert "99-late.conf sets vm.swappiness to '80' at boot, against '10'" in warning
    host.put(f"{host.roots.etc}/sysctl.d/99-late.conf", "")
    assert planned(tools, SWAPPINESS).warnings == ()


def test_another_line_for_a_path_in_tmpfiles(host, tools):
    path = f"{host.roots.sys}/kernel/mm/transparent_hugepage/enabled"
    host.put(f"{host.roots.usr}/lib/tmpfiles.d/thp.conf", f"d /run/x 0755 root root -\nw! {path} - - - - always\n")
    (warning,) = planned(tools, THP).warnings
    assert "thp.conf sets" in warning
    assert planned(tools, {**THP, "persist": False}).warnings == ()


def test_without_systemd_only_sysctls_are_kept(host, tools):
    os.rmdir(f"{host.roots.run}/systemd/system")
    wanted = tune(tools, SWAPPINESS, THP)
    assert [bool(row.kept.why) for row in wanted.rows] == [False, True]
    assert "systemd does not run here" in wanted.rows[1].kept.why
    assert (text(host, SYSCTL), text(host, TMPFILES)) == ("vm.swappiness = 10\n", None)
    assert not planned(tools, SWAPPINESS, THP).changed


def test_in_a_network_namespace_nothing_is_kept(host, tools, monkeypatch):
    monkeypatch.setattr(netns_value, "current", lambda *_roots: netns_value.Space(1, "boot", "x"))
    (row,) = planned(tools, SWAPPINESS).rows
    assert "whose files are those of the machine" in row.kept.why


@pytest.mark.parametrize(
    "setting",
    [
        {"kind": "irq_affinity", "name": "*", "value": "0"},
        {"kind": "rps", "name": "eth0", "value": "0"},
        {"kind": "swap", "name": "all", "value": "disabled"},
    ],
)
def test_what_cannot_be_kept_says_why(tools, setting):
    wanted = planned(tools, setting)
    assert all("apply again after it" in row.kept.why for row in wanted.rows)
    assert len(report.missing(wanted)) == 1
    assert report.missing(planned(tools, setting, persist=False)) == []


def test_something_else_in_the_place_of_our_file(host, tools):
    os.mkdir(f"{host.roots.etc}/sysctl.d/90-colocation-testbed.conf")
    with pytest.raises(TuningError, match="is not a regular file, so it is not replaced; move it away"):
        planned(tools, SWAPPINESS)


VALUE = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
PATH = st.text(st.sampled_from("abc/%.-_0"), min_size=1, max_size=20).map(lambda name: f"/sys/{name}")


@given(st.dictionaries(PATH, VALUE, max_size=5))
def test_writes_are_read_as_written(values):
    drop_in = persisted.DropIn(TMPFILES, "x", None, {})
    assert dict(persisted.writes(drop_in.updated(values) or "")) == values


@given(st.text(max_size=200))
def test_any_text_is_a_file_of_some_writes(content):
    assert all(isinstance(key, str) and value for key, value in persisted.writes(content))
