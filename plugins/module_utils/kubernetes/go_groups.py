# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that are built together from pinned Go modules: what a group is, and the name that its pins give it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

# As long as names of images of the lab.
_KEY_DIGITS = 16
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}\Z")
_VERSION_ELEMENT = re.compile(r"v[0-9]+\Z")
_GO_LINE = re.compile(r"^go ([0-9.]+)", re.MULTILINE)


class GoGroupsError(Exception):
    """A group of programs is not described as it must be; the text names the group and the key."""


@dataclass(frozen=True)
class Program:
    """One program: its Go package, and how it is asked for the version that it must print (empty: not asked)."""

    package: str
    version_argv: tuple[str, ...] = ()
    version: str = ""

    @property
    def built_name(self) -> str:
        """Return the name that `go build` gives the program: the last element of the path that is no version."""
        elements = [item for item in self.package.split("/") if not _VERSION_ELEMENT.match(item)]
        return elements[-1]


@dataclass(frozen=True)
class Group:
    """Programs that share one go.mod. `defines` are texts for the linker's -X, `packages` what cgo needs at build."""

    name: str
    go_mod: str
    go_sum: str
    programs: Mapping[str, Program]
    defines: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    cgo: bool = False
    packages: tuple[str, ...] = ()

    def key(self, machine: str) -> str:
        """Return what the group's directory is called after; `machine` is the processor's kind, such as x86_64."""
        return _digest([asdict(self), machine])

    @property
    def go_version(self) -> str:
        """Return the oldest Go that its go.mod accepts, such as 1.25.0."""
        found = _GO_LINE.search(self.go_mod)
        return found.group(1) if found else ""

    @property
    def link_flags(self) -> str:
        """Return what -ldflags takes: no symbol tables, and the version stamps."""
        return " ".join(["-s", "-w", *(f"-X {name}={text}" for name, text in sorted(self.defines.items()))])


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_KEY_DIGITS]


def selection_key(groups: Sequence[Group], machine: str) -> str:
    """Return what the directory of all programs of several groups is called after."""
    return _digest(sorted([group.name, group.key(machine)] for group in groups))


def parse(raw: Sequence[Mapping[str, Any]]) -> tuple[Group, ...]:
    """Build groups from plain values. Raises GoGroupsError for what is missing, unknown or twice there."""
    groups = tuple(_group(item) for item in raw)
    owners: dict[str, str] = {}
    for group in groups:
        for program in group.programs:
            if program in owners:
                raise GoGroupsError(
                    f"group {group.name}: program {program} is in group {owners[program]} too; leave one out"
                )
            owners[program] = group.name
    return groups


def _group(raw: Mapping[str, Any]) -> Group:
    name = raw.get("name")
    if not isinstance(name, str) or not _NAME.match(name):
        raise GoGroupsError(f"group {name!r}: is no name; use lower-case letters, digits and hyphens")
    try:
        programs = {key: _program(name, key, value) for key, value in raw["programs"].items()}
        defines = {str(key): str(value) for key, value in (raw.get("defines") or {}).items()}
        go_mod, go_sum = str(raw["go_mod"]), str(raw["go_sum"])
    except (KeyError, AttributeError) as exc:
        raise GoGroupsError(f"group {name}: needs programs, go_mod and go_sum ({exc}); see files/kubernetes") from exc
    tags, packages = (tuple(raw.get(key) or ()) for key in ("tags", "packages"))
    group = Group(name, go_mod, go_sum, programs, defines, tags, bool(raw.get("cgo")), packages)
    if not programs or not group.go_version:
        missing = "its go.mod has no line such as 'go 1.25.0'" if programs else "it has no programs"
        raise GoGroupsError(f"group {name}: {missing}; complete it")
    spaced = [key for key, value in defines.items() if re.search(r"\s", key + value)]
    if spaced:
        raise GoGroupsError(f"group {name}: defines: {spaced[0]} has a blank; the linker's -X takes none")
    return group


def _program(group: str, name: str, raw: Mapping[str, Any]) -> Program:
    if not _NAME.match(name) or not isinstance(raw.get("package"), str):
        raise GoGroupsError(f"group {group}: program {name!r} needs a name such as kubelet and its Go package")
    return Program(raw["package"], tuple(raw.get("version_argv") or ()), str(raw.get("version") or ""))
