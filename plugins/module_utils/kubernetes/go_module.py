# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Koordinator's sources as a Go module: fetched into Go's module cache, and known by their checksum."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

from ansible_collections.colocation.testbed.plugins.module_utils import commands

PATH = "github.com/koordinator-sh/koordinator"
SUMS: Mapping[str, str] = {
    "1.7.0": "h1:G4O5uwqre+gMFjnm72xoA9nCtRdCyd9YfRe65jP7A3A=",
    "1.8.0": "h1:CEMaFv6qru+arNhcdhkLP2Shxw77Heb6PSaXjHZ/t0I=",
}
"""Version to the checksum of its module (golang.org/ref/mod, go.sum files)."""


class GoModuleError(Exception):
    """The module can't be had, or is not the one that is known; the text says why and what to do."""


@dataclass(frozen=True)
class Source:
    """Where the sources are, and their checksum."""

    directory: str
    sum: str


def fetch(version: str, go: str, timeout_s: float, run: Callable[..., commands.Result] = commands.run) -> Source:
    """Return the sources of a version, fetched when they are not in Go's cache. Raises GoModuleError."""
    argv = [go, "mod", "download", "-json", f"{PATH}@v{version}"]
    # Outside of any module of somebody else, whose settings would count.
    with tempfile.TemporaryDirectory() as place:
        try:
            done = run(argv, timeout_s=timeout_s, check=False, directory=place)
        except commands.CommandError as exc:
            raise GoModuleError(f"{exc}, or give the directory of the sources yourself") from exc
    told = _parsed(done.stdout)
    if done.status != 0 or told.get("Error"):
        why = " ".join(str(told.get("Error") or done.stderr).split())[-300:]
        raise GoModuleError(
            f"{PATH} {version}: can't be fetched: {why}; look at go env GOPROXY, or give the directory of the sources"
        )
    found = Source(str(told.get("Dir", "")), str(told.get("Sum", "")))
    if found.sum != SUMS.get(version):
        raise GoModuleError(
            f"{PATH} {version}: has checksum {found.sum}, not {SUMS.get(version)}; somebody else's module came, remove "
            f"{found.directory} and look at go env GOPROXY"
        )
    return found


def _parsed(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
