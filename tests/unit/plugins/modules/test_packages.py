# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module packages with a made-up apt: what it installs, journals and says."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.colocation.testbed.plugins.module_utils import apt
from ansible_collections.colocation.testbed.plugins.module_utils.journal import Journal
from ansible_collections.colocation.testbed.plugins.modules import packages

SOURCES = {"nginx": ["nginx", "nginx-common"], "gcc": ["gcc"], "mail-agent": ["exim4"]}


class FakeApt:
    """A host with some packages, and sources that hold those of SOURCES once the lists are there."""

    def __init__(self) -> None:
        self.there = {"gcc"}
        self.lists = True
        self.broken = False
        self.updates = 0
        self.policy_file = "/none/policy"

    def __call__(self, lock_timeout_s, advice):
        return self

    def installed(self):
        return frozenset(self.there)

    def lists_missing(self):
        return not self.lists

    def update(self):
        self.lists, self.broken = True, False
        self.updates += 1

    def simulate(self, names):
        unknown = [name for name in names if name not in SOURCES]
        if unknown:
            raise apt.AptError(f"packages: {unknown[0]}: unknown")
        new = {item for name in names for item in SOURCES[name]} - self.there
        return apt.Plan(tuple(sorted(new)), ("libc6",) if "nginx" in names else ())

    def install(self, names):
        plan = self.simulate(names)
        if self.broken:
            self.there.add("nginx-common")
            raise apt.AptError("packages: interrupted")
        self.there.update(plan.new)


@pytest.fixture
def fake(monkeypatch):
    made = FakeApt()
    monkeypatch.setattr(apt, "Apt", made)
    monkeypatch.setattr(apt, "denies_starting", lambda _path: True)
    monkeypatch.setattr(apt, "disable_units", lambda _names: [])
    return made


@pytest.fixture
def run(capsys, tmp_path):
    def _run(*names, **more):
        arguments = {"names": list(names), "state_dir": str(tmp_path / "state"), **more}
        with patch_module_args(arguments), pytest.raises(SystemExit):
            packages.main()
        return json.loads(capsys.readouterr().out)

    return _run


@pytest.fixture
def book(tmp_path):
    return Journal(str(tmp_path / "state" / "journal.json"))


def recorded(book):
    return sorted(entry.target for entry in book.entries() if entry.kind == "package")


def test_installs_what_is_missing_and_journals_exactly_what_is_new(fake, run, book):
    result = run("gcc", "nginx")
    assert (result["changed"], result["installed"]) == (True, ["nginx", "nginx-common"])
    assert result["upgraded"] == ["libc6"]
    assert "libc6 was there before" in str(result["warnings"])
    assert recorded(book) == ["nginx", "nginx-common"]
    again = run("gcc", "nginx")
    assert (again["changed"], again["installed"], fake.updates) == (False, [], 0)


def test_check_mode_predicts(fake, run, book):
    result = run("nginx", _ansible_check_mode=True, _ansible_diff=True)
    assert result["installed"] == ["nginx", "nginx-common"]
    assert result["diff"]["after"] == "nginx\nnginx-common\n"
    assert fake.there == {"gcc"}
    assert not book.exists()
    fake.lists = False
    assert run("nginx", _ansible_check_mode=True)["installed"] == ["nginx"]
    assert fake.updates == 0


def test_lists_are_fetched_only_when_missing(fake, run):
    fake.lists = False
    assert run("nginx")["updated_lists"]
    assert fake.updates == 1


def test_a_failed_installation_is_tried_again_with_fresh_lists(fake, run, book):
    fake.broken = True
    assert run("nginx")["updated_lists"]
    assert recorded(book) == ["nginx", "nginx-common"]


def test_what_a_failed_installation_left_stays_in_the_journal(fake, run, book, monkeypatch):
    monkeypatch.setattr(fake, "update", lambda: None)
    fake.broken = True
    assert run("nginx")["msg"] == "packages: interrupted"
    assert fake.there == {"gcc", "nginx-common"}
    assert recorded(book) == ["nginx-common"]


def test_unknown_packages_fail_before_anything_is_changed(fake, run, book):
    assert "nosuch: unknown" in run("nginx", "nosuch")["msg"]
    assert fake.there == {"gcc"}
    assert recorded(book) == []


def test_a_virtual_package_is_refused_because_the_next_run_would_not_find_it(fake, run):
    assert "name the package itself" in run("mail-agent")["msg"]


def test_options_are_not_package_names(fake, run):
    assert "is not a package name" in run("--purge")["msg"]
