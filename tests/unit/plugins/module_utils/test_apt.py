# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parsing what apt prints, and that nothing starts by being installed."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils import apt, commands
from ansible_collections.colocation.testbed.plugins.module_utils.journal import Journal

NAME = st.from_regex(r"[a-z0-9][a-z0-9+.-]{1,12}", fullmatch=True)
SIMULATION = """Reading package lists...
The following NEW packages will be installed:
  libexample1 nginx
Inst libexample1 (1.2-3 Debian:12.1/stable [amd64])
Inst libc6 [2.36-9] (2.36-10 Debian:12.1/stable [amd64]) []
Inst nginx (1.22.1-9 Debian:12.1/stable [amd64])
Conf libexample1 (1.2-3 Debian:12.1/stable [amd64])
"""


@given(st.sets(NAME), st.sets(NAME))
def test_only_installed_packages_count_under_both_names(there, gone):
    lines = [f"{name}:amd64\t{name}\tinstalled\n" for name in there]
    lines += [f"{name}\t{name}\tconfig-files\n" for name in gone]
    found = apt.parse_installed("".join(lines))
    assert found == {*there, *(f"{name}:amd64" for name in there)}


@given(st.sets(NAME), st.sets(NAME))
def test_a_simulation_tells_new_from_upgraded(new, old):
    lines = [f"Inst {name} (1.0 Debian [amd64])\n" for name in sorted(new)]
    lines += [f"Inst {name} [0.9] (1.0 Debian [amd64]) []\n" for name in sorted(old)]
    assert apt.parse_simulation("".join(lines)) == apt.Plan(tuple(sorted(new)), tuple(sorted(old)))


def test_a_real_simulation():
    assert apt.parse_simulation(SIMULATION) == apt.Plan(("libexample1", "nginx"), ("libc6",))


@given(st.text(max_size=200))
def test_any_text_is_parsed_without_an_error(text):
    apt.parse_installed(text)
    apt.parse_simulation(text)


@pytest.mark.parametrize("name", ["-o", "--purge", "nginx=1.2", "Nginx", "", "a b", "../x"])
def test_what_is_no_package_name_is_refused(name):
    with pytest.raises(apt.AptError, match="is not a package name"):
        apt.check_names(["gcc", name])


class Runner:
    """Answers in the place of apt-get."""

    def __init__(self, *answers: tuple[int, str]) -> None:
        self.answers = list(answers)
        self.calls: list[list[str]] = []

    def __call__(self, argv, **_more):
        self.calls.append(list(argv))
        status, text = self.answers.pop(0)
        return commands.Result(tuple(argv), status, text if status == 0 else "", text if status else "")


@pytest.fixture
def tool(tmp_path):
    return apt.Apt(
        0, "install it yourself and set x_install to false", str(tmp_path / "policy"), str(tmp_path / "lists")
    )


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("E: Unable to locate package nosuch\n", "packages: nosuch: not in this host's package sources"),
        ("E: Package 'nosuch' has no installation candidate\n", "packages: nosuch: not in this host's package sources"),
        ("W: x\nE: dpkg was interrupted\n", "could not install them: E: dpkg was interrupted"),
    ],
)
def test_failures_name_the_package_and_the_way_without(monkeypatch, tool, answer, sentence):
    monkeypatch.setattr(commands, "run", Runner((100, answer)))
    with pytest.raises(apt.AptError, match="set x_install to false") as caught:
        tool.install(["nosuch"])
    assert sentence in str(caught.value)


def test_a_lock_is_waited_for_and_then_named(monkeypatch, tool):
    locked = (100, "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)\n")
    monkeypatch.setattr(apt, "_POLL_S", 0.0)
    runner = Runner(locked, locked, (0, ""))
    monkeypatch.setattr(commands, "run", runner)
    apt.Apt(60, "x").update()
    assert len(runner.calls) == 3
    assert "DPkg::Lock::Timeout=60" in runner.calls[0]
    monkeypatch.setattr(commands, "run", Runner(locked, locked))
    with pytest.raises(apt.AptError, match="held by process 7"):
        tool.update()


def test_missing_lists(tool, tmp_path):
    assert tool.lists_missing()
    (tmp_path / "lists").mkdir()
    assert tool.lists_missing()
    (tmp_path / "lists" / "deb.debian.org_main_binary-amd64_Packages.lz4").touch()
    assert not tool.lists_missing()


def test_a_host_without_apt_is_one_sentence(monkeypatch, tool):
    def missing(argv, **_more):
        raise commands.CommandError(f"{argv[0]}: is not there")

    monkeypatch.setattr(commands, "run", missing)
    for call in (tool.installed, tool.update):
        with pytest.raises(apt.AptError, match="only hosts with apt"):
            call()


@pytest.mark.parametrize("before", [None, b"#!/bin/sh\nexit 0\n"], ids=["no policy", "a policy that allows"])
def test_starting_is_forbidden_while_installing_and_the_policy_is_put_back(tmp_path, before):
    policy = tmp_path / "policy-rc.d"
    if before is not None:
        policy.write_bytes(before)
        policy.chmod(0o750)
    book = Journal(str(tmp_path / "journal.json"))

    def install() -> None:
        with apt.nothing_started(book, "packages", str(policy)):
            assert apt.denies_starting(str(policy))
            assert [entry.target for entry in book.entries()] == [str(policy)]
            raise KeyError

    with pytest.raises(KeyError):
        install()
    assert book.entries() == ()
    assert (policy.read_bytes() if policy.exists() else None) == before
    if before is not None:
        assert policy.stat().st_mode & 0o777 == 0o750


def test_a_policy_that_forbids_already_is_left_alone(tmp_path):
    policy = tmp_path / "policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    book = Journal(str(tmp_path / "journal.json"))
    with apt.nothing_started(book, "packages", str(policy)):
        assert policy.read_text() == "#!/bin/sh\nexit 101\n"
        assert not os.path.exists(book.path)


def test_the_policy_of_a_killed_run_is_not_taken_for_the_hosts_own(tmp_path):
    policy = tmp_path / "policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 0\n")
    policy.chmod(0o755)
    book = Journal(str(tmp_path / "journal.json"))
    killed = apt.nothing_started(book, "packages", str(policy))
    killed.__enter__()
    with apt.nothing_started(book, "packages", str(policy)):
        pass
    assert policy.read_text() == "#!/bin/sh\nexit 0\n"


def test_units_that_came_with_packages(monkeypatch):
    text = "/lib/systemd/system/nginx.service\n/lib/systemd/system/x@.service\n/lib/systemd/system/y.timer\n/etc/x\n"
    monkeypatch.setattr(commands, "run", Runner((0, text)))
    assert apt.units_of(["nginx"]) == ["nginx.service", "y.timer"]
