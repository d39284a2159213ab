# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller and the inventory must have, before any host is asked."""

from __future__ import annotations

import importlib.util
import platform
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ansible.release import __version__ as ansible_version

from ansible_collections.colocation.testbed.plugins.plugin_utils import ranges
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import claim
from ansible_collections.colocation.testbed.plugins.plugin_utils.preflight.rows import Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WHERE = "controller"
PACKAGES = ("numpy", "matplotlib", "jsonschema")
MIN_ANSIBLE = (2, 19)
MIN_PYTHON = (3, 11)


def programs() -> Iterator[Row]:
    """Yield a row for each program and package that the controller needs."""
    good = _pair(ansible_version) >= MIN_ANSIBLE
    advice = "pip install -r requirements.txt, or run make matrix, which does"
    yield _row("ansible-core", "2.19 or newer", ansible_version, good, advice)
    version = platform.python_version()
    yield _row(
        "Python", "3.11 or newer", version, _pair(version) >= MIN_PYTHON, "run ansible-playbook with a newer one"
    )
    for package in PACKAGES:
        there = importlib.util.find_spec(package) is not None
        yield _row(package, "installed", "installed" if there else "missing", there, advice)


def groups(inventory: Mapping[str, Sequence[str]]) -> Iterator[Row]:
    """Yield a row for each group that the inventory must have, with exactly one host each, and not the same one."""
    for group in ("tested", "load"):
        hosts = list(inventory.get(group, ()))
        found = ", ".join(hosts) or "no host"
        advice = f"put exactly one host into the group {group!r} of your inventory (there: {found})"
        yield _row(f"group {group}", "one host", found, len(hosts) == 1, advice)
        yield from (_unnameable(host) for host in hosts if not ranges.HOST_NAME.fullmatch(host))
    both = set(inventory.get("tested", ())) & set(inventory.get("load", ()))
    if both:
        name = sorted(both)[0]
        yield _row(
            "groups", "two hosts", name, False, f"{name} is in both groups; the load must come from another host"
        )


def _unnameable(host: str) -> Row:
    advice = (
        f"host {host!r}: its files are called after it; name it with letters, digits, dots, dashes and underscores "
        "in the inventory, and put its address into ansible_host"
    )
    return _row("host's name", "a file's name", host, False, advice)


def free(node: str) -> Row:
    """Return the row that says whether another matrix measures on the tested node at this moment."""
    try:
        with claim.claimed(node, claim.directory()):
            return Row("tested node", WHERE, "free", "free")
    except claim.ClaimError as exc:
        return Row("tested node", WHERE, "free", "in use", "missing", str(exc))


def results(directory: str) -> Row:
    """Return the row of the results directory: the nearest part of it that exists must be a writable directory."""
    place = Path(directory)
    while not place.exists() and place != place.parent:
        place = place.parent
    why = _why_unwritable(place)
    advice = f"matrix_results_dir is {directory!r}: {place} is no directory that can be written ({why}); choose another"
    return _row("results directory", "writable", str(place) if why else "writable", not why, advice)


def _why_unwritable(place: Path) -> str:
    """Return why no file can be made in a directory; empty where one can. It is tried with a file without a name."""
    try:
        with tempfile.TemporaryFile(dir=place):
            return ""
    except OSError as exc:
        return str(exc.strerror)


def sentences(what: str, needed: str, problems: Sequence[str]) -> Iterator[Row]:
    """Yield a row for each problem that another part found, or one good row."""
    if not problems:
        yield Row(what, WHERE, needed, needed)
    for problem in problems:
        yield Row(what, WHERE, needed, "wrong", "missing", problem)


def _row(what: str, needed: str, found: str, good: bool, advice: str) -> Row:
    return Row(what, WHERE, needed, found) if good else Row(what, WHERE, needed, found, "missing", advice)


def _pair(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)
