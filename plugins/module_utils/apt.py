# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Install Debian packages so that exactly what was added is known, and nothing is started by being installed."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, journal

POLICY_FILE = "/usr/sbin/policy-rc.d"
LISTS_DIRECTORY = "/var/lib/apt/lists"
# invoke-rc.d and deb-systemd-invoke take status 101 as "action forbidden" (policy-rc.d(8)).
DENY_STATUS = 101
DENY_SCRIPT = (
    b"#!/bin/sh\n# colocation.testbed: no service starts by being installed; removed after the installation\nexit 101\n"
)
_INSTALL = re.compile(r"^Inst (\S+)( \[[^]]*\])? \(", re.MULTILINE)
_UNKNOWN = re.compile(r"E: (?:Unable to locate package|Package '?)\s*'?([a-z0-9][a-z0-9+.:-]*)")
_NAME = re.compile(r"[a-z0-9][a-z0-9+.:-]*")
_LOCKED = ("Could not get lock", "Unable to acquire the dpkg frontend lock", "Unable to lock directory")
_APT_TIMEOUT_S = 1800.0
_POLL_S = 1.0


class AptError(Exception):
    """Packages could not be installed; the text names them and what to do instead."""


@dataclass(frozen=True)
class Plan:
    """What apt would do: packages that are new, and packages that are there and get another version."""

    new: tuple[str, ...]
    upgraded: tuple[str, ...]


@dataclass(frozen=True)
class Apt:
    """How to reach apt: how long to wait for its locks, and the sentence that names the way without it."""

    lock_timeout_s: int
    advice: str
    policy_file: str = POLICY_FILE
    lists_directory: str = LISTS_DIRECTORY

    def installed(self) -> frozenset[str]:
        """Return the names of all installed packages, with and without their architecture."""
        argv = ["dpkg-query", "-W", "-f", "${binary:Package}\\t${Package}\\t${db:Status-Status}\\n"]
        try:
            return parse_installed(commands.run(argv).stdout)
        except commands.CommandError as exc:
            raise AptError(f"packages: {exc}; only hosts with apt and dpkg are served: {self.advice}") from exc

    def lists_missing(self) -> bool:
        """Tell whether apt has never fetched (or has lost) its package lists."""
        try:
            return not any("_Packages" in name for name in os.listdir(self.lists_directory))
        except OSError:
            return True

    def update(self) -> None:
        """Fetch the package lists. Raises AptError."""
        done = self._apt(["update"])
        if done.status != 0:
            raise AptError(f"apt-get update: {first_error(done)}; check the host's package sources, or {self.advice}")

    def simulate(self, names: list[str]) -> Plan:
        """Return what installing `names` would do. Raises AptError where a name is unknown or there is a conflict."""
        done = self._apt(["--simulate", *_install_argv(names)])
        if done.status != 0:
            raise AptError(self._explain(names, done))
        return parse_simulation(done.stdout)

    def install(self, names: list[str]) -> None:
        """Install `names`, start nothing. Raises AptError."""
        done = self._apt(_install_argv(names))
        if done.status != 0:
            raise AptError(self._explain(names, done))

    def _explain(self, names: list[str], done: commands.Result) -> str:
        unknown = _UNKNOWN.findall(done.stdout + done.stderr)
        if unknown:
            shown = ", ".join(sorted(set(unknown)))
            advice = f"correct the name or the sources, or {self.advice}"
            return f"packages: {shown}: not in this host's package sources; {advice}"
        return f"packages {' '.join(names)}: apt-get could not install them: {first_error(done)}; or {self.advice}"

    def _apt(self, arguments: list[str]) -> commands.Result:
        """Run apt-get; waits for the lock of the lists too, for which apt has no option of its own."""
        argv = ["apt-get", "-o", f"DPkg::Lock::Timeout={self.lock_timeout_s}", *arguments]
        deadline = time.monotonic() + self.lock_timeout_s
        while True:
            try:
                done = commands.run(
                    argv,
                    timeout_s=_APT_TIMEOUT_S,
                    check=False,
                    environment={"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_SUSPEND": "1"},
                )
            except commands.CommandError as exc:
                raise AptError(f"packages: {exc}; only hosts with apt are served: {self.advice}") from exc
            locked = done.status != 0 and any(text in done.stderr for text in _LOCKED)
            if not locked:
                return done
            if time.monotonic() > deadline:
                raise AptError(
                    f"packages: another program holds the package lock since {self.lock_timeout_s} s "
                    f"({first_error(done)}); wait for it to end and run again"
                )
            time.sleep(_POLL_S)


def check_names(names: list[str]) -> None:
    """Raise AptError for anything but plain package names: options and versions are not taken."""
    wrong = [name for name in names if not _NAME.fullmatch(name)]
    if wrong:
        raise AptError(f"packages: {wrong[0]!r} is not a package name; give lower-case names without version or option")


def _install_argv(names: list[str]) -> list[str]:
    return ["install", "-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold", *names]


def parse_installed(text: str) -> frozenset[str]:
    """Parse lines 'name:arch TAB name TAB status' into the set of both names of each installed package."""
    names: set[str] = set()
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 3 and fields[2] == "installed":
            names.update(fields[:2])
    return frozenset(names)


def parse_simulation(text: str) -> Plan:
    """Parse the 'Inst name [old version] (new version …)' lines of apt-get --simulate."""
    found = _INSTALL.findall(text)
    new = tuple(sorted({name for name, old in found if not old}))
    return Plan(new, tuple(sorted({name for name, old in found if old})))


def first_error(done: commands.Result) -> str:
    """Return the first line in which apt says what is wrong, else the last line that it printed."""
    lines = [line.strip() for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("E: ")), lines[-1] if lines else "it printed nothing")


def denies_starting(policy_file: str) -> bool:
    """Tell whether the host's own policy already forbids that installing starts services."""
    if not os.access(policy_file, os.X_OK):
        return False
    try:
        return commands.run([policy_file, "colocation-testbed", "start"], check=False).status == DENY_STATUS
    except commands.CommandError:
        return False


@contextlib.contextmanager
def nothing_started(book: journal.Journal, by: str, policy_file: str = POLICY_FILE) -> Iterator[None]:
    """Forbid that installed services start, as long as the block runs; journalled, then put back.

    A policy of ours that a killed run left is recognised and replaced by what the journal says was there before.
    """
    stale = os.path.exists(policy_file) and files.read_bytes(policy_file) == DENY_SCRIPT
    if denies_starting(policy_file) and not stale:
        yield
        return
    entry = book.record("file", policy_file, None if stale else files.capture(policy_file), by)
    files.write_atomic(policy_file, DENY_SCRIPT, 0o755)
    try:
        yield
    finally:
        files.restore(policy_file, entry.previous)
        book.forget("file", policy_file)


def units_of(names: list[str]) -> list[str]:
    """Return the systemd service units that the packages brought."""
    units: set[str] = set()
    for path in commands.run(["dpkg", "--listfiles", *names]).stdout.splitlines():
        folder, _unused, name = path.rpartition("/")
        if folder.endswith("/systemd/system") and name.endswith((".service", ".socket", ".timer")) and "@." not in name:
            units.add(name)
    return sorted(units)


def disable_units(names: list[str]) -> list[str]:
    """Keep the units of freshly installed packages from starting at the next boot; returns those disabled."""
    if not os.path.isdir("/run/systemd/system"):
        return []
    units = [
        unit for unit in units_of(names) if commands.run(["systemctl", "is-enabled", unit], check=False).status == 0
    ]
    if units:
        commands.run(["systemctl", "disable", *units])
    return units
